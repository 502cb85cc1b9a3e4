// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// onHost asks for one particular host.
func onHost(name string) reservation.MemberRequest {
	m := whole(1, 1)
	m.HostProperties = fmt.Sprintf(`["=", "$name", %q]`, name)
	return m
}

func TestTheEarliestStartOfALeaseIsAccepted(t *testing.T) {
	s := newScene(t, named("a", "b"))
	s.book(t, only("a", during(1, 100, 200)))
	s.book(t, only("b", during(1, 160, 400)))
	ask := reservation.LeaseRequest{Name: "l", Start: at(100), End: at(150), Members: []reservation.MemberRequest{onHost("a"), onHost("b")}}
	_, err := s.bookings.BookLease(t.Context(), owner, ask)
	if r := refusal(t, err); r.EarliestStart != at(400) {
		t.Errorf("the earliest start is %v, want %v", r.EarliestStart, at(400))
	}
	ask.Start, ask.End = at(400), at(450)
	s.lease(t, ask)
}

func TestTheEarliestStartOfFloatingIPsKeepsTheLimits(t *testing.T) {
	s := newScene(t, named("a"), pooled(1))
	s.lease(t, floatingFrom(100, 1000, floating(1)))
	s.options.Limits = planning.Limits{StartAhead: 500}
	s.restart(t)
	_, err := s.bookings.BookLease(t.Context(), owner, floatingFrom(100, 200, floating(1)))
	if r := refusal(t, err); r.EarliestStart != 0 {
		t.Errorf("the earliest start is %v, which is too far ahead", r.EarliestStart)
	}
	s.now.Add(500)
	_, err = s.bookings.BookLease(t.Context(), owner, floatingFrom(600, 700, floating(1)))
	if r := refusal(t, err); r.EarliestStart != at(1000) {
		t.Errorf("the earliest start is %v, want %v", r.EarliestStart, at(1000))
	}
}

func TestALeaseIsBookedInAnyOrderOfItsReservations(t *testing.T) {
	on := func(filter string, n int) reservation.MemberRequest {
		m := whole(n, n)
		m.HostProperties = filter
		return m
	}
	notB, notC := `["not", ["=", "$name", "e"]]`, `["not", ["=", "$name", "f"]]`
	for name, members := range map[string][]reservation.MemberRequest{
		"a particular host":           {whole(1, 1), onHost("a")},
		"most that leaves no room":    {whole(1, 6), onHost("a"), whole(2, 4)},
		"neither order of two":        {on(notB, 3), on(notC, 3)},
		"instances and whole hosts":   {small(8), whole(5, 5)},
		"an address by name":          {floating(1), floating(1, "198.51.100.1")},
		"hosts, instances, addresses": {floating(1), small(1), whole(2, 5), onHost("a"), floating(1, "198.51.100.1")},
	} {
		for range 2 {
			s := newScene(t, named("a", "b", "c", "d", "e", "f"), pooled(2))
			if _, err := s.bookings.BookLease(t.Context(), owner, reservation.LeaseRequest{Name: "l", Start: at(100), End: at(150), Members: members}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			s.check(t)
			slices.Reverse(members)
		}
	}
}

func TestEachReservationOfALeaseGetsItsLeastBeforeOneGetsMore(t *testing.T) {
	for _, tc := range []struct {
		members []reservation.MemberRequest
		want    []int
	}{
		{[]reservation.MemberRequest{whole(1, 5), whole(1, 2)}, []int{3, 1}},
		{[]reservation.MemberRequest{whole(1, 2), whole(1, 5)}, []int{2, 2}},
		{[]reservation.MemberRequest{whole(1, 5), onHost("a")}, []int{3, 1}},
	} {
		s := newScene(t, named("a", "b", "c", "d"))
		var got []int
		for _, r := range s.lease(t, leaseOf(tc.members...)).Reservations {
			got = append(got, r.Quantity)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%+v get %v, want %v", tc.members, got, tc.want)
		}
	}
}

func TestALeaseThatStartsNowBeginsWhenItsHostsAreAwake(t *testing.T) {
	sleeping := func(h *inventory.Host, boot int64) { h.Power, h.BootSeconds = inventory.PowerSleeping, boot }
	for name, tc := range map[string]struct {
		req        reservation.LeaseRequest
		start, end int64
		quantities []int
	}{
		"one awake":                   {floatingFrom(-20, 600, whole(1, 1)), -20, 600, []int{1}},
		"all":                         {floatingFrom(-20, 600, whole(3, 3)), 40, 600, []int{3}},
		"as many as there are":        {floatingFrom(0, 600, whole(1, 5)), 40, 600, []int{3}},
		"those that boot in time":     {floatingFrom(0, 30, whole(1, 5)), 20, 30, []int{2}},
		"one of two reservations":     {floatingFrom(0, 600, whole(1, 1), small(9)), 20, 600, []int{1, 8}},
		"with a length of its own":    {reservation.LeaseRequest{Start: at(0), End: at(600), EndFollows: true, Members: []reservation.MemberRequest{whole(3, 3)}}, 40, 640, []int{3}},
		"a particular sleeping host":  {floatingFrom(0, 600, onHost("b")), 20, 600, []int{1}},
		"a start in the future stays": {floatingFrom(50, 600, whole(3, 3)), 50, 600, []int{3}},
	} {
		s := newScene(t, named("a", "b", "c"))
		sleeping(&s.hosts[1], 20)
		sleeping(&s.hosts[2], 40)
		s.observe(t)
		if name == "one of two reservations" {
			tc.req.Members[1].Min, tc.req.Members[1].Max = 8, 8
		}
		l := s.lease(t, tc.req)
		var got []int
		for _, r := range l.Reservations {
			got = append(got, r.Quantity)
			if r.DelayedByBoot != (l.Span.Start > tc.req.Start) || r.Status != reservation.Pending {
				t.Errorf("%s: delayed by boot: %t, %s", name, r.DelayedByBoot, r.Status)
			}
		}
		if l.Span != (span.Span{Start: at(tc.start), End: at(tc.end)}) || !slices.Equal(got, tc.quantities) {
			t.Errorf("%s: the lease lasts %v with %v", name, l.Span, got)
		}
		s.check(t)
		s.checkLeases(t)
	}
}

func TestTheRefusalOfALeaseNamesTheHostsThatSleep(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	s.hosts[1].Power, s.hosts[1].BootSeconds = inventory.PowerSleeping, 900
	s.hosts[2].Power, s.hosts[2].BootSeconds = inventory.PowerWaking, 800
	s.observe(t)
	_, err := s.bookings.BookLease(t.Context(), owner, floatingFrom(0, 600, whole(3, 3)))
	r := refusal(t, err)
	if want := "; b, c sleep, and can be awake at 2033-05-18T03:48:20Z"; !strings.Contains(r.Message, want) || r.EarliestStart != at(900) || r.LargestQuantity != 1 {
		t.Errorf("the refusal lacks %q: %+v", want, *r)
	}
	if _, err = s.bookings.BookLease(t.Context(), owner, floatingFrom(900, 1500, whole(4, 4))); strings.Contains(refusal(t, err).Message, "sleep") {
		t.Errorf("sleep is not the obstacle: %v", err)
	}
}

// leaseWorld is what is promised in a scene, for an exhaustive search that shares no code with the
// service.
type leaseWorld struct {
	hosts []inventory.Host
	now   span.Instant
	taken []reservation.Reservation
	pool  int // the number of enrolled addresses
}

// without returns the world without the claims that a refusal names.
func (w leaseWorld) without(blocks []reservation.Block) leaseWorld {
	w.taken = slices.Clone(w.taken)
	for i := range w.taken {
		w.taken[i].Claims = slices.DeleteFunc(slices.Clone(w.taken[i].Claims), func(c reservation.Claim) bool {
			return slices.ContainsFunc(blocks, func(b reservation.Block) bool { return b.Host == c.Host && b.Span.Overlaps(c.Span) })
		})
	}
	return w
}

// rest is what a host has left throughout a span, for claims that last as long.
type rest struct {
	whole bool
	room  resource.Vector
}

func (w *leaseWorld) rests(at span.Span) map[string]rest {
	rests := make(map[string]rest)
	for i := range w.hosts {
		h := &w.hosts[i]
		if !h.Reservable || h.AwakeAt(w.now) > at.Start {
			continue
		}
		left, blocked, busy := h.Capacity, false, false
		for _, t := range turns(at, w.taken...) {
			whole, used := use(w.taken, h.Name, t)
			blocked, busy = blocked || whole > 0, busy || whole > 0 || !used.IsZero()
			left = least(left, h.Capacity, used)
		}
		if !blocked {
			rests[h.Name] = rest{!busy, left}
		}
	}
	return rests
}

// least returns the smaller amounts of left and of what used leaves of all.
func least(left, all, used resource.Vector) resource.Vector {
	smaller := resource.Vector{
		VCPUs: min(left.VCPUs, all.VCPUs-used.VCPUs), MemoryMB: min(left.MemoryMB, all.MemoryMB-used.MemoryMB),
		DiskGB: min(left.DiskGB, all.DiskGB-used.DiskGB), Custom: map[string]int64{},
	}
	for class := range all.Custom {
		smaller.Custom[class] = min(left.Custom[class], all.Custom[class]-used.Custom[class])
	}
	return smaller
}

// fits reports whether the lease has room from a start on, by trying everything.
func (w *leaseWorld) fits(members []reservation.MemberRequest, at span.Span) bool {
	return w.fitsAddresses(members, at) && w.fitsHosts(members, at, w.rests(at))
}

func (w *leaseWorld) fitsAddresses(members []reservation.MemberRequest, at span.Span) bool {
	taken, free := map[string]bool{}, w.pool
	for _, r := range w.taken {
		for _, a := range r.Addresses {
			if r.Span.Overlaps(at) && !taken[a.Address] {
				taken[a.Address], free = true, free-1
			}
		}
	}
	for _, m := range members {
		if m.Kind != reservation.Addresses {
			continue
		}
		free -= m.Max
		for _, a := range m.RequiredAddresses {
			if taken[a] {
				return false
			}
			taken[a] = true
		}
	}
	return free >= 0 || !slices.ContainsFunc(members, func(m reservation.MemberRequest) bool { return m.Kind == reservation.Addresses })
}

func (w *leaseWorld) fitsHosts(members []reservation.MemberRequest, at span.Span, rests map[string]rest) bool {
	if len(members) == 0 {
		return true
	}
	m := members[0]
	if m.Kind == reservation.Addresses {
		return w.fitsHosts(members[1:], at, rests)
	}
	return w.spread(m, max(m.Min, 1), 0, at, rests, func() bool { return w.fitsHosts(members[1:], at, rests) })
}

// spread tries each way to place need of m on the hosts from an index on.
func (w *leaseWorld) spread(m reservation.MemberRequest, need, from int, at span.Span, rests map[string]rest, then func() bool) bool {
	if need == 0 {
		return then()
	}
	if from == len(w.hosts) {
		return false
	}
	h := &w.hosts[from]
	if w.spread(m, need, from+1, at, rests, then) {
		return true
	}
	before, there := rests[h.Name]
	if !there || !meaningOf(m.HostProperties)(h, at.Start > w.now) {
		return false
	}
	defer func() { rests[h.Name] = before }()
	if m.Kind != reservation.Instances {
		rests[h.Name] = rest{}
		return before.whole && w.spread(m, need-1, from+1, at, rests, then)
	}
	fewest, most := 1, need
	switch m.Affinity {
	case calendar.AffinitySame:
		fewest = need
	case calendar.AffinityDifferent:
		most = 1
	}
	for n := fewest; n <= most; n++ {
		asked := m.Resources.Scale(int64(n))
		if !asked.Fits(before.room) {
			return false
		}
		rests[h.Name] = rest{false, least(before.room, before.room, asked)}
		if w.spread(m, need-n, from+1, at, rests, then) {
			return true
		}
	}
	return false
}

// drawMember draws a reservation of a lease.
func drawMember(t *rapid.T, now span.Instant) (m reservation.MemberRequest) {
	if rapid.IntRange(0, 4).Draw(t, "address") == 0 {
		m = floating(rapid.IntRange(1, 2).Draw(t, "amount"))
		if rapid.Bool().Draw(t, "by name") {
			m.RequiredAddresses = []string{fmt.Sprintf("198.51.100.%d", rapid.IntRange(1, 3).Draw(t, "which"))}
		}
		return m
	}
	m.Terms = drawRequest(t, now).Terms
	m.Min = rapid.IntRange(0, 3).Draw(t, "min")
	m.Max = max(m.Min+rapid.IntRange(0, 2).Draw(t, "more"), 1)
	return m
}

// drawWorld draws a scene with promises, and a lease that is asked for.
func drawWorld(t *rapid.T) (*scene, leaseWorld, reservation.LeaseRequest) {
	hosts := drawHosts(t)
	s := newScene(t, hosts[max(0, len(hosts)-4):], pooled(3))
	for range rapid.IntRange(0, 6).Draw(t, "others") {
		_, _ = s.bookings.Book(t.Context(), owner, drawRequest(t, s.clock()), nil)
	}
	for range rapid.IntRange(0, 2).Draw(t, "leases") {
		start := s.clock().Add(drawTicks(t, 1, 20, "start"))
		req := reservation.LeaseRequest{Start: start, End: start.Add(drawTicks(t, 1, 9, "length")), Members: []reservation.MemberRequest{drawMember(t, s.clock())}}
		_, _ = s.bookings.BookLease(t.Context(), owner, req)
	}
	start := s.clock().Add(drawTicks(t, -3, 15, "start"))
	req := reservation.LeaseRequest{Start: start, End: max(start, s.clock()).Add(drawTicks(t, 1, 9, "length"))}
	for range rapid.IntRange(1, 4).Draw(t, "members") {
		req.Members = append(req.Members, drawMember(t, s.clock()))
	}
	return s, leaseWorld{s.hosts, s.clock(), s.live(t), 3}, req
}

// starts returns the starts at which a requested lease may begin: the one that it names, or, if that is
// now, also those at which hosts that match have booted.
func (w *leaseWorld) starts(req reservation.LeaseRequest) []span.Instant {
	list := []span.Instant{max(req.Start, w.now)}
	for i := range w.hosts {
		h := &w.hosts[i]
		matches := slices.ContainsFunc(req.Members, func(m reservation.MemberRequest) bool {
			return m.Kind != reservation.Addresses && meaningOf(m.HostProperties)(h, false)
		})
		if awake := h.AwakeAt(w.now); req.Start <= w.now && h.Reservable && matches && awake < req.End {
			list = append(list, awake)
		}
	}
	slices.Sort(list)
	return list
}

// accepts reports whether the lease has room at one of its starts, until its end.
func (w *leaseWorld) accepts(req reservation.LeaseRequest) bool {
	return slices.ContainsFunc(w.starts(req), func(start span.Instant) bool { return w.fits(req.Members, span.Span{Start: start, End: req.End}) })
}

// earliest returns the first start, from that of the request on, from which the lease has room for as long;
// 0 if there is none.
func (w *leaseWorld) earliest(req reservation.LeaseRequest) span.Instant {
	first, seconds := max(req.Start, w.now), span.Span{Start: req.Start, End: req.End}.Seconds()
	for start := first; start < first+700; start++ {
		if w.fits(req.Members, span.New(start, seconds)) {
			return start
		}
	}
	return 0
}

// Whatever the order of its reservations, a lease is booked if and only if an exhaustive search finds
// room for it, and each fact in its refusal is true: asked back, the earliest start is accepted and no
// earlier one has room, and without the claims that are in the way the lease has room.
func TestTheRefusalOfALeaseIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, world, req := drawWorld(t)
		req.Members = rapid.Permutation(req.Members).Draw(t, "order")
		l, err := s.bookings.OfferLease(t.Context(), owner, req)
		if err != nil && !isRefusal(err) {
			return // an invalid request
		}
		if accepts := world.accepts(req); accepts != (err == nil) {
			t.Fatalf("there is room: %t; the answer is %v", accepts, err)
		}
		if err == nil {
			world.checkBooked(t, req, l)
			return
		}
		r := refusal(t, err)
		if first := world.earliest(req); r.EarliestStart != first {
			t.Fatalf("the earliest start is %v, the refusal names %v: %v", first, r.EarliestStart, r)
		}
		if first := r.EarliestStart; first != 0 {
			later := req
			later.Start, later.End = first, first+req.End-req.Start
			if _, err := s.bookings.OfferLease(t.Context(), owner, later); err != nil {
				t.Fatalf("at its earliest start: %v", err)
			}
		}
		if open := world.without(r.BlockedBy); len(r.BlockedBy) > 0 && !open.accepts(req) {
			t.Fatalf("without %v it has no room either", r.BlockedBy)
		}
		world.checkLargest(t, req, r.LargestQuantity)
	})
}

// checkBooked checks the amounts of a lease, and that it starts when it was to start, unless it waits
// for hosts to boot.
func (w *leaseWorld) checkBooked(t *rapid.T, req reservation.LeaseRequest, l reservation.LeaseRecord) {
	for i, r := range l.Reservations {
		if m := req.Members[i]; r.Quantity < m.Min || r.Quantity > m.Max {
			t.Fatalf("reservation %d has %d, which is not from %d to %d", i, r.Quantity, m.Min, m.Max)
		}
		if r.DelayedByBoot != (l.Span.Start > max(req.Start, w.now)) || r.Span.Start != max(l.Span.Start, w.now) {
			t.Fatalf("the lease lasts %v, and reservation %d %v; delayed: %t", l.Span, i, r.Span, r.DelayedByBoot)
		}
	}
	if l.Span.End != req.End || l.Span.Start != req.Start && !slices.Contains(w.starts(req), l.Span.Start) {
		t.Fatalf("the lease lasts %v, asked for from %v to %v", l.Span, req.Start, req.End)
	}
}

// checkLargest checks that a quantity is the largest with which some reservation of the lease has room
// beside the others.
func (w *leaseWorld) checkLargest(t *rapid.T, req reservation.LeaseRequest, largest int) {
	for i, m := range req.Members {
		members, best := slices.Clone(req.Members), 0
		for n := 1; n < 8; n++ {
			members[i].Min, members[i].Max = n, n
			asked := req
			if asked.Members = members; n >= len(m.RequiredAddresses) && w.accepts(asked) {
				best = n
			}
		}
		if best == largest {
			return
		}
	}
	t.Fatalf("the largest quantity is %d, which is true of no reservation of the lease", largest)
}
