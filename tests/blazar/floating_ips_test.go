// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/blazartest"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// patient bounds the waits for Neutron.
const patient = 3 * time.Minute

// floating is an Almanac beside a real Neutron with an external network.
type floating struct {
	*blazartest.InCatalog
	neutron labtest.Networks
	network string
	project string // of demo
}

// Floating IPs are enrolled, promised once, created at the start, restored, and deleted at the end.
//
//make:test-networks
func TestFloatingIPsAreReservedInNeutron(t *testing.T) {
	neutron := labtest.Neutron(t)
	f := &floating{InCatalog: blazartest.StartInCatalog(t, "region-"+rand.Text()), neutron: neutron, network: neutron.External()}
	f.project = labtest.Keystone(t).REST(t, labtest.Demo).ProjectID
	f.enrolls()
	lease := f.starts()
	f.promisesOnce()
	f.restores(lease)
	f.ends(lease)
	f.waitsForAnObstacle()
	f.isEmptied()
}

// enrolls adds .101 and .102 to the pool.
func (f *floating) enrolls() {
	if list := f.Admin.Lists("floatingip list"); len(list) != 0 {
		f.T.Errorf("nothing is enrolled, and the list is %v", list)
	}
	made := f.Admin.Shows("floatingip create", f.network, "198.51.100.101")
	f.Admin.Has(made, blazartest.Table{"floating_network_id": f.network, "floating_ip_address": "198.51.100.101", "reservable": true})
	f.Admin.Does("floatingip create", f.network, "198.51.100.102")
	f.Admin.Fails("can be reserved already", "floatingip create", f.network, "198.51.100.102")
	f.Admin.Fails("is used in allocation_pools or gateway_ip", "floatingip create", f.network, "198.51.100.5")
	f.Admin.Fails("is used in allocation_pools or gateway_ip", "floatingip create", f.network, "198.51.100.1")
	f.Admin.Fails("Valid subnet for the floating IP 192.0.2.1 is not found", "floatingip create", f.network, "192.0.2.1")
	f.Admin.Fails("Failed to find network no-such-network", "floatingip create no-such-network 198.51.100.103")
	f.Demo.Fails("Policy doesn't allow blazar:floatingips:post", "floatingip create", f.network, "198.51.100.103")
	if got := slices.Sorted(slices.Values(blazartest.Column(f.Demo.Lists("floatingip list"), "floating_ip_address"))); !slices.Equal(got, []string{"198.51.100.101", "198.51.100.102"}) {
		f.T.Errorf("the pool is %v", got)
	}
	f.Demo.Has(f.Demo.Shows("floatingip show", made["id"].(string)), blazartest.Table{"floating_ip_address": "198.51.100.101"})
}

// terms returns the terms of a reservation of floating IPs.
func (f *floating) terms(amount int, required ...string) string {
	text := fmt.Sprintf("resource_type=virtual:floatingip,network_id=%s,amount=%d", f.network, amount)
	if len(required) > 0 {
		text += `,required_floatingips=["` + strings.Join(required, `","`) + `"]`
	}
	return text
}

// starts makes a lease of both addresses and waits until Neutron has them.
func (f *floating) starts() (lease blazartest.Table) {
	lease = f.Demo.Shows("lease create addresses", "--end-date", tomorrowAt(12).sent(), "--reservation", f.terms(2, "198.51.100.102"))
	reservation := f.Demo.Reservations(lease)[0]
	f.Demo.Has(reservation, blazartest.Table{"resource_type": "virtual:floatingip", "network_id": f.network, "amount": 2.0})
	if got := fmt.Sprint(reservation["required_floatingips"]); got != "[198.51.100.102]" {
		f.T.Errorf("the required addresses are %s", got)
	}
	f.awaits("198.51.100.101", "198.51.100.102")
	f.becomes(lease, "ACTIVE")
	for _, ip := range f.neutron.FloatingIPs(f.network) {
		slices.Sort(ip.Tags)
		if ip.Project != f.project || !slices.Equal(ip.Tags, []string{"blazar", "reservation:" + reservation["id"].(string)}) {
			f.T.Errorf("Neutron has %v", ip)
		}
	}
	return lease
}

// awaits waits until exactly these floating IPs exist in Neutron.
func (f *floating) awaits(addresses ...string) {
	f.T.Helper()
	var got []string
	if !labtest.Poll(patient, time.Second, func() bool {
		got = labtest.Addresses(f.neutron.FloatingIPs(f.network))
		return slices.Equal(got, addresses)
	}) {
		f.T.Fatalf("Neutron has the floating IPs %v, want %v", got, addresses)
	}
}

// becomes waits until a lease has a status.
func (f *floating) becomes(lease blazartest.Table, status string) {
	f.T.Helper()
	got := ""
	if !labtest.Poll(patient, time.Second, func() bool {
		var answer struct{ Lease struct{ Status string } }
		f.call("GET", "/v1/leases/"+lease["id"].(string), "", &answer)
		got = answer.Lease.Status
		return got == status
	}) {
		f.T.Fatalf("the lease is %s, want %s", got, status)
	}
}

// call sends a request of demo, which must succeed.
func (f *floating) call(method, path, body string, into any) {
	f.T.Helper()
	answer := f.Send(f.Token(labtest.Demo), method, path, body)
	if answer.Status != 200 {
		f.T.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Text)
	}
	if err := json.Unmarshal([]byte(answer.Text), into); err != nil {
		f.T.Fatal(err)
	}
}

// promisesOnce checks what others are told while the pool is empty.
func (f *floating) promisesOnce() {
	during := []string{"--start-date", tomorrowAt(1).sent(), "--end-date", tomorrowAt(2).sent()}
	f.Demo2.Fails("Not enough floating IPs available: 1 requested, 0 of the 2 of the network are free in this time",
		"lease create second", append(during, "--reservation", f.terms(1))...)
	f.Demo2.Fails("Not enough floating IPs available: 198.51.100.102 is reserved by others in this time",
		"lease create second", append(during, "--reservation", f.terms(1, "198.51.100.102"))...)
	f.Demo2.Fails("Not enough floating IPs available: 198.51.100.77 cannot be reserved on this network",
		"lease create second", append(during, "--reservation", f.terms(1, "198.51.100.77"))...)
	f.Demo2.Fails("The amount must be equal to or longer than length of required_floatingips",
		"lease create second", append(during, "--reservation", f.terms(1, "198.51.100.101", "198.51.100.102"))...)
	later := []string{"--start-date", tomorrowAt(12).sent(), "--end-date", tomorrowAt(13).sent()}
	f.Demo2.Does("lease create afterwards", append(later, "--reservation", f.terms(2))...)
	f.Demo.Fails("Not enough floating IPs available", "lease set addresses --prolong-for 1h")
	f.Demo2.Does("lease delete afterwards")
	f.Demo.Does("lease set addresses --prolong-for 1h")
	id := f.Admin.Lists("floatingip list")[0]["id"].(string)
	f.Admin.Fails("is allocated by reservations", "floatingip delete", id)
}

// restores deletes one of the addresses behind Almanac's back.
func (f *floating) restores(lease blazartest.Table) {
	f.neutron.DeleteFloatingIP(f.neutron.FloatingIPs(f.network)[0].ID)
	f.awaits("198.51.100.101", "198.51.100.102")
	f.becomes(lease, "ACTIVE")
}

// ends ends the lease; what it had is deleted in Neutron and can be reserved again.
func (f *floating) ends(lease blazartest.Table) {
	f.call("PUT", "/v1/leases/"+lease["id"].(string), `{"end_date": "now"}`, &struct{}{})
	f.awaits()
	f.becomes(lease, "TERMINATED")
	f.Demo2.Does("lease create again", "--end-date", tomorrowAt(12).sent(), "--reservation", f.terms(1))
	f.awaits("198.51.100.101")
	f.Demo2.Does("lease delete again") // while it is active
	f.awaits()
}

// waitsForAnObstacle starts a lease while somebody else has its address in Neutron.
func (f *floating) waitsForAnObstacle() {
	theirs := f.neutron.CreateFloatingIP(f.network, "198.51.100.102", f.neutron.ProjectID)
	lease := f.Demo.Shows("lease create waits", "--end-date", tomorrowAt(12).sent(), "--reservation", f.terms(1, "198.51.100.102"))
	path := "/v1/reservations/" + f.Demo.Reservations(lease)[0]["id"].(string)
	if !labtest.Poll(patient, time.Second, func() bool {
		return strings.Contains(f.Send(f.Token(labtest.Demo), "GET", path, "").Text, "floating IP 198.51.100.102 still exists in Neutron; the start waits until it is deleted there")
	}) {
		f.T.Error("the owner is not told why the start waits")
	}
	f.neutron.DeleteFloatingIP(theirs)
	f.becomes(lease, "ACTIVE")
	f.Demo.Does("lease delete waits")
	f.awaits()
}

// isEmptied removes the addresses from the pool.
func (f *floating) isEmptied() {
	for _, row := range f.Admin.Lists("floatingip list") {
		id := row["id"].(string)
		if !labtest.Poll(patient, time.Second, func() bool { return f.Admin.Run("floatingip delete", id).Exit == 0 }) {
			f.T.Errorf("%v stays in the pool", row)
		}
		f.Admin.Fails("not found", "floatingip delete", id)
	}
}
