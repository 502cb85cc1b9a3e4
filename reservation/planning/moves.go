// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// The bounds of one decision that moves reservations, which others wait for.
const (
	mostMovable = 64   // reservations that are looked at
	mostHeld    = 2048 // hosts that these have together
	mostMoved   = 16   // reservations that get another time
	mostTried   = 12   // starts of the request that are tried
	mostPlaced  = 96   // searches for another time
)

// moversShare is how many times the host-seconds of a request those of a reservation are, at least, that moves for it. Otherwise
// large requests that are let in keep out more others than all moves let in (docs/adr/0042-movable.md).
const moversShare = 4

// FixedFrom returns when the start of r is fixed: its notice before the start, and not later than its hosts are prepared.
func FixedFrom(r *reservation.Reservation, leadTime int64) span.Instant {
	return r.Span.Start.Add(-max(r.Notice, leadTime))
}

// MayMove reports whether r may get another time now so that others have room.
func MayMove(r *reservation.Reservation, now span.Instant, leadTime int64) bool {
	return r.Notice > 0 && r.Window.Covers(r.Span) && MayChangeHosts(r, now, leadTime)
}

// MayChangeHosts reports whether r may get other hosts now so that others have room, at the same time unless it has a notice. One
// that waits for hosts to boot, lacks hosts, is held or has an image stays where it is.
func MayChangeHosts(r *reservation.Reservation, now span.Instant, leadTime int64) bool {
	elsewhere := func(c reservation.Claim) bool { return c.Span != r.Span }
	return r.Status == reservation.Pending && now < FixedFrom(r, leadTime) && !r.Maintenance && r.Image == "" &&
		r.HeldUntil() == 0 && !r.DelayedByBoot && r.Together.By == "" && r.Degraded == "" && r.Membership.LeaseID == "" && !slices.ContainsFunc(r.Claims, elsewhere)
}

// PlanWithMoves decides on a request that NewPlan refuses for lack of room: it moves reservations within their windows so
// that the request has room, and for maintenance also pending ones without a notice to other hosts at the same time. moved are these reservations after their moves. ok is false if none of the moves that it tries
// makes room, or if the request is for an image or for hosts that belong together.
func PlanWithMoves(v View, req reservation.Request) (plan Plan, moved []reservation.Reservation, ok bool) {
	if v.Movable == nil {
		return Plan{}, nil, false
	}
	a, err := parseRequest(req, v)
	if err != nil {
		return Plan{}, nil, false
	}
	v = v.bounded(mostLooked)
	s, err := newSearch(v.forTerms(a.Terms), a)
	if err != nil || s.imaging().stage() != nil || s.staged != nil || a.Together.By != "" {
		return Plan{}, nil, false
	}
	m := moving{placing: placing{view: v, left: mostPlaced, uncounted: a.Maintenance}, request: s}
	if m.find(); len(m.movable) == 0 || !m.search() {
		return Plan{}, nil, false
	}
	return s.planOn(m.start, m.asked.claims), m.moved(), true
}

// Moved returns r after a move to the time and the hosts of claims.
func Moved(r reservation.Reservation, claims []reservation.Claim, now span.Instant) reservation.Reservation {
	before := r
	r.Span, r.Claims = claims[0].Span, claims
	r.Updated, r.Version = now, r.Version+1
	detail := cmp.Or(Difference(before, r), "other hosts at the same time")
	r.Events = append(slices.Clone(r.Events), Happened(reservation.MovedEvent, now, detail))
	r.Events = recent(lifecycle.Reschedule(&before, &r, now))
	return r
}

// moving is the search for a start of a request, and for the moves that make room there.
type moving struct {
	placing
	request *search
	start   span.Instant // the result, with the claims of asked
}

// find finds the reservations that may move, with claims on hosts that the request may have.
func (m *moving) find() {
	q := m.request.query
	m.placing.find(span.Span{Start: q.Ready, End: q.Deadline}, q.Hosts, func(r *reservation.Reservation) (window span.Span, may bool) {
		if r.Notice == 0 {
			return r.Span, m.may(r)
		}
		return r.Window, m.may(r)
	})
}

// may reports whether r may move for the request. For maintenance others change their hosts, and whatever may move does.
func (m *moving) may(r *reservation.Reservation) bool {
	if m.request.request.Maintenance {
		return MayMove(r, m.view.Now, m.view.LeadTime) || r.Notice == 0 && MayChangeHosts(r, m.view.Now, m.view.LeadTime)
	}
	large := Weight(r) >= moversShare*int64(m.request.request.Quantity)*m.request.request.duration
	return large && MayMove(r, m.view.Now, m.view.LeadTime)
}

// search finds the start and the moves.
func (m *moving) search() bool {
	open := m.view.Calendar.Fork()
	for _, x := range m.movable {
		remove(open, x.held)
	}
	for _, start := range m.starts(onCalendar(m.request, open)) {
		if m.placeAt(start) {
			return true
		}
	}
	return m.placeAll(open)
}

// starts returns starts with room if everything that may move were gone: the first and the last of each run of such starts, and those at which
// one that may move ends.
func (m *moving) starts(open *search) (starts []span.Instant) {
	var later []span.Instant
	for w := range open.allowed(open.query) {
		starts, later = append(starts, w.Start), append(later, w.LatestStart)
		for _, x := range m.movable {
			if end := x.of.Span.End; end > w.Start && end < w.LatestStart {
				later = append(later, end)
			}
		}
		if len(starts) == mostTried {
			break
		}
	}
	slices.Sort(later)
	for _, at := range slices.Compact(later) {
		if !slices.Contains(starts, at) {
			starts = append(starts, at)
		}
	}
	return starts[:min(len(starts), mostTried)]
}

// placeAt places the request at a start, and moves as few reservations as it can to other times.
func (m *moving) placeAt(start span.Instant) bool {
	c, w := m.view.Calendar.Fork(), m.request.query.Window(start)
	s := onCalendar(m.request, c)
	away := m.inTheWay(s, w)
	if away == nil || len(away) > min(mostMoved, m.left) {
		return false
	}
	m.start, m.asked.claims = start, s.claims(start)
	m.add(c, &m.request.request.Terms, m.asked.claims)
	slices.SortStableFunc(away, func(x, y *mover) int { return cmp.Compare(x.latest(), y.latest()) })
	if slices.ContainsFunc(away, func(x *mover) bool { return !m.place(c, x) }) {
		forget(away)
		return false
	}
	return true
}

// inTheWay removes reservations from the calendar of a search, those with the most slack first, until there is room at the start, and returns
// them; nil if there is no room without all of them.
func (m *moving) inTheWay(s *search, w span.Span) (away []*mover) {
	at := s.startingAt(w.Start)
	fits := func() bool {
		if !m.view.look(s.request.Kind, 1) {
			return false
		}
		_, ok := s.find(at, calendar.PolicyFirstFit)
		return ok
	}
	overlapping := slices.DeleteFunc(slices.Clone(m.movable), func(x *mover) bool { return !x.of.Span.Overlaps(w) })
	slices.SortStableFunc(overlapping, func(x, y *mover) int { return cmp.Compare(y.slack(), x.slack()) })
	for _, x := range overlapping {
		remove(s.view.Calendar, x.held)
		if away = append(away, x); fits() {
			break
		}
	}
	if !fits() {
		return nil
	}
	// Those that were not in the way after all come back.
	return slices.DeleteFunc(away, func(x *mover) bool {
		if s.view.Calendar.Restore(x.held...) != nil {
			return false
		}
		if fits() {
			return true
		}
		remove(s.view.Calendar, x.held)
		return false
	})
}

// placeAll finds places for the request and for everything that may move, those with the earliest latest start first.
func (m *moving) placeAll(open *calendar.Calendar) bool {
	latest := func(x *mover) span.Instant {
		if x == &m.asked {
			return m.request.query.Deadline.Add(-m.request.query.Duration)
		}
		return x.latest()
	}
	list := append(slices.Clone(m.movable), &m.asked)
	slices.SortStableFunc(list, func(x, y *mover) int { return cmp.Compare(latest(x), latest(y)) })
	return m.placeList(open, list, func(c *calendar.Calendar, x *mover) bool {
		if x == &m.asked {
			return m.placeRequest(c)
		}
		return m.place(c, x)
	})
}

// placeRequest finds the first start of the request and adds it to the calendar.
func (m *moving) placeRequest(c *calendar.Calendar) bool {
	if !m.view.look(m.request.request.Kind, 1) {
		return false
	}
	s := onCalendar(m.request, c)
	s.bound = m.bound(s.view.Limits, s.view.Project, s.view.Held.Hosts)
	start, ok := s.find(s.query, calendar.PolicyFirstFit)
	if ok {
		m.start, m.asked.claims = start, s.claims(start)
		m.add(c, &m.request.request.Terms, m.asked.claims)
	}
	return ok
}
