// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// changeWorld is what is promised beside the reservations of a lease that change, for an exhaustive search
// that shares no code with the service.
type changeWorld struct {
	leaseWorld
	members []changing
	end     span.Instant // of the lease after the change
}

// changing is a reservation that changes, with the amounts that it may have then.
type changing struct {
	reservation.Reservation
	least, most int
}

// changedWorld returns the world of a change of bounds, and perhaps of the end.
func changedWorld(s *scene, l reservation.LeaseRecord, c reservation.LeaseChange, live []reservation.Reservation) changeWorld {
	w := changeWorld{leaseWorld: leaseWorld{hosts: s.hosts, now: s.clock()}, end: l.Span.End}
	retimed := c.End != nil && *c.End != l.Span.End
	if retimed {
		w.end = *c.End
	}
	for _, r := range l.Reservations {
		m, bounded := changing{r, r.Quantity, r.Quantity}, false
		for _, to := range c.Members {
			if to.ID == r.ID && (*to.Min != r.Membership.Min || *to.Max != r.Membership.Max) {
				m.least, m.most, bounded = max(*to.Min, 1), *to.Max, true
			}
		}
		if r.Status == reservation.Active {
			m.least = max(m.least, r.Quantity)
		}
		if bounded || retimed {
			w.members = append(w.members, m)
		}
	}
	for _, r := range live {
		if !slices.ContainsFunc(w.members, func(m changing) bool { return m.ID == r.ID }) {
			w.taken = append(w.taken, r)
		}
	}
	return w
}

// roomFor returns what the hosts have left for a reservation. It counts on its hosts to be awake.
func (w *changeWorld) roomFor(m *changing, at span.Span, taken []reservation.Reservation) map[string]rest {
	alone := leaseWorld{hosts: slices.Clone(w.hosts), now: w.now, taken: taken}
	for i := range alone.hosts {
		if h := &alone.hosts[i]; slices.Contains(m.HostNames(), h.Name) {
			h.Power = ""
		}
	}
	return alone.rests(at)
}

// fits reports whether each reservation from the nth on can have its amount at a start, by trying
// everything. An active one keeps its hosts.
func (w *changeWorld) fits(n int, start span.Instant, amounts []int, taken []reservation.Reservation) bool {
	if n == len(w.members) {
		return true
	}
	m := &w.members[n]
	at := span.Span{Start: start, End: start + w.end - w.start()}
	return w.spread(m, 0, amounts[n], at, w.roomFor(m, at, taken), nil, func(claims []reservation.Claim) bool {
		r := m.Reservation
		r.Claims = claims
		return w.fits(n+1, start, amounts, append(slices.Clip(taken), r))
	})
}

// start returns when what the change decides on begins.
func (w *changeWorld) start() span.Instant { return max(w.members[0].Span.Start, w.now) }

// spread tries each way to place need of a reservation on the hosts from an index on, beside claims.
func (w *changeWorld) spread(
	m *changing, from, need int, at span.Span, rests map[string]rest, claims []reservation.Claim, then func([]reservation.Claim) bool,
) bool {
	if from == len(w.hosts) {
		return need == 0 && then(claims)
	}
	h, kept, most := &w.hosts[from], 0, need
	if m.Status == reservation.Active {
		kept = count(m.Reservation, h.Name, w.now)
	}
	left, there := rests[h.Name]
	if !there || !meaningOf(m.HostProperties)(h, at.Start > w.now) {
		most = 0
	}
	if m.Kind == reservation.Hosts || m.Affinity == calendar.AffinityDifferent {
		most = min(most, 1)
	}
	for n := kept; n <= most; n++ {
		claim := reservation.Claim{Host: h.Name, Span: at, Slices: n}
		switch {
		case n == 0:
			if w.spread(m, from+1, need, at, rests, claims, then) {
				return true
			}
			continue
		case m.Kind == reservation.Hosts:
			if claim.Slices = 0; !left.whole {
				return false
			}
		case !m.Resources.Scale(int64(n)).Fits(left.room):
			return false
		case m.Affinity == calendar.AffinitySame && len(claims) > 0:
			return false
		}
		if w.spread(m, from+1, need-n, at, rests, append(slices.Clip(claims), claim), then) {
			return true
		}
	}
	return false
}

func (w *changeWorld) leasts() (amounts []int) {
	for _, m := range w.members {
		amounts = append(amounts, m.least)
	}
	return amounts
}

// accepts reports whether the change has room.
func (w *changeWorld) accepts() bool {
	return len(w.members) == 0 || w.fits(0, w.start(), w.leasts(), w.taken)
}

// drawChangedLease draws a scene with promises and a lease, which may have begun.
func drawChangedLease(t *rapid.T) (*scene, reservation.LeaseRecord) {
	hosts := drawHosts(t)
	s := newScene(t, hosts[max(0, len(hosts)-4):])
	others := func(most int) {
		for range rapid.IntRange(0, most).Draw(t, "others") {
			_, _ = s.bookings.Book(t.Context(), owner, drawTimeless(t, s.clock()), nil)
		}
	}
	others(3)
	start := s.clock().Add(drawTicks(t, 1, 15, "start"))
	req := reservation.LeaseRequest{Start: start, End: start.Add(drawTicks(t, 2, 9, "length"))}
	members := rapid.IntRange(1, 3).Draw(t, "members")
	for range members {
		m := reservation.MemberRequest{Terms: drawTimeless(t, s.clock()).Terms}
		if members > 1 { // alike, so that it does not matter which one has which host
			m.Terms.Kind, m.HostProperties, m.Affinity, m.Resources = reservation.Hosts, "", "", resource.Vector{}
		}
		m.Min, m.Max = drawBounds(t)
		m.Max = max(m.Max, 1)
		req.Members = append(req.Members, m)
	}
	l, err := s.bookings.BookLease(t.Context(), owner, req)
	if err != nil {
		t.SkipNow()
	}
	others(3)
	if rapid.Bool().Draw(t, "begun") {
		s.passTo(t, start+span.Instant(drawTicks(t, 0, 1, "later")))
		l, err = s.memory.Lease(t.Context(), l.ID)
		if err != nil {
			t.Fatal(err)
		}
	}
	return s, l
}

// drawTimeless draws a request with a filter that means the same at all times.
func drawTimeless(t *rapid.T, now span.Instant) reservation.Request {
	req := drawRequest(t, now)
	if req.HostProperties == meanings[3].filter {
		req.HostProperties = ""
	}
	return req
}

// drawNewBounds draws other bounds of some reservations of a lease, and perhaps another end.
func drawNewBounds(t *rapid.T, l reservation.LeaseRecord) (c reservation.LeaseChange) {
	for _, r := range l.Reservations {
		if rapid.Bool().Draw(t, "changes") {
			least, most := drawBounds(t)
			c.Members = append(c.Members, reservation.MemberChange{ID: r.ID, Min: new(least), Max: new(max(most, 1))})
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "retimed") == 0 {
		c.End = new(l.Span.End + span.Instant(drawTicks(t, -1, 8, "later end")))
	}
	return c
}

// A change of the bounds of a lease is accepted if and only if an exhaustive search finds room for the
// least of each reservation, and each then has as much as there is. Each fact in its refusal is true.
func TestAnotherMinOrMaxGetsAsMuchAsThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, l := drawChangedLease(t)
		c := drawNewBounds(t, l)
		w := changedWorld(s, l, c, s.live(t))
		after, err := s.bookings.OfferLeaseChange(t.Context(), owner, l.ID, c)
		if fault.Is(err, fault.Conflict) {
			if !slices.ContainsFunc(w.members, func(m changing) bool { return m.Status == reservation.Active && m.most < m.Quantity }) {
				t.Fatal(err)
			}
			return
		}
		if err != nil && !isRefusal(err) {
			if c.End == nil || *c.End > w.now+tick {
				t.Fatal(err)
			}
			return
		}
		if accepts := w.accepts(); accepts != (err == nil) {
			t.Fatalf("there is room: %t; the answer to %+v is %v, of %+v", accepts, c, err, w.members)
		}
		if err == nil {
			w.checkAmounts(t, after)
			return
		}
		w.checkRefusal(t, s, l, c, refusal(t, err))
	})
}

// checkAmounts checks that each reservation has what it may have, and that none could have one more beside
// the others.
func (w *changeWorld) checkAmounts(t *rapid.T, after reservation.LeaseRecord) {
	for n, m := range w.members {
		taken := w.taken
		var got reservation.Reservation
		for _, r := range after.Reservations {
			if r.ID == m.ID {
				got = r
			} else if slices.ContainsFunc(w.members, func(other changing) bool { return other.ID == r.ID }) {
				taken = append(slices.Clip(taken), r)
			}
		}
		if got.Quantity < m.least || got.Quantity > m.most {
			t.Fatalf("%s has %d, which is not from %d to %d", m.ID, got.Quantity, m.least, m.most)
		}
		alone := changeWorld{leaseWorld: w.leaseWorld, members: w.members[n : n+1], end: w.end}
		for more := got.Quantity; more <= m.most; more++ {
			if alone.fits(0, alone.start(), []int{more}, taken) != (more == got.Quantity) {
				t.Fatalf("%s has %d; with %d there is room: %t", m.ID, got.Quantity, more, more != got.Quantity)
			}
		}
	}
}

// checkRefusal asks each fact of a refusal back.
func (w *changeWorld) checkRefusal(t *rapid.T, s *scene, l reservation.LeaseRecord, c reservation.LeaseChange, r *reservation.Refusal) {
	if len(r.BlockedBy) > 0 {
		open := *w
		if open.leaseWorld = w.without(r.BlockedBy); !open.accepts() {
			t.Fatalf("without %v there is no room either", r.BlockedBy)
		}
	}
	if end := r.LatestEnd; end != 0 {
		for _, later := range []int64{0, 1} {
			c.End = new(end.Add(later))
			if _, err := s.bookings.OfferLeaseChange(t.Context(), owner, l.ID, c); (err == nil) != (later == 0) {
				t.Fatalf("the latest end is %v; %d s later: %v", end, later, err)
			}
		}
	}
	if len(l.Reservations) > 1 || l.Reservations[0].Status == reservation.Active {
		if r.EarliestStart != 0 {
			t.Fatalf("the earliest start is %v", r.EarliestStart)
		}
	} else if first := w.first(); r.EarliestStart != first {
		t.Fatalf("the earliest start is %v, want %v: %v", r.EarliestStart, first, r)
	}
	if len(w.members) > 1 {
		return
	}
	best, m := 0, w.members[0]
	for n := 1; n <= 12; n++ {
		if (m.Status == reservation.Pending || n >= m.Quantity) && w.fits(0, w.start(), []int{n}, w.taken) {
			best = n
		}
	}
	if r.LargestQuantity != best {
		t.Fatalf("the largest quantity is %d, want %d: %+v", r.LargestQuantity, best, *r)
	}
}

// first returns the first start, from the requested one on, from which the change has room; 0 if there is
// none.
func (w *changeWorld) first() span.Instant {
	for start := w.start(); start < w.start()+800; start++ {
		if w.fits(0, start, w.leasts(), w.taken) {
			return start
		}
	}
	return 0
}
