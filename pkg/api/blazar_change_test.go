// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func (p caller) put(path, body string) answer { p.cloud.t.Helper(); return p.send("PUT", path, body) }

func TestALeaseIsChangedAsBlazarsClientsDo(t *testing.T) {
	c := start(t, setup{})
	l := c.demo.lease(hostLease("l1", "12:10", "13:00", 1))
	path, member := "/v1/leases/"+l.ID, l.Reservations[0]["id"]
	for _, step := range []struct {
		body       string
		name       string
		start, end string
		most       any
	}{
		{`{}`, "l1", "12:10", "13:00", 1.0},
		{`{"name":null,"start_date":null,"end_date":null,"before_end_date":null,"reservations":null}`, "l1", "12:10", "13:00", 1.0},
		{`{"name":"l1b","end_date":"2026-11-20 14:00","start_date":"2026-11-20 12:20"}`, "l1b", "12:20", "14:00", 1.0},
		{`{"end_date":"2026-11-20 13:30"}`, "l1b", "12:20", "13:30", 1.0},
		{fmt.Sprintf(`{"reservations":[{"id":%q,"max":3,"min":2,"resource_properties":"[\"==\",\"$vcpus\",\"8\"]"}]}`, member), "l1b", "12:20", "13:30", 3.0},
		{fmt.Sprintf(`{"name":"l1c","end_date":"2026-11-20 13:40","start_date":"2026-11-20 12:15","reservations":[{"id":%q,"max":2}]}`, member), "l1c", "12:15", "13:40", 2.0},
		{`{"status":"ERROR","project_id":"other"}`, "l1c", "12:15", "13:40", 2.0},
	} {
		now := leaseIn(t, c.demo.put(path, step.body), http.StatusOK)
		if now.Name != step.name || now.StartDate != "2026-11-20T"+step.start+":00.000000" || now.EndDate != "2026-11-20T"+step.end+":00.000000" || now.Reservations[0]["max"] != step.most {
			t.Errorf("%s: got %+v", step.body, now)
		}
	}
	if r := want[v1.Reservation](t, c.demo.get(fmt.Sprintf("/v1/reservations/%s", member)), http.StatusOK); r.Quantity != 2 {
		t.Errorf("the reservation has %d hosts, want 2", r.Quantity)
	}
	c.wait(900)
	if now := leaseIn(t, c.demo.put(path, `{"end_date":"now"}`), http.StatusOK); now.Status != "ACTIVE" {
		t.Errorf("got %+v", now)
	}
	c.wait(1)
	if now := leaseIn(t, c.demo.get(path), http.StatusOK); now.Status != "TERMINATED" {
		t.Errorf("after its end: %+v", now)
	}
}

// refusedChange is a change of a lease, and how it is refused.
type refusedChange struct {
	lease  blazarLease
	body   string
	status int
	says   string
}

// isRefused sends the change. The lease stays byte for byte as it was, and so does all that is stored.
func (r refusedChange) isRefused(c *cloud) {
	c.t.Helper()
	path := "/v1/leases/" + r.lease.ID
	before, stored := string(c.demo.get(path).body), c.stored()
	wantFault(c.t, c.demo.put(path, r.body), r.status, r.says)
	if after := string(c.demo.get(path).body); after != before {
		c.t.Errorf("%s: the lease is %s, was %s", r.body, after, before)
	}
	if diff := cmp.Diff(stored, c.stored()); diff != "" {
		c.t.Errorf("%s: stored (-before +after):\n%s", r.body, diff)
	}
}

func TestARefusedChangeLeavesTheLeaseAsItWas(t *testing.T) {
	c := start(t, setup{})
	pending := c.demo.lease(hostLease("pending", "14:00", "15:00", 2))
	active := c.demo.lease(hostLease("active", "12:00", "13:00", 1))
	ended := c.demo.lease(`{"name":"ended","start_date":"2026-11-20 12:00","end_date":"2026-11-20 12:05"}`)
	c.other.lease(hostLease("theirs", "13:00", "13:50", 3))
	c.wait(600)
	id := func(l blazarLease) any { return l.Reservations[0]["id"] }
	for _, r := range []refusedChange{
		{active, `{"start_date":"2026-11-20 12:05"}`, 400, "Cannot modify the start date of already started leases"},
		{pending, `{"start_date":"2026-11-20 12:05"}`, 400, "Start date must be later than current date"},
		{ended, `{"end_date":"2026-11-20 14:00"}`, 400, "Terminated leases can only be renamed"},
		{active, `{"end_date":"2026-11-20 12:01"}`, 400, "End date must be later than current and start date"},
		{pending, `{"end_date":"2026-11-20 13:30"}`, 400, "End date must be later than current and start date"},
		{pending, `{"before_end_date":"2026-11-20 16:00"}`, 403, "Datetime is out of lease limits"},
		{pending, `{"end_date":"soon"}`, 400, "soon is an invalid date"},
		{pending, `{"reservations":[{"max":2}]}`, 400, "Missing parameter reservation ID"},
		{pending, `{"reservations":[{"id":"x,before_end=snapshot","amount":4}]}`, 400, "Please enter valid reservation IDs. Invalid reservation IDs are: x,before_end=snapshot"},
		{pending, fmt.Sprintf(`{"reservations":[{"id":%q,"max":1}]}`, id(active)), 400, "Please enter valid reservation IDs"},
		{pending, fmt.Sprintf(`{"reservations":[{"id":%q,"resource_type":"virtual:instance"}]}`, id(pending)), 409, "resource_type cannot be updated"},
		{pending, fmt.Sprintf(`{"reservations":[{"id":%q,"max":1}]}`, id(pending)), 400, "Invalid values for min/max of hosts"},
		{pending, fmt.Sprintf(`{"reservations":[{"id":%q,"min":4,"max":5}]}`, id(pending)), 400, "Not enough hosts available"},
		{pending, fmt.Sprintf(`{"reservations":[{"id":%q,"min":"x"}]}`, id(pending)), 400, "Malformed parameter min"},
		{pending, fmt.Sprintf(`{"reservations":[{"id":%q,"resource_properties":"[1]"}]}`, id(pending)), 400, "Malformed requirements"},
		{pending, fmt.Sprintf(`{"reservations":[{"id":%q,"before_end":"snapshot"}]}`, id(pending)), 400, "Malformed parameter before_end"},
		{active, `{"end_date":"2026-11-20 13:30"}`, 400, "Not enough hosts available"},
		{pending, `{"name":5}`, 400, "Malformed parameter name"},
		{pending, `[]`, 400, "must be a JSON object"},
		{ended, `{"start_date":"2026-11-20 14:00"}`, 400, "Terminated leases can only be renamed"},
		{ended, `{"name":"x","before_end_date":"2026-11-20 12:03"}`, 400, "Terminated leases can only be renamed"},
	} {
		r.isRefused(c)
	}
	if now := leaseIn(t, c.demo.put("/v1/leases/"+ended.ID, `{"name":"renamed"}`), http.StatusOK); now.Name != "renamed" {
		t.Errorf("got %+v", now)
	}
}

func TestAnActiveLeaseKeepsItsHostsAndItsAmounts(t *testing.T) {
	c := start(t, setup{hosts: computes("A", "B", "C", "D")})
	hosts := c.demo.lease(hostLease("hosts", "12:00", "13:00", 2))
	slices := c.demo.lease(strings.Replace(leaseWith(someInstances(2, "null")), "12:10", "12:00", 1))
	c.wait(60)
	for _, r := range []refusedChange{
		{hosts, `{"min":1,"max":1}`, 409, "is active and has 2; it cannot get fewer"},
		{hosts, `{"max":5,"min":5}`, 400, "Not enough hosts available"},
		{hosts, `{"hypervisor_properties":"[\"==\", \"$hypervisor_hostname\", \"D.example.org\"]"}`, 409, "filter, resources and affinity cannot be changed"},
		{hosts, `{"resource_type":"virtual:instance"}`, 409, "resource_type cannot be updated"},
		{slices, `{"amount":1}`, 409, "is active and has 2; it cannot get fewer"},
		{slices, `{"amount":1000}`, 400, "Not enough hosts available"},
		{slices, `{"vcpus":2}`, 409, "filter, resources and affinity cannot be changed"},
	} {
		r.body = fmt.Sprintf(`{"name":"new","reservations":[{"id":%q,%s}]}`, r.lease.Reservations[0]["id"], r.body[1:len(r.body)-1])
		r.isRefused(c)
	}
}

func TestAReservationWithoutALeaseIsALeaseOfItsId(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(fmt.Sprintf(`{"name": "native", "start_time": %q, "duration": 3600, "quantity": 2, "host_properties": [">=", "$vcpus", 4]}`, at(600)))
	path := "/v1/leases/" + r.ID
	l := leaseIn(t, c.demo.get(path), http.StatusOK)
	if part := l.Reservations[0]; l.ID != r.ID || part["id"] != r.ID || part["lease_id"] != r.ID || part["min"] != 2.0 || part["max"] != 2.0 ||
		part["resource_properties"] != `[">=", "$vcpus", 4]` || part["hypervisor_properties"] != "" {
		t.Errorf("got %+v", l)
	}
	if r.LeaseID != nil {
		t.Errorf("the reservation names the lease %s", *r.LeaseID)
	}
	changed := leaseIn(t, c.demo.put(path, fmt.Sprintf(`{"name":"new","end_date":"2026-11-20 14:00","reservations":[{"id":%q,"min":1,"max":3}]}`, r.ID)), http.StatusOK)
	now := want[v1.Reservation](t, c.demo.get("/v1/reservations/"+r.ID), http.StatusOK)
	if changed.Name != "new" || now.Name != "new" || now.Quantity != 3 || now.End != noon.Add(7200).Time() {
		t.Errorf("the lease is %+v, the reservation %+v", changed, now)
	}
	bounds := func(least, most float64) {
		t.Helper()
		if part := leaseIn(t, c.demo.get(path), http.StatusOK).Reservations[0]; part["min"] != least || part["max"] != most {
			t.Errorf("it has from %v to %v, want from %v to %v", part["min"], part["max"], least, most)
		}
	}
	bounds(1, 3)
	want[v1.Reservation](t, c.demo.patch("/v1/reservations/"+r.ID, `{"quantity": 2}`), http.StatusOK)
	bounds(1, 3)
	leaseIn(t, c.demo.put(path, fmt.Sprintf(`{"reservations":[{"id":%q,"min":2,"max":2}]}`, r.ID)), http.StatusOK)
	bounds(2, 2)
	want[v1.Reservation](t, c.demo.patch("/v1/reservations/"+r.ID, `{"quantity": 3}`), http.StatusOK)
	bounds(3, 3)
	if a := c.demo.delete(path); a.status != http.StatusNoContent {
		t.Errorf("delete: got %v", a)
	}
	if now := want[v1.Reservation](t, c.demo.get("/v1/reservations/"+r.ID), http.StatusOK); now.Status != "canceled" {
		t.Errorf("the reservation is %s", now.Status)
	}
	wantFault(t, c.demo.get(path), http.StatusNotFound, "not found")
}

func TestTheOnlyReservationOfALeaseIsChangedByEitherSide(t *testing.T) {
	c := start(t, setup{})
	l := c.demo.lease(hostLease("l", "12:10", "13:00", 1))
	id := l.Reservations[0]["id"].(string)
	path := "/v1/reservations/" + id
	if r := want[v1.Reservation](t, c.demo.get(path), http.StatusOK); r.LeaseID == nil || *r.LeaseID != l.ID || r.OnEnd != "delete" {
		t.Errorf("got %+v", r)
	}
	want[v1.Reservation](t, c.demo.patch(path, fmt.Sprintf(`{"end_time": %q, "quantity": 2}`, at(7200))), http.StatusOK)
	if now := leaseIn(t, c.demo.get("/v1/leases/"+l.ID), http.StatusOK); now.EndDate != "2026-11-20T14:00:00.000000" || now.Reservations[0]["id"] != id {
		t.Errorf("the lease is %+v", now)
	}
	if a := c.demo.delete(path); a.status != http.StatusNoContent {
		t.Errorf("delete: got %v", a)
	}
	wantFault(t, c.demo.get("/v1/leases/"+l.ID), http.StatusNotFound, "not found")
}

func TestTheReservationsOfALeaseStayTogether(t *testing.T) {
	c := start(t, setup{})
	l := c.demo.lease(`{"name":"l","start_date":"2026-11-20 12:10","end_date":"2026-11-20 13:00","reservations":[
		{"resource_type":"physical:host","min":1,"max":1}, {"resource_type":"virtual:instance","vcpus":1,"memory_mb":512,"disk_gb":0,"amount":2,"affinity":"True"}]}`)
	for _, r := range l.Reservations {
		path := fmt.Sprintf("/v1/reservations/%s", r["id"])
		for _, a := range []answer{c.demo.patch(path, fmt.Sprintf(`{"end_time": %q}`, at(7200))), c.demo.delete(path)} {
			if e := wantError(t, a, http.StatusConflict); e.Message == "" {
				t.Errorf("got %v", a)
			}
		}
	}
	if now := leaseIn(t, c.demo.get("/v1/leases/"+l.ID), http.StatusOK); len(now.Reservations) != 2 || now.EndDate != l.EndDate {
		t.Errorf("got %+v", now)
	}
}

func TestAnAffinityStaysUnlessARequestHasAnother(t *testing.T) {
	c := start(t, setup{})
	l := c.demo.lease(leaseWith(someInstances(1, "false")))
	put := func(affinity string) any {
		body := fmt.Sprintf(`{"reservations": [{"id": %q, "affinity": %s}]}`, l.Reservations[0]["id"], affinity)
		return leaseIn(t, c.demo.put("/v1/leases/"+l.ID, body), http.StatusOK).Reservations[0]["affinity"]
	}
	for _, nothing := range []string{`null`, `""`, `"None"`} {
		if got := put(nothing); got != false {
			t.Errorf("after %s the affinity is %v, want false", nothing, got)
		}
	}
	if got := put("true"); got != true {
		t.Errorf("after true the affinity is %v", got)
	}
}

func TestALeaseListsItsReservationsInTheOrderOfTheRequest(t *testing.T) {
	c := start(t, setup{hosts: computes("cmp-1", "cmp-2", "cmp-3")})
	l := c.demo.lease(leaseWith(someInstances(1, "null"), someInstances(2, "null"), someInstances(3, "null"), someInstances(4, "null"), someInstances(5, "null")))
	for _, one := range append(c.demo.leases(""), l) {
		for i, r := range one.Reservations {
			if r["amount"] != float64(i+1) {
				t.Errorf("reservation %d has the amount %v", i, r["amount"])
			}
		}
	}
}

func TestWhatCannotChangeMayBeSentAsItIs(t *testing.T) {
	c, _ := startWithNova(t, 0)
	l := c.demo.lease(leaseWith(`{"resource_type": "physical:host", "min": 1, "max": 1, "before_end": "snapshot", "resource_properties": [">=", "$vcpus", "1"]}`))
	if got := l.Reservations[0]["resource_properties"]; got != `[">=","$vcpus","1"]` {
		t.Errorf("the query is %v", got)
	}
	body := fmt.Sprintf(`{"reservations": [{"id": %q, "before_end": %%q}]}`, l.Reservations[0]["id"])
	leaseIn(t, c.demo.put("/v1/leases/"+l.ID, fmt.Sprintf(body, "snapshot")), http.StatusOK)
	wantFault(t, c.demo.put("/v1/leases/"+l.ID, fmt.Sprintf(body, "default")), http.StatusBadRequest, "before_end (it cannot be changed)")
}
