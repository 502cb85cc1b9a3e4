// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/reservation"
)

// outage is a cloud in which events fail while it lasts.
type outage struct{ lasts bool }

func (o *outage) Carry(context.Context, reservation.Reservation, reservation.EventType) error {
	if o.lasts {
		return errors.New("nova does not answer")
	}
	return nil
}

// A lease is the same before and after a restart in each state, and goes on from it. One lease has
// no reservations.
func TestALeaseGoesOnAfterARestartInEachState(t *testing.T) {
	nova := &outage{}
	s := setup{carries: nova}
	c := start(t, s)
	full, empty := c.demo.lease(hostLease("full", "12:10", "13:00", 1)), c.demo.lease(`{"name":"empty","start_date":"2026-11-20 12:10","end_date":"2026-11-20 13:00"}`)
	doomed, dropped := c.demo.lease(hostLease("doomed", "14:00", "14:10", 1)), c.demo.lease(hostLease("dropped", "14:30", "15:00", 1))
	seen := make(map[string]bool)
	for _, step := range []struct {
		outage bool // until clock, which is seconds after noon
		clock  int64
		lease  blazarLease
		status string
	}{
		{false, 0, full, "PENDING"},
		{false, 0, empty, "PENDING"},
		{true, 610, full, "STARTING"},
		{false, 680, full, "ACTIVE"},
		{false, 680, empty, "ACTIVE"},
		{true, 3610, full, "TERMINATING"},
		{false, 3680, full, "TERMINATED"},
		{false, 3680, empty, "TERMINATED"},
		{true, 7210, doomed, "STARTING"},
		{true, 7900, doomed, "ERROR"},
		{false, 9010, dropped, "ACTIVE"},
	} {
		nova.lasts = step.outage
		c.seconds.Store(int64(noon) + step.clock)
		_, _ = c.bookings.CarryOut(t.Context()) // fails during an outage
		c.bookings.Wait()
		path := "/v1/leases/" + step.lease.ID
		before := c.demo.get(path)
		if l := leaseIn(t, before, http.StatusOK); l.Status != step.status {
			t.Errorf("%s is %s at %s, want %s", l.Name, l.Status, at(step.clock), step.status)
		}
		list := c.demo.get("/v1/leases").String()
		c = c.restart(t, s)
		if d := cmp.Diff(before.String(), c.demo.get(path).String()); d != "" {
			t.Errorf("a lease that is %s (-before +after the restart):\n%s", step.status, d)
		}
		if d := cmp.Diff(list, c.demo.get("/v1/leases").String()); d != "" {
			t.Errorf("the leases (-before +after the restart):\n%s", d)
		}
		seen[step.status] = true
	}
	for _, l := range []blazarLease{full, empty, doomed, dropped} {
		if a := c.demo.delete("/v1/leases/" + l.ID); a.status != http.StatusNoContent {
			t.Errorf("delete %s: got %v", l.Name, a)
		}
	}
	c = c.restart(t, s)
	if left := c.demo.leases(""); len(left) != 0 {
		t.Errorf("after they were deleted: %+v", left)
	}
	if len(seen) != 6 {
		t.Errorf("the states are %v, want six: a lease that is deleted is gone at once", seen)
	}
}
