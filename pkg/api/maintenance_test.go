// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// maintain is the body of a request for maintenance from start on, in seconds after noon.
func maintain(start, duration int64, hosts string) string {
	return fmt.Sprintf(`{"name": "new memory", "maintenance": true, "hosts": [%s], "start_time": %q, "duration": %d}`, hosts, at(start), duration)
}

func TestOperatorsPlanChangeListAndCancelMaintenance(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(maintain(600, 600, `"B", "A"`))
	if !r.Maintenance || r.Name != "new memory" || !slices.Equal(r.Hosts, []string{"A", "B"}) || r.Quantity != 2 || r.Kind != "host" {
		t.Errorf("the maintenance is %+v", r)
	}
	c.demo.book(`{"name": "run", "duration": 60}`)
	for query, names := range map[string][]string{"": {"run", "new memory"}, "?maintenance=true": {"new memory"}, "?maintenance=false": {"run"}} {
		var got []string
		for _, r := range want[v1.Reservations](t, c.admin.get("/v1/reservations"+query), http.StatusOK).Reservations {
			got = append(got, r.Name)
		}
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	path := "/v1/reservations/" + r.ID
	longer := want[v1.Reservation](t, c.admin.patch(path, fmt.Sprintf(`{"end_time": %q}`, at(1800))), http.StatusOK)
	if !longer.End.Equal(noon.Add(1800).Time()) || !slices.Equal(longer.Hosts, r.Hosts) {
		t.Errorf("the longer maintenance is %+v", longer)
	}
	if e := wantError(t, c.admin.patch(path, `{"quantity": 1}`), http.StatusBadRequest); e.Field != "quantity" {
		t.Errorf("fewer hosts: %+v", e)
	}
	if a := c.admin.delete(path); a.status != http.StatusNoContent {
		t.Errorf("cancel: %v", a)
	}
}

// The members of the operator's project may see the maintenance, but it is not theirs.
func TestOnlyOperatorsChangeAndCancelMaintenance(t *testing.T) {
	c := start(t, setup{})
	path := "/v1/reservations/" + c.admin.book(maintain(600, 600, `"A"`)).ID
	want[v1.Reservation](t, c.demo.get(path), http.StatusOK)
	for name, a := range map[string]answer{
		"plan": c.demo.post("/v1/reservations", maintain(600, 600, `"B"`)), "change": c.demo.patch(path, `{"name": "x"}`), "cancel": c.demo.delete(path),
	} {
		if e := wantError(t, a, http.StatusForbidden); !strings.Contains(e.Message, "reservations:maintain") {
			t.Errorf("%s: %+v, want the rule", name, e)
		}
	}
	wantError(t, c.other.delete(path), http.StatusNotFound)
}

func TestWrongRequestsForMaintenanceNameTheField(t *testing.T) {
	c := start(t, setup{})
	for field, body := range map[string]string{
		"quantity":        `{"name": "x", "maintenance": true, "hosts": ["A"], "quantity": 1, "duration": 60}`,
		"hosts":           `{"name": "x", "maintenance": true, "hosts": ["A", "Z"], "duration": 60}`,
		"host_properties": `{"name": "x", "maintenance": true, "hosts": ["A"], "host_properties": ["=", "$name", "A"], "duration": 60}`,
		"name":            `{"name": " ", "maintenance": true, "hosts": ["A"], "duration": 60}`,
	} {
		if e := wantError(t, c.admin.post("/v1/reservations", body), http.StatusBadRequest); e.Field != field {
			t.Errorf("%s: %+v, want field %s", body, e, field)
		}
	}
}

func TestMaintenanceIsOfTheHostsThatItsListsStandFor(t *testing.T) {
	var hosts []inventory.Host
	for _, name := range []string{"n-01", "n-02", "n-03", "m"} {
		hosts = append(hosts, machine(name))
	}
	c := start(t, setup{hosts: hosts})
	offer := want[v1.OfferAnswer](t, c.admin.post("/v1/reservations?dry_run=true", maintain(600, 600, `"n-[01,03]", "m,n-01"`)), http.StatusOK).Offer
	if got := strings.Join(offer.Hosts, " "); got != "m n-01 n-03" {
		t.Errorf("the hosts are %s", got)
	}
	for list, remedy := range map[string]string{
		`"n-[1-03]"`: "write both numbers with the same number of digits", `"n-[01-04]"`: `there is no host "n-04"; did you mean "n-01"?`, `""`: "is not a host name",
	} {
		e := wantError(t, c.admin.post("/v1/reservations", maintain(600, 600, list)), http.StatusBadRequest)
		if e.Field != "hosts" || !strings.Contains(e.Message, remedy) {
			t.Errorf("%s: %+v, want %q", list, e, remedy)
		}
	}
}

func TestTheOfferOfMaintenanceListsTheServersToMove(t *testing.T) {
	a := machine("A")
	a.Instances, a.InstanceCount = []inventory.Instance{
		{ID: "i1", Name: "db", ProjectID: "other", Host: "A", Status: "ACTIVE"}, {ID: "i2", Host: "A", Preemptible: true},
	}, 2
	c := start(t, setup{hosts: []inventory.Host{a, machine("B")}})
	offer := want[v1.OfferAnswer](t, c.admin.post("/v1/reservations?dry_run=true", maintain(600, 600, `"A", "B"`)), http.StatusOK).Offer
	if len(offer.Servers) != 1 || offer.Servers[0].Host != "A" || offer.Servers[0].ID != "i1" || offer.Servers[0].Name != "db" {
		t.Errorf("the servers to move are %+v", offer.Servers)
	}
	c.admin.book(maintain(600, 600, `"A", "B"`)) // they do not block it
}

func TestARefusalNamesTheReservationsInTheWayToThoseWhoMaySeeThem(t *testing.T) {
	c := start(t, setup{hosts: []inventory.Host{machine("A"), machine("B")}})
	first := c.other.book(fmt.Sprintf(`{"name": "secret", "quantity": 2, "start_time": %q, "duration": 600}`, at(60)))
	refusal := want[v1.ErrorAnswer](t, c.admin.post("/v1/reservations", maintain(0, 120, `"A"`)), http.StatusConflict).Refusal
	wantBlocks := []v1.Block{{Host: "A", Start: first.Start, End: first.End, Reservations: []v1.Blocker{{ID: first.ID, Name: "secret", ProjectID: "other"}}}}
	if diff := cmp.Diff(wantBlocks, refusal.BlockedBy); diff != "" || refusal.EarliestStart == nil || !refusal.EarliestStart.Equal(first.End) {
		t.Errorf("refused with %+v\n%s", refusal, diff)
	}
	if a := c.demo.post("/v1/reservations", fmt.Sprintf(`{"name": "x", "start_time": %q, "duration": 600}`, at(60))); strings.Contains(string(a.body), "secret") || strings.Contains(string(a.body), first.ID) {
		t.Errorf("a tenant learns whose reservation is in the way: %s", a.body)
	}
}

// Each has a part of the host; together with the first, the larger one does not fit.
func TestAReservationDoesNotBlockItsOwnChange(t *testing.T) {
	c := start(t, setup{hosts: []inventory.Host{machine("A")}})
	part := `{"name": %q, "kind": "instance", "resources": {"vcpus": 4}, "start_time": %q, "duration": 600}`
	first := c.other.book(fmt.Sprintf(part, "first", at(60)))
	second := c.demo.book(fmt.Sprintf(part, "second", at(60)))
	refusal := want[v1.ErrorAnswer](t, c.admin.patch("/v1/reservations/"+second.ID, `{"quantity": 2}`), http.StatusConflict).Refusal
	for _, b := range refusal.BlockedBy {
		if diff := cmp.Diff([]v1.Blocker{{ID: first.ID, Name: "first", ProjectID: "other"}}, b.Reservations); diff != "" {
			t.Errorf("%v is held (-want +got):\n%s", b, diff)
		}
	}
	if len(refusal.BlockedBy) == 0 {
		t.Error("nothing blocks it")
	}
}

func TestTenantsSeeMaintenanceOnTheCalendarWithoutTheReason(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(maintain(0, 600, `"A"`))
	claim := func(p caller) v1.Claim {
		return want[v1.Calendar](t, p.get("/v1/calendar?host=A&start="+at(0)+"&end="+at(900)), http.StatusOK).Hosts[0].Claims[0]
	}
	if got := claim(c.other); !got.Maintenance || got.Mine || got.Name != "" || got.ReservationID != "" || got.Status != "" {
		t.Errorf("a tenant sees %+v", got)
	}
	if got := claim(c.admin); !got.Maintenance || got.Name != "new memory" || got.ReservationID != r.ID {
		t.Errorf("the operator sees %+v", got)
	}
}

func TestMaintenanceIsNoLease(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(maintain(0, 600, `"A"`))
	if a := c.admin.get("/v1/leases"); strings.Contains(string(a.body), r.ID) {
		t.Errorf("the leases are %s", a.body)
	}
	if a := c.admin.get("/v1/leases/" + r.ID); a.status != http.StatusNotFound {
		t.Errorf("the lease is %v", a)
	}
	if a := c.admin.delete("/v1/leases/" + r.ID); a.status != http.StatusNotFound {
		t.Errorf("the lease is deleted: %v", a)
	}
	if a := c.admin.get("/v1/os-hosts/allocations"); !strings.Contains(string(a.body), noon.Add(600).Time().Format("2006-01-02T15:04")) || strings.Contains(string(a.body), r.ID) {
		t.Errorf("the allocations are %s, want the time without an id", a.body)
	}
}

func TestHostHoursOfMaintenanceAreNeitherReservedNorIdle(t *testing.T) {
	c := start(t, setup{hosts: []inventory.Host{machine("A")}})
	c.admin.book(maintain(0, 3600, `"A"`))
	c.wait(7200)
	span := "start=" + at(0) + "&end=" + at(7200)
	got := want[v1.Usage](t, c.admin.get("/v1/usage?by=host&"+span), http.StatusOK).Rows[0]
	if got.Reserved != 0 || *got.Maintenance != 1 || *got.Idle != 1 || *got.Capacity != 2 {
		t.Errorf("the use of the host is %+v", got)
	}
	if rows := want[v1.Usage](t, c.admin.get("/v1/usage?"+span), http.StatusOK).Rows; len(rows) != 0 {
		t.Errorf("projects used %+v", rows)
	}
}
