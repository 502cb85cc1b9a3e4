package booking

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Change is what a reservation shall become; nil leaves a part as it is.
type Change struct {
	Name       *string
	Quantity   *int
	Start, End *span.Instant
}

// PlanChange decides on a change of r, whose claims the view's calendar and Held
// do not hold. What is kept stays on its hosts where it can: always once the
// reservation is active. Errors are as in NewPlan, and a Conflict fault where the
// state of r forbids the change.
func PlanChange(v View, r reservation.Reservation, c Change) (Plan, error) {
	plan := Plan{Terms: r.Terms, Span: r.Span, Claims: r.Claims, DelayedByBoot: r.DelayedByBoot}
	if c.Name != nil {
		plan.Terms.Name = *c.Name
	}
	if c.Quantity != nil {
		plan.Terms.Quantity = *c.Quantity
	}
	if c.Start != nil {
		plan.Span.Start = *c.Start
	}
	if c.End != nil {
		plan.Span.End = *c.End
	}
	if err := checkChange(v.Now, r, plan); err != nil {
		return Plan{}, err
	}
	if plan.Span == r.Span && plan.Terms.Quantity == r.Quantity {
		return plan, nil
	}
	m, err := newMove(v, r, plan)
	if err != nil {
		return Plan{}, err
	}
	if refusal := m.limits(); refusal != nil {
		return Plan{}, refusal
	}
	claims, ok := m.claims()
	if !ok {
		return Plan{}, m.refuse()
	}
	plan.Claims, plan.Matched = claims, m.search.matched
	return plan, nil
}

func checkChange(now span.Instant, r reservation.Reservation, plan Plan) error {
	if r.Status != reservation.Pending && r.Status != reservation.Active {
		return fault.New(fault.Conflict, "the reservation is %s; only a pending or active one can be changed", r.Status)
	}
	if err := checkTerms(plan.Terms); err != nil {
		return err
	}
	moved := plan.Span.Start != r.Span.Start
	switch {
	case moved && r.Status == reservation.Active:
		return fault.New(fault.Conflict, "start_time: the reservation has begun; its start cannot be changed")
	case moved && plan.Span.Start < now:
		return fault.Field("start_time", "%v lies in the past; it is %v", plan.Span.Start, now)
	case plan.Span.Empty():
		return fault.Field("end_time", "%v is not after the start, %v", plan.Span.End, plan.Span.Start)
	case plan.Span.End != r.Span.End && plan.Span.End <= now:
		return fault.Field("end_time", "%v lies in the past; delete the reservation to end it now", plan.Span.End)
	case plan.Span.End > lastInstant:
		return fault.Field("end_time", "must lie before %v", lastInstant)
	}
	return nil
}

// move is a change of time or quantity under way.
type move struct {
	search *search
	from   reservation.Reservation
	to     Plan
	kept   []keep
}

// keep is what the reservation holds of one host and could go on holding.
type keep struct {
	host  int
	since span.Instant // when the claim begins
	count int          // slices; 1 for a whole host
}

func newMove(v View, r reservation.Reservation, to Plan) (*move, error) {
	// What is held until now is past; what changes lies in between now and the end.
	window := span.Span{Start: max(to.Span.Start, v.Now), End: to.Span.End}
	s, err := newSearch(v, ask{Terms: to.Terms, window: window, duration: window.Seconds()})
	if err != nil {
		return nil, err
	}
	s.query.Deadline = window.End // a limit on starts does not shorten a change
	m := &move{search: s, from: r, to: to}
	for _, claim := range r.Claims {
		if k, ok := m.keepable(claim); ok {
			m.kept = append(m.kept, k)
		}
	}
	slices.SortStableFunc(m.kept, func(a, b keep) int { return cmp.Compare(m.worth(b), m.worth(a)) })
	return m, nil
}

// keepable says how much of a claim the reservation can go on holding.
func (m *move) keepable(claim reservation.Claim) (keep, bool) {
	number, known := m.search.view.roster.numbers[claim.Host]
	if !known {
		return keep{}, false
	}
	k := keep{host: number, since: max(claim.Span.Start, m.to.Span.Start), count: 1}
	if m.from.Status == reservation.Pending {
		k.since = m.to.Span.Start
	}
	only := calendar.NewHostSet(m.search.view.Calendar.Hosts())
	only.Add(number)
	q := m.search.query
	q.Hosts, q.AvailableFrom = only, nil
	if m.from.Kind == reservation.Instances {
		q.Quantity = claim.Slices
		rooms := m.search.view.Calendar.RoomAt(calendar.SliceQuery{Query: q, Shape: m.from.Resources, Affinity: calendar.AnyHosts}, q.Ready)
		if len(rooms) == 0 {
			return keep{}, false
		}
		k.count = rooms[0].Slices
		return k, true
	}
	return k, m.search.view.Calendar.FreeAt(q, q.Ready).Count() == 1
}

// worth orders what is kept when less is wanted: hosts in use go last.
func (m *move) worth(k keep) int {
	if h := m.search.view.roster.host(k.host); h != nil {
		return h.Guests
	}
	return 0
}

// keepableTotal is how many hosts or instances could stay where they are.
func (m *move) keepableTotal() int {
	sum := 0
	for _, k := range m.kept {
		sum += k.count
	}
	return sum
}

// pinned says that what the reservation holds must stay where it is.
func (m *move) pinned() bool { return m.from.Status == reservation.Active }

// limits holds the limits against a change that asks for more or moves.
func (m *move) limits() *reservation.Refusal {
	v, to, was := m.search.view, m.to, m.from
	more := to.Terms.Quantity > was.Quantity || to.Span.Seconds() > was.Span.Seconds() || to.Span.Start > was.Span.Start
	if !more {
		return nil
	}
	if window := v.Limits.ExtensionWindow; window > 0 && to.Span.End > was.Span.End && v.Now < was.Span.End-span.Instant(window) {
		return m.search.refuseLimit(reservation.ExtensionTooEarly,
			fmt.Sprintf("an extension is accepted from %v on, %v before the end", was.Span.End-span.Instant(window), period(window)))
	}
	if constraint, text := v.Limits.exceeded(v.Now, v.Held, to.Terms.Quantity, to.Span.Start, to.Span.Seconds()); constraint != "" {
		refusal := m.search.refuseLimit(constraint, text)
		refusal.LargestQuantity = min(refusal.LargestQuantity, m.largest())
		return refusal
	}
	return nil
}

// claims places the changed reservation, false where it has no room.
func (m *move) claims() ([]reservation.Claim, bool) {
	quantity, total := m.to.Terms.Quantity, m.keepableTotal()
	if m.pinned() && total < min(quantity, m.from.Quantity) {
		return nil, false
	}
	if !m.pinned() && m.from.Kind == reservation.Instances {
		first := make(map[int]bool)
		for _, k := range m.kept {
			first[k.host] = true
		}
		claims := m.search.placeSlices(m.search.query.Ready, quantity, first)
		return claims, countClaimed(claims) == quantity
	}
	claims := m.keep(quantity)
	claims = append(claims, m.add(quantity-countClaimed(claims))...)
	return claims, countClaimed(claims) == quantity
}

// keep gives the claims that stay, up to quantity.
func (m *move) keep(quantity int) []reservation.Claim {
	var claims []reservation.Claim
	for _, k := range m.kept {
		n := min(k.count, quantity)
		if n == 0 {
			break
		}
		quantity -= n
		claim := reservation.Claim{Host: m.search.view.roster.names[k.host], Span: span.Span{Start: k.since, End: m.to.Span.End}}
		if m.from.Kind == reservation.Instances {
			claim.Slices = n
		}
		claims = append(claims, claim)
	}
	return claims
}

// add gives claims on what the reservation does not hold yet, up to quantity.
func (m *move) add(quantity int) []reservation.Claim {
	if quantity == 0 {
		return nil
	}
	start := m.search.query.Ready
	if m.from.Kind == reservation.Instances {
		return m.addSlices(quantity, start)
	}
	free := m.search.view.Calendar.FreeAt(m.search.query, start)
	for _, k := range m.kept {
		free.Remove(k.host)
	}
	return m.search.claimWhole(m.search.choose(free, quantity, start), m.search.query.Window(start))
}

// addSlices gives claims beside those that are kept, as the affinity allows.
func (m *move) addSlices(quantity int, start span.Instant) []reservation.Claim {
	held := make(map[int]int)
	for _, k := range m.kept {
		held[k.host] += k.count
	}
	var claims []reservation.Claim
	for _, room := range m.search.rooms(start, quantity+m.keepableTotal(), nil) {
		n := min(room.Slices-held[room.Host], quantity)
		if n <= 0 || m.from.Affinity == calendar.SameHost && held[room.Host] == 0 {
			continue
		}
		quantity -= n
		claims = append(claims, m.search.claimSlices(room.Host, n, start))
	}
	return claims
}

// largest is the largest quantity that the change would be accepted with.
func (m *move) largest() int {
	total := m.keepableTotal()
	if m.pinned() && total < m.from.Quantity {
		return total
	}
	if !m.pinned() && m.from.Kind == reservation.Instances {
		return m.search.most(m.search.query)
	}
	return total + countClaimed(m.add(mostInstances))
}

func (m *move) refuse() *reservation.Refusal {
	r := m.search.refusal()
	r.Constraint = reservation.HostsFree
	r.Message = fmt.Sprintf("not enough hosts available: the reservation can keep %d of %d in %v, and %d are asked for",
		min(m.keepableTotal(), m.from.Quantity), m.from.Quantity, m.to.Span, m.to.Terms.Quantity)
	v := m.search.view
	r.LargestQuantity = min(m.largest(), v.Limits.quantity(v.Held, m.to.Span.Seconds()))
	if !m.pinned() {
		r.EarliestStart = m.search.earliest()
	}
	return r
}

// countClaimed is the number of hosts or instances that claims have.
func countClaimed(claims []reservation.Claim) int {
	sum := 0
	for _, c := range claims {
		sum += max(c.Slices, 1)
	}
	return sum
}
