// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// replicas returns scenes that share their records, their clock and their hosts.
func replicas(t tester, n int, hosts []inventory.Host, adjust ...func(*booking.Options)) []*scene {
	t.Helper()
	first := newScene(t, hosts, append(adjust, func(o *booking.Options) { o.Replica = "replica-0" })...)
	all := []*scene{first}
	for i := 1; i < n; i++ {
		s := *first
		s.options.Replica = fmt.Sprint("replica-", i)
		s.options.Records = first.memory
		for _, f := range adjust {
			f(&s.options)
		}
		s.restart(t)
		all = append(all, &s)
	}
	return all
}

// agree lets every replica follow the records and checks each against them.
func agree(t tester, all []*scene) {
	t.Helper()
	for _, s := range all {
		if err := s.bookings.Follow(t.Context()); err != nil {
			t.Fatalf("%s follows: %v", s.options.Replica, err)
		}
		s.check(t)
	}
}

func TestTheLastHostGoesToOneOfThreeReplicas(t *testing.T) {
	for range 20 {
		all := replicas(t, 3, named("a"), unsteady(0))
		var clients sync.WaitGroup
		var booked atomic.Int64
		for i := range 50 {
			clients.Go(func() {
				_, err := all[i%3].bookings.Book(t.Context(), owner, during(1, 100, 200), nil)
				if err == nil {
					booked.Add(1)
				} else {
					refusal(t, err)
				}
			})
		}
		clients.Wait()
		if booked.Load() != 1 {
			t.Fatalf("%d requests got the last host, want 1", booked.Load())
		}
		agree(t, all)
	}
}

func TestWhatOneReplicaGivesBackAnotherCanPromiseAtOnce(t *testing.T) {
	all := replicas(t, 2, named("a"))
	r := all[0].book(t, during(1, 100, 200))
	_, err := all[1].bookings.Book(t.Context(), owner, during(1, 150, 250), nil)
	refusal(t, err)
	if _, err := all[0].bookings.Cancel(t.Context(), owner, r.ID); err != nil {
		t.Fatal(err)
	}
	all[1].book(t, during(1, 150, 250))
	agree(t, all)
}

func TestAnyReplicaChangesWhatAnotherHasBooked(t *testing.T) {
	all := replicas(t, 3, named("a", "b"))
	id := all[0].book(t, during(1, 100, 200)).ID
	all[1].change(t, id, quantity(2))
	all[0].change(t, id, ends(300)) // this replica knows one host only
	r, err := all[2].bookings.Cancel(t.Context(), owner, id)
	if err != nil || r.Quantity != 2 || r.Span.End != at(300) {
		t.Errorf("the last replica cancels %+v, %v; want both changes in it", r, err)
	}
	if _, err := all[0].bookings.Change(t.Context(), owner, id, quantity(1)); !fault.Is(err, fault.Conflict) {
		t.Errorf("a change of what another replica canceled: %v, want a conflict", err)
	}
	agree(t, all)
}

func TestLimitsHoldAcrossReplicas(t *testing.T) {
	all := replicas(t, 3, named("a", "b", "c", "d", "e", "f"), unsteady(0), limited(planning.Limits{Hosts: 3}))
	var clients sync.WaitGroup
	var booked atomic.Int64
	for i := range 18 {
		clients.Go(func() {
			_, err := all[i%3].bookings.Book(t.Context(), owner, only(string(rune('a'+i%6)), during(1, 100, 200)), nil)
			if err == nil {
				booked.Add(1)
			} else {
				refusal(t, err)
			}
		})
	}
	clients.Wait()
	if booked.Load() != 3 {
		t.Errorf("%d hosts are booked, the limit is 3", booked.Load())
	}
	agree(t, all)
}

func TestAKeySentToThreeReplicasMakesOneReservation(t *testing.T) {
	for range 20 {
		all := replicas(t, 3, named("a"), unsteady(0))
		var clients sync.WaitGroup
		ids, errs := make([]string, 9), make([]error, 9)
		for i := range ids {
			clients.Go(func() {
				var r reservation.Reservation
				r, errs[i] = all[i%3].bookings.Book(t.Context(), owner, during(1, 100, 200), &booking.KeyUse{Key: "k", BodyHash: "one"})
				ids[i] = r.ID
			})
		}
		clients.Wait()
		for i := range ids {
			if errs[i] != nil || ids[i] != ids[0] {
				t.Fatalf("request %d got %q, %v; the first got %q", i, ids[i], errs[i], ids[0])
			}
		}
		agree(t, all)
	}
}

// liars are records that store a change and return an error, at each every-th call.
type liars struct {
	booking.Records
	every, calls int64
	mu           sync.Mutex
}

func (l *liars) Commit(ctx context.Context, c booking.Commit) error {
	runtime.Gosched()
	err := l.Records.Commit(ctx, c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls++; err == nil && l.calls%l.every == 0 {
		return fault.New(fault.Unavailable, "the connection was lost")
	}
	return err
}

// lateLog shows the last entries of the log only on a later read.
type lateLog struct {
	booking.Records
	asked atomic.Int64
}

func (l *lateLog) Recall(ctx context.Context, q booking.Recall) (booking.Recalled, error) {
	got, err := l.Records.Recall(ctx, q)
	if hide := int(l.asked.Add(1) % 3); !q.All && len(got.Log) > hide && hide > 0 {
		hidden := make(map[string]bool)
		for _, e := range got.Log[len(got.Log)-hide-1 : len(got.Log)-1] { // the places before the last one
			hidden[e.ID] = true
		}
		return withoutInLog(ctx, l.Records, q, got.Log, hidden)
	}
	return got, err
}

// withoutInLog returns the answer to q while the log lacks some reservations.
func withoutInLog(
	ctx context.Context, r booking.Records, q booking.Recall, log []booking.LogEntry, hidden map[string]bool,
) (booking.Recalled, error) {
	log = slices.DeleteFunc(log, func(e booking.LogEntry) bool { return hidden[e.ID] })
	q.Since, q.IDs = 1<<62, slices.Clone(q.IDs)
	for _, e := range log {
		q.IDs = append(q.IDs, e.ID)
	}
	got, err := r.Recall(ctx, q)
	got.Log = log
	return got, err
}

// Nine goroutines at once book, change, cancel and carry out at three replicas.
func TestReplicasKeepEveryPromiseInACrowd(t *testing.T) {
	for name, records := range map[string]func(*booking.Options){
		"steady":                    unsteady(0),
		"failing":                   unsteady(3),
		"storing in spite of error": func(o *booking.Options) { o.Records = &liars{Records: o.Records, every: 5} },
		"late log":                  func(o *booking.Options) { o.Records = &lateLog{Records: o.Records} },
	} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				all := replicas(t, 3, named("a", "b", "c"), records, limited(planning.Limits{Hosts: 4, Waiting: 50}))
				var clients sync.WaitGroup
				for worker := range uint64(9) {
					clients.Go(func() {
						chance := rand.New(rand.NewPCG(seed, worker))
						for range 60 {
							all[worker%3].actAtRandom(t, chance)
							if chance.IntN(4) == 0 {
								if err := all[chance.IntN(3)].bookings.Follow(t.Context()); err != nil {
									t.Error(err)
								}
							}
						}
					})
				}
				clients.Wait()
				for _, s := range all { // what is late in the log appears with the third read
					for range 3 {
						if err := s.bookings.Follow(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				}
				agree(t, all)
			})
		}
	}
}

func TestResyncFindsWhatTheLogDidNotTell(t *testing.T) {
	mute := func(o *booking.Options) { o.Records = &muteLog{o.Records} }
	all := replicas(t, 2, named("a", "b"), mute)
	gone := all[0].book(t, during(1, 100, 200)).ID
	if err := all[1].bookings.Resync(t.Context()); err != nil {
		t.Fatal(err)
	}
	all[0].book(t, during(1, 300, 400))
	if _, err := all[0].bookings.Cancel(t.Context(), owner, gone); err != nil {
		t.Fatal(err)
	}
	if err := all[1].bookings.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if live := all[1].bookings.Live(span.Span{Start: 0, End: span.Forever}); len(live) != 1 || live[0].ID != gone {
		t.Fatalf("the test hides no reservation: %v", live)
	}
	if err := all[1].bookings.Resync(t.Context()); err != nil {
		t.Fatal(err)
	}
	all[1].check(t)
}

// muteLog are records with an empty log.
type muteLog struct{ booking.Records }

func (m muteLog) Recall(ctx context.Context, q booking.Recall) (booking.Recalled, error) {
	q.Since = 1 << 62
	return m.Records.Recall(ctx, q)
}

func TestEachEventHappensOnceAmongReplicas(t *testing.T) {
	parallel := func(o *booking.Options) { o.Parallel = 4 }
	all := replicas(t, 3, named("a", "b", "c", "d"), unsteady(0), parallel)
	for i := range int64(20) {
		all[i%3].book(t, during(1, 100+100*(i/4), 200+100*(i/4)))
	}
	for _, s := range all {
		if err := s.bookings.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	times := make(map[string]int)
	for now := int64(100); now <= 700; now += 50 {
		all[0].now.Store(int64(at(now)))
		var running sync.WaitGroup
		for _, s := range all {
			running.Go(func() {
				for range 2 { // the second pass reports what the first has begun
					happened, failed := s.bookings.CarryOut(t.Context())
					s.bookings.Wait()
					mu.Lock()
					for _, h := range happened {
						times[h.Reservation.ID+" "+string(h.Event.Type)]++
					}
					mu.Unlock()
					if len(failed) > 0 {
						t.Errorf("at %d: %v", now, failed)
					}
				}
			})
		}
		running.Wait()
	}
	if len(times) != 40 {
		t.Errorf("%d events happened, want 40", len(times))
	}
	for event, n := range times {
		if n != 1 {
			t.Errorf("%s happened %d times", event, n)
		}
	}
	agree(t, all)
}

// servers is a cloud whose work ends when the test ends it.
type servers struct {
	mu      sync.Mutex
	begun   []string // each as "id event"
	blocked map[string]chan error
}

func (c *servers) Carry(ctx context.Context, r reservation.Reservation, event reservation.EventType) error {
	c.mu.Lock()
	c.begun = append(c.begun, r.ID+" "+string(event))
	wait := c.blocked[r.ID]
	c.mu.Unlock()
	if wait == nil {
		return nil
	}
	select {
	case err := <-wait:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *servers) block(id string) chan error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocked == nil {
		c.blocked = make(map[string]chan error)
	}
	c.blocked[id] = make(chan error)
	return c.blocked[id]
}

func TestASlowEventKeepsNoOtherBack(t *testing.T) {
	cloud := &servers{}
	s := newScene(t, named("a", "b"), func(o *booking.Options) { o.Cloud, o.Replica = cloud, "one" })
	slow, other := s.book(t, during(1, 100, 200)).ID, s.book(t, during(1, 100, 200)).ID
	over := cloud.block(slow)
	s.carryOut(t, 100)
	wantStatus(t, s, other, reservation.Active)
	r := s.get(t, slow)
	if e := r.Events[1]; r.Status != reservation.Starting || e.State != reservation.EventRunning || e.Holder != "one" {
		t.Errorf("meanwhile the slow reservation is %s with %+v, want it starting, with one holder", r.Status, e)
	}
	if _, err := s.bookings.Change(t.Context(), owner, slow, quantity(2)); !fault.Is(err, fault.Conflict) {
		t.Errorf("a change of a starting reservation: %v, want a conflict", err)
	}
	over <- nil
	s.bookings.Wait()
	wantStatus(t, s, slow, reservation.Active)
	s.check(t)
}

// wantBegun waits until that many events have begun.
func (c *servers) wantBegun(t *testing.T, want int) {
	t.Helper()
	for {
		c.mu.Lock()
		n := len(c.begun)
		c.mu.Unlock()
		if n == want {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%d events have begun, want %d", n, want)
		}
		runtime.Gosched()
	}
}

func wantStatus(t *testing.T, s *scene, id string, want reservation.Status) {
	t.Helper()
	for {
		if got := s.get(t, id).Status; got == want {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%s never became %s", id, want)
		}
		runtime.Gosched()
	}
}

func TestAnEventThatFailsOnTheCloudIsTriedAgainLater(t *testing.T) {
	cloud := &servers{}
	s := newScene(t, named("a"), func(o *booking.Options) { o.Cloud, o.Replica = cloud, "one" })
	id := s.book(t, during(1, 100, 200)).ID
	over := cloud.block(id)
	s.carryOut(t, 100)
	over <- errors.New("the conductor does not answer")
	s.bookings.Wait()
	if _, failed := s.bookings.CarryOut(t.Context()); len(failed) != 1 {
		t.Errorf("failed: %v, want one", failed)
	}
	cloud.blocked = nil
	for _, step := range []struct {
		now  int64
		want int // how often it has begun
	}{{101, 1}, {102, 2}} {
		s.carryOut(t, step.now)
		s.bookings.Wait()
		if len(cloud.begun) != step.want {
			t.Errorf("at %d the event has begun %d times, want %d", step.now, len(cloud.begun), step.want)
		}
	}
	wantStatus(t, s, id, reservation.Active)
}

// If the first replica returns, its result comes too late and has no effect.
func TestWhatAReplicaLeftUndoneAnotherTakesUp(t *testing.T) {
	cloud := &servers{}
	all := replicas(t, 2, named("a"), func(o *booking.Options) { o.Cloud = cloud })
	id := all[0].book(t, during(1, 100, 200)).ID
	hung := cloud.block(id)
	all[0].carryOut(t, 100)
	cloud.wantBegun(t, 1)
	if err := all[1].bookings.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone := func(names ...string) func(string) bool {
		return func(replica string) bool { return len(names) > 0 && replica == names[0] }
	}
	if err := all[1].bookings.TakeOver(t.Context(), gone()); err != nil {
		t.Fatal(err)
	}
	if r := all[0].get(t, id); r.Events[1].Holder != "replica-0" {
		t.Fatalf("the event was taken from a replica that is alive: %+v", r.Events[1])
	}
	cloud.mu.Lock()
	cloud.blocked = nil
	cloud.mu.Unlock()
	if err := all[1].bookings.TakeOver(t.Context(), gone("replica-0")); err != nil {
		t.Fatal(err)
	}
	all[1].bookings.Wait()
	wantStatus(t, all[0], id, reservation.Active)
	version := all[0].get(t, id).Version
	hung <- errors.New("it has failed after all")
	all[0].bookings.Wait()
	if got := all[0].get(t, id); got.Version != version {
		t.Errorf("the late result has changed the reservation: %+v", got)
	}
	if diff := cmp.Diff([]string{id + " start", id + " start"}, cloud.begun); diff != "" {
		t.Errorf("begun (-want +got):\n%s", diff)
	}
	agree(t, all)
}

func TestACanceledReservationIsNotStartedAfterAll(t *testing.T) {
	cloud := &servers{}
	s := newScene(t, named("a"), func(o *booking.Options) { o.Cloud, o.Replica = cloud, "one" })
	id := s.book(t, during(1, 100, 200)).ID
	over := cloud.block(id)
	s.carryOut(t, 100)
	cloud.wantBegun(t, 1)
	if _, err := s.bookings.Cancel(t.Context(), owner, id); err != nil {
		t.Fatal(err)
	}
	over <- nil
	s.bookings.Wait()
	if live := s.live(t); len(live) > 0 {
		t.Errorf("live: %v", live)
	}
	s.check(t)
}

// A change to the values in a replica's memory must still be stored, because the records may
// differ.
func TestWhatAnotherReplicaHasChangedIsChangedBack(t *testing.T) {
	all := replicas(t, 2, named("a", "b"))
	id := all[0].book(t, during(1, 100, 200)).ID
	if err := all[1].bookings.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := all[0].bookings.Change(t.Context(), owner, id, ends(300)); err != nil {
		t.Fatal(err)
	}
	if r, err := all[1].bookings.Change(t.Context(), owner, id, ends(200)); err != nil || r.Span.End != at(200) {
		t.Fatalf("the reservation ends at %v, %v", r.Span.End, err)
	}
	if err := all[0].bookings.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, _ := all[0].bookings.Reservation(id); r.Span.End != at(200) {
		t.Errorf("the answer to the client was end 200, but the reservation ends at %v", r.Span.End)
	}
}
