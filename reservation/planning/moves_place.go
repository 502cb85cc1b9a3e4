// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// placing places reservations that may move beside one that asks for their room.
type placing struct {
	view    View
	movable []*mover
	left    int // searches
	// asked is the one that asks. uncounted is true if limits do not apply to it.
	asked     mover
	uncounted bool
}

// mover is a reservation that may move.
type mover struct {
	of     *reservation.Reservation
	window span.Span // where its time may lie
	held   []calendar.Claim
	search *search             // nil until needed
	claims []reservation.Claim // after its move; nil if it stays
}

// latest returns the latest start of the reservation.
func (x *mover) latest() span.Instant { return x.window.End.Add(-x.of.Span.Seconds()) }

// slack returns by how much later the reservation may start.
func (x *mover) slack() int64 { return int64(x.latest() - x.of.Span.Start) }

// find finds reservations with claims on hosts within a span that may move: may returns where the time of one may lie.
func (p *placing) find(within span.Span, hosts hostset.Set, may func(*reservation.Reservation) (span.Span, bool)) {
	held := 0
	for _, r := range p.view.Movable(within) {
		if len(p.movable) == mostMovable {
			break
		}
		window, is := may(r)
		if !is || !r.Span.Overlaps(within) {
			continue
		}
		x := &mover{of: r, window: window, held: p.view.Hosts.Claims(r, r.Claims)}
		if held += len(x.held); held > mostHeld && len(p.movable) > 0 {
			break
		}
		if slices.ContainsFunc(x.held, func(c calendar.Claim) bool { return hosts.Has(c.Host) }) {
			p.movable = append(p.movable, x)
		}
	}
}

// moved returns the reservations that have another place, after their moves.
func (p *placing) moved() (list []reservation.Reservation) {
	for _, x := range p.movable {
		if x.claims != nil && !slices.Equal(x.claims, x.of.Claims) {
			list = append(list, Moved(*x.of, x.claims, p.view.Now))
		}
	}
	return list
}

// placeList places those of a list one after the other. One that finds no room comes first in the next try.
func (p *placing) placeList(open *calendar.Calendar, list []*mover, place func(*calendar.Calendar, *mover) bool) bool {
	for p.left >= len(list) && len(list) <= mostMoved+1 {
		forget(list)
		c := open.Fork()
		failed := slices.IndexFunc(list, func(x *mover) bool { return !place(c, x) })
		if failed < 0 {
			return true
		}
		if failed == 0 {
			break
		}
		x := list[failed]
		list = slices.Insert(slices.Delete(list, failed, failed+1), 0, x)
	}
	forget(list)
	return false
}

// add adds claims of a reservation, for which there is room, to a calendar.
func (p *placing) add(c *calendar.Calendar, of *reservation.Terms, claims []reservation.Claim) {
	if err := c.Add(p.view.Hosts.Claims(&reservation.Reservation{Terms: *of}, claims)...); err != nil {
		panic("booking: a plan does not fit into the calendar on which it was made: " + err.Error())
	}
}

// place finds another time for a reservation and adds it to the calendar.
func (p *placing) place(c *calendar.Calendar, x *mover) bool {
	if p.left--; p.left < 0 || !p.searches(x) || !p.view.look(x.of.Kind, 1) {
		return false
	}
	s := onCalendar(x.search, c)
	s.bound = p.bound(s.view.Limits, x.of.ProjectID, s.view.Held.Hosts)
	s.bound.own = AddClaims(span.Count{}, x.of.Claims, 1)
	start, ok := s.find(s.query, s.request.Policy)
	if !ok {
		return false
	}
	x.claims = s.claims(start)
	p.add(c, &x.of.Terms, x.claims)
	return true
}

// bound returns the limit on the hosts of a project, which holds what it held before all moves and what has been placed. The commit
// counts both too.
func (p *placing) bound(l Limits, project string, held span.Count) bound {
	if l.Hosts == 0 {
		return bound{}
	}
	if project == p.view.Project && !p.uncounted {
		held = AddClaims(held, p.asked.claims, 1)
	}
	for _, x := range p.movable {
		if x.of.ProjectID == project {
			held = AddClaims(held, x.claims, 1)
		}
	}
	return bound{most: l.Hosts, held: held}
}

// searches makes the search for another time of a reservation; false if its filter cannot be read any more.
func (p *placing) searches(x *mover) bool {
	if x.search != nil {
		return true
	}
	v, r := p.view.of(x.of), x.of
	v.SeesHidden = true
	if v.Limits.StartAhead > 0 {
		v.Limits.StartAhead = max(v.Limits.StartAhead, int64(r.Span.Start-v.Now))
	}
	if v.HeldBy != nil {
		v.Held = v.HeldBy(r.ProjectID)
	}
	filter, err := v.stored(r.HostProperties)
	if err != nil {
		return false
	}
	window := x.window
	window.Start = max(window.Start, v.Now.Add(max(r.Notice, v.LeadTime)))
	x.search = searchBy(v, request{Terms: r.Terms, window: window, duration: r.Span.Seconds()}, filter)
	x.search.pricing().decide()
	return true
}

// stored returns the filter of a reservation, shared with others that have the same.
func (v View) stored(text string) (*filtered, error) {
	const of = "stored " // no filter of a request begins with it
	if f := v.effort.filters[of+text]; f != nil {
		return f, nil
	}
	filter, err := inventory.ParseStoredFilter([]byte(text), v.Hosts.snapshot, v.SeesHidden)
	if err != nil {
		return nil, err
	}
	f := unshared(filter)
	v.effort.filters[of+text] = f
	return f, nil
}

// remove removes claims that the calendar has.
func remove(c *calendar.Calendar, claims []calendar.Claim) {
	if err := c.Remove(claims...); err != nil {
		panic(fmt.Sprintf("booking: the calendar lost a claim: %v", err))
	}
}

// forget forgets where movers were placed.
func forget(list []*mover) {
	for _, x := range list {
		x.claims = nil
	}
}
