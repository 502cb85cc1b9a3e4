// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// LatestPast is how many seconds the requested start of a reservation or a lease may lie in the past;
// such a start means now. Clients send their present second, or minute, which may be over when the
// request arrives.
const LatestPast = 120

// MostMembers is the maximum number of reservations of a lease. Each requires searches and a copy of
// the calendar's list of hosts, while other decisions that claim time wait.
const MostMembers = 16

// LeasePlan is the result of a decision on a lease: its times, and the plans of its reservations in
// the order of the request.
type LeasePlan struct {
	Span span.Span
	// BeforeEnd is when the owner is warned of the end; 0 means never.
	BeforeEnd span.Instant
	Members   []Plan
}

// NewLeasePlan decides on a lease. If one of its reservations is refused, the lease is. Errors are those
// of NewPlan; what else a refusal suggests is about that reservation alone, see explainLease.
func NewLeasePlan(v View, req reservation.LeaseRequest) (LeasePlan, error) {
	v = v.bounded(mostLooked)
	window := requestedWindow(v, req)
	if err := checkLease(v.Now, req, window); err != nil {
		return LeasePlan{}, err
	}
	switch {
	case req.Duration != 0:
		return leasePlanWithin(v, req, window)
	case startsNow(v, req):
		return leasePlanNow(v, req, window)
	default:
		return leasePlanAt(v, req, window)
	}
}

// requestedWindow returns the times that a request names.
func requestedWindow(v View, req reservation.LeaseRequest) span.Span {
	window := span.Span{Start: req.Start, End: req.End}
	if req.Start == 0 {
		window.Start = v.Now
	}
	return window
}

// startsNow reports whether a lease with fixed times is to start now.
func startsNow(v View, req reservation.LeaseRequest) bool {
	return req.Duration == 0 && req.Start <= v.Now
}

// checkLease checks what does not depend on hosts.
func checkLease(now span.Instant, req reservation.LeaseRequest, w span.Span) error {
	switch {
	case utf8.RuneCountInString(req.Name) > LongestName:
		return fault.Field("name", "has more than %d characters", LongestName)
	case len(req.Members) > MostMembers:
		return fault.Field("reservations", "has %d entries; at most %d are allowed", len(req.Members), MostMembers)
	case tooLongAgo(w.Start, now):
		return fault.Field("start_date", "%v lies in the past; it is now %v", w.Start, now)
	case w.End <= max(w.Start, now):
		return fault.Field("end_date", "%v is not after the start, %v", w.End, max(w.Start, now))
	case w.End > lastInstant:
		return fault.Field("end_date", "must lie before %v", lastInstant)
	case req.Duration < 0 || req.Duration > longestDuration:
		return fault.Field("duration", "must be from one second to 100 years")
	case req.Duration > w.Seconds() || req.Duration > 0 && max(w.Start, now).Add(req.Duration) > w.End:
		return tooLate(max(w.Start, now), req.Duration, w.End)
	}
	return nil
}

// tooLate returns the error for a deadline before which a lease cannot last long enough.
func tooLate(from span.Instant, seconds int64, deadline span.Instant) error {
	return fault.Field("deadline", "%v is less than %v after %v", deadline, period(seconds), from)
}

// leasePlanAt decides on a lease with these times. It is booked if there is room for the Min of each
// reservation, in whichever order they choose their hosts; then each gets as much as there is room
// for, in the order of the request.
func leasePlanAt(v View, req reservation.LeaseRequest, w span.Span) (LeasePlan, error) {
	t := leaseTry{LeaseRequest: req, span: w}
	if req.BeforeEnd != 0 {
		t.warning = max(req.BeforeEnd+w.End-req.End, w.Start)
	}
	plans, err := t.inOrder(v, func(m reservation.MemberRequest) int { return m.Max })
	if _, refused := errors.AsType[*reservation.Refusal](err); refused && len(req.Members) > 1 {
		plans, err = t.rearranged(v)
	}
	if err != nil {
		return LeasePlan{}, err
	}
	return LeasePlan{Span: w, BeforeEnd: t.warning, Members: plans}, nil
}

// leaseTry is a lease at one start.
type leaseTry struct {
	reservation.LeaseRequest
	span    span.Span
	warning span.Instant // of the end; 0 means never
}

// memberError is why a reservation of a lease is refused.
type memberError struct {
	error
	member int // its index in the request, or in the lease that is changed
}

func (e *memberError) Unwrap() error { return e.error }

// MemberOf returns the index, in the request or in the lease that is changed, of the reservation that an error is about; false
// if it is about the whole lease.
func MemberOf(err error) (index int, is bool) {
	of, is := errors.AsType[*memberError](err)
	if !is {
		return 0, false
	}
	return of.member, true
}

// inOrder plans the reservations one after the other, each from its Min to most. Each sees the claims of
// those before it.
func (t *leaseTry) inOrder(v View, most func(m reservation.MemberRequest) int) (plans []Plan, err error) {
	for i, m := range t.Members {
		p, err := t.member(v, i, most(m))
		if err != nil {
			return nil, &memberError{err, i}
		}
		v = v.with(p.member(i))
		plans = append(plans, p)
	}
	return plans, nil
}

// member returns what the plan for the reservation with this index would hold, under an id of its own.
func (p *Plan) member(i int) *reservation.Reservation {
	return &reservation.Reservation{ID: strconv.Itoa(i), Terms: p.Terms, Span: p.Span, Claims: p.Claims, Addresses: p.Addresses}
}

// rearranged plans the reservations so that those that may have many hosts leave others those that
// they need.
func (t *leaseTry) rearranged(v View) ([]Plan, error) {
	if apart := cmp.Or(t.refusedAddresses(v), t.refusedAlone(v)); apart != nil {
		return nil, apart
	}
	least, err := t.inOrder(v, leastOf)
	if err != nil {
		var ok bool
		if least, ok = t.arranged(v); !ok {
			return nil, besideOthers(err)
		}
	}
	for i := range least {
		v = v.with(least[i].member(i))
	}
	plans := make([]Plan, len(least))
	for i, m := range t.Members {
		v = v.Without(least[i].member(i))
		if plans[i], err = t.member(v, i, m.Max); err != nil {
			return nil, besideOthers(&memberError{err, i})
		}
		v = v.with(plans[i].member(i))
	}
	return plans, nil
}

// leastOf returns how many hosts or instances a reservation of a lease needs.
func leastOf(m reservation.MemberRequest) int { return max(m.Min, 1) }

// refusedAddresses returns the error of the first reservation of floating IPs that has no room, which
// does not depend on hosts; nil if each has.
func (t *leaseTry) refusedAddresses(v View) error {
	others := v
	for i, m := range t.Members {
		if m.Kind != reservation.Addresses {
			continue
		}
		p, err := t.member(others, i, m.Max)
		if err == nil {
			others = others.with(p.member(i))
			continue
		}
		err = &memberError{err, i}
		if _, alone := t.member(v, i, m.Max); alone == nil {
			err = besideOthers(err)
		}
		return err
	}
	return nil
}

// refusedAlone returns the error of the first reservation that has no room for its Min even without the
// others; nil if each has.
func (t *leaseTry) refusedAlone(v View) error {
	for i, m := range t.Members {
		if _, err := t.member(v, i, leastOf(m)); err != nil {
			return &memberError{err, i}
		}
	}
	return nil
}

// besideOthers returns the error for a reservation that would have room without the others of its
// lease.
func besideOthers(err error) error {
	refused, is := errors.AsType[*memberError](err)
	if !is {
		return err
	}
	refusal, is := errors.AsType[*reservation.Refusal](err)
	if !is {
		return err
	}
	r := *refusal
	r.Message += ", beside what else the request needs"
	return &memberError{&r, refused.member}
}

// member decides on one reservation of a lease: on as many hosts or instances as there is room for,
// from its Min to most.
func (t *leaseTry) member(v View, i, most int) (Plan, error) {
	m := t.Members[i]
	if m.Kind == reservation.Addresses {
		return t.addresses(v, m, t.requiredByOthers(i))
	}
	return upTo(v, m.Min, most, func(v View, quantity int) (Plan, error) {
		return NewPlan(v, t.request(v, m, quantity))
	})
}

// request returns the request for one reservation of the lease.
func (t *leaseTry) request(v View, m reservation.MemberRequest, quantity int) reservation.Request {
	req := reservation.Request{Terms: m.Terms, Start: max(t.span.Start, v.Now), End: t.span.End}
	req.Name, req.Quantity, req.BeforeEnd = t.Name, quantity, WarningBefore(t.span, t.warning)
	return req
}

// requiredByOthers returns the addresses that the other reservations of the lease require by name.
func (t *leaseTry) requiredByOthers(i int) (list []string) {
	for j, m := range t.Members {
		if j != i && m.Kind == reservation.Addresses && m.Network == t.Members[i].Network {
			list = append(list, m.RequiredAddresses...)
		}
	}
	return list
}

// upTo returns the plan for as many hosts or instances as there is room for, from least to most. A
// refusal is about least.
func upTo(v View, least, most int, plan func(v View, quantity int) (Plan, error)) (Plan, error) {
	if least = max(least, 1); least >= most {
		return plan(v, most)
	}
	p, err := plan(v.exact(), most)
	refusal, is := errors.AsType[*reservation.Refusal](err)
	if !is {
		return p, err
	}
	if refusal.LargestQuantity >= least && refusal.LargestQuantity < most {
		if p, err := plan(v, refusal.LargestQuantity); err == nil {
			return p, nil
		}
	}
	return plan(v, least)
}

// WarningBefore returns how many seconds before the end of w the warning is; 0 means never.
func WarningBefore(w span.Span, warning span.Instant) int64 {
	if warning == 0 {
		return 0
	}
	return max(int64(w.End-warning), 0)
}

// WarningAt returns when a lease that lasts for w warns of its end, so many seconds before it, but at the start at the
// earliest; 0 means never.
func WarningAt(w span.Span, before int64) span.Instant {
	if before == 0 {
		return 0
	}
	return max(w.End.Add(-before), w.Start)
}
