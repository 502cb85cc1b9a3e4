// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// leaseChange plans a change of a lease.
type leaseChange struct {
	reservation.LeaseChange
	now  span.Instant
	from reservation.LeaseRecord

	to      span.Span    // the new times
	warning span.Instant // of the end; 0 means never
	moved   bool         // the start changes
	endsNow bool
}

// PlanLeaseChange decides on a change of a lease, whose reservations the view contains. It returns the
// reservations after the change; those that it does not affect have their old version. row is the
// lease after the change; nil if it stays, or if l is a reservation that belongs to no lease.
//
// The reservations are planned one after the other, those that get fewer first. Each sees what those
// before it will have, and what those after it have now. If there is no room then, each gets the least
// that it may have before one gets more.
func PlanLeaseChange(v View, l reservation.LeaseRecord, c reservation.LeaseChange) (row *reservation.Lease, members []reservation.Reservation, err error) {
	v = v.bounded(mostLooked)
	if err := checkMembers(l, c.Members); err != nil {
		return nil, nil, err
	}
	c = differing(l, c)
	if c.OnEnd != nil {
		if err := cmp.Or(oneOf("on_end", *c.OnEnd, reservation.OnEnds), v.Defaults.mayEnd(*c.OnEnd)); err != nil {
			return nil, nil, err
		}
	}
	if c.Deadline != nil {
		return leaseMovedWithin(v, l, c)
	}
	return (&leaseChange{LeaseChange: c, now: v.Now, from: l}).decide(v)
}

// decide is PlanLeaseChange for a change without a deadline.
func (p *leaseChange) decide(v View) (row *reservation.Lease, members []reservation.Reservation, err error) {
	p.to, p.warning = p.from.Span, p.from.BeforeEnd
	if err := p.check(); err != nil {
		return nil, nil, err
	}
	_, members, err = p.each(v, p.from.Reservations, false)
	if _, refused := errors.AsType[*reservation.Refusal](err); refused && len(p.from.Reservations) > 1 {
		if v, least, ok := p.each(v, p.from.Reservations, true); ok == nil {
			_, members, err = p.each(v, least, false)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return p.row(members), members, nil
}

// each plans the reservations that the change affects, which now have what have states and the view
// contains. It returns the view with them. sparing is whether each gets the least that it may have.
func (p *leaseChange) each(v View, have []reservation.Reservation, sparing bool) (View, []reservation.Reservation, error) {
	members := slices.Clone(have)
	for _, i := range p.order(sparing) {
		was, m := p.from.Reservations[i], p.of(have[i].ID)
		if !p.affects(&was, m) {
			continue
		}
		if was.Status != reservation.Pending && was.Status != reservation.Active {
			return v, nil, &memberError{fault.New(fault.Conflict, "reservation %s is %s; only a pending or active one can be changed", was.ID, was.Status), i}
		}
		if err := checkHeld(p.now, &was, Change{}); err != nil {
			return v, nil, &memberError{err, i}
		}
		v = v.Without(&have[i])
		next, err := p.member(v, was, have[i], m, sparing)
		if err != nil {
			return v, nil, &memberError{err, i}
		}
		members[i] = next
		v = v.with(&members[i])
	}
	return v, members, nil
}

// order returns the indexes of the reservations, those first that get fewer than they have.
// sparing is whether each gets the least that it may have.
func (p *leaseChange) order(sparing bool) []int {
	fewer := func(i int) bool {
		r := &p.from.Reservations[i]
		m := p.of(r.ID)
		if m == nil || m.Min == nil && m.Max == nil {
			return false
		}
		part, _ := appliedTo(r.Membership, r.Terms, m)
		if sparing {
			return part.Min < r.Quantity
		}
		return part.Max < r.Quantity
	}
	indexes := make([]int, len(p.from.Reservations))
	for i := range indexes {
		indexes[i] = i
	}
	slices.SortStableFunc(indexes, func(i, j int) int { return compareBool(fewer(j), fewer(i)) })
	return indexes
}

// IsOwn reports whether the lease is a reservation that belongs to none.
func IsOwn(l reservation.LeaseRecord) bool {
	return len(l.Reservations) == 1 && l.Reservations[0].Membership.LeaseID == ""
}

// row returns the lease itself after the change; nil if nothing of it is stored.
func (p *leaseChange) row(members []reservation.Reservation) *reservation.Lease {
	next := p.from.Lease
	next.Span, next.BeforeEnd = p.to, p.warning
	if p.Name != nil {
		next.Name = *p.Name
	}
	same := func(a, b reservation.Reservation) bool { return a.Version == b.Version }
	if IsOwn(p.from) || next == p.from.Lease && slices.EqualFunc(members, p.from.Reservations, same) {
		return nil
	}
	next.Updated, next.Version = p.now, next.Version+1
	return &next
}

// of returns the change of one reservation; nil if there is none.
func (p *leaseChange) of(id string) *reservation.MemberChange {
	i := slices.IndexFunc(p.Members, func(m reservation.MemberChange) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return &p.Members[i]
}

// retimes reports whether the times change.
func (p *leaseChange) retimes() bool { return p.to != p.from.Span || p.warning != p.from.BeforeEnd }

// affects reports whether a reservation changes, m being its own change. One that is over keeps its
// times.
func (p *leaseChange) affects(r *reservation.Reservation, m *reservation.MemberChange) bool {
	return m != nil || IsOwn(p.from) && p.Name != nil || (p.retimes() || p.OnEnd != nil) && r.Status.Live()
}

// check finds the new times, and checks what does not depend on hosts.
func (p *leaseChange) check() error {
	if p.Name != nil && utf8.RuneCountInString(*p.Name) > LongestName {
		return fault.Field("name", "has more than %d characters", LongestName)
	}
	if p.Start == nil && p.End == nil && p.Duration == 0 && p.BeforeEnd == nil && p.Warning == nil && p.OnEnd == nil && len(p.Members) == 0 {
		return nil
	}
	if p.Warning != nil && *p.Warning < 0 {
		return fault.Field("before_end", "must not be negative")
	}
	if p.Duration < 0 || p.Duration > longestDuration {
		return fault.Field("duration", "must be from one second to 100 years")
	}
	if err := p.findTimes(); err != nil {
		return err
	}
	p.warning = KeptWarning(p.from.Lease, p.to)
	if p.Warning != nil {
		p.warning = WarningAt(p.to, *p.Warning)
		return nil
	}
	if p.BeforeEnd == nil {
		return nil
	}
	if p.warning = *p.BeforeEnd; p.warning < p.to.Start || p.warning > p.to.End {
		return &fault.Error{Kind: fault.Denied, Field: "before_end_date", Message: "Datetime is out of lease limits"}
	}
	return nil
}

// checkMembers checks the ids of the reservations of l to change.
func checkMembers(l reservation.LeaseRecord, members []reservation.MemberChange) error {
	var unknown []string
	named := make(map[string]bool)
	for _, m := range members {
		if !slices.ContainsFunc(l.Reservations, func(r reservation.Reservation) bool { return r.ID == m.ID }) {
			unknown = append(unknown, m.ID)
		}
		if named[m.ID] {
			return fault.Field("reservations", "reservation %s is listed more than once", m.ID)
		}
		named[m.ID] = true
	}
	if len(unknown) > 0 {
		return fault.Field("reservations", "Please enter valid reservation IDs. Invalid reservation IDs are: %s", strings.Join(unknown, ", "))
	}
	return nil
}

// minute is the precision of the times of Blazar's clients.
const minute = 60

// findTimes finds the new start and end. An end in the past, by at most LatestPast, is now.
func (p *leaseChange) findTimes() error {
	was, begun := p.from.Span, p.from.Span.Start <= p.now
	if was.End <= p.now || len(p.from.Reservations) > 0 && !slices.ContainsFunc(p.from.Reservations, isLive) {
		return &worded{fault.New(fault.Invalid, "Terminated leases can only be renamed"), fault.New(fault.Conflict, "the group is over; only its name can be changed")}
	}
	if p.Start != nil && *p.Start != was.Start {
		p.to.Start, p.moved = *p.Start, true
	}
	switch {
	case p.moved && begun:
		return &worded{
			fault.Field("start_date", "Cannot modify the start date of already started leases"),
			&fault.Error{Kind: fault.Conflict, Field: "start_time", Message: "the group has started; its start cannot be changed"},
		}
	case p.moved && tooLongAgo(p.to.Start, p.now):
		return &worded{
			fault.Field("start_date", "Start date must be later than current date"),
			fault.Field("start_time", "%v lies in the past; it is now %v", p.to.Start, p.now),
		}
	}
	if p.End != nil {
		p.to.End = *p.End
	}
	if p.Duration != 0 {
		p.to.End = p.to.Start.Add(p.Duration)
	}
	// Without another change: one would never take effect.
	if begun && len(p.Members) == 0 && p.to.End <= p.now && p.to.End >= p.now.Add(-LatestPast) && p.to.End/minute >= was.Start/minute {
		p.endsNow, p.to.End = true, max(p.now, latestStart(p.from)+1)
	}
	switch {
	case !p.endsNow && p.to.End <= max(p.to.Start, p.now):
		return &worded{fault.Field("end_date", "End date must be later than current and start date"), p.endsTooEarly()}
	case p.to.End > lastInstant:
		return fault.Field("end_date", "must lie before %v", lastInstant)
	}
	return nil
}

// endsTooEarly returns why the group cannot end when the change has it end.
func (p *leaseChange) endsTooEarly() *fault.Error {
	switch {
	case p.End == nil:
		return fault.Field("start_time", "%v is not before the end of the group, %v; change the end too", p.to.Start, p.to.End)
	case p.to.End > p.now:
		return fault.Field("end_time", "%v is not after the start, %v", p.to.End, p.to.Start)
	}
	return fault.Field("end_time", "%v lies in the past; delete the group to end it now", p.to.End)
}

// worded is an error in the words of Blazar's API, with the same in those of groups.
type worded struct {
	error
	group *fault.Error
}

func (w *worded) Unwrap() error { return w.error }

// OfGroup returns an error about a lease in the words of groups.
func OfGroup(err error) error {
	if w, is := errors.AsType[*worded](err); is {
		return w.group
	}
	return err
}

// isLive reports whether a reservation is not over.
func isLive(r reservation.Reservation) bool { return r.Status.Live() }

// latestStart returns the latest start of the lease and its reservations, which differ if the
// requested start was a few seconds ago.
func latestStart(l reservation.LeaseRecord) span.Instant {
	latest := l.Span.Start
	for _, r := range l.Reservations {
		latest = max(latest, r.Span.Start)
	}
	return latest
}

// KeptWarning returns when the owner of a lease with new times is warned of the end: as long before
// it as until now, but at the start at the earliest.
func KeptWarning(l reservation.Lease, to span.Span) span.Instant {
	if l.BeforeEnd == 0 || to == l.Span {
		return l.BeforeEnd
	}
	return max(to.End-(l.Span.End-l.BeforeEnd), to.Start)
}

// member decides on one pending or active reservation r, without which the view is. It has the claims of
// have now.
func (p *leaseChange) member(v View, r, have reservation.Reservation, m *reservation.MemberChange, sparing bool) (reservation.Reservation, error) {
	plan, part := Plan{Terms: r.Terms, Span: span.Span{Start: r.Span.Start, End: p.to.End}, DelayedByBoot: r.DelayedByBoot}, r.Membership
	var err error
	switch {
	case p.endsNow && r.Status == reservation.Pending: // its start waits for its hosts
		return Canceled(r, p.now)
	case p.endsNow:
		plan.Claims, plan.Addresses = usedBy(r.Claims, p.to.End), r.Addresses
	case r.Kind == reservation.Addresses:
		if plan, part, err = p.addresses(v, &have, m); err != nil {
			return r, err
		}
	default:
		if plan, part, err = p.plan(v, have, m, sparing); err != nil {
			return r, err
		}
	}
	set(&plan.Terms.OnEnd, p.OnEnd)
	if p.retimes() {
		plan.Terms.BeforeEnd = WarningBefore(p.to, p.warning)
	}
	if IsOwn(p.from) {
		part = boundsAlone(part, plan.Terms.Quantity)
		if p.Name != nil {
			plan.Terms.Name = *p.Name
		}
	}
	if next := Changed(r, plan, part, p.now); Difference(r, next) != "" {
		return next, nil
	}
	return r, nil
}

// boundsAlone returns what a reservation that belongs to no lease keeps of part: bounds that are not the
// quantity itself.
func boundsAlone(part reservation.Membership, quantity int) reservation.Membership {
	if part.Min == quantity && part.Max == quantity {
		return reservation.Membership{}
	}
	return reservation.Membership{Min: part.Min, Max: part.Max}
}

// plan plans the times, the quantity and the hosts of one reservation. The quantity is as large as
// there is room for between the bounds, if the change states a bound, or requires other hosts;
// otherwise it stays. An active reservation keeps its hosts, and may only get more of them. If sparing is
// true, the quantity is the least that it may be.
func (p *leaseChange) plan(v View, r reservation.Reservation, m *reservation.MemberChange, sparing bool) (Plan, reservation.Membership, error) {
	part, terms, bounded := r.Membership, r.Terms, false
	if part.Max == 0 {
		part.Min, part.Max = r.Quantity, r.Quantity
	}
	if m != nil {
		bounded = m.Min != nil || m.Max != nil
		part, terms = appliedTo(part, terms, m)
		fill(&terms, v.Defaults)
	}
	other := terms.HostProperties != r.HostProperties || terms.Affinity != r.Affinity || !terms.Resources.Equal(r.Resources)
	least, most := r.Quantity, r.Quantity
	if bounded || other {
		least, most = part.Min, part.Max
	}
	active := r.Status == reservation.Active
	switch {
	case part.Min < 0 || part.Min > part.Max:
		return Plan{}, part, fault.Field("min", "Invalid values for min/max of hosts. Max must be equal to or larger than min.")
	case active && other:
		return Plan{}, part, fault.New(fault.Conflict, "reservation %s is active; its filter, resources and affinity cannot be changed", r.ID)
	case active && most < r.Quantity:
		return Plan{}, part, fault.New(fault.Conflict, "reservation %s is active and has %d; it cannot get fewer", r.ID, r.Quantity)
	case active:
		least = max(least, r.Quantity)
	}
	if sparing {
		most = max(least, 1)
	}
	start := r.Span.Start
	if p.moved {
		start = max(p.to.Start, p.now)
	}
	plan, err := upTo(v, least, most, func(v View, quantity int) (Plan, error) {
		if other {
			terms.Quantity = quantity
			return planAnew(v, &r, terms, span.Span{Start: start, End: p.to.End})
		}
		return PlanChange(v, r, Change{Quantity: &quantity, Start: &start, End: &p.to.End})
	})
	if refusal, refused := errors.AsType[*reservation.Refusal](err); refused && active && refusal.LargestQuantity < r.Quantity {
		refusal.LargestQuantity = 0 // in this form it cannot get fewer
	}
	return plan, part, err
}

// appliedTo returns part and terms after the change of a reservation.
func appliedTo(part reservation.Membership, terms reservation.Terms, m *reservation.MemberChange) (reservation.Membership, reservation.Terms) {
	set(&part.Min, m.Min)
	set(&part.Max, m.Max)
	set(&part.HypervisorProperties, m.HypervisorProperties)
	set(&part.ResourceProperties, m.ResourceProperties)
	set(&terms.HostProperties, m.HostProperties)
	set(&terms.Affinity, m.Affinity)
	set(&terms.Resources, m.Resources)
	return part, terms
}

// set replaces a value unless the new one is nil.
func set[T any](value, next *T) {
	if next != nil {
		*value = *next
	}
}

// planAnew plans other terms for a pending reservation, without which the view is, as if it were new.
// Its limits are those of a change.
func planAnew(v View, r *reservation.Reservation, terms reservation.Terms, w span.Span) (Plan, error) {
	rest := span.Span{Start: max(w.Start, v.Now), End: w.End}
	v = v.changing(r, rest)
	v.Defaults.OnEndChoices = nil // its owner did not choose it now
	terms.Notice = 0              // other terms fix its time
	req := reservation.Request{Terms: terms, Start: rest.Start, End: rest.End}
	if text := v.Limits.tooEarly(r, w, v.Now); text != "" {
		return Plan{}, refuseAnew(v, req, reservation.ExtensionTooEarly, text)
	}
	if constraint, text := v.Limits.outside(v.Now, w.Start, w.Seconds()); constraint != "" { // the rest may be within the limit
		return Plan{}, refuseAnew(v, req, constraint, text)
	}
	plan, err := NewPlan(v, req)
	plan.Span.Start = w.Start // it may wait for its start already
	return plan, err
}

// refuseAnew returns the refusal of a request because of the time of the reservation that it changes.
func refuseAnew(v View, req reservation.Request, constraint reservation.Constraint, text string) error {
	a, err := parseRequest(req, v)
	if err != nil {
		return err
	}
	s, err := newSearch(v.forTerms(a.Terms), a)
	if err != nil {
		return err
	}
	return s.refusing().refuseLimit(constraint, text, 0)
}
