// SPDX-License-Identifier: Apache-2.0

package neutron_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/neutron"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// opened returns a client of the lab's Neutron as Almanac's service user.
func opened(t *testing.T) *neutron.Client {
	t.Helper()
	lab, u := labtest.Keystone(t), labtest.Almanac
	session, err := keystone.NewSession(keystone.Connection{
		AuthURL: lab.AuthURL, Username: u.Name, Password: u.Password, ProjectName: u.Project,
	}, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client, err := neutron.New(session, openstack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

//make:test-networks
func TestFloatingIPsOfOtherProjectsAreCreatedTaggedAndDeleted(t *testing.T) {
	lab := labtest.Neutron(t)
	client, network := opened(t), lab.External()
	demo := labtest.Keystone(t).REST(t, labtest.Demo).ProjectID
	want := address.Floating{Network: network, Address: "198.51.100.101", Project: demo, Reservation: "r"}
	if err := client.PutFloating(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if err := client.PutFloating(t.Context(), want); !fault.Is(err, fault.Conflict) {
		t.Errorf("the same address a second time: %v", err)
	}
	theirs := lab.CreateFloatingIP(network, "198.51.100.102", demo)
	unmarked := address.Floating{ID: theirs, Network: network, Address: "198.51.100.102", Project: demo}
	found := read(t, client, network, "198.51.100.101", "198.51.100.102", "198.51.100.103")
	want.ID, want.Tagged = found["198.51.100.101"].ID, true
	if len(found) != 2 || found["198.51.100.101"] != want || found["198.51.100.102"] != unmarked {
		t.Errorf("there are %+v", found)
	}
	unmarked.Reservation = "s"
	if err := client.PutFloating(t.Context(), unmarked); err != nil {
		t.Fatal(err)
	}
	unmarked.Tagged = true
	if got := read(t, client, network, "198.51.100.102")["198.51.100.102"]; got != unmarked {
		t.Errorf("with tags it is %+v", got)
	}
	for range 2 {
		if err := client.DeleteFloating(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	if left := read(t, client, network, "198.51.100.101"); len(left) > 0 {
		t.Errorf("after its deletion there is %+v", left)
	}
}

func read(t *testing.T, client *neutron.Client, network string, addresses ...string) map[string]address.Floating {
	t.Helper()
	list, err := client.Floating(t.Context(), network, addresses)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]address.Floating{}
	for _, f := range list {
		found[f.Address] = f
	}
	return found
}

//make:test-networks
func TestManyAddressesAreReadInSeveralQuestions(t *testing.T) {
	lab := labtest.Neutron(t)
	client, network := opened(t), lab.External()
	demo := labtest.Keystone(t).REST(t, labtest.Demo).ProjectID
	var many []string
	for i := 100; i < 220; i++ {
		many = append(many, fmt.Sprintf("198.51.100.%d", i))
	}
	for _, a := range []string{many[0], many[60], many[119]} {
		lab.CreateFloatingIP(network, a, demo)
	}
	if got := read(t, client, network, many...); len(got) != 3 {
		t.Errorf("three exist, and it found %v", got)
	}
}

//make:test-networks
func TestANetworkHasItsSubnets(t *testing.T) {
	lab := labtest.Neutron(t)
	client, network := opened(t), lab.External()
	n, err := client.Network(t.Context(), network)
	if err != nil {
		t.Fatal(err)
	}
	if len(n.Subnets) != 1 || !n.External || n.ID != network {
		t.Fatalf("the network is %+v", n)
	}
	s := n.Subnets[0]
	if s.CIDR != "198.51.100.0/24" || s.Gateway != "198.51.100.1" || !slices.Equal(s.Pools, []address.Range{{First: "198.51.100.2", Last: "198.51.100.9"}}) {
		t.Errorf("the subnet is %+v", s)
	}
	if _, err := client.Network(t.Context(), "no-such-network"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a missing network: %v", err)
	}
}
