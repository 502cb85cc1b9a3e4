// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Leases and reservations go through a random life together. After each step, the oracle checks all
// promises, and that each lease has the times of its reservations.
//
//make:test-drawn
func TestEveryLeaseIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t, drawHosts(t), limited(drawLimits(t)))
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				s.check(t)
				s.checkLeases(t)
			},
			"book":               s.stepBook,
			"book a lease":       s.stepBookLease,
			"book another lease": s.stepBookLease,
			"change":             s.stepChange,
			"cancel":             s.stepCancelOne,
			"change a lease":     s.stepChangeLease,
			"change another":     s.stepChangeLease,
			"change a third":     s.stepChangeLease,
			"cancel a lease":     s.stepCancelLease,
			"time, too late":     func(t *rapid.T) { s.now.Add(drawTicks(t, 0, 3, "passes") + 3) },
			"time":               func(t *rapid.T) { s.passTo(t, s.clock()+3+span.Instant(drawTicks(t, 0, 3, "passes"))) },
			"prune":              func(*rapid.T) { s.bookings.Prune() },
			"observe":            s.stepObserve,
			"restart":            s.stepRestart,
		})
	})
}

// watchAll is watch for leases too.
func (s *scene) watchAll(t *rapid.T) func(*rapid.T) {
	leases, unchanged := s.leases(t), s.watch(t)
	return func(t *rapid.T) {
		t.Helper()
		unchanged(t)
		if diff := cmp.Diff(leases, s.leases(t)); diff != "" {
			t.Fatalf("leases (-before +after the refusal):\n%s", diff)
		}
	}
}

func (s *scene) stepBookLease(t *rapid.T) {
	start := s.clock().Add(drawTicks(t, -2, 20, "start"))
	req := reservation.LeaseRequest{Start: start, End: start.Add(drawTicks(t, 0, 20, "length"))}
	if rapid.Bool().Draw(t, "warned") {
		req.BeforeEnd = req.End.Add(-drawTicks(t, 0, 5, "before end"))
	}
	if rapid.IntRange(0, 2).Draw(t, "with a deadline") == 0 {
		req.Duration = drawTicks(t, 1, 12, "duration")
	}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		m := reservation.MemberRequest{Terms: drawRequest(t, s.clock()).Terms}
		m.Min, m.Max = drawBounds(t)
		req.Members = append(req.Members, m)
	}
	unchanged := s.watchAll(t)
	by := rapid.SampledFrom(projects).Draw(t, "by")
	l, err := s.bookings.BookLease(t.Context(), by, req)
	if err != nil {
		expectKinds(t, err, fault.Invalid)
		unchanged(t)
		return
	}
	s.checkStored(t, l)
	if req.Duration > 0 && (l.Span.Seconds() != req.Duration || !(span.Span{Start: req.Start, End: req.End}).Covers(l.Span)) {
		t.Fatalf("lease %s lasts %v, want %d s in [%v, %v)", l.ID, l.Span, req.Duration, req.Start, req.End)
	}
}

func drawBounds(t *rapid.T) (least, most int) {
	least = rapid.IntRange(0, 3).Draw(t, "min")
	return least, least + rapid.IntRange(0, 2).Draw(t, "more")
}

// checkStored checks that the records have the lease that a call returned.
func (s *scene) checkStored(t *rapid.T, want reservation.LeaseRecord) {
	t.Helper()
	got, err := s.memory.Lease(t.Context(), want.ID)
	for _, r := range want.Reservations {
		if m := r.Membership; m.LeaseID != "" && r.Status.Live() && (r.Quantity < m.Min || r.Quantity > m.Max) {
			t.Fatalf("reservation %s has %d, which is not from %d to %d", r.ID, r.Quantity, m.Min, m.Max)
		}
	}
	sorted := cmpopts.SortSlices(func(a, b reservation.Reservation) bool { return a.ID < b.ID })
	if diff := cmp.Diff(want, got, sorted); err != nil || diff != "" {
		t.Fatalf("lease %s (%v; -returned +stored):\n%s", want.ID, err, diff)
	}
}

// drawLeaseChange draws a change of one or several parts of l; some of them are invalid.
func (s *scene) drawLeaseChange(t *rapid.T, l reservation.LeaseRecord) (c reservation.LeaseChange) {
	parts := rapid.IntRange(1, 15).Draw(t, "parts")
	if parts&1 != 0 {
		c.Start = new(l.Span.Start + span.Instant(drawTicks(t, -6, 10, "later start")))
	}
	if parts&2 != 0 {
		c.End = new(l.Span.End + span.Instant(drawTicks(t, -6, 10, "later end")))
		if rapid.IntRange(0, 3).Draw(t, "now") == 0 {
			c.End = new(s.clock())
		}
	}
	if parts&4 != 0 {
		c.BeforeEnd = new(l.Span.End + span.Instant(drawTicks(t, -10, 6, "warning")))
	}
	switch rapid.IntRange(0, 5).Draw(t, "what only Almanac has") {
	case 0:
		c.Deadline, c.End = new(l.Span.End+span.Instant(drawTicks(t, -6, 20, "deadline"))), nil
	case 1:
		c.Duration, c.End = drawTicks(t, 0, 12, "duration"), nil
	case 2:
		c.OnEnd = new(rapid.SampledFrom(reservation.OnEnds).Draw(t, "on end"))
	}
	if parts&8 == 0 {
		return c
	}
	for _, r := range l.Reservations {
		m := reservation.MemberChange{ID: r.ID}
		what := rapid.IntRange(0, 7).Draw(t, "what of it")
		if what&1 != 0 {
			least, most := drawBounds(t)
			m.Min, m.Max = &least, &most
		}
		if terms := drawRequest(t, s.clock()).Terms; what&2 != 0 {
			m.HostProperties = &terms.HostProperties
			if terms.Kind == r.Kind && r.Kind == reservation.Instances {
				m.Resources, m.Affinity = &terms.Resources, &terms.Affinity
			}
		}
		if what != 0 {
			c.Members = append(c.Members, m)
		}
	}
	return c
}

// drawLease draws one of the leases; ok is false if there is none.
func (s *scene) drawLease(t *rapid.T) (l reservation.LeaseRecord, ok bool) {
	list := s.leases(t)
	if len(list) == 0 {
		return l, false
	}
	return rapid.SampledFrom(list).Draw(t, "which"), true
}

func (s *scene) stepChangeLease(t *rapid.T) {
	before, ok := s.drawLease(t)
	if !ok {
		return
	}
	c := s.drawLeaseChange(t, before)
	unchanged := s.watchAll(t)
	l, err := s.bookings.ChangeLease(t.Context(), booking.Caller{ProjectID: before.ProjectID}, before.ID, c)
	if err != nil {
		expectKinds(t, err, fault.Invalid, fault.Conflict, fault.Denied)
		unchanged(t)
		return
	}
	if len(l.Reservations) == 1 && l.Reservations[0].Membership.LeaseID == "" && l.Reservations[0].Status == reservation.Canceled {
		return // it belongs to no lease, and waited for its start at its end
	}
	s.checkStored(t, l)
	if c.End != nil && *c.End > s.clock() && l.Span.End != *c.End {
		t.Fatalf("lease %s ends at %v, want %v", l.ID, l.Span.End, *c.End)
	}
	if c.Deadline != nil && (l.Span.End > *c.Deadline || c.Duration == 0 && l.Span.Seconds() != before.Span.Seconds()) {
		t.Fatalf("lease %s lasts %v after %+v, was %v", l.ID, l.Span, c, before.Span)
	}
	for i, r := range l.Reservations {
		was := before.Reservations[i]
		if c.OnEnd != nil && r.Status.Live() && r.OnEnd != *c.OnEnd {
			t.Fatalf("reservation %s has on_end %q, want %q", r.ID, r.OnEnd, *c.OnEnd)
		}
		s.checkGain(t, was, r)
		if was.Status != reservation.Active {
			continue
		}
		now := s.clock()
		for _, name := range was.HostNames() {
			if l.Span.End > now && count(r, name, now) < count(was, name, now) {
				t.Fatalf("%s was active on %v, but moved to %v", r.ID, claimed(was), claimed(r))
			}
		}
	}
}

func (s *scene) stepCancelLease(t *rapid.T) {
	before, ok := s.drawLease(t)
	if !ok {
		return
	}
	if _, err := s.bookings.CancelLease(t.Context(), booking.Caller{ProjectID: before.ProjectID}, before.ID); err != nil {
		t.Fatalf("cancel lease %s: %v", before.ID, err)
	}
	if _, err := s.memory.Lease(t.Context(), before.ID); !fault.Is(err, fault.NotFound) {
		t.Fatalf("the canceled lease %s: %v, want NotFound", before.ID, err)
	}
	for _, r := range before.Reservations {
		if now := s.get(t, r.ID); now.Status.Live() {
			t.Fatalf("reservation %s of the canceled lease %s is %s", r.ID, before.ID, now.Status)
		}
	}
}

// stepCancelOne cancels one reservation, which is refused if it is one of several of a lease.
func (s *scene) stepCancelOne(t *rapid.T) {
	before, ok := drawLive(t, s)
	if !ok {
		return
	}
	unchanged := s.watchAll(t)
	if _, err := s.bookings.Cancel(t.Context(), booking.Caller{ProjectID: before.ProjectID}, before.ID); err != nil {
		l, _ := s.memory.Lease(t.Context(), before.Membership.LeaseID)
		if !fault.Is(err, fault.Conflict) || len(l.Reservations) < 2 {
			t.Fatalf("cancel %s: %v", before.ID, err)
		}
		unchanged(t)
	}
}

func TestEightChangesOfOneLeaseTakeTurns(t *testing.T) {
	s := newScene(t, named("a", "b", "c"), unsteady(0))
	l := s.lease(t, leaseOf(whole(1, 1), small(2)))
	var all sync.WaitGroup
	var done atomic.Int64
	for i := range int64(8) {
		all.Go(func() {
			c := timed(0, 5000+i)
			c.Members = bounds(l.Reservations[1].ID, 1, int(i+1)).Members
			if _, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, c); err != nil {
				t.Error(err)
			} else {
				done.Add(1)
			}
		})
	}
	all.Wait()
	after := s.leases(t)[0]
	if after.Version != 9 || done.Load() != 8 {
		t.Errorf("%d changes were made, and the lease has version %d", done.Load(), after.Version)
	}
	if r := after.Reservations[1]; int64(r.Quantity) != int64(after.Span.End-at(4999)) {
		t.Errorf("the lease ends at %v with %d instances, which no request asked for", after.Span.End, r.Quantity)
	}
	s.check(t)
	s.checkLeases(t)
}

func TestReplicasChangeOneLeaseInTurn(t *testing.T) {
	all := replicas(t, 2, named("a", "b", "c"), unsteady(0))
	l := all[0].lease(t, leaseOf(whole(1, 1), small(2)))
	var clients sync.WaitGroup
	for i := range int64(8) {
		clients.Go(func() {
			if _, err := all[i%2].bookings.ChangeLease(t.Context(), owner, l.ID, timed(600+60*i, 5000+60*i)); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	if after := all[0].leases(t)[0]; after.Version != 9 || after.Span.Seconds() != 4400 {
		t.Errorf("the lease is %+v, want it as one of eight requests asked for", after.Lease)
	}
	agree(t, all)
	all[0].checkLeases(t)
	all[1].cancelLease(t, l.ID)
	agree(t, all)
}

func TestAReplicaSeesAllReservationsOfAChangedLeaseAtOnce(t *testing.T) {
	all := replicas(t, 2, named("a", "b", "c"))
	l := all[0].lease(t, leaseOf(whole(1, 1), whole(1, 1), small(8)))
	all[1].changeLease(t, l.ID, timed(700, 9000)) // it has not read the lease yet
	if err := all[0].bookings.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range l.Reservations {
		if now, _ := all[0].bookings.Reservation(r.ID); now.Span != (span.Span{Start: at(700), End: at(9000)}) || now.Version != 2 {
			t.Errorf("reservation %s is %+v", r.ID, now)
		}
	}
	_, err := all[0].bookings.Book(t.Context(), owner, during(1, 8000, 8100), nil)
	refusal(t, err)
	all[0].cancelLease(t, l.ID)
	all[1].book(t, during(3, 700, 9000))
	agree(t, all)
}

// storing returns a scene whose commits first call what the returned records have as storing.
func storing(t *testing.T, hosts ...string) (*scene, *watched) {
	records := &watched{storing: func() error { return nil }}
	s := newScene(t, named(hosts...), func(o *booking.Options) { records.Records, o.Records = o.Records, records })
	return s, records
}

func TestWhatALeaseHadAndWillHaveIsHeldWhileItsChangeIsStored(t *testing.T) {
	s, records := storing(t, "a", "b", "c")
	on := func(id, host string) reservation.MemberChange {
		return reservation.MemberChange{ID: id, HostProperties: new(`["=", "$name", "` + host + `"]`)}
	}
	l := s.lease(t, leaseOf(whole(1, 1), small(2)))
	host, instances := l.Reservations[0].ID, l.Reservations[1].ID
	s.changeLease(t, l.ID, reservation.LeaseChange{Members: []reservation.MemberChange{on(host, "a"), on(instances, "b")}})
	stored := 0
	records.storing = func() error {
		stored++
		for _, name := range []string{"a", "c"} {
			_, err := s.bookings.Offer(t.Context(), owner, only(name, cpus(1, 1, 600, 4200)))
			refusal(t, err)
		}
		if _, err := s.bookings.Offer(t.Context(), owner, only("b", cpus(6, 1, 600, 4200))); err != nil {
			t.Errorf("the rest of a host that instances leave: %v", err)
		}
		_, err := s.bookings.Offer(t.Context(), owner, only("b", cpus(7, 1, 600, 4200)))
		refusal(t, err)
		return nil
	}
	s.changeLease(t, l.ID, reservation.LeaseChange{Members: []reservation.MemberChange{on(host, "c"), on(instances, "a")}})
	records.storing = func() error { return nil }
	if s.book(t, only("a", cpus(6, 1, 600, 4200))); stored != 1 {
		t.Errorf("stored %d times", stored)
	}
	s.check(t)
}

// Another replica takes time on the host of one reservation of the lease, so that the change of the
// other one fails with it.
func TestTheReservationsOfALeaseKeepTheirHostsWhenTheirChangeFails(t *testing.T) {
	for _, taken := range []string{"a", "b"} {
		s, records := storing(t, "a", "b")
		other := *s
		other.options.Records = s.memory
		l := s.lease(t, leaseOf(whole(1, 1), whole(1, 1)))
		other.restart(t)
		records.storing = func() error {
			other.book(t, only(taken, during(1, 5000, 6000)))
			if err := s.bookings.Follow(t.Context()); err != nil {
				t.Errorf("%s: %v", taken, err)
			}
			for _, name := range []string{"a", "b"} {
				_, err := s.bookings.Offer(t.Context(), owner, only(name, during(1, 700, 800)))
				refusal(t, err)
			}
			return nil
		}
		_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, timed(0, 9000))
		refusal(t, err)
		agree(t, []*scene{s, &other})
		s.checkLeases(t)
		if now := s.leases(t)[0]; now.Span != l.Span || now.Version != 1 {
			t.Errorf("%s: the lease is %+v", taken, now.Lease)
		}
	}
}

// A change whose result is unknown counts until the records show whether all of it was stored.
func TestAChangeOfALeaseThatMayBeStoredIsFoundOut(t *testing.T) {
	lost := fault.New(fault.Unavailable, "the connection was lost")
	for what, stores := range map[string]bool{"stored": true, "not stored": false} {
		records := &doubtful{stores: stores}
		s := newScene(t, named("a", "b", "c"), func(o *booking.Options) { records.Records, o.Records = o.Records, records })
		l := s.lease(t, leaseOf(whole(1, 1), whole(1, 1)))
		records.fails = lost
		if _, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, timed(1000, 9000)); !errors.Is(err, lost) {
			t.Errorf("%s: %v", what, err)
		}
		for _, w := range []reservation.Request{during(2, 700, 800), during(2, 8000, 8100)} {
			_, err := s.bookings.Offer(t.Context(), owner, w)
			refusal(t, err)
		}
		records.fails = nil
		if err := s.bookings.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := map[bool]span.Instant{true: at(9000), false: at(4200)}[stores]
		for _, r := range l.Reservations {
			if now, _ := s.bookings.Reservation(r.ID); now.Span.End != want {
				t.Errorf("%s: reservation %s ends at %v, want %v", what, r.ID, now.Span.End, want)
			}
		}
		s.check(t)
		s.checkLeases(t)
	}
}

// changeLeasesAtRandom makes one random call about leases to the service, which may refuse it.
func (s *scene) changeLeasesAtRandom(t *testing.T, chance *rand.Rand) error {
	ticks := func(most int64) span.Instant { return span.Instant(10 * chance.Int64N(most)) }
	list := s.leases(t)
	if len(list) < 3 || chance.IntN(4) == 0 {
		req := reservation.LeaseRequest{Start: s.clock() + 20 + ticks(20)}
		req.End = req.Start + 10 + ticks(10)
		for range 1 + chance.IntN(2) {
			req.Members = append(req.Members, whole(0, 1+chance.IntN(2)), small(1+chance.IntN(3)))
		}
		_, err := s.bookings.BookLease(t.Context(), projects[chance.IntN(len(projects))], req)
		return err
	}
	l, by := list[chance.IntN(len(list))], booking.Caller{Admin: true}
	if chance.IntN(5) == 0 {
		_, err := s.bookings.CancelLease(t.Context(), by, l.ID)
		return err
	}
	c := reservation.LeaseChange{End: new(l.Span.End + ticks(10) - 40)}
	if chance.IntN(2) == 0 {
		c.Start = new(l.Span.Start + ticks(20) - 100)
	}
	for _, r := range l.Reservations {
		if chance.IntN(2) == 0 {
			most := 1 + chance.IntN(4)
			c.Members = append(c.Members, reservation.MemberChange{ID: r.ID, Min: new(0), Max: &most})
		}
	}
	_, err := s.bookings.ChangeLease(t.Context(), by, l.ID, c)
	return err
}

// doubtful are records that return an error, if it is set, and store or not.
type doubtful struct {
	booking.Records
	fails  error
	stores bool
}

func (d *doubtful) Commit(ctx context.Context, c booking.Commit) error {
	if d.fails == nil || d.stores {
		if err := d.Records.Commit(ctx, c); err != nil {
			return err
		}
	}
	return d.fails
}
