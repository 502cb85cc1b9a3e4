// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// This file has the choice of hosts for one start, if the request has a rule about how they lie to each other.

// lying is how the hosts of the request of a search must lie to each other.
type lying struct {
	*level
	rule reservation.Together
	// held is how many hosts or instances the reservation keeps on each value; nil if none.
	held    []int
	ordered [][]int // the hosts of each value in the order of the search; nil until needed
	last    *roomAt // the room that was looked for last
}

// lie sets how the hosts must lie to each other. Hosts without the property do not match a required rule.
func (s ruled) lie() {
	rule := s.request.Together
	if rule.Rule == "" {
		return
	}
	s.lying = &lying{level: s.view.Hosts.level(rule.By, s.view.SeesHidden), rule: rule}
	if !rule.Preferred {
		s.only = s.lying.valued
		s.query.Hosts.Keep(s.only)
	}
}

// sameRequired reports whether all hosts must have one value.
func (s ruled) sameRequired() bool {
	return s.lying != nil && s.lying.rule.Rule == reservation.TogetherSame && !s.lying.rule.Preferred
}

// spreadRequired reports whether the hosts must have several values.
func (s ruled) spreadRequired() bool { return s.lying != nil && spreadRequired(s.request.Terms) }

// onEach returns the searches on the hosts of each value, on which the rule same is kept, in the order of the values.
func (s ruled) onEach() []*search {
	l := s.lying
	if l.ordered == nil {
		l.ordered = make([][]int, len(l.values)+1)
		for _, number := range s.order {
			i := l.place(number)
			l.ordered[i] = append(l.ordered[i], number)
		}
	}
	s.view.effort.look(len(s.order))
	list := make([]*search, len(l.values))
	for value := range list {
		list[value] = s.on(value)
	}
	return list
}

// on returns the search on the hosts with one value.
func (s ruled) on(value int) *search {
	one := *s.search
	one.lying, one.only, one.order = nil, s.lying.on[value], s.lying.ordered[value]
	one.query = one.ruled().part(s.query)
	one.matched, one.wakes = one.query.Hosts.Count(), s.view.wakings(one.query.AvailableFrom, one.query.Hosts)
	return &one
}

// part returns a query on those of its hosts on which the search is.
func (s ruled) part(q calendar.Query) calendar.Query {
	q.Hosts = q.Hosts.Clone()
	q.Hosts.Keep(s.only)
	return q
}

// broken reports whether the hosts of claims do not lie as the rule asks. Hosts that are gone do not
// break it.
func (s ruled) broken(claims []reservation.Claim) bool {
	if s.lying == nil || s.lying.rule.Rule == reservation.TogetherFewest {
		return false
	}
	seen, unknown := make(map[int]bool), 0
	for i := range claims {
		if claims[i].Span.End <= s.view.Now { // of a host that is not its own any more
			continue
		}
		if number, known := s.view.Hosts.numbers[claims[i].Host]; known && s.view.Hosts.place[number] != gone {
			seen[s.lying.of[number]] = true
		} else {
			unknown++
		}
	}
	return breaks(s.lying.rule, seen, noValue, unknown)
}

// breaks reports whether hosts with these values, where none is that of a host without the property, and hosts that are gone do
// not lie as a rule asks.
func breaks[K comparable](rule reservation.Together, values map[K]bool, none K, gone int) bool {
	switch rule.Rule {
	case reservation.TogetherSame:
		return len(values) > 1 || values[none]
	case reservation.TogetherSpread:
		return len(values)-btoi(values[none])+gone < rule.Values
	case reservation.TogetherFewest:
	}
	return false
}

// holdClaims notes what claims have on each value.
func (s ruled) holdClaims(claims []reservation.Claim) {
	if s.lying == nil {
		return
	}
	s.lying.held = make([]int, len(s.lying.values)+1)
	for _, c := range claims {
		if number, known := s.view.Hosts.numbers[c.Host]; known {
			s.lying.held[s.lying.place(number)] += max(c.Slices, 1)
		}
	}
}

// beside returns the searches for hosts beside those that the reservation keeps, in order: those with the value that it has most
// of come first by the rule same, and are all if it is required.
func (s ruled) beside() []*search {
	if s.lying == nil || s.lying.rule.Rule != reservation.TogetherSame || len(s.lying.values) == 0 {
		return []*search{s.search}
	}
	value := s.lying.roomiest(make([]int, len(s.lying.values)))[0]
	if s.lying.held[value] == 0 {
		return []*search{s.search}
	}
	one := s.onEach()[value]
	if s.lying.rule.Preferred {
		return []*search{one, s.search}
	}
	return []*search{one}
}

// claimsLying returns the claims on quantity hosts from start on, without the hosts to skip: none of a required rule same that
// no value has room for, and as many as there are of the others.
func (s ruled) claimsLying(start span.Instant, quantity int, skip map[int]bool) []reservation.Claim {
	at := s.roomAt(s.startingAt(start))
	free, room := at.free, at.byValue
	if len(skip) > 0 {
		free = free.Clone()
		for number := range skip {
			free.Remove(number)
		}
		room = s.lying.countOf(free)
	}
	shares := s.lying.shares(room, quantity)
	var chosen []int
	for _, occupied := range []bool{false, true} {
		for _, has := range s.withAndWithout() {
			for _, number := range s.order {
				if len(chosen) == quantity {
					break
				}
				i := s.lying.place(number)
				if shares[i] > 0 && free.Has(number) && s.refusing().occupied(number, start) == occupied && s.has(number, start) == has {
					chosen, shares[i] = append(chosen, number), shares[i]-1
				}
			}
		}
	}
	return s.claimWhole(chosen, s.query.Window(start))
}

// fillLying is fill by the rule, as claimsLying.
func (s ruled) fillLying(rooms []calendar.Room, quantity int, start span.Instant) []reservation.Claim {
	shares := s.lying.shares(s.roomOf(rooms, quantity), quantity)
	var claims []reservation.Claim
	for _, r := range rooms {
		i := s.lying.place(r.Host)
		n := min(r.Slices, quantity, shares[i])
		if n == 0 || s.request.Affinity == calendar.AffinitySame && n < quantity {
			continue
		}
		quantity, shares[i] = quantity-n, shares[i]-n
		claims = append(claims, s.claimSlices(r.Host, n, start))
	}
	return claims
}

// roomAt is the room for a query at one start. It is that of another search for the same.
type roomAt struct {
	calendar *calendar.Calendar
	query    calendar.Query
	free     hostset.Set     // of kind host
	rooms    []calendar.Room // of kind instance, sorted by host number
	// byValue is for how many hosts or instances each value has room; the last number is of hosts without the property.
	byValue []int
}

// roomAt returns the room at the only start of q.
func (s ruled) roomAt(q calendar.Query) *roomAt {
	if last := s.lying.last; last != nil && last.is(s.view.Calendar, q) {
		return last
	}
	r := &roomAt{calendar: s.view.Calendar, query: q}
	r.query.Hosts = q.Hosts.Clone() // which others may change
	if s.request.Kind == reservation.Hosts {
		r.free = s.view.Calendar.FreeAt(q, q.Ready)
		r.byValue = s.lying.countOf(r.free)
	} else {
		r.rooms = s.view.Calendar.RoomAt(s.slices(q), q.Ready)
		r.byValue = s.roomOf(r.rooms, q.Quantity)
	}
	s.lying.last = r
	return r
}

// is reports whether the room is that of a query.
func (r *roomAt) is(c *calendar.Calendar, q calendar.Query) bool {
	return r.calendar == c && r.query.Ready == q.Ready && r.query.Duration == q.Duration && r.query.Quantity == q.Quantity && r.query.Hosts.Equal(q.Hosts) &&
		slices.Equal(r.query.AvailableFrom, q.AvailableFrom)
}

// roomsAt returns the hosts with room for instances from a start of q on, sorted by host number.
func (s ruled) roomsAt(q calendar.Query, start span.Instant) []calendar.Room {
	if s.lying == nil {
		return s.view.Calendar.RoomAt(s.slices(q), start)
	}
	q.Ready, q.Deadline = start, start.Add(q.Duration)
	return slices.Clone(s.roomAt(q).rooms)
}

// countOf returns how many of the hosts have each value; the last number is of those without the property.
func (l *level) countOf(hosts hostset.Set) []int {
	others := l.all.Clone()
	if others.Subtract(hosts); others.Count() < hosts.Count() { // which are counted faster
		count := slices.Clone(l.sizes)
		for number := range others.All() {
			count[l.place(number)]--
		}
		return count
	}
	count := make([]int, len(l.sizes))
	for number := range hosts.All() {
		count[l.place(number)]++
	}
	return count
}

// roomOf returns for how many of quantity instances each value has room, and the hosts that have none.
func (s ruled) roomOf(rooms []calendar.Room, quantity int) []int {
	room := make([]int, len(s.lying.values)+1)
	for _, r := range rooms {
		if i := s.lying.place(r.Host); s.request.Affinity != calendar.AffinitySame {
			room[i] += r.Slices
		} else if r.Slices >= quantity { // one host has all
			room[i] = quantity
		}
	}
	return room
}

// shares returns how many of quantity hosts or instances each value gets, at most its room. Hosts without the property come
// last.
func (l *lying) shares(room []int, quantity int) []int {
	none := len(l.values)
	shares := make([]int, none+1)
	switch value := l.fitting(room, quantity); {
	case l.rule.Rule == reservation.TogetherSame && value != noValue:
		shares[value] = quantity
		return shares
	case l.rule.Rule == reservation.TogetherSame && !l.rule.Preferred:
		return shares
	case l.rule.Rule == reservation.TogetherSpread:
		quantity -= l.inTurns(shares[:none], room, quantity)
	default:
		for i := l.roomiestBeside(shares, room); i != noValue && quantity > 0; i = l.roomiestBeside(shares, room) {
			shares[i] = min(room[i], quantity)
			quantity -= shares[i]
		}
	}
	shares[none] = min(room[none], quantity)
	return shares
}

// fitting returns the value on which all can be: the one that the reservation has most of, or, of those with room, the one
// with the least, and of these the first; noValue if there is none.
func (l *lying) fitting(room []int, quantity int) int {
	best := noValue
	for i := range l.values {
		if room[i] >= quantity && (best == noValue || cmp.Or(cmp.Compare(l.holds(best), l.holds(i)), cmp.Compare(room[i], room[best])) < 0) {
			best = i
		}
	}
	return best
}

// holds returns how many hosts or instances the reservation keeps on a value.
func (l *lying) holds(value int) int {
	if l.held == nil {
		return 0
	}
	return l.held[value]
}

// roomiestBeside returns the first value by roomiest that has room and no share yet; noValue if there is none. Few are needed.
func (l *lying) roomiestBeside(shares, room []int) int {
	best := noValue
	for i := range l.values {
		if room[i] > 0 && shares[i] == 0 && (best == noValue || cmp.Or(cmp.Compare(l.holds(i), l.holds(best)), cmp.Compare(room[i], room[best])) > 0) {
			best = i
		}
	}
	return best
}

// roomiest returns the values in the order in which fewest takes them: those first that the reservation has already, then
// those with the most room.
func (l *lying) roomiest(room []int) []int {
	order := make([]int, len(l.values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(l.holds(b), l.holds(a)), cmp.Compare(room[b], room[a]))
	})
	return order
}

// inTurns distributes one to each value in turns, those first that have fewer, until all have their room or quantity is
// distributed, and returns how many it has distributed.
func (l *lying) inTurns(shares, room []int, quantity int) int {
	given := func(each int) (sum int) { // if no value gets more than each, with what it has
		for i := range shares {
			shares[i] = min(max(each-l.holds(i), 0), room[i])
			sum += shares[i]
		}
		return sum
	}
	most := quantity
	for i := range shares {
		most = max(most, quantity+l.holds(i))
	}
	each := sort.Search(most, func(each int) bool { return given(each+1) > quantity })
	sum := given(each)
	for i := 0; i < len(shares) && sum < quantity; i++ {
		if shares[i] < room[i] && l.holds(i)+shares[i] == each {
			shares[i], sum = shares[i]+1, sum+1
		}
	}
	return sum
}
