package booking

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// search looks for the start and the hosts of one ask.
type search struct {
	view    View
	ask     ask
	filter  *inventory.Filter
	query   calendar.Query
	matched int
	// match has the hosts that match, by whether the start lies ahead; nil is not looked at yet.
	match [2]hostset.Set
	order []int // of criteria 4 to 6, see choose
	bound bound
	// wakes are the times at which matching hosts that sleep or boot can be used.
	wakes []span.Instant
	// fruitless is the last start of the asked window once no start there was found; else 0.
	fruitless span.Instant
	idle      *hostset.Set // the hosts that no reservation has now; nil until somebody asks
	// staged is nil where there is no image, or images are not looked at.
	staged *staged
}

// newSearch reads the filter and finds the hosts that match.
func newSearch(v View, a ask) (*search, error) {
	filter, err := inventory.ParseFilter([]byte(a.HostProperties), v.roster.snapshot, v.SeesHidden)
	if err != nil {
		return nil, err
	}
	return searchBy(v, a, filter), nil
}

func searchBy(v View, a ask, filter *inventory.Filter) *search {
	s := &search{view: v, ask: a, filter: filter, bound: bound{most: v.Limits.Hosts, held: v.Held.Hosts}}
	s.query = calendar.Query{
		Now: v.Now, Ready: a.window.Start, Duration: a.duration, Quantity: a.Quantity,
		Deadline: min(a.window.End, v.Limits.horizon(v.Now).Add(a.duration)),
		Hosts:    s.matching(a.window.Start > v.Now),
	}
	s.matched = s.query.Hosts.Count()
	s.order = s.inOrder()
	s.sleepers()
	return s
}

// matching returns the hosts of the pool that pass the filter; ahead says that the
// start lies in the future. The set is the caller's.
func (s *search) matching(ahead bool) hostset.Set {
	place := 0
	if ahead && s.filter.Timely() {
		place = 1
	}
	if s.match[place] == nil {
		set := hostset.New(s.view.Calendar.Hosts())
		for number := range s.view.roster.names {
			if h := s.view.roster.host(number); h != nil && h.Reservable && s.filter.Matches(h, ahead) {
				set.Add(number)
			}
		}
		s.match[place] = set
	}
	return s.match[place].Clone()
}

// sleepers fills in from when hosts that are not awake can be used.
func (s *search) sleepers() {
	for number := range s.view.roster.names {
		h := s.view.roster.host(number)
		if h == nil || h.AwakeAt(s.view.Now) <= s.view.Now {
			continue
		}
		if s.query.AvailableFrom == nil {
			s.query.AvailableFrom = make([]span.Instant, s.view.Calendar.Hosts())
		}
		awake := h.AwakeAt(s.view.Now)
		s.query.AvailableFrom[number] = awake
		if awake <= s.view.Limits.horizon(s.view.Now) && awake != span.Forever && s.query.Hosts.Has(number) {
			s.wakes = append(s.wakes, awake)
		}
	}
	slices.Sort(s.wakes)
	s.wakes = slices.Compact(s.wakes)
}

func (s *search) slices(q calendar.Query) calendar.SliceQuery {
	return calendar.SliceQuery{Query: q, Shape: s.ask.Resources, Affinity: s.ask.Affinity}
}

// most is the largest quantity that q has room for at once.
func (s *search) most(q calendar.Query) int {
	if s.ask.Kind == reservation.Instances {
		return s.view.Calendar.MostSlices(s.slices(q), mostInstances)
	}
	return s.view.Calendar.MostFree(q)
}

// mostInstances bounds how many instances a refusal counts on a host.
const mostInstances = 1 << 20

// start gives the start; delayed says that the reservation should have started
// now and must wait for hosts to boot.
func (s *search) start() (start span.Instant, delayed, ok bool) {
	if start, ok = s.find(s.query, s.ask.Policy); ok {
		return start, false, true
	}
	s.fruitless = s.query.Deadline.Add(-s.query.Duration)
	if !s.ask.immediate {
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

// allAwake is the query as if every host that can boot were on.
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

// startingAt is the query with that start only.
func (s *search) startingAt(at span.Instant) calendar.Query {
	q := s.query
	q.Ready, q.Deadline = at, at.Add(q.Duration)
	return q
}

// claims chooses the hosts for start.
func (s *search) claims(start span.Instant) []reservation.Claim {
	if s.ask.Kind == reservation.Instances {
		return s.placeSlices(start, s.ask.Quantity, nil)
	}
	return s.claimWhole(s.choose(s.ask.Quantity, start, nil), s.query.Window(start))
}

func (s *search) claimWhole(numbers []int, w span.Span) []reservation.Claim {
	claims := make([]reservation.Claim, len(numbers))
	for i, number := range numbers {
		claims[i] = reservation.Claim{Host: s.view.roster.names[number], Span: w}
	}
	return claims
}

// choose takes quantity hosts that are free from start on, without those to skip,
// in the order of docs/concepts.md "Which hosts":
//
//  1. no guest that is likely to be there at the start, see occupied;
//  2. awake, or wakeable before the start: others are not free;
//  3. the image is there, or comes for another reservation;
//  4. few scarce features that the request does not name;
//  5. FLOPS per watt, the unknown last;
//  6. name.
func (s *search) choose(quantity int, start span.Instant, skip map[int]bool) []int {
	q := s.query
	q.Quantity = quantity
	return s.view.Calendar.FirstFree(q, start, func(yield func(int) bool) {
		for _, occupied := range []bool{false, true} {
			for _, has := range s.withAndWithout() {
				for _, number := range s.order {
					if s.occupied(number, start) == occupied && s.has(number, start) == has && !skip[number] && !yield(number) {
						return
					}
				}
			}
		}
	})
}

// withAndWithout are what a host may be by criterion 3, in order.
func (s *search) withAndWithout() []bool {
	if s.staged == nil {
		return []bool{false}
	}
	return []bool{true, false}
}

// placeSlices spreads quantity instances greedily as paper 000 Algorithm 1 does: hosts
// that will have the image, then those with few scarce features that the request does not
// name, then those that can hold more instances, then in the order of choose. Hosts in
// first come before all others.
func (s *search) placeSlices(start span.Instant, quantity int, first map[int]bool) []reservation.Claim {
	var claims []reservation.Claim
	for _, room := range s.rooms(start, quantity, first) {
		n := min(room.Slices, quantity)
		if n == 0 || s.ask.Affinity == calendar.AffinitySame && n < quantity {
			continue
		}
		quantity -= n
		claims = append(claims, s.claimSlices(room.Host, n, start))
	}
	return claims
}

func (s *search) claimSlices(number, n int, start span.Instant) reservation.Claim {
	return reservation.Claim{Host: s.view.roster.names[number], Span: s.query.Window(start), Slices: n}
}

// rooms gives the hosts that can take instances from start on, each up to limit,
// in the order of placeSlices.
func (s *search) rooms(start span.Instant, limit int, first map[int]bool) []calendar.Room {
	q := s.query
	q.Quantity = limit
	rooms := s.view.Calendar.RoomAt(s.slices(q), start)
	slices.SortFunc(rooms, func(a, b calendar.Room) int {
		return cmp.Or(
			compareBool(first[b.Host], first[a.Host]),
			compareBool(s.has(b.Host, start), s.has(a.Host, start)),
			cmp.Compare(s.unasked(a.Host), s.unasked(b.Host)),
			cmp.Compare(b.Slices, a.Slices),
			compareBool(s.occupied(a.Host, start), s.occupied(b.Host, start)),
			cmp.Compare(s.view.roster.rank(a.Host), s.view.roster.rank(b.Host)),
		)
	})
	return rooms
}

// compareBool orders false before true.
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
