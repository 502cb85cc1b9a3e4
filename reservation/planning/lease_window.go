// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// This file has the search for the start of a lease with a deadline. Room for a lease appears only
// where a claim ends or a host awakes, so only such starts are tried, at most mostStarts of them, and fewer
// if the searches look at too many hosts.

// leasePlanWithin decides on a lease that lasts for req.Duration somewhere in w. It starts as early
// as there is room for the Min of each reservation; then each gets as much as there is room for. The
// refusal of a lease with one reservation is that of NewPlan for the same window.
func leasePlanWithin(v View, req reservation.LeaseRequest, w span.Span) (LeasePlan, error) {
	tries := leaseTries{window: span.Span{Start: max(w.Start, v.Now), End: w.End}, duration: req.Duration}
	return tries.plan(v, req)
}

// plan decides on the lease at the first start in the window at which it has room.
func (t *leaseTries) plan(v View, req reservation.LeaseRequest) (LeasePlan, error) {
	for start, ok := t.window.Start, true; ok; start, ok = t.next(v) {
		start, err := startAlone(v, req, span.Span{Start: start, End: t.window.End})
		if start = t.rounded(start); err == nil && start.Add(t.duration) > t.window.End {
			break
		}
		if err != nil {
			return LeasePlan{}, cmp.Or(t.refused(), err)
		}
		plan, err := leasePlanAt(t.view(v), req, span.New(start, req.Duration))
		if !t.failed(start, err) {
			return plan, err
		}
	}
	return LeasePlan{}, t.refused()
}

// startAlone returns a start in w, before which some reservation of the lease has no room for its Min
// even without the others, or several have none together: those that choose among the same hosts or
// floating IPs. Errors are those of NewPlan.
func startAlone(v View, req reservation.LeaseRequest, w span.Span) (span.Instant, error) {
	together, err := sharedWants(v, req, w)
	if err != nil {
		return 0, err
	}
	start := w.Start
	for range mostStarts {
		if v.effort.over() {
			break
		}
		before := start
		for i, m := range req.Members {
			if m.Kind == reservation.Addresses {
				start, err = together[i].addressesFrom(v, m, span.Span{Start: start, End: w.End}, req.Duration)
			} else {
				start, err = together[i].hostsFrom(v, req, m, span.Span{Start: start, End: w.End})
			}
			if err != nil {
				return 0, &memberError{err, i}
			}
		}
		if start == before {
			break
		}
	}
	return start, nil
}

// sharedWant is what a reservation of a lease needs together with those that have no other choice than
// it has.
type sharedWant struct {
	others   int // reservations
	quantity int
	required []string // addresses
}

// sharedWants returns what is wanted with each reservation of the lease.
func sharedWants(v View, req reservation.LeaseRequest, w span.Span) ([]sharedWant, error) {
	wants, searches := make([]sharedWant, len(req.Members)), make([]*search, len(req.Members))
	for i, m := range req.Members {
		wants[i] = sharedWant{quantity: leastOf(m), required: m.RequiredAddresses}
		if m.Kind == reservation.Addresses {
			wants[i].quantity = m.Max
			continue
		}
		t := leaseTry{LeaseRequest: req, span: span.New(w.Start, req.Duration)}
		var err error
		if searches[i], err = t.searchFor(v, m); err != nil {
			return nil, &memberError{err, i}
		}
	}
	for i, m := range req.Members {
		for j, other := range req.Members {
			same := m.Kind == reservation.Addresses && other.Kind == m.Kind && other.Network == m.Network
			if i == j || !same && !searches[j].within(searches[i]) {
				continue
			}
			wants[i].others++
			if m.Kind == reservation.Addresses {
				wants[i].quantity += other.Max
				wants[i].required = append(slices.Clip(wants[i].required), other.RequiredAddresses...)
			} else {
				wants[i].quantity += leastOf(other)
			}
		}
	}
	return wants, nil
}

// within reports whether s and o are for whole hosts, and whether each host that s may have is one that
// o may have, now and later. Both are nil for floating IPs.
func (s *search) within(o *search) bool {
	if s == nil || o == nil || s.request.Kind != reservation.Hosts || o.request.Kind != reservation.Hosts {
		return false
	}
	for _, ahead := range []bool{false, true} {
		rest := s.matching(ahead)
		if rest.Subtract(o.matching(ahead)); !rest.Empty() {
			return false
		}
	}
	return true
}

// hostsFrom returns the first start in w at which there are hosts or instances enough.
func (n *sharedWant) hostsFrom(v View, req reservation.LeaseRequest, m reservation.MemberRequest, w span.Span) (span.Instant, error) {
	alone := reservation.Request{Terms: m.Terms, Start: w.Start, End: w.End, Duration: req.Duration}
	alone.Name, alone.Quantity, alone.Policy = req.Name, n.quantity, calendar.PolicyFirstFit
	p, err := NewPlan(v, alone)
	if refusal, is := errors.AsType[*reservation.Refusal](err); is && n.others > 0 {
		r := *refusal
		r.Message += fmt.Sprintf(", which %s of the request need together", fault.Counted(n.others+1, "reservation"))
		err = &r
	}
	return p.Span.Start, err
}

// addressesFrom returns the first start in w at which there are floating IPs enough.
func (n *sharedWant) addressesFrom(v View, m reservation.MemberRequest, w span.Span, seconds int64) (span.Instant, error) {
	want := address.Want{Amount: n.quantity, Required: n.required, Span: span.New(w.Start, seconds), Latest: w.End.Add(-seconds)}
	start := address.Earliest(v.Pools[m.Network], want)
	if start != 0 {
		return start, nil
	}
	_, err := chooseAddresses(v, Plan{Span: want.Span}, m.Network, want)
	return w.Start, err
}

// leaseMovedWithin is PlanLeaseChange for a change with a deadline.
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
			others = others.Without(&r)
		}
	}
	tries := leaseTries{window: span.Span{Start: max(from, v.Now), End: *c.Deadline}, duration: duration}
	for start, ok := tries.window.Start, true; ok; start, ok = tries.next(others) {
		c.Start, c.Duration, c.End = &start, duration, nil
		row, members, err = (&leaseChange{LeaseChange: c, now: v.Now, from: l}).decide(tries.view(v))
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
	unit     int64 // the starts are multiples of so many seconds; 0 means any
	count    int
	last     span.Instant
	staged   span.Instant // when the image could be there, which the last start was too early for; 0 means never
	first    error        // a refusal
}

// view returns the view for a try: the refusal of one of several tells which start to try next.
func (t *leaseTries) view(v View) View {
	if t.window.Seconds() > t.duration {
		return v.exact()
	}
	return v
}

// rounded returns the first start from the given one on that is a multiple of the unit.
func (t *leaseTries) rounded(start span.Instant) span.Instant {
	if t.unit == 0 {
		return start
	}
	unit := span.Instant(t.unit)
	return (start + unit - 1) / unit * unit
}

// failed records a start and reports whether another one may have room: the error is a refusal that
// depends on the start.
func (t *leaseTries) failed(start span.Instant, err error) bool {
	if !dependsOnStart(err) {
		return false
	}
	t.count, t.last, t.staged = t.count+1, start, 0
	if refusal, _ := errors.AsType[*reservation.Refusal](err); refusal.Constraint == reservation.ImageTransfer || refusal.Constraint == reservation.ImagePool {
		t.staged = refusal.EarliestStart
	}
	if t.first == nil {
		t.first = err
	}
	return true
}

// dependsOnStart reports whether err is a refusal that another start may avoid.
func dependsOnStart(err error) bool {
	refusal, is := errors.AsType[*reservation.Refusal](err)
	return is && slices.Contains([]reservation.Constraint{
		reservation.HostsFree, reservation.HostsTogether, reservation.MaxHosts, reservation.FloatingIPsFree, reservation.ImageTransfer, reservation.ImagePool,
	}, refusal.Constraint)
}

// next returns the start to try next, at which v may have more room; ok is false if there is none.
func (t *leaseTries) next(v View) (start span.Instant, ok bool) {
	if start, ok = v.nextRoom(t.last); t.staged > t.last && (!ok || t.staged < start) {
		start, ok = t.staged, true
	}
	return start, ok && t.count < mostStarts && !v.effort.over() && start.Add(t.duration) <= t.window.End
}

// refused returns the refusal after all tries; nil if there were none.
func (t *leaseTries) refused() error {
	refusal, is := errors.AsType[*reservation.Refusal](t.first)
	if !is {
		return nil
	}
	r := *refusal
	if t.window.Seconds() > t.duration {
		r.EarliestStart = 0
		r.Message = fmt.Sprintf("not enough hosts available: of %s from %v to %v that were tried, none has room for the whole request; at the first, %s",
			fault.Counted(t.count, "start"), t.window.Start, t.last, r.Message)
	}
	if member, is := errors.AsType[*memberError](t.first); is {
		return &memberError{&r, member.member}
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
	if t <= v.Now { // filters may match more hosts in the future
		next = min(next, v.future())
	}
	for _, pool := range v.Pools {
		for _, b := range pool.Booked {
			if b.Span.End > t {
				next = min(next, b.Span.End)
			}
		}
	}
	for number := range v.Hosts.names {
		if h := v.Hosts.Host(number); h != nil {
			if awake := v.awakeAt(h); awake > t {
				next = min(next, awake)
			}
		}
	}
	return next, next != span.Forever
}

// mayStartLater reports whether another start may avoid the refusal. More hosts may match in the future
// than now.
func mayStartLater(v View, req reservation.LeaseRequest, r *reservation.Refusal) bool {
	later := r.Constraint == reservation.HostsMatching && requestedWindow(v, req).Start <= v.Now
	return later || dependsOnStart(r)
}
