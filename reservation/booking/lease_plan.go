// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// LatestPast is how many seconds the requested start of a reservation or a lease may lie in the past;
// such a start means now. Clients send their present second, or minute, which may be over when the
// request arrives.
const LatestPast = 120

// tooLongAgo reports whether a start lies too long in the past to mean now.
func tooLongAgo(start, now span.Instant) bool { return start < now.Add(-LatestPast) }

// mostMembers is the maximum number of reservations of a lease. Each requires searches and a copy of
// the calendar's list of hosts, while other decisions that claim time wait.
const mostMembers = 16

// LeasePlan is the result of a decision on a lease: its times, and the plans of its reservations in
// the order of the request.
type LeasePlan struct {
	Span span.Span
	// BeforeEnd is when the owner is warned of the end; 0 means never.
	BeforeEnd span.Instant
	Members   []Plan
}

// NewLeasePlan decides on a lease. Each reservation sees the claims of those before it; if one of
// them is refused, the lease is. Errors are those of NewPlan.
func NewLeasePlan(v View, req reservation.LeaseRequest) (LeasePlan, error) {
	window := span.Span{Start: req.Start, End: req.End}
	if req.Start == 0 {
		window.Start = v.Now
	}
	if err := checkLease(v.Now, req, window); err != nil {
		return LeasePlan{}, err
	}
	if req.Duration == 0 {
		return leasePlanAt(v, req, window)
	}
	return leasePlanWithin(v, req, window)
}

// checkLease checks what does not depend on hosts.
func checkLease(now span.Instant, req reservation.LeaseRequest, w span.Span) error {
	switch {
	case utf8.RuneCountInString(req.Name) > longestName:
		return fault.Field("name", "has more than %d characters", longestName)
	case len(req.Members) > mostMembers:
		return fault.Field("reservations", "has %d entries; at most %d are allowed", len(req.Members), mostMembers)
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

// leasePlanAt decides on a lease with these times.
func leasePlanAt(v View, req reservation.LeaseRequest, w span.Span) (LeasePlan, error) {
	plan := LeasePlan{Span: w}
	if req.BeforeEnd != 0 {
		plan.BeforeEnd = req.BeforeEnd + w.End - req.End
	}
	for _, m := range req.Members {
		p, err := planMember(v, m, req.Name, w, plan.BeforeEnd)
		if err != nil {
			return LeasePlan{}, plan.amongOthers(err)
		}
		v = v.with(&reservation.Reservation{Terms: p.Terms, Span: p.Span, Claims: p.Claims, Addresses: p.Addresses})
		plan.Members = append(plan.Members, p)
	}
	return plan, nil
}

// amongOthers returns the error for the next reservation of the lease. The claims of those before it,
// which are not booked, do not block it, and another start would move them too.
func (p *LeasePlan) amongOthers(err error) error {
	refusal, is := errors.AsType[*reservation.Refusal](err)
	if !is {
		return err
	}
	own := make(map[reservation.Block]bool)
	for _, m := range p.Members {
		for _, c := range m.Claims {
			own[reservation.Block{Host: c.Host, Span: c.Span}] = true
		}
	}
	r := *refusal
	r.BlockedBy = slices.DeleteFunc(slices.Clone(r.BlockedBy), func(b reservation.Block) bool { return own[b] })
	if len(r.BlockedBy) < len(refusal.BlockedBy) {
		r.EarliestStart = 0
		r.Message += ", beside the other reservations of the lease"
	}
	return &r
}

// planMember decides on one reservation of a lease: on as many hosts or instances as there is room
// for, from its Min to its Max.
func planMember(v View, m reservation.MemberRequest, name string, w span.Span, warning span.Instant) (Plan, error) {
	if m.Kind == reservation.Addresses {
		return planAddresses(v, m, name, w, warning)
	}
	req := reservation.Request{Terms: m.Terms, Start: max(w.Start, v.Now), End: w.End}
	req.Name, req.BeforeEnd = name, warningBefore(w, warning)
	return upTo(m.Min, m.Max, func(quantity int) (Plan, error) {
		req.Quantity = quantity
		return NewPlan(v, req)
	})
}

// upTo returns the plan for as many hosts or instances as there is room for, from least to most. A
// refusal is about least.
func upTo(least, most int, plan func(quantity int) (Plan, error)) (Plan, error) {
	p, err := plan(most)
	refusal, is := errors.AsType[*reservation.Refusal](err)
	if least = max(least, 1); !is || least >= most {
		return p, err
	}
	if refusal.LargestQuantity >= least && refusal.LargestQuantity < most {
		if p, err := plan(refusal.LargestQuantity); err == nil {
			return p, nil
		}
	}
	return plan(least)
}

// warningBefore returns how many seconds before the end of w the warning is; 0 means never.
func warningBefore(w span.Span, warning span.Instant) int64 {
	if warning == 0 {
		return 0
	}
	return max(int64(w.End-warning), 0)
}
