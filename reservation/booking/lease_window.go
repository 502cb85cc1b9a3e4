// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// This file has the search for the start of a lease with a deadline. Room for a lease appears only
// where a claim ends or a host awakes, so only such starts are tried, at most mostStarts of them.

// leasePlanWithin decides on a lease that lasts for req.Duration somewhere in w. It starts as early
// as there is room for the Min of each reservation; then each gets as much as there is room for. The
// refusal of a lease with one reservation is that of NewPlan for the same window.
func leasePlanWithin(v View, req reservation.LeaseRequest, w span.Span) (LeasePlan, error) {
	tries := leaseTries{window: span.Span{Start: max(w.Start, v.Now), End: w.End}, duration: req.Duration}
	for start, ok := tries.window.Start, true; ok; start, ok = tries.next(v) {
		start, err := startAlone(v, req, span.Span{Start: start, End: w.End})
		if err != nil {
			return LeasePlan{}, cmp.Or(tries.refused(), err)
		}
		plan, err := leasePlanAt(v, req, span.New(start, req.Duration))
		if !tries.failed(start, err) {
			return plan, err
		}
	}
	return LeasePlan{}, tries.refused()
}

// startAlone returns a start in w, before which some reservation of the lease has no room for its Min
// even without the others. Errors are those of NewPlan.
func startAlone(v View, req reservation.LeaseRequest, w span.Span) (span.Instant, error) {
	start := w.Start
	for _, m := range req.Members {
		if m.Kind == reservation.Addresses { // its room depends on the exact span
			continue
		}
		alone := reservation.Request{Terms: m.Terms, Start: start, End: w.End, Duration: req.Duration}
		alone.Name, alone.Quantity, alone.Policy = req.Name, max(m.Min, 1), calendar.PolicyFirstFit
		p, err := NewPlan(v, alone)
		if err != nil {
			return 0, err
		}
		start = p.Span.Start
	}
	return start, nil
}

// leaseMovedWithin is changedLease for a change with a deadline.
func leaseMovedWithin(v View, l reservation.LeaseRecord, c reservation.LeaseChange) (row *reservation.Lease, members []reservation.Reservation, err error) {
	from, duration := l.Span.Start, cmp.Or(c.Duration, l.Span.Seconds())
	set(&from, c.Start)
	switch {
	case l.Span.Start <= v.Now:
		return nil, nil, fault.Field("deadline", "Cannot modify the start date of already started leases")
	case tooLongAgo(from, v.Now):
		return nil, nil, fault.Field("start_date", "Start date must be later than current date")
	case max(from, v.Now).Add(duration) > *c.Deadline:
		return nil, nil, tooLate(max(from, v.Now), duration, *c.Deadline)
	}
	others := v
	for _, r := range l.Reservations {
		if r.Status.Live() {
			others = others.without(&r)
		}
	}
	tries := leaseTries{window: span.Span{Start: max(from, v.Now), End: *c.Deadline}, duration: duration}
	for start, ok := tries.window.Start, true; ok; start, ok = tries.next(others) {
		c.Start, c.Duration, c.End = &start, duration, nil
		row, members, err = (&leaseChange{LeaseChange: c, now: v.Now, from: l}).decide(v)
		if !tries.failed(start, err) {
			return row, members, err
		}
	}
	return nil, nil, tries.refused()
}

// leaseTries is the starts of a lease that were tried, without finding room.
type leaseTries struct {
	window   span.Span
	duration int64
	count    int
	last     span.Instant
	first    *reservation.Refusal
}

// failed records a start and reports whether another one may have room: the error is a refusal that
// depends on the start.
func (t *leaseTries) failed(start span.Instant, err error) bool {
	refusal, is := errors.AsType[*reservation.Refusal](err)
	if !is || !slices.Contains([]reservation.Constraint{reservation.HostsFree, reservation.MaxHosts, reservation.FloatingIPsFree}, refusal.Constraint) {
		return false
	}
	t.count, t.last = t.count+1, start
	if t.first == nil {
		t.first = refusal
	}
	return true
}

// next returns the start to try next, at which v may have more room; ok is false if there is none.
func (t *leaseTries) next(v View) (start span.Instant, ok bool) {
	start, ok = v.nextRoom(t.last)
	return start, ok && t.count < mostStarts && start.Add(t.duration) <= t.window.End
}

// refused returns the refusal after all tries; nil if there were none.
func (t *leaseTries) refused() error {
	if t.first == nil {
		return nil
	}
	r := *t.first
	if t.window.Seconds() > t.duration {
		r.EarliestStart = 0
		r.Message = fmt.Sprintf("not enough hosts available: of %s from %v to %v that were tried, none has room for the whole lease; at the first, %s",
			fault.Counted(t.count, "start"), t.window.Start, t.last, r.Message)
	}
	return &r
}

// nextRoom returns the first instant after t at which there may be more room: a claim of a host or of a
// floating IP ends, or a host awakes.
func (v View) nextRoom(t span.Instant) (next span.Instant, ok bool) {
	next, ok = v.Calendar.NextEnd(t)
	if !ok {
		next = span.Forever
	}
	for _, pool := range v.Pools {
		for _, b := range pool.Booked {
			if b.Span.End > t {
				next = min(next, b.Span.End)
			}
		}
	}
	for number := range v.hosts.names {
		if h := v.hosts.host(number); h != nil {
			if awake := h.AwakeAt(v.Now); awake > t {
				next = min(next, awake)
			}
		}
	}
	return next, next != span.Forever
}
