// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// allocation is an allocation as an answer has it.
func allocation(id, lease, start, end string) map[string]any {
	return map[string]any{"id": id, "lease_id": lease, "start_date": start, "end_date": end}
}

// allocationsFor returns the allocations of each host, by its id, in the answer to a request.
func allocationsFor(t *testing.T, by caller, query string) map[string][]any {
	t.Helper()
	list := want[struct {
		Allocations []struct {
			ResourceID   string `json:"resource_id"`
			Reservations []any  `json:"reservations"`
		} `json:"allocations"`
	}](t, by.get("/v1/os-hosts/allocations"+query), http.StatusOK)
	all := make(map[string][]any)
	for _, host := range list.Allocations {
		all[host.ResourceID] = append([]any{}, host.Reservations...)
	}
	return all
}

func TestTheReservationsOfEachHostAreListed(t *testing.T) {
	c := start(t, setup{hosts: computes("cmp-1", "cmp-2")})
	first := c.demo.book(`{"name": "first", "quantity": 1, "duration": 3600, "host_properties": ["=", "$name", "cmp-1"]}`)
	second := c.other.book(`{"name": "second", "quantity": 1, "start_time": "2026-11-20T13:00:00Z", "duration": 1800, "host_properties": ["=", "$name", "cmp-1"]}`)
	c.wait(0)
	const noon, one, later = "2026-11-20T12:00:00.000000", "2026-11-20T13:00:00.000000", "2026-11-20T13:30:00.000000"
	active, next := allocation(first.ID, first.ID, noon, one), allocation(second.ID, second.ID, one, later)
	for name, tc := range map[string]struct {
		by    caller
		query string
		want  map[string][]any
	}{
		"an admin sees all": {c.admin, "", map[string][]any{"1": {active, next}, "2": {}}},
		"a reader does not learn whose the others are, but when": {c.reader, "", map[string][]any{"1": {active, allocation("", "", one, later)}, "2": {}}},
		"the hosts of an own reservation are final when it is active": {c.other, "", map[string][]any{
			"1": {allocation("", "", noon, one), allocation("", "", one, later)}, "2": {}}},
		"one lease":                     {c.admin, "?lease_id=" + second.ID, map[string][]any{"1": {next}, "2": {}}},
		"one reservation":               {c.admin, "?reservation_id=" + first.ID, map[string][]any{"1": {active}, "2": {}}},
		"both":                          {c.admin, "?lease_id=" + first.ID + "&reservation_id=" + second.ID, map[string][]any{"1": {}, "2": {}}},
		"an unknown lease":              {c.admin, "?lease_id=none", map[string][]any{"1": {}, "2": {}}},
		"an unknown reservation":        {c.admin, "?reservation_id=none", map[string][]any{"1": {}, "2": {}}},
		"a lease of another project":    {c.reader, "?lease_id=" + second.ID, map[string][]any{"1": {}, "2": {}}},
		"a reservation of another's":    {c.reader, "?reservation_id=" + second.ID, map[string][]any{"1": {}, "2": {}}},
		"a parameter that nobody knows": {c.admin, "?page=3", map[string][]any{"1": {active, next}, "2": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, allocationsFor(t, tc.by, tc.query)); d != "" {
				t.Errorf("allocations (-want +got):\n%s", d)
			}
		})
	}
	carryOut(t, c.admin, []step{
		{"of one host", "GET", "/v1/os-hosts/1/allocation", "", 200, map[string]any{"allocation.resource_id": "1", "allocation.reservations": []any{active, next}}},
		{"of one lease on it", "GET", "/v1/os-hosts/1/allocation?lease_id=" + first.ID, "", 200, map[string]any{"allocation.reservations": []any{active}}},
		{"none", "GET", "/v1/os-hosts/2/allocation", "", 200, map[string]any{"allocation.reservations": []any{}}},
	})
	c.wait(3600)
	for query, ended := range map[string][]any{"": {next}, "?lease_id=" + first.ID: {active}} {
		if d := cmp.Diff(map[string][]any{"1": ended, "2": {}}, allocationsFor(t, c.admin, query)); d != "" {
			t.Errorf("after the end, %q (-want +got):\n%s", query, d)
		}
	}
}

func TestAMemberOfALeaseIsAllocatedUnderTheLease(t *testing.T) {
	c := start(t, setup{hosts: computes("cmp-1", "cmp-2")})
	a := c.demo.post("/v1/leases", `{"name":"l","start_date":"now","end_date":"2026-11-20 13:00","reservations":[
		{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":""},
		{"resource_type":"physical:host","min":1,"max":1,"hypervisor_properties":"","resource_properties":""}],"events":[]}`)
	if a.status != http.StatusCreated {
		t.Fatalf("create a lease: %v", a)
	}
	lease, member := part(t, a, "lease.id").(string), part(t, a, "lease.reservations.0.id").(string)
	for query, count := range map[string]int{"?lease_id=" + lease: 2, "?reservation_id=" + member: 1, "?lease_id=" + lease + "&reservation_id=" + member: 1} {
		got := 0
		for _, list := range allocationsFor(t, c.admin, query) {
			for _, one := range list {
				if one := one.(map[string]any); one["lease_id"] == lease {
					got++
				}
			}
		}
		if got != count {
			t.Errorf("%s has %d allocations of the lease, want %d", query, got, count)
		}
	}
}

func TestTheAllocationsNameNobodyWhomTheCalendarDoesNotName(t *testing.T) {
	c := start(t, setup{})
	c.demo.book(`{"name": "pending", "quantity": 2, "start_time": "2026-11-21T12:00:00Z", "duration": 60}`)
	c.other.book(`{"name": "active", "quantity": 1, "duration": 60}`)
	c.wait(0)
	for _, by := range []caller{c.admin, c.demo, c.other, c.reader} {
		named := make(map[string]map[string]bool)
		for _, host := range want[v1.Calendar](t, by.get("/v1/calendar"), http.StatusOK).Hosts {
			named[host.Host] = make(map[string]bool)
			for _, claim := range host.Claims {
				named[host.Host][claim.ReservationID] = true
			}
		}
		for id, list := range allocationsFor(t, by, "") {
			for _, one := range list {
				host := string(rune('A' + id[0] - '1'))
				if reservation := one.(map[string]any)["id"].(string); reservation != "" && !named[host][reservation] {
					t.Errorf("%s: host %s names %q, the calendar does not", by.token, host, reservation)
				}
			}
		}
	}
}
