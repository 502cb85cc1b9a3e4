// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// search finds the start and the hosts for one request.
type search struct {
	view    View
	request request
	filter  *inventory.Filter
	query   calendar.Query
	matched int
	// match contains the matching hosts for a start now and for a start in the future; nil until
	// needed.
	match *[2]hostset.Set
	order []int // by criteria 4 to 6, see choose
	bound bound
	// wakes are the times at which matching hosts that sleep or boot become available.
	wakes []span.Instant
	// fallback is why the policy of the request is first fit instead of its own.
	fallback Fallback
	// fruitless is the last start of the requested window if no start was found there; otherwise 0.
	fruitless span.Instant
	idle      *hostset.Set // the hosts that no reservation has now; nil until needed
	// staged is nil if there is no image or decisions ignore images.
	staged *staged
	// lying is nil if the request has no rule about how hosts lie to each other, or if it is kept on all hosts of the search.
	lying *lying
	only  hostset.Set // the hosts on which the search is; nil means all that match
	apart apartness
}

// newSearch parses the filter and finds the matching hosts.
func newSearch(v View, a request) (*search, error) {
	f, err := v.parsed(a)
	if err != nil {
		return nil, err
	}
	return searchBy(v, a, f), nil
}

func searchBy(v View, a request, f *filtered) *search {
	v.effort.look(len(v.Hosts.names))
	s := &search{view: v, request: a, filter: f.filter, match: f.match, bound: bound{most: v.Limits.Hosts, held: v.Held.Hosts}}
	s.apart = v.apart(a.Together)
	s.query = calendar.Query{
		Now: v.Now, Ready: a.window.Start, Duration: a.duration, Quantity: a.Quantity,
		Deadline: min(a.window.End, v.Limits.horizon(v.Now).Add(a.duration)),
		Hosts:    s.matching(a.window.Start > v.Now),
	}
	s.ruled().lie()
	s.matched = s.query.Hosts.Count()
	s.order = s.refusing().inOrder()
	s.sleepers()
	return s
}

// onCalendar returns a search on another calendar, on which other hosts may be idle.
func onCalendar(s *search, c *calendar.Calendar) *search {
	other := *s
	other.view.Calendar, other.idle = c, nil
	return &other
}

// matching returns the hosts that the request may have and that pass the filter. ahead is true if
// the start lies in the future. The caller may change the set.
func (s *search) matching(ahead bool) hostset.Set {
	place := 0
	if ahead && s.filter.Timely() {
		place = 1
	}
	if s.match[place] == nil {
		set := hostset.New(s.view.Calendar.Hosts())
		for number := range s.view.Hosts.names {
			if h := s.view.Hosts.Host(number); h != nil && s.request.admits(h) && s.filter.Matches(h, ahead) {
				set.Add(number)
			}
		}
		s.match[place] = set
	}
	set := s.match[place].Clone()
	for _, hosts := range []hostset.Set{s.only, s.apart.hosts} {
		if hosts != nil {
			set.Keep(hosts)
		}
	}
	return set
}

// hostsAt returns the matching hosts for a start of the query or a later one.
func (s *search) hostsAt(start span.Instant) hostset.Set {
	if start > s.view.Now && s.query.Ready <= s.view.Now && s.filter.Timely() {
		return s.matching(true)
	}
	return s.query.Hosts
}

// mostMatched returns the largest number of hosts that match at a start of the requested window.
func (s *search) mostMatched() int {
	most := 0
	for _, part := range s.parts(s.query) {
		most = max(most, part.Hosts.Count())
	}
	return most
}

// latest returns the last start of the requested window.
func (s *search) latest() span.Instant { return s.query.Deadline.Add(-s.query.Duration) }

// parts divides a query at now, if other hosts match for a start now than for later ones.
func (s *search) parts(q calendar.Query) []calendar.Query {
	if !s.filter.Timely() {
		return []calendar.Query{q}
	}
	if q.Ready > s.view.Now {
		q.Ready = max(q.Ready, s.view.future())
		return []calendar.Query{q}
	}
	if q.Deadline <= q.Window(q.Ready).End {
		return []calendar.Query{q}
	}
	now, later := q, q
	now.Deadline = q.Window(q.Ready).End
	later.Ready, later.Hosts = s.view.future(), s.matching(true)
	return []calendar.Query{now, later}
}

// lasting is View.lasting for a search.
func (s *search) lasting(until span.Instant) *search {
	lasts := *s
	if lasts.view = s.view.lasting(until); lasts.view.later == s.view.later {
		return s
	}
	if lasts.query.AvailableFrom != nil {
		lasts.query.AvailableFrom, lasts.wakes = nil, nil
		lasts.sleepers()
	}
	return &lasts
}

// sleepers sets from when hosts that are not awake are available. Maintenance needs no host awake.
func (s *search) sleepers() {
	if s.request.Maintenance {
		return
	}
	for number := range s.view.Hosts.names {
		h := s.view.Hosts.Host(number)
		if h == nil || h.AwakeAt(s.view.Now) <= s.view.Now {
			continue
		}
		if s.query.AvailableFrom == nil {
			s.query.AvailableFrom = make([]span.Instant, s.view.Calendar.Hosts())
		}
		s.query.AvailableFrom[number] = s.view.awakeAt(h)
	}
	s.wakes = s.view.wakings(s.query.AvailableFrom, s.query.Hosts)
}

// wakings returns the times at which those of the hosts that sleep or boot become available, given when each does; nil means at once.
func (v View) wakings(availableFrom []span.Instant, hosts hostset.Set) (wakes []span.Instant) {
	if availableFrom == nil {
		return nil
	}
	for number := range hosts.All() {
		if awake := availableFrom[number]; awake > v.Now && awake <= v.Limits.horizon(v.Now) && awake != span.Forever {
			wakes = append(wakes, awake)
		}
	}
	slices.Sort(wakes)
	return slices.Compact(wakes)
}

func (s *search) slices(q calendar.Query) calendar.SliceQuery {
	return calendar.SliceQuery{Query: q, Shape: s.request.Resources, Affinity: s.request.Affinity}
}

// most returns the largest quantity for which q has room at one start.
func (s *search) most(q calendar.Query) int {
	most := 0
	if s.ruled().sameRequired() {
		for _, one := range s.ruled().onEach() {
			most = max(most, one.most(one.ruled().part(q)))
		}
		return most
	}
	for _, part := range s.parts(q) {
		if s.request.Kind == reservation.Instances {
			most = max(most, s.view.Calendar.MostSlices(s.slices(part), mostInstances))
		} else {
			most = max(most, s.view.Calendar.MostFree(part))
		}
	}
	return most
}

// mostInstances is the maximum number of instances that a refusal counts on a host.
const mostInstances = 1 << 20

// start returns the start of the reservation; delayed is true if an immediate reservation must wait
// for hosts to boot.
func (s *search) start() (start span.Instant, delayed, ok bool) {
	if start, ok = s.find(s.query, s.request.Policy); ok {
		return start, false, true
	}
	s.fruitless = s.query.Deadline.Add(-s.query.Duration)
	if !s.request.immediate {
		return 0, false, false
	}
	if _, ok = s.find(s.allAwake(), calendar.PolicyFirstFit); !ok {
		return 0, false, false
	}
	for _, wake := range s.wakes {
		if _, ok = s.find(s.startingAt(wake), calendar.PolicyFirstFit); ok {
			return wake, true, true
		}
	}
	return 0, false, false
}

// allAwake returns the query as if every host that can boot were awake.
func (s *search) allAwake() calendar.Query {
	q := s.query
	q.AvailableFrom = slices.Clone(q.AvailableFrom)
	for i, at := range q.AvailableFrom {
		if at != span.Forever {
			q.AvailableFrom[i] = s.view.Now
		}
	}
	return q
}

// startingAt returns the query restricted to that start.
func (s *search) startingAt(at span.Instant) calendar.Query {
	q := s.query
	q.Ready, q.Deadline, q.Hosts = at, at.Add(q.Duration), s.hostsAt(at)
	return q
}

// claims returns the claims on the hosts that it chooses for start.
func (s *search) claims(start span.Instant) []reservation.Claim {
	if s.request.Kind == reservation.Instances {
		return s.placeSlices(start, s.request.Quantity, nil)
	}
	if s.lying != nil {
		return s.ruled().claimsLying(start, s.request.Quantity, nil)
	}
	return s.claimWhole(s.choose(s.request.Quantity, start, nil), s.query.Window(start))
}

func (s *search) claimWhole(numbers []int, w span.Span) []reservation.Claim {
	claims := make([]reservation.Claim, len(numbers))
	for i, number := range numbers {
		claims[i] = reservation.Claim{Host: s.view.Hosts.names[number], Span: w}
	}
	return claims
}

// choose returns quantity hosts that are free from start on, without those to skip,
// in the order of docs/concepts.md "Which hosts":
//
//  1. no instances that are likely to be there at the start, see occupied;
//  2. awake, or awake before the start: other hosts are not free;
//  3. the image is there, or comes for another reservation;
//  4. few scarce features that the request does not name;
//  5. FLOPS per watt, unknown ones last;
//  6. name.
func (s *search) choose(quantity int, start span.Instant, skip map[int]bool) []int {
	q := s.query
	q.Quantity, q.Hosts = quantity, s.hostsAt(start)
	return s.view.Calendar.FirstFree(q, start, func(yield func(int) bool) {
		for _, occupied := range []bool{false, true} {
			for _, has := range s.withAndWithout() {
				for _, number := range s.order {
					if q.Hosts.Has(number) && s.refusing().occupied(number, start) == occupied && s.has(number, start) == has && !skip[number] && !yield(number) {
						return
					}
				}
			}
		}
	})
}

// withAndWithout returns the values of criterion 3, in order.
func (s *search) withAndWithout() []bool {
	if s.staged == nil {
		return []bool{false}
	}
	return []bool{true, false}
}

// placeSlices distributes quantity instances greedily, as paper 000 Algorithm 1 does: hosts
// that will have the image come first, then those with few scarce features that the request
// does not name, then those with room for more instances, then in the order of choose. Hosts
// in first come before all others.
func (s *search) placeSlices(start span.Instant, quantity int, first map[int]bool) []reservation.Claim {
	if s.lying != nil {
		return s.ruled().fillLying(s.rooms(start, quantity, first), quantity, start)
	}
	return s.fill(s.rooms(start, quantity, first), quantity, start)
}

// fill returns the claims of quantity instances on the first of rooms that have room for them, or of as
// many as fit.
func (s *search) fill(rooms []calendar.Room, quantity int, start span.Instant) []reservation.Claim {
	var claims []reservation.Claim
	for _, room := range rooms {
		n := min(room.Slices, quantity)
		if n == 0 || s.request.Affinity == calendar.AffinitySame && n < quantity {
			continue
		}
		quantity -= n
		claims = append(claims, s.claimSlices(room.Host, n, start))
	}
	return claims
}

func (s *search) claimSlices(number, n int, start span.Instant) reservation.Claim {
	return reservation.Claim{Host: s.view.Hosts.names[number], Span: s.query.Window(start), Slices: n}
}

// rooms returns the hosts with room for instances from start on, each with at most limit, in
// the order of placeSlices.
func (s *search) rooms(start span.Instant, limit int, first map[int]bool) []calendar.Room {
	q := s.query
	q.Quantity, q.Hosts = limit, s.hostsAt(start)
	rooms := s.ruled().roomsAt(q, start)
	slices.SortFunc(rooms, func(a, b calendar.Room) int {
		return cmp.Or(
			compareBool(first[b.Host], first[a.Host]),
			compareBool(s.has(b.Host, start), s.has(a.Host, start)),
			cmp.Compare(s.refusing().unasked(a.Host), s.refusing().unasked(b.Host)),
			cmp.Compare(b.Slices, a.Slices),
			compareBool(s.refusing().occupied(a.Host, start), s.refusing().occupied(b.Host, start)),
			cmp.Compare(s.view.Hosts.rank(a.Host), s.view.Hosts.rank(b.Host)),
		)
	})
	return rooms
}

// compareBool compares booleans: false comes before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// has reports whether the host will have the image at a start: criterion 3 of
// docs/concepts.md "Which hosts".
func (s *search) has(number int, start span.Instant) bool {
	return s.staged != nil && s.staged.has(s.view.Hosts.names[number], start)
}

// planOn returns the plan for a start at which the hosts of claims are free.
func (s *search) planOn(start span.Instant, claims []reservation.Claim) Plan {
	p := Plan{
		Terms:   s.request.Terms,
		Span:    span.New(start, s.request.duration),
		Claims:  claims,
		Matched: s.hostsAt(start).Count(),

		Fallback: s.fallback,
	}
	p.Terms.Together.Broken = !s.ruled().kept(claims)
	if s.request.Notice > 0 {
		p.Window = s.request.window
	}
	if s.request.hold > 0 {
		p.HeldUntil = s.view.Now.Add(s.request.hold)
	}
	return p
}

// refusal returns a refusal with the numbers for the earliest requested start.
func (s *search) refusal() *reservation.Refusal {
	at := s.query
	at.Deadline = at.Ready.Add(at.Duration)
	r := &reservation.Refusal{Matched: s.matched, Free: s.most(at), Wanted: at.Window(at.Ready)}
	if s.staged == nil || s.imaging().imageWithoutClaims(at) {
		r.BlockedBy = s.refusing().blocks(r.Wanted, at.Hosts)
	}
	return r
}

// with returns the search for another quantity.
func (s *search) with(quantity int) *search {
	other := *s
	other.request.Quantity, other.query.Quantity = quantity, quantity
	return &other
}

// imaging is a search that looks at the image of its request.
type imaging struct{ *search }

func (s *search) imaging() imaging { return imaging{s} }

// refusing is a search that found nothing. It finds out why, and what would be accepted.
type refusing struct{ *search }

func (s *search) refusing() refusing { return refusing{s} }

// ruled is a search that looks at how the hosts of its request must lie to each other.
type ruled struct{ *search }

func (s *search) ruled() ruled { return ruled{s} }
