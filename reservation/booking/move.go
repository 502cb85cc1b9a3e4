package booking

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

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
	v.Limits = v.Limits.granting(v.Now, v.Held, &r, to.Span.Seconds())
	// What is held until now is past; what changes lies in between now and the end.
	window := span.Span{Start: max(to.Span.Start, v.Now), End: to.Span.End}
	filter, err := inventory.ParseStoredFilter([]byte(to.Terms.HostProperties), v.roster.snapshot, v.SeesHidden)
	if err != nil {
		return nil, err
	}
	s := searchBy(v, ask{Terms: to.Terms, window: window, duration: window.Seconds()}, filter)
	s.bound.own = addClaims(span.Count{}, r.Claims, 1)
	_ = s.stage() // an image that is not known stands in no way of what is promised
	m := &move{search: s, from: r, to: to}
	m.expectAwake()
	m.keepWhatCan()
	return m, nil
}

// expectAwake counts on hosts that sleep to be woken for the claims they have.
func (m *move) expectAwake() {
	from := m.search.query.AvailableFrom
	for _, claim := range m.from.Claims {
		if host, known := m.search.view.roster.numbers[claim.Host]; known && from != nil && from[host] != span.Forever {
			from[host] = min(from[host], claim.Span.Start)
		}
	}
}

// keepWhatCan fills in kept: hosts in use come first once the guests are the
// owner's own, then those that were claimed first. What a degraded reservation misses
// comes last.
func (m *move) keepWhatCan() {
	byHost := make(map[int]int)
	for _, claim := range m.from.Claims {
		host, known := m.search.view.roster.numbers[claim.Host]
		if !known {
			continue
		}
		since := m.since(claim)
		if n := m.keepable(claim, host, byHost[host]); n > 0 && since < m.to.Span.End {
			m.kept = append(m.kept, keep{host: host, since: since, count: n})
			byHost[host] += n
		}
	}
	slices.SortStableFunc(m.kept, func(a, b keep) int {
		return cmp.Or(compareBool(m.misses(a), m.misses(b)), cmp.Compare(m.guests(b), m.guests(a)))
	})
}

// misses says that the host is among those that the degraded reservation cannot use.
func (m *move) misses(k keep) bool {
	h := m.search.view.roster.host(k.host)
	return m.from.Degraded != "" && (h == nil || h.Failure() != "")
}

// since is when a claim that stays begins. What was not held in the past cannot be
// claimed for it now.
func (m *move) since(claim reservation.Claim) span.Instant {
	start := m.to.Span.Start
	if start < m.search.view.Now {
		start = max(start, claim.Span.Start)
	}
	return start
}

// keepable is how much of a claim on host can stay beside others slices of the
// reservation there: all where it holds the time already, else what the host has
// room for in the rest.
func (m *move) keepable(claim reservation.Claim, host, others int) int {
	all, w := max(claim.Slices, 1), m.search.ask.window
	stays := all
	for _, rest := range []span.Span{
		{Start: w.Start, End: min(claim.Span.Start, w.End)},
		{Start: max(claim.Span.End, w.Start), End: w.End},
	} {
		if !rest.Empty() {
			stays = min(stays, m.room(host, rest, others+all)-others)
		}
	}
	return stays
}

// room is how many slices host can take throughout w, up to limit; for kind host,
// 1 where it is free. A host that serves already need not pass the filter again,
// but only the pool gives time.
func (m *move) room(host int, w span.Span, limit int) int {
	v, q := m.search.view, m.search.query
	if h := v.roster.host(host); h == nil || !h.Reservable || !m.pinned() && !q.Hosts.Has(host) {
		return 0
	}
	q.Ready, q.Deadline, q.Duration, q.Quantity = w.Start, w.End, w.Seconds(), limit
	q.Hosts = hostset.New(v.Calendar.Hosts())
	q.Hosts.Add(host)
	if m.from.Kind == reservation.Hosts {
		return v.Calendar.FreeAt(q, w.Start).Count()
	}
	rooms := v.Calendar.RoomAt(calendar.SliceQuery{Query: q, Shape: m.from.Resources, Affinity: calendar.AffinityNone}, w.Start)
	if len(rooms) == 0 {
		return 0
	}
	return rooms[0].Slices
}

// guests counts the owner's own: those before the start are others'.
func (m *move) guests(k keep) int {
	if h := m.search.view.roster.host(k.host); h != nil && m.pinned() {
		return h.InstanceCount
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

// stuck says that what must stay for quantity cannot.
func (m *move) stuck(quantity int) bool {
	return m.pinned() && m.keepableTotal() < min(quantity, m.from.Quantity)
}

// limits holds the limits against the change.
func (m *move) limits() *reservation.Refusal {
	v, to, was := m.search.view, m.to, m.from
	longer := to.Span.Seconds() > was.Span.Seconds()
	if window := v.Limits.ExtensionWindow; window > 0 && longer && v.Now < was.Span.End-span.Instant(window) {
		return m.search.refuseLimit(reservation.ExtensionTooEarly,
			fmt.Sprintf("an extension is accepted from %v on, %v before the end", was.Span.End-span.Instant(window), period(window)), 0)
	}
	if constraint, text := v.Limits.exceeded(v.Now, v.Held, to.Terms.Quantity, to.Span.Start, to.Span.Seconds()); constraint != "" {
		return m.search.refuseLimit(constraint, text, m.largest())
	}
	b, window, quantity := m.search.bound, m.search.ask.window, to.Terms.Quantity
	if b.keepsAll(quantity, window) {
		return nil
	}
	refusal := m.search.refuseLimit(reservation.MaxHosts, b.sentence(quantity, window, window.Seconds(), false), m.largest())
	if !m.pinned() {
		refusal.EarliestStart = m.search.earliest()
	}
	return refusal
}

// claims places the changed reservation, false where it has no room.
func (m *move) claims() ([]reservation.Claim, bool) {
	quantity := m.to.Terms.Quantity
	if m.stuck(quantity) {
		return nil, false
	}
	if m.from.Kind == reservation.Instances && !m.pinned() && m.keepableTotal() < quantity {
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

// keep gives the claims that stay, up to quantity, in the order of kept.
func (m *move) keep(quantity int) []reservation.Claim {
	var claims []reservation.Claim
	for i, n := range m.share(quantity) {
		if n == 0 {
			continue
		}
		k := m.kept[i]
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
	kept := make(map[int]bool)
	for _, k := range m.kept {
		kept[k.host] = true
	}
	return m.search.claimWhole(m.search.choose(quantity, start, kept), m.search.query.Window(start))
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
		if n <= 0 || m.from.Affinity == calendar.AffinitySame && held[room.Host] == 0 {
			continue
		}
		quantity -= n
		claims = append(claims, m.search.claimSlices(room.Host, n, start))
	}
	return claims
}

// largest is the largest quantity that the change would be accepted with.
func (m *move) largest() int {
	total, v := m.keepableTotal(), m.search.view
	most := total
	switch {
	case m.stuck(m.from.Quantity):
	case m.from.Kind == reservation.Instances && !m.pinned():
		most = max(total, m.search.most(m.search.query))
	default:
		most = total + countClaimed(m.add(mostInstances))
	}
	return min(most, m.search.bound.quantity(m.search.ask.window), v.Limits.quantity(v.Held, m.to.Span.Seconds()))
}

func (m *move) refuse() *reservation.Refusal {
	quantity := m.to.Terms.Quantity
	r := m.search.refusal()
	r.Constraint = reservation.HostsFree
	r.Message = fmt.Sprintf("not enough hosts available: the reservation can keep %d of %d in %v, and %d are asked for",
		m.keepableTotal(), m.from.Quantity, m.to.Span, quantity)
	r.LargestQuantity = m.largest()
	switch {
	case m.stuck(quantity):
		r.BlockedBy = m.search.blocks(m.search.ask.window, m.ownHosts())
	case m.never():
		r.Constraint, r.Message = m.search.reason(r.Free, true)
		r.BlockedBy = nil
		return r
	}
	if !m.pinned() {
		r.EarliestStart = m.search.earliest()
	}
	return r
}

// never reports whether the hosts that match and those that are kept have too little room even
// where nothing is promised.
func (m *move) never() bool {
	hosts, gone := m.search.matching(true), 0
	hosts.Unite(m.search.query.Hosts)
	for _, k := range m.kept {
		if m.search.view.roster.host(k.host) == nil {
			gone += k.count
			continue
		}
		hosts.Add(k.host)
	}
	return m.search.roomOfEmpty(hosts)+gone < m.to.Terms.Quantity
}

// ownHosts are the hosts that the reservation holds.
func (m *move) ownHosts() hostset.Set {
	own := hostset.New(m.search.view.Calendar.Hosts())
	for _, name := range m.from.HostNames() {
		own.Add(m.search.view.roster.numbers[name])
	}
	return own
}

// countClaimed is the number of hosts or instances that claims have.
func countClaimed(claims []reservation.Claim) int {
	sum := 0
	for _, c := range claims {
		sum += max(c.Slices, 1)
	}
	return sum
}
