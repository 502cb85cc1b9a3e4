// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// Neither the reservation nor its calendar shows the reason.
func TestTheOwnerDoesNotReadWhyAnAdminDisabledTheHost(t *testing.T) {
	hosts := []inventory.Host{machine("host-1")}
	c := start(t, setup{hosts: hosts})
	pending := c.demo.bookAt("pending", 3600)
	active := c.demo.book(`{"name": "r", "duration": 600}`)
	if _, failed := c.bookings.CarryOut(t.Context()); len(failed) > 0 {
		t.Fatal(failed)
	}
	disabled := func(string) (string, bool) { return "it is disabled: the police took the disks", true }
	for id, named := range map[string]bool{active.ID: true, pending.ID: false} {
		if _, changed, err := c.bookings.Heal(t.Context(), id, disabled); err != nil || !changed {
			t.Fatalf("heal: changed %v, %v", changed, err)
		}
		a := c.demo.get("/v1/reservations/" + id)
		if r := want[v1.Reservation](t, a, http.StatusOK); !r.Degraded || strings.Contains(string(a.body), "police") ||
			strings.Contains(r.DegradedReason, "host-1") != named {
			t.Errorf("%s: its owner reads %s", r.Status, a.body)
		}
	}
	want[v1.Host](t, c.admin.patch("/v1/hosts/host-1", `{"power": "failed"}`), http.StatusOK)
	for token, told := range map[string]bool{"demo/admin": true, "demo/member": false} {
		r := want[v1.Reservation](t, caller{c, token}.get("/v1/reservations/"+active.ID), http.StatusOK)
		if strings.Contains(r.DegradedReason, "host-1: it is marked as failed") != told {
			t.Errorf("%s reads %q", token, r.DegradedReason)
		}
	}
	calendar := string(c.demo.get("/v1/reservations.ics").body)
	unfolded := strings.ReplaceAll(calendar, "\r\n ", "")
	if strings.Contains(unfolded, "police") || strings.Count(unfolded, "Degraded: host") != 2 {
		t.Errorf("the calendar has %s", unfolded)
	}
}
