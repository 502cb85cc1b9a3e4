// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// The calls of Azimuth's schedule operator: it looks for its lease by name, creates one with two
// flavors, reads the source flavor of each reservation, waits until the lease is active, deletes it, and
// polls until it has left the list. Of errors it takes only 400 and 500 as final, and unwraps JSON only if
// Content-Type is exact.
func TestAzimuthsOperatorUsesLeases(t *testing.T) {
	c, _ := startWithNova(t, 0)
	call := func(method, path, body string) answer {
		t.Helper()
		a := c.demo.send(method, path, body, "Content-Type", "application/json")
		if kind := a.header.Get("Content-Type"); len(a.body) > 0 && kind != "application/json" {
			t.Errorf("%s %s: Content-Type is %q", method, path, kind)
		}
		return a
	}
	find := func(name string) *blazarLease {
		t.Helper()
		for _, l := range want[struct{ Leases []blazarLease }](t, call("GET", "/v1/leases", ""), http.StatusOK).Leases {
			if l.Name == name {
				return &l
			}
		}
		return nil
	}
	body := func(amount int) string {
		const flavor = `{"amount": %d, "flavor_id": "7", "resource_type": "flavor:instance", "affinity": "None"}`
		return fmt.Sprintf(`{"name": "az-1", "start_date": "2026-11-20 12:01", "end_date": "2026-11-20 13:00", "before_end_date": null, "events": [], "reservations": [`+
			flavor+","+flavor+`]}`, amount, 1)
	}
	if found := find("az-1"); found != nil {
		t.Fatalf("there is %+v", found)
	}
	wantFault(t, call("POST", "/v1/leases", body(1000)), http.StatusBadRequest, "Not enough hosts available")
	created := leaseIn(t, call("POST", "/v1/leases", body(2)), http.StatusCreated)
	c.wait(60)
	found := find("az-1")
	if found == nil || found.ID != created.ID || found.Status != "ACTIVE" || len(found.Reservations) != 2 {
		t.Fatalf("after the start: %+v", found)
	}
	for _, r := range found.Reservations {
		var source struct{ ID string }
		if err := json.Unmarshal([]byte(r["resource_properties"].(string)), &source); err != nil || source.ID != "7" {
			t.Errorf("the source of %v is %+v, %v", r, source, err)
		}
	}
	if a := call("DELETE", "/v1/leases/"+created.ID, ""); a.status != http.StatusNoContent {
		t.Errorf("delete: %v", a)
	}
	if left := find("az-1"); left != nil {
		t.Errorf("after DELETE: %+v", left)
	}
}

// The dashboard changes and deletes leases with what it reads from them.
func TestTheDashboardChangesLeases(t *testing.T) {
	c := start(t, setup{})
	l := c.demo.lease(hostLease("l", "12:10", "13:00", 1))
	path := "/v1/leases/" + l.ID
	for range 2 {
		leaseIn(t, c.demo.get(path), http.StatusOK)
	}
	body := fmt.Sprintf(`{"name": "longer", "end_date": "2026-11-20 14:00", "start_date": "2026-11-20 12:20", "reservations": [{"id": %q, "max": 2}]}`, l.Reservations[0]["id"])
	now := leaseIn(t, c.demo.put(path, body), http.StatusOK)
	if now.Name != "longer" || now.StartDate != "2026-11-20T12:20:00.000000" || now.EndDate != "2026-11-20T14:00:00.000000" || now.Reservations[0]["max"] != 2.0 {
		t.Errorf("got %+v", now)
	}
	for _, one := range c.demo.leases("") {
		if a := c.demo.delete("/v1/leases/" + one.ID); a.status != http.StatusNoContent {
			t.Errorf("delete: %v", a)
		}
	}
	if left := c.demo.leases(""); len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
}

// Blazar books all of them: each sees the free hosts. Those that are refused leave nothing behind.
func TestOfEightLeasesAtOnceForTheSameHostsOneIsBooked(t *testing.T) {
	const slices = `{"resource_type": "virtual:instance", "vcpus": 8, "memory_mb": 512, "disk_gb": 1, "amount": 3, "affinity": false}`
	for what, body := range map[string]string{"hosts": hostLease("l", "12:10", "13:00", 3), "instances": leaseWith(slices)} {
		t.Run(what, func(t *testing.T) {
			c, n := startWithNova(t, 8)
			answers := make([]answer, 8)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() { answers[i] = c.demo.post("/v1/leases", body) })
			}
			all.Wait()
			booked := make(map[string]bool)
			for _, a := range answers {
				if a.status != http.StatusCreated {
					wantFault(t, a, http.StatusBadRequest, "Not enough hosts available")
					continue
				}
				if group := leaseIn(t, a, a.status).Reservations[0]["server_group_id"]; group != nil {
					booked[group.(string)] = true
				} else {
					booked[""] = true
				}
			}
			if left := c.stored(); len(booked) != 1 || len(left) != 1 || len(c.demo.leases("")) != 1 {
				t.Errorf("booked are %v; stored are %v", booked, left)
			}
			for group := range n.groups {
				if !booked[group] {
					t.Errorf("the server group %s stays", group)
				}
			}
		})
	}
}

// Each verb of both APIs on reservations of instances: booked natively, the only one of a lease, and one of
// two of a lease. Ids are the same in both, at all times.
func TestBothAPIsShowAndChangeTheSame(t *testing.T) {
	c := start(t, setup{})
	native := c.demo.book(fmt.Sprintf(`{"name": "native", "kind": "instance", "resources": {"vcpus": 1, "memory_mb": 512}, "start_time": %q, "duration": 3600, "quantity": 2}`, at(600))).ID
	only := c.demo.lease(leaseWith(someInstances(2, "null")))
	two := c.demo.lease(leaseWith(someInstances(2, "null"), someInstances(1, "null")))
	for name, one := range map[string]struct {
		lease, reservation string
		several            bool
	}{
		"booked natively": {native, native, false},
		"the only one":    {only.ID, only.Reservations[0]["id"].(string), false},
		"one of two":      {two.ID, two.Reservations[0]["id"].(string), true},
	} {
		t.Run(name, func(t *testing.T) {
			lease, reserved := "/v1/leases/"+one.lease, "/v1/reservations/"+one.reservation
			// same returns what both APIs show of the reservation, after its name.
			same := func(when string) (shown string) {
				t.Helper()
				l, r := leaseIn(t, c.demo.get(lease), http.StatusOK), want[v1.Reservation](t, c.demo.get(reserved), http.StatusOK)
				for _, m := range l.Reservations {
					if m["id"] != one.reservation || m["lease_id"] != one.lease || m["flavor_id"] != one.reservation {
						continue
					}
					ofLease := fmt.Sprint(l.StartDate[:16], " ", l.EndDate[:16], " ", m["amount"])
					ofReservation := fmt.Sprint(r.Start.UTC().Format("2006-01-02T15:04"), " ", r.End.UTC().Format("2006-01-02T15:04"), " ", r.Quantity)
					if ofLease != ofReservation || (r.LeaseID == nil) != (one.lease == one.reservation) || r.LeaseID != nil && *r.LeaseID != one.lease {
						t.Errorf("%s the lease is %s, the reservation %s %v", when, ofLease, ofReservation, r)
					}
					return ofLease
				}
				t.Errorf("%s the lease is %+v, without %s", when, l, one.reservation)
				return ""
			}
			takes := func(what string, a answer, shows string) {
				t.Helper()
				before := same("before " + what)
				if a.status != http.StatusOK {
					t.Errorf("%s: got %v", what, a)
				}
				if now := same("after " + what); now != shows {
					t.Errorf("after %s it is %s, want %s; it was %s", what, now, shows, before)
				}
			}
			takes("nothing", c.demo.put(lease, `{}`), same("at first"))
			takes("times by Blazar's API", c.demo.put(lease, `{"start_date": "2026-11-20 12:20", "end_date": "2026-11-20 13:20"}`), "2026-11-20T12:20 2026-11-20T13:20 2")
			takes("an amount by Blazar's API", c.demo.put(lease, fmt.Sprintf(`{"reservations": [{"id": %q, "amount": 3}]}`, one.reservation)), "2026-11-20T12:20 2026-11-20T13:20 3")
			takes("a quantity by the native API", c.demo.patch(reserved, `{"quantity": 4}`), "2026-11-20T12:20 2026-11-20T13:20 4")
			takes("a name by the native API", c.demo.patch(reserved, `{"name": "renamed"}`), "2026-11-20T12:20 2026-11-20T13:20 4")
			takes("a name by Blazar's API", c.demo.put(lease, `{"name": "renamed too"}`), "2026-11-20T12:20 2026-11-20T13:20 4")
			times := c.demo.patch(reserved, fmt.Sprintf(`{"end_time": %q}`, at(7200)))
			if one.several {
				for _, a := range []answer{times, c.demo.delete(reserved)} {
					if e := wantError(t, a, http.StatusConflict); !strings.Contains(e.Message, one.lease) {
						t.Errorf("the message does not name the lease: %v", a)
					}
				}
				if a := c.demo.delete(lease); a.status != http.StatusNoContent {
					t.Errorf("delete: %v", a)
				}
			} else {
				takes("an end by the native API", times, "2026-11-20T12:20 2026-11-20T14:00 4")
				if a := c.demo.delete(reserved); a.status != http.StatusNoContent {
					t.Errorf("delete: %v", a)
				}
			}
			wantFault(t, c.demo.get(lease), http.StatusNotFound, "not found")
			if r := want[v1.Reservation](t, c.demo.get(reserved), http.StatusOK); r.Status != "canceled" || r.ID != one.reservation {
				t.Errorf("after its end it is %+v", r)
			}
		})
	}
}
