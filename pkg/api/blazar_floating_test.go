// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/address"
)

// outside is a Neutron with the external network outside, of whose 198.51.100.0/24 Neutron allocates
// .2 to .9 by itself, and the network inside, which is not external.
type outside struct{}

func (outside) Network(_ context.Context, id string) (address.Network, error) {
	if id != "outside" && id != "inside" {
		return address.Network{}, fault.New(fault.NotFound, "no network")
	}
	return address.Network{ID: id, External: id == "outside", Subnets: []address.Subnet{{
		ID: "subnet", CIDR: "198.51.100.0/24", Gateway: "198.51.100.1", Pools: []address.Range{{First: "198.51.100.2", Last: "198.51.100.9"}},
	}}}, nil
}

// enrolledIP is what clients of Blazar read of an address of the pool.
type enrolledIP struct {
	ID        string
	Network   string `json:"floating_network_id"`
	Subnet    string `json:"subnet_id"`
	Address   string `json:"floating_ip_address"`
	CreatedAt string `json:"created_at"`
}

// enrolled adds addresses of the network outside to the pool and returns their ids.
func enrolled(c *cloud, addresses ...string) (ids []string) {
	c.t.Helper()
	for _, a := range addresses {
		body := fmt.Sprintf(`{"floating_network_id": "outside", "floating_ip_address": %q}`, a)
		ids = append(ids, want[struct{ FloatingIP enrolledIP }](c.t, c.admin.post("/v1/floatingips", body), 201).FloatingIP.ID)
	}
	return ids
}

// floatingLease returns the body of a lease from 13:00 to 14:00 with floating IPs; more are further keys.
func floatingLease(amount int, more string) string {
	return fmt.Sprintf(`{"name": "f", "start_date": "2026-11-20 13:00", "end_date": "2026-11-20 14:00",
		"reservations": [{"resource_type": "virtual:floatingip", "network_id": "outside", "amount": %d%s}]}`, amount, more)
}

func TestAnAdminEnrollsAddressesThatNeutronDoesNotGiveOut(t *testing.T) {
	c := start(t, setup{})
	for body, says := range map[string]string{
		`{}`:                                 "Missing parameter floating_network_id, floating_ip_address",
		`{"floating_network_id": "outside"}`: "Missing parameter floating_ip_address",
		`{"floating_network_id": "nowhere", "floating_ip_address": "198.51.100.101"}`:     "Failed to find network nowhere",
		`{"floating_network_id": "inside", "floating_ip_address": "198.51.100.101"}`:      "is not external",
		`{"floating_network_id": "outside", "floating_ip_address": "198.51.100.1"}`:       "is used in allocation_pools or gateway_ip",
		`{"floating_network_id": "outside", "floating_ip_address": "198.51.100.2"}`:       "is used in allocation_pools or gateway_ip",
		`{"floating_network_id": "outside", "floating_ip_address": "198.51.100.9"}`:       "is used in allocation_pools or gateway_ip",
		`{"floating_network_id": "outside", "floating_ip_address": "198.51.100.255"}`:     "which no floating IP has",
		`{"floating_network_id": "outside", "floating_ip_address": "198.51.100.300"}`:     "IP address 198.51.100.300 is invalid form.",
		`{"floating_network_id": ["outside"], "floating_ip_address": "198.51.100.101"}`:   "Malformed parameter floating_network_id",
		`{"floating_network_id": "outside", "floating_ip_address": {"is": "no address"}}`: "Malformed parameter floating_ip_address",
	} {
		wantFault(t, c.admin.post("/v1/floatingips", body), 400, says)
	}
	wantFault(t, c.admin.post("/v1/floatingips", `{"floating_network_id": "outside", "floating_ip_address": "192.0.2.1"}`), 404, "Valid subnet for the floating IP 192.0.2.1 is not found.")
	ids := enrolled(c, "198.51.100.110", "198.51.100.20")
	wantFault(t, c.admin.post("/v1/floatingips", `{"floating_network_id": "outside", "floating_ip_address": "198.51.100.20"}`), 409, "can be reserved already")
	list := want[struct{ FloatingIPs []enrolledIP }](t, c.demo.get("/v1/floatingips"), 200).FloatingIPs
	wanted := []enrolledIP{
		{ids[1], "outside", "subnet", "198.51.100.20", "2026-11-20 12:00:00"}, {ids[0], "outside", "subnet", "198.51.100.110", "2026-11-20 12:00:00"},
	}
	if !slices.Equal(list, wanted) {
		t.Errorf("the pool is %v, want %v", list, wanted)
	}
	if shown := want[struct{ FloatingIP enrolledIP }](t, c.demo.get("/v1/floatingips/"+ids[1]), 200).FloatingIP; shown != wanted[0] {
		t.Errorf("it is %v, want %v", shown, wanted[0])
	}
	gone(t, c.admin.send("DELETE", "/v1/floatingips/"+ids[0], ""))
	wantFault(t, c.admin.send("DELETE", "/v1/floatingips/"+ids[0], ""), 404, "Floating IP "+ids[0]+" not found.")
	wantFault(t, c.demo.get("/v1/floatingips/"+ids[0]), 404, "not found")
}

// gone checks the answer to a deletion.
func gone(t *testing.T, a answer) {
	t.Helper()
	if a.status != 204 || len(a.body) > 0 {
		t.Errorf("a deletion: %v", a)
	}
}

func TestALeaseReservesFloatingIPsAsInBlazar(t *testing.T) {
	c := start(t, setup{})
	ids := enrolled(c, "198.51.100.101", "198.51.100.102")
	lease := c.demo.lease(floatingLease(2, `, "required_floatingips": ["198.51.100.102"]`))
	r := lease.Reservations[0]
	if got := fmt.Sprintln(r["resource_type"], r["network_id"], r["amount"], r["required_floatingips"], r["status"]); got != "virtual:floatingip outside 2 [198.51.100.102] pending\n" {
		t.Errorf("the reservation is %s", got)
	}
	for _, key := range []string{"resource_properties", "min", "vcpus", "flavor_id"} {
		if _, there := r[key]; there {
			t.Errorf("a reservation of floating IPs has %s", key)
		}
	}
	wantFault(t, c.other.post("/v1/leases", floatingLease(1, "")), 400, "Not enough floating IPs available: 1 requested, 0 of the 2 of the network are free in this time")
	wantFault(t, c.admin.send("DELETE", "/v1/floatingips/"+ids[0], ""), 409, "is allocated by reservations")
	later := `{"name": "f", "start_date": "2026-11-20 14:00", "end_date": "2026-11-20 15:00", "reservations": [{"resource_type": "virtual:floatingip", "network_id": "outside", "amount": "1"}]}`
	c.other.lease(later)
	gone(t, c.demo.send("DELETE", "/v1/leases/"+lease.ID, ""))
	c.other.lease(floatingLease(1, ""))
}

func TestAWrongReservationOfFloatingIPsIsRefused(t *testing.T) {
	c := start(t, setup{})
	enrolled(c, "198.51.100.101", "198.51.100.102")
	for more, says := range map[string]string{
		`, "amount": 0`:                              "Malformed parameter amount",
		`, "amount": "many"`:                         "Malformed parameter amount",
		`, "amount": null`:                           "Missing parameter amount",
		`, "network_id": ""`:                         "Missing parameter network_id",
		`, "network_id": 7`:                          "Malformed parameter network_id",
		`, "required_floatingips": "198.51.100.101"`: "Malformed parameter required_floatingips",
		`, "required_floatingips": ["one"]`:          "IP address one is invalid form.",
		`, "required_floatingips": ["198.51.100.101", "198.51.100.101"]`: "Malformed parameter required_floatingips",
		`, "required_floatingips": ["198.51.100.101", "198.51.100.102"]`: "The amount must be equal to or longer than length of required_floatingips",
		`, "required_floatingips": ["198.51.100.103"]`:                   "Not enough floating IPs available: 198.51.100.103 cannot be reserved on this network",
		`, "amount": 3`: "Not enough floating IPs available: 3 requested, 2 of the 2",
	} {
		wantFault(t, c.demo.post("/v1/leases", floatingLease(1, more)), 400, says)
	}
	without := start(t, setup{adjust: func(o *api.Options) { o.Blazar.Neutron, o.Blazar.Addresses = nil, nil }})
	wantFault(t, without.demo.post("/v1/leases", floatingLease(1, "")), 400, "The virtual:floatingip resource type is not supported without Neutron")
	wantFault(t, without.admin.post("/v1/floatingips", `{"floating_network_id": "outside", "floating_ip_address": "198.51.100.101"}`), 400, "without Neutron")
	if list := want[struct{ FloatingIPs []enrolledIP }](t, without.demo.get("/v1/floatingips"), 200).FloatingIPs; len(list) != 0 {
		t.Errorf("without Neutron, the pool is %v", list)
	}
}

func TestALeaseOfHostsAndFloatingIPsIsBookedAsAWhole(t *testing.T) {
	c := start(t, setup{})
	enrolled(c, "198.51.100.101")
	both := `{"name": "b", "start_date": "2026-11-20 13:00", "end_date": "2026-11-20 14:00", "reservations": [
		{"resource_type": "physical:host", "min": 1, "max": %d}, {"resource_type": "virtual:floatingip", "network_id": "outside", "amount": %d}]}`
	wantFault(t, c.demo.post("/v1/leases", fmt.Sprintf(both, 3, 2)), 400, "Not enough floating IPs available")
	c.demo.lease(fmt.Sprintf(both, 3, 1))
	wantFault(t, c.demo.post("/v1/leases", hostLease("h", "13:10", "13:20", 1)), 400, "Not enough hosts available")
}

func TestALeaseOfFloatingIPsIsChangedAsInBlazar(t *testing.T) {
	c := start(t, setup{})
	enrolled(c, "198.51.100.101", "198.51.100.102", "198.51.100.103")
	lease := c.demo.lease(floatingLease(2, `, "required_floatingips": ["198.51.100.103"]`))
	member := lease.Reservations[0]["id"].(string)
	change := func(keys string) answer {
		return c.demo.send("PUT", "/v1/leases/"+lease.ID, fmt.Sprintf(`{"reservations": [{"id": %q, %s}]}`, member, keys))
	}
	for keys, says := range map[string]string{
		`"network_id": "inside"`:                     "Updating network_id is not supported",
		`"required_floatingips": ["198.51.100.101"]`: "Updating required_floatingips is not supported except with an empty list",
		`"amount": 0`:                                "Malformed parameter amount",
		`"amount": 4`:                                "Not enough floating IPs available",
	} {
		wantFault(t, change(keys), 400, says)
	}
	wantFault(t, change(`"resource_type": "physical:host"`), 409, "resource_type cannot be updated")
	grown := leaseIn(t, change(`"amount": 3, "network_id": "outside", "required_floatingips": ["198.51.100.103"]`), 200)
	if got := fmt.Sprint(grown.Reservations[0]["amount"], grown.Reservations[0]["required_floatingips"]); got != "3 [198.51.100.103]" {
		t.Errorf("after the change it has %s", got)
	}
	free := leaseIn(t, change(`"amount": 1, "required_floatingips": []`), 200)
	if got := fmt.Sprint(free.Reservations[0]["amount"], free.Reservations[0]["required_floatingips"]); got != "1 []" {
		t.Errorf("after the change it has %s", got)
	}
	leaseIn(t, c.demo.send("PUT", "/v1/leases/"+lease.ID, `{"start_date": "2026-11-20 12:30", "end_date": "2026-11-20 15:00"}`), 200)
	c.wait(3600)
	leaseIn(t, change(`"amount": 2`), 200)
	wantFault(t, change(`"amount": 1`), 400, "Cannot remove allocations from an active reservation")
}

func TestTheNativeAPIShowsFloatingIPsAndLeavesThemToTheirLease(t *testing.T) {
	c := start(t, setup{})
	enrolled(c, "198.51.100.101")
	lease := c.demo.lease(floatingLease(1, ""))
	id := lease.Reservations[0]["id"].(string)
	shown := want[struct {
		ID, Kind string
		Hosts    []string
		LeaseID  string `json:"lease_id"`
	}](t, c.demo.get("/v1/reservations/"+id), 200)
	if shown.Kind != "address" || len(shown.Hosts) > 0 || shown.LeaseID != lease.ID {
		t.Errorf("it is %+v", shown)
	}
	if a := c.demo.send("PATCH", "/v1/reservations/"+id, `{"quantity": 2}`); a.status != 409 {
		t.Errorf("a change of its quantity: %v", a)
	}
	if a := c.demo.post("/v1/reservations", `{"name": "r", "kind": "address", "duration": 60}`); a.status != 400 {
		t.Errorf("a booking: %v", a)
	}
	gone(t, c.demo.send("DELETE", "/v1/reservations/"+id, ""))
	wantFault(t, c.demo.get("/v1/leases/"+lease.ID), 404, "not found")
}

// At microversion 1.1 an offer knows the free addresses, and a lease with a deadline starts when there
// are enough.
func TestAnOfferOfFloatingIPsIsWhatTheLeaseGets(t *testing.T) {
	c := start(t, setup{})
	enrolled(c, "198.51.100.101", "198.51.100.102")
	const body = `{"name": "f", "start_date": "2026-11-20 13:00", "duration": "1h", %s "reservations": [
		{"resource_type": "virtual:floatingip", "network_id": "outside", "amount": 2}]}`
	const offered = `"dry_run": true,`
	o := offerIn(t, c.admin.newer("POST", "/v1/leases", fmt.Sprintf(body, offered)))
	if got := fmt.Sprint(o.Start, o.Reservations); got != onDay("13:00")+"[{ virtual:floatingip 2 []}]" {
		t.Errorf("the offer is %s", got)
	}
	c.other.lease(floatingLease(1, ""))
	wantFault(t, c.demo.newer("POST", "/v1/leases", fmt.Sprintf(body, offered)), 409, "Not enough floating IPs available")
	const window = `"deadline": "2026-11-20 16:00",`
	o = offerIn(t, c.demo.newer("POST", "/v1/leases", fmt.Sprintf(body, window+offered)))
	booked := leaseIn(t, c.demo.newer("POST", "/v1/leases", fmt.Sprintf(body, window)), 201)
	if o.Start != onDay("14:00") || booked.StartDate != onDay("14:00") {
		t.Errorf("the offer starts at %s, the lease at %s", o.Start, booked.StartDate)
	}
}
