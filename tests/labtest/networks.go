// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"fmt"
	"net/url"
	"os"
	"testing"
)

// Networks is the lab's Neutron, as the admin uses it.
type Networks struct {
	*REST
}

// FloatingIP is a floating IP in Neutron.
type FloatingIP struct {
	ID      string   `json:"id"`
	Address string   `json:"floating_ip_address"`
	Project string   `json:"project_id"`
	Port    string   `json:"port_id"`
	Tags    []string `json:"tags"`
}

// Neutron returns the Neutron of the lab. It skips the test in a lab without the part networks.
func Neutron(t testing.TB) Networks {
	t.Helper()
	if os.Getenv("ALMANAC_TEST_NETWORKS") == "" {
		t.Skip("`make test-networks` runs this, in a lab with a real Neutron")
	}
	port(t, "networks")
	return Networks{Keystone(t).REST(t, Admin)}
}

// External creates an external network and returns its id; it is deleted when the test ends. Of its
// subnet 198.51.100.0/24, Neutron allocates .2 to .9 by itself.
func (n Networks) External() string {
	n.t.Helper()
	var made struct{ Network struct{ ID string } }
	n.Must("POST", "network", "/v2.0/networks", map[string]any{"network": map[string]any{
		"name": unique("external-"), "router:external": true, "provider:network_type": "local",
	}}, &made)
	id := made.Network.ID
	n.t.Cleanup(func() {
		for _, f := range n.FloatingIPs(id) {
			n.DeleteFloatingIP(f.ID)
		}
		n.Must("DELETE", "network", "/v2.0/networks/"+id, nil, nil)
	})
	n.Must("POST", "network", "/v2.0/subnets", map[string]any{"subnet": map[string]any{
		"network_id": id, "ip_version": 4, "cidr": "198.51.100.0/24", "gateway_ip": "198.51.100.1", "enable_dhcp": false,
		"allocation_pools": []map[string]string{{"start": "198.51.100.2", "end": "198.51.100.9"}},
	}}, nil)
	return id
}

// FloatingIPs returns the floating IPs of a network, sorted by address.
func (n Networks) FloatingIPs(network string) []FloatingIP {
	n.t.Helper()
	var found struct {
		FloatingIPs []FloatingIP `json:"floatingips"`
	}
	query := url.Values{"floating_network_id": {network}, "sort_key": {"floating_ip_address"}, "sort_dir": {"asc"}}
	n.Must("GET", "network", "/v2.0/floatingips?"+query.Encode(), nil, &found)
	return found.FloatingIPs
}

// CreateFloatingIP creates a floating IP at an address of a network in a project.
func (n Networks) CreateFloatingIP(network, address, project string) (id string) {
	n.t.Helper()
	var made struct {
		FloatingIP FloatingIP `json:"floatingip"`
	}
	n.Must("POST", "network", "/v2.0/floatingips", map[string]any{"floatingip": map[string]string{
		"floating_network_id": network, "floating_ip_address": address, "project_id": project,
	}}, &made)
	return made.FloatingIP.ID
}

// DeleteFloatingIP deletes a floating IP.
func (n Networks) DeleteFloatingIP(id string) {
	n.t.Helper()
	n.Must("DELETE", "network", "/v2.0/floatingips/"+id, nil, nil)
}

// Addresses returns the addresses of floating IPs.
func Addresses(list []FloatingIP) []string {
	addresses := make([]string, len(list))
	for i, f := range list {
		addresses[i] = f.Address
	}
	return addresses
}

func (f FloatingIP) String() string { return fmt.Sprintf("%s of %s %v", f.Address, f.Project, f.Tags) }
