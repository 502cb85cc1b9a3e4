// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"cmp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// drawCrowd draws a scene with few free hosts. Some reservations run already.
func drawCrowd(t *rapid.T, adjust ...func(*booking.Options)) *scene {
	s := newScene(t, drawHosts(t), append(adjust, limited(drawLimits(t)))...)
	for range rapid.IntRange(2, 10).Draw(t, "bookings") {
		by := rapid.SampledFrom(projects).Draw(t, "by")
		if _, err := s.bookings.Book(t.Context(), by, drawRequest(t, s.clock()), nil); err == nil && rapid.Bool().Draw(t, "time passes") {
			s.passTo(t, s.clock()+span.Instant(drawTicks(t, 0, 4, "passes")))
		}
	}
	return s
}

// The test requests what a refusal names as possible, and as impossible.
func TestEveryRefusalIsTrueWhenTried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCrowd(t)
		by := projects[0]
		for range 5 {
			req := drawRequest(t, s.clock())
			_, err := s.bookings.Offer(t.Context(), by, req)
			refused, ok := err.(*reservation.Refusal)
			if !ok {
				continue
			}
			asked := question{terms: req.Terms, hold: span.New(max(req.Start, s.clock()), req.Duration)}
			if req.Duration == 0 {
				asked.hold.End = req.End
			}
			s.checkFigures(t, asked, s.live(t), refused)
			s.checkEarliest(t, asked, refused, func(start span.Instant) error {
				exact := reservation.Request{Terms: req.Terms, Start: start, Duration: asked.hold.Seconds()}
				return s.tryBook(t, by, exact)
			})
			checkLargest(t, refused, func(quantity int) error {
				fewer := req
				fewer.Quantity = quantity
				return s.tryBook(t, by, fewer)
			})
		}
		s.check(t)
	})
}

// tryBook books and then cancels the booking.
func (s *scene) tryBook(t *rapid.T, by booking.Caller, req reservation.Request) error {
	t.Helper()
	r, err := s.bookings.Book(t.Context(), by, req, nil)
	if err == nil {
		_, err = s.bookings.Cancel(t.Context(), by, r.ID)
	}
	return err
}

// settled are the options of a cloud in which every reservation is about to start, so that none moves for another.
func settled(o *booking.Options) { o.LeadTime = 1 << 40 }

// The same holds for changes, as long as nobody has other hosts for them, which a refusal does not state.
func TestEveryRefusedChangeIsTrueWhenTried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCrowd(t, settled)
		for range 5 {
			r, ok := drawLive(t, s)
			if !ok {
				return
			}
			c, by := drawChange(t, r), booking.Caller{ProjectID: r.ProjectID}
			offer := func(c planning.Change) error {
				_, err := s.bookings.OfferChange(t.Context(), by, r.ID, c)
				return err
			}
			refused, ok := offer(c).(*reservation.Refusal)
			if !ok {
				continue
			}
			s.checkRefusedChange(t, r, c, refused, offer)
			if refused.LargestQuantity > 0 {
				c.Quantity = &refused.LargestQuantity
				if _, err := s.bookings.Change(t.Context(), by, r.ID, c); err != nil {
					t.Fatalf("with the largest quantity, %d: %v", *c.Quantity, err)
				}
				s.check(t)
			}
		}
	})
}

func (s *scene) checkRefusedChange(t *rapid.T, r reservation.Reservation, c planning.Change, refused *reservation.Refusal, offer func(planning.Change) error) {
	t.Helper()
	terms, to := r.Terms, r.Span
	if c.Quantity != nil {
		terms.Quantity = *c.Quantity
	}
	if c.HostProperties != nil {
		terms.HostProperties = *c.HostProperties
	}
	if c.Resources != nil {
		terms.Resources = *c.Resources
	}
	if c.Affinity != nil {
		terms.Affinity = *c.Affinity
	}
	if c.Start != nil {
		to.Start = *c.Start
	}
	if c.End != nil {
		to.End = *c.End
	}
	others := slices.DeleteFunc(s.live(t), func(o reservation.Reservation) bool { return o.ID == r.ID })
	asked := question{terms: terms, hold: span.Span{Start: max(to.Start, s.clock()), End: to.End}, own: r}
	s.checkFigures(t, asked, others, refused)
	alone := c.Start == nil && c.Quantity == nil && c.HostProperties == nil && terms.Resources.Equal(r.Resources) && terms.Affinity == r.Affinity
	if extends := alone && to.End > r.Span.End; extends {
		checkLatestEnd(t, r, refused, func(end span.Instant) error { return offer(planning.Change{End: &end}) })
	} else if alone && refused.LatestEnd != 0 {
		t.Fatalf("the refusal offers the end %v to a change that is no extension", refused.LatestEnd)
	}
	checkLargest(t, refused, func(quantity int) error {
		c := c
		c.Quantity = &quantity
		return offer(c)
	})
	if r.Status == reservation.Pending {
		s.checkEarliest(t, asked, refused, func(start span.Instant) error {
			c := c
			c.Start, c.End = &start, new(start.Add(asked.hold.Seconds()))
			return offer(c)
		})
	} else if refused.EarliestStart != 0 {
		t.Fatalf("the refusal offers an active reservation the start %v", refused.EarliestStart)
	}
}

// checkLatestEnd checks that the latest end of a refused extension is possible, and a second more is not.
func checkLatestEnd(t *rapid.T, r reservation.Reservation, refused *reservation.Refusal, offer func(end span.Instant) error) {
	t.Helper()
	latest := refused.LatestEnd
	if latest == 0 {
		latest = r.Span.End
	} else if err := offer(latest); err != nil || latest <= r.Span.End {
		t.Fatalf("the end %v moves to the latest end, %v: %v", r.Span.End, latest, err)
	}
	if err := offer(latest + 1); err == nil {
		t.Fatalf("%v is not the latest end that is possible", latest)
	}
}

// question is what was refused: the terms and the first span that they could have.
type question struct {
	terms reservation.Terms
	hold  span.Span
	own   reservation.Reservation // the reservation to change
}

// figures returns the names of the hosts that match q, and how many hosts or instances have room.
func (s *scene) figures(q question, others []reservation.Reservation) (names []string, free int) {
	most := 0
	for i := range s.hosts {
		h := &s.hosts[i]
		if !h.Reservable || !meaningOf(q.terms.HostProperties)(h, q.hold.Start > s.clock()) {
			continue
		}
		names = append(names, h.Name)
		n := s.room(h, q, others)
		free, most = free+n, max(most, n)
	}
	if q.terms.Affinity == calendar.AffinitySame {
		free = most
	}
	return names, free
}

// checkFigures checks the figures of a refusal against the records.
func (s *scene) checkFigures(t *rapid.T, q question, others []reservation.Reservation, refused *reservation.Refusal) {
	t.Helper()
	names, free := s.figures(q, others)
	if refused.Matched != len(names) || refused.Free != free {
		t.Fatalf("%d hosts match and %d are free, want %d and %d: %v", refused.Matched, refused.Free, len(names), free, refused)
	}
	if slices.Contains(limiting, refused.Constraint) {
		if len(refused.BlockedBy) > 0 {
			t.Fatalf("%v is blocked by %v", refused, refused.BlockedBy)
		}
		return
	}
	got, want := clipped(refused.BlockedBy, q.hold), blocks(others, names, q.hold)
	if q.own.Status == reservation.Active && q.hold.End > q.own.Span.End && !gocmp.Equal(want, got, cmpopts.EquateEmpty()) {
		want = blocks(others, slices.DeleteFunc(q.own.HostNames(), func(name string) bool { return s.leaves(q, name) }), q.hold) // it must stay on its hosts
	}
	if !s.everHeld(q) && slices.Contains([]reservation.Constraint{reservation.HostsInPool, reservation.HostsMatching}, refused.Constraint) {
		want = nil // no claim is in the way
	}
	if len(got) == 0 && s.obstructed(q, others) {
		want = nil // claims alone are not in the way
	}
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("blocked by (-want +got):\n%s", diff)
	}
}

// obstructed reports whether q would be refused for its first span if nothing were promised: its hosts
// sleep or have failed, or the project holds too many.
func (s *scene) obstructed(q question, others []reservation.Reservation) bool {
	if q.own.Status == reservation.Active && s.staying(q) < min(q.terms.Quantity, q.own.Quantity) {
		return true
	}
	sum, most := 0, 0
	for i := range s.hosts {
		h := &s.hosts[i]
		n, own := 0, min(count(q.own, h.Name, q.hold.Start), count(q.own, h.Name, q.hold.End-1))
		if h.Reservable && meaningOf(q.terms.HostProperties)(h, q.hold.Start > s.clock()) {
			n = s.room(h, q, nil)
		}
		if s.leaves(q, h.Name) {
			own = 0
		}
		if n = max(n, own); own == 0 && q.own.Status == reservation.Active && q.terms.Affinity == calendar.AffinitySame {
			n = 0
		}
		sum, most = sum+n, max(most, n)
	}
	if q.terms.Affinity == calendar.AffinitySame {
		sum = most
	}
	project := cmp.Or(q.own.ProjectID, projects[0].ProjectID)
	for _, at := range turns(q.hold, others...) {
		held := 0
		for _, r := range others {
			if r.ProjectID == project && !r.Maintenance {
				held += count(r, "", at)
			}
		}
		if limit := s.options.Limits.Hosts; limit > 0 && held+q.terms.Quantity > limit {
			return true
		}
	}
	return sum < q.terms.Quantity
}

// leaves reports whether a host of the reservation to change does not pass its new filter, or its instances are others.
func (s *scene) leaves(q question, host string) bool {
	if q.own.ID != "" && (!q.terms.Resources.Equal(q.own.Resources) || q.terms.Affinity != q.own.Affinity) {
		return true
	}
	return q.own.ID != "" && q.terms.HostProperties != q.own.HostProperties && !meaningOf(q.terms.HostProperties)(s.host(host), q.hold.Start > s.clock())
}

// staying returns how many hosts or instances the reservation to change has now on hosts that pass its new filter.
func (s *scene) staying(q question) (n int) {
	for _, name := range q.own.HostNames() {
		if !s.leaves(q, name) {
			n += count(q.own, name, s.clock())
		}
	}
	return n
}

// everHeld reports whether the hosts that match, now or later, could hold q if nothing were promised.
func (s *scene) everHeld(q question) bool {
	for _, ahead := range []bool{q.hold.Start > s.clock(), true} {
		sum, most := int64(0), int64(0)
		for i := range s.hosts {
			h := &s.hosts[i]
			if !h.Reservable || !meaningOf(q.terms.HostProperties)(h, ahead) {
				continue
			}
			n := int64(1)
			if q.terms.Kind == reservation.Instances {
				n = h.Capacity.Times(q.terms.Resources)
			}
			if q.terms.Affinity == calendar.AffinityDifferent {
				n = min(n, 1)
			}
			sum, most = sum+n, max(most, n)
		}
		if q.terms.Affinity == calendar.AffinitySame {
			sum = most
		}
		if sum >= int64(q.terms.Quantity) {
			return true
		}
	}
	return false
}

// limiting lists the constraints that do not depend on the claims of others.
var limiting = []reservation.Constraint{
	reservation.MaxDuration, reservation.MaxStartAhead, reservation.MaxHosts, reservation.MaxHostHours, reservation.ExtensionTooEarly,
}

// room returns how many of q's hosts or instances fit on h throughout q.hold.
func (s *scene) room(h *inventory.Host, q question, others []reservation.Reservation) int {
	if s.awakeFor(h, q.own) > q.hold.Start {
		return 0
	}
	room := int64(1)
	if q.terms.Kind == reservation.Instances && q.terms.Affinity != calendar.AffinityDifferent {
		room = 1 << 30
	}
	for _, at := range turns(q.hold, others...) {
		whole, slices := use(others, h.Name, at)
		switch {
		case whole > 0 || q.terms.Kind == reservation.Hosts && !slices.IsZero():
			return 0
		case q.terms.Kind == reservation.Instances:
			room = min(room, h.Capacity.Sub(slices).Times(q.terms.Resources))
		}
	}
	return int(room)
}

func byHostAndStart(a, b reservation.Block) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.Span.End, b.Span.End))
}

func clipped(blocks []reservation.Block, w span.Span) []reservation.Block {
	list := slices.Clone(blocks)
	for i := range list {
		list[i].Span = clip(list[i].Span, w)
	}
	slices.SortFunc(list, byHostAndStart)
	return list
}

// blocks returns what others hold of hosts in w; whole-host claims that touch count as one.
func blocks(others []reservation.Reservation, hosts []string, w span.Span) []reservation.Block {
	var list []reservation.Block
	for _, host := range hosts {
		var whole []reservation.Reservation
		for _, r := range others {
			if r.Kind == reservation.Hosts {
				whole = append(whole, r)
				continue
			}
			for _, held := range heldSpans([]reservation.Reservation{r}, host, w) {
				list = append(list, reservation.Block{Host: host, Span: held})
			}
		}
		for _, held := range merged(heldSpans(whole, host, w)) {
			list = append(list, reservation.Block{Host: host, Span: held})
		}
	}
	slices.SortFunc(list, byHostAndStart)
	return list
}

// checkEarliest checks that the earliest start works and that none before it does.
func (s *scene) checkEarliest(t *rapid.T, q question, refused *reservation.Refusal, try func(span.Instant) error) {
	t.Helper()
	if earliest := refused.EarliestStart; earliest != 0 {
		if err := try(earliest); err != nil {
			t.Fatalf("%v: at its earliest start, %v: %v", refused, earliest, err)
		}
	}
	for _, start := range s.interesting(t, q.hold) {
		if refused.EarliestStart != 0 && start >= refused.EarliestStart {
			break
		}
		if err := try(start); err == nil {
			t.Fatalf("%v: the earliest start is %v, but %v works", refused, refused.EarliestStart, start)
		}
	}
}

// interesting returns the starts from hold.Start on around which the free hosts may change:
// one before, one at and one after each change.
func (s *scene) interesting(t *rapid.T, hold span.Span) []span.Instant {
	times := []span.Instant{hold.Start, s.clock() + 1}
	for _, r := range s.live(t) {
		for _, c := range r.Claims {
			times = append(times, c.Span.Start-span.Instant(hold.Seconds()), c.Span.Start, c.Span.End)
		}
	}
	for i := range s.hosts {
		if awake := s.hosts[i].AwakeAt(s.clock()); awake != span.Forever {
			times = append(times, awake)
		}
	}
	for _, t := range slices.Clone(times) {
		times = append(times, t-1, t+1)
	}
	slices.Sort(times)
	return slices.DeleteFunc(slices.Compact(times), func(t span.Instant) bool { return t < hold.Start })
}

// checkLargest checks that the largest quantity works and that one more does not.
func checkLargest(t *rapid.T, refused *reservation.Refusal, try func(quantity int) error) {
	t.Helper()
	if n := refused.LargestQuantity; n > 0 {
		if err := try(n); err != nil {
			t.Fatalf("%v: with its largest quantity, %d: %v", refused, n, err)
		}
	}
	if err := try(refused.LargestQuantity + 1); err == nil {
		t.Fatalf("%v: the largest quantity is %d, but one more works", refused, refused.LargestQuantity)
	}
}
