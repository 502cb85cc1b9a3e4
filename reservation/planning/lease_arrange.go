// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// This file has the choice of hosts for several reservations of a lease together. In the order of the
// request, one that may have any host can take the only one that another may have.

// mostSteps bounds the choice: a step looks at one host for one reservation, or tries one number of
// instances there. It suffices for whole hosts, and for instances on hosts that are alike; a lease with
// many reservations of instances of different sizes may be refused though a distribution exists.
const mostSteps = 50_000

// arrangement is the search for the hosts of all reservations of a lease, each with its Min.
type arrangement struct {
	calendar *calendar.Calendar // with what has been placed
	members  []*arranged        // those with the fewest hosts to spare first
	steps    int
	touched  map[int]int // by host: how many placements it has
}

// arranged is a reservation of a lease in an arrangement.
type arranged struct {
	search *search
	need   int
	seats  []seat // those that few other reservations can use first
	rest   []int  // by index of seats: the room from there on
	claims []reservation.Claim
}

// seat is a host with room for a reservation.
type seat struct {
	host, most int
	// alike is equal for hosts between which no reservation of the lease can tell, as long as nothing
	// is placed there; empty if there is no other such host.
	alike string
}

// arranged returns plans for the reservations, each with its Min; ok is false if no room was found for
// all together. Those of floating IPs have no hosts, and are not planned.
func (t *leaseTry) arranged(v View) (plans []Plan, ok bool) {
	a := arrangement{calendar: v.Calendar.Fork(), touched: make(map[int]int)}
	members := make([]*arranged, len(t.Members))
	for i, m := range t.Members {
		if m.Kind == reservation.Addresses {
			continue
		}
		s, err := t.searchFor(v, m)
		if err != nil || s.lying != nil { // it was planned alone; and hosts that lie to each other are not arranged
			return nil, false
		}
		members[i] = &arranged{search: s, need: s.request.Quantity}
		a.members = append(a.members, members[i])
	}
	a.findSeats()
	slices.SortStableFunc(a.members, func(x, y *arranged) int { return cmp.Compare(x.spare(), y.spare()) })
	found := a.place(0)
	if v.effort.look(a.steps); !found {
		return nil, false
	}
	plans = make([]Plan, len(members))
	for i, m := range members {
		if m != nil {
			plans[i] = Plan{Terms: m.search.request.Terms, Span: m.search.request.window, Claims: m.claims}
		}
	}
	return plans, true
}

// searchFor returns the search for one reservation of the lease with its Min.
func (t *leaseTry) searchFor(v View, m reservation.MemberRequest) (*search, error) {
	parsed, err := parseRequest(t.request(v, m, leastOf(m)), v)
	if err != nil {
		return nil, err
	}
	return newSearch(v.forTerms(parsed.Terms), parsed)
}

// findSeats finds the hosts with room for each reservation.
func (a *arrangement) findSeats() {
	users := make(map[int][]int) // by host: the rooms of the reservations that can use it
	for i, m := range a.members {
		m.seats = m.rooms()
		for _, s := range m.seats {
			if users[s.host] == nil {
				users[s.host] = make([]int, len(a.members))
			}
			users[s.host][i] = s.most
		}
	}
	wanted := func(host int) (n int) {
		for _, most := range users[host] {
			n += btoi(most > 0)
		}
		return n
	}
	for _, m := range a.members {
		slices.SortStableFunc(m.seats, func(x, y seat) int { return cmp.Compare(wanted(x.host), wanted(y.host)) })
		free := m.search.view.Calendar.FreeAt(m.search.query, m.search.query.Ready)
		m.rest = make([]int, len(m.seats)+1)
		for i := len(m.seats) - 1; i >= 0; i-- {
			s := &m.seats[i]
			m.rest[i] = m.rest[i+1] + s.most
			if h := m.search.view.Hosts.Host(s.host); free.Has(s.host) {
				s.alike = fmt.Sprint(users[s.host], h.Capacity)
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rooms returns the hosts with room for a reservation, in the order in which it prefers them.
func (m *arranged) rooms() (seats []seat) {
	s, start := m.search, m.search.query.Ready
	if s.request.Kind == reservation.Hosts {
		for _, host := range s.choose(s.query.Hosts.Count(), start, nil) {
			seats = append(seats, seat{host: host, most: 1})
		}
		return seats
	}
	for _, room := range s.rooms(start, m.need, nil) {
		if s.request.Affinity != calendar.AffinitySame || room.Slices >= m.need {
			seats = append(seats, seat{host: room.Host, most: room.Slices})
		}
	}
	return seats
}

// spare returns how much room the reservation has beyond what it needs.
func (m *arranged) spare() int { return m.rest[0] - m.need }

// place chooses hosts for the reservations from the index on.
func (a *arrangement) place(index int) bool {
	if index == len(a.members) {
		return true
	}
	m := a.members[index]
	return a.fill(index, 0, m.need, make(map[string]int))
}

// fill chooses hosts for the rest of a reservation among its seats from the index at on, and then for
// the reservations after it. mostAlike is how many it may have at most on the next host of each
// kind of untouched hosts: among hosts that are alike, the first ones get the most.
func (a *arrangement) fill(index, at, need int, mostAlike map[string]int) bool {
	m := a.members[index]
	if need == 0 {
		return a.place(index + 1)
	}
	if a.steps++; m.rest[at] < need || a.steps > mostSteps {
		return false
	}
	s := m.seats[at]
	most, kind := min(s.most, need), ""
	if a.touched[s.host] == 0 && s.alike != "" {
		kind = s.alike
		if before, limited := mostAlike[kind]; limited {
			most = min(most, before)
		}
	}
	least := 1
	if m.search.request.Affinity == calendar.AffinitySame {
		least = need
	}
	before, limited := mostAlike[kind]
	for n := most; n >= least && a.steps <= mostSteps; n-- {
		if !a.put(m, s.host, n) {
			continue
		}
		if kind != "" {
			mostAlike[kind] = n
		}
		if a.fill(index, at+1, need-n, mostAlike) {
			return true
		}
		a.takeBack(m, s.host)
	}
	if kind != "" {
		mostAlike[kind] = 0
	}
	found := a.fill(index, at+1, need, mostAlike)
	if delete(mostAlike, kind); limited {
		mostAlike[kind] = before
	}
	return found
}

// put places n of a reservation on a host, and reports whether there is room.
func (a *arrangement) put(m *arranged, host, n int) bool {
	a.steps++
	claim := reservation.Claim{Host: m.search.view.Hosts.names[host], Span: m.search.request.window}
	if m.search.request.Kind == reservation.Instances {
		claim.Slices = n
	}
	if a.calendar.Add(a.inCalendar(m, claim)...) != nil {
		return false
	}
	m.claims = append(m.claims, claim)
	a.touched[host]++
	return true
}

// takeBack removes the last placement of a reservation, which is on this host.
func (a *arrangement) takeBack(m *arranged, host int) {
	last := len(m.claims) - 1
	if err := a.calendar.Remove(a.inCalendar(m, m.claims[last])...); err != nil {
		panic("booking: a placement is lost: " + err.Error())
	}
	m.claims = m.claims[:last]
	a.touched[host]--
}

func (a *arrangement) inCalendar(m *arranged, claim reservation.Claim) []calendar.Claim {
	return m.search.view.Hosts.Claims(&reservation.Reservation{Terms: m.search.request.Terms}, []reservation.Claim{claim})
}
