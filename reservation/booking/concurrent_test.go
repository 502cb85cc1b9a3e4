// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

func TestTheLastHostGoesToOne(t *testing.T) {
	s := newScene(t, named("a"), unsteady(0))
	var all sync.WaitGroup
	var booked atomic.Int64
	for range 50 {
		all.Go(func() {
			_, err := s.bookings.Book(t.Context(), owner, during(1, 100, 200), nil)
			if _, refused := errors.AsType[*reservation.Refusal](err); err != nil && !refused {
				t.Errorf("got %v, want a refusal", err)
			}
			if err == nil {
				booked.Add(1)
			}
		})
	}
	all.Wait()
	if booked.Load() != 1 {
		t.Errorf("%d requests got the last host, want 1", booked.Load())
	}
	s.check(t)
}

// unsteady returns an option for records that let others run before they store. Unless every
// is 0, each every-th call stores nothing.
func unsteady(every int64) func(*booking.Options) {
	return func(o *booking.Options) { o.Records = &unsteadyRecords{Records: o.Records, every: every} }
}

type unsteadyRecords struct {
	booking.Records
	every int64
	calls atomic.Int64
}

func (r *unsteadyRecords) stumble() error {
	runtime.Gosched()
	if n := r.calls.Add(1); r.every > 0 && n%r.every == 0 {
		return fault.New(fault.Unavailable, "the database is locked")
	}
	return nil
}

func (r *unsteadyRecords) Commit(ctx context.Context, c booking.Commit) error {
	if err := r.stumble(); err != nil {
		return err
	}
	return r.Records.Commit(ctx, c)
}

// Eight clients at once book, change, cancel and carry out, on records that work and on
// records that fail now and then.
func TestEveryPromiseIsKeptInACrowd(t *testing.T) {
	for name, every := range map[string]int64{"steady": 0, "failing": 3} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("%s records, seed %d", name, seed), func(t *testing.T) {
				s := newScene(t, named("a", "b", "c"), unsteady(every), limited(planning.Limits{Hosts: 4, Waiting: 50}))
				var all sync.WaitGroup
				for worker := range uint64(8) {
					all.Go(func() {
						chance := rand.New(rand.NewPCG(seed, worker))
						for range 60 {
							s.actAtRandom(t, chance)
						}
					})
				}
				all.Wait()
				if err := s.bookings.Follow(t.Context()); err != nil { // a failed commit may have been stored
					t.Fatal(err)
				}
				s.check(t)
				before := s.answers(t)
				s.restart(t)
				if diff := cmp.Diff(before, s.answers(t)); diff != "" {
					t.Errorf("answers (-before +after a restart):\n%s", diff)
				}
			})
		}
	}
}

// actAtRandom makes one random call to the service, which may refuse it.
func (s *scene) actAtRandom(t *testing.T, chance *rand.Rand) {
	seconds := func(most int) int64 { return 10 * chance.Int64N(int64(most)) }
	by := projects[chance.IntN(len(projects))]
	var some reservation.Reservation
	if live := s.bookings.Live(span.Span{Start: 0, End: span.Forever}); len(live) > 0 {
		some = live[chance.IntN(len(live))]
	}
	var err error
	switch chance.IntN(17) {
	case 0, 1, 2:
		req := reservation.Request{Terms: reservation.Terms{Quantity: 1 + chance.IntN(3)}, Start: s.clock() + 50 + span.Instant(seconds(20)), Duration: 10 + seconds(10)}
		if s.options.Limits.Waiting > 0 && chance.IntN(3) > 0 {
			req.WaitUntil = req.Start
		}
		_, err = s.bookings.Book(t.Context(), by, req, nil)
	case 3:
		req := cpus(1+chance.Int64N(4), 1+chance.IntN(4), 0, 0)
		req.Start, req.End, req.Duration = 0, s.clock()+400, 10+seconds(10)
		_, err = s.bookings.Book(t.Context(), by, req, nil)
	case 4, 5:
		c := planning.Change{End: new(some.Span.End + span.Instant(seconds(10)-40)), Quantity: new(1 + chance.IntN(4))}
		_, err = s.bookings.Change(t.Context(), booking.Caller{Admin: true}, some.ID, c)
	case 6:
		_, err = s.bookings.Cancel(t.Context(), by, some.ID)
	case 7:
		s.now.Add(chance.Int64N(15))
		_, failed := s.bookings.CarryOut(t.Context())
		for _, each := range failed {
			expectKinds(t, each, fault.Unavailable)
		}
		err = s.bookings.BookFreed(t.Context())
	case 8:
		s.bookings.Prune()
		s.observe(t)
	case 13, 14:
		req := reservation.Request{Terms: reservation.Terms{Quantity: 1 + chance.IntN(3), Notice: 1 + seconds(4)}, Start: s.clock() + 10 + span.Instant(seconds(5))}
		req.Duration = 40 + seconds(6)
		req.End = req.Start.Add(req.Duration + 10 + seconds(30))
		_, err = s.bookings.Book(t.Context(), by, req, nil)
	case 15, 16:
		err = s.actOnSeriesAtRandom(t.Context(), chance, by)
	case 9:
		s.bookings.NextClaim("a", s.clock())
		s.bookings.Reservation(some.ID)
		_, err = s.bookings.OfferChange(t.Context(), by, some.ID, quantity(2))
	default:
		err = s.changeLeasesAtRandom(t, chance)
	}
	if err != nil {
		expectKinds(t, err, fault.Invalid, fault.Conflict, fault.NotFound, fault.Unavailable)
	}
}

// watched are records that call back while they store.
type watched struct {
	booking.Records
	storing func() error
}

func (r *watched) Commit(ctx context.Context, c booking.Commit) error {
	if err := r.storing(); err != nil {
		return err
	}
	return r.Records.Commit(ctx, c)
}

// While a commit is stored, the service holds both what was held before and what will be
// held after. If storing fails, the service holds both until it has read the records, and
// then only what was held before.
func TestBeforeAndAfterAreHeldWhileAnActIsStored(t *testing.T) {
	type act func(s *scene, t *testing.T, id string) error
	change := func(c planning.Change) act {
		return func(s *scene, t *testing.T, id string) error {
			_, err := s.bookings.Change(t.Context(), owner, id, c)
			return err
		}
	}
	for name, tc := range map[string]struct {
		act        act
		held       []reservation.Request // the requests that are refused while the commit is stored
		heldBefore int                   // how many of them are refused before, and after a failure
		heldAfter  int                   // how many are refused after a success
	}{
		"book": {func(s *scene, t *testing.T, _ string) error {
			_, err := s.bookings.Book(t.Context(), owner, during(2, 300, 400), nil)
			return err
		}, []reservation.Request{during(2, 300, 301)}, 0, 1},
		"move":   {change(moves(300, 400)), []reservation.Request{during(2, 100, 101), during(2, 300, 301)}, 1, 1},
		"extend": {change(ends(300)), []reservation.Request{during(2, 100, 101), during(2, 299, 300)}, 1, 2},
		"grow":   {change(quantity(2)), []reservation.Request{during(2, 100, 101), during(1, 100, 101)}, 1, 2},
		"cancel": {func(s *scene, t *testing.T, id string) error {
			_, err := s.bookings.Cancel(t.Context(), owner, id)
			return err
		}, []reservation.Request{during(2, 100, 101)}, 1, 0},
	} {
		for result, fails := range map[string]error{"stored": nil, "fails": fault.New(fault.Unavailable, "the disk is full")} {
			t.Run(name+" "+result, func(t *testing.T) {
				records := &watched{storing: func() error { return nil }}
				s := newScene(t, named("a", "b"), func(o *booking.Options) { records.Records, o.Records = o.Records, records })
				id := s.book(t, during(1, 100, 200)).ID
				refused := func() (n int) {
					for _, req := range tc.held {
						if _, err := s.bookings.Offer(t.Context(), owner, req); err != nil {
							n++
						}
					}
					return n
				}
				stored, want := 0, tc.heldAfter
				if fails != nil {
					want = tc.heldBefore
				}
				records.storing = func() error {
					stored++
					if n := refused(); n != len(tc.held) {
						t.Errorf("%d of %d are refused while the commit is stored", n, len(tc.held))
					}
					return fails
				}
				if n := refused(); n != tc.heldBefore {
					t.Errorf("%d are refused before, want %d", n, tc.heldBefore)
				}
				if err := tc.act(s, t, id); !errors.Is(err, fails) || stored != 1 {
					t.Errorf("stored %d times: %v, want %v", stored, err, fails)
				}
				if n := refused(); fails != nil && n != len(tc.held) {
					t.Errorf("%d of %d are refused while it is unknown whether the commit was stored", n, len(tc.held))
				}
				if err := s.bookings.Follow(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n := refused(); n != want {
					t.Errorf("%d are refused after, want %d", n, want)
				}
				s.check(t)
			})
		}
	}
}
