// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/booking/memory"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// The answer to a stored commit is lost. Meanwhile another replica books on the same host,
// and this replica reads that.
func TestWhatMayHaveBeenStoredIsNotPromisedAgain(t *testing.T) {
	for name, tc := range map[string]struct{ lost, other reservation.Request }{
		"a host":    {during(1, 100, 200), during(1, 300, 400)},
		"instances": {cpus(8, 1, 100, 200), cpus(1, 1, 300, 400)},
	} {
		t.Run(name, func(t *testing.T) {
			gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
				lose, failed := g.loseAnswer(), make(chan error, 1)
				go func() {
					_, err := b.bookings.Book(t.Context(), owner, tc.lost, nil)
					failed <- err
				}()
				synctest.Wait()
				a.follow(t)
				a.book(t, tc.other)
				b.follow(t)
				close(lose)
				if err := <-failed; !fault.Is(err, fault.Unavailable) {
					t.Fatalf("the request with the lost answer got %v", err)
				}
				_, err := b.bookings.Book(t.Context(), owner, tc.lost, nil)
				refusal(t, err)
				agree(t, []*scene{a, b})
			})
		})
	}
}

func TestWhatWasNotStoredIsFreeAfterTheNextLook(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		g.set(func(g *gates) {
			g.beforeCommit = func(booking.Commit) error { return fault.New(fault.Unavailable, "the database is away") }
		})
		if _, err := b.bookings.Book(t.Context(), owner, during(1, 100, 200), nil); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("got %v", err)
		}
		g.set(func(g *gates) { g.beforeCommit = nil })
		if _, err := b.bookings.Offer(t.Context(), owner, during(1, 100, 200)); err == nil {
			t.Error("the host is offered while it is unknown whether the commit was stored")
		}
		b.book(t, during(1, 100, 200)) // reads the records before it refuses
		agree(t, []*scene{a, b})
	})
}

func TestAChangeInDoubtIsTakenOverOrBack(t *testing.T) {
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			gated(t, []string{"a", "b"}, func(t *testing.T, a, b *scene, g *gates) {
				r := b.book(t, during(1, 100, 200))
				fail := func(booking.Commit) error { return fault.New(fault.Unavailable, "the database does not answer") }
				g.set(func(g *gates) {
					if g.beforeCommit = fail; stored {
						g.beforeCommit, g.afterCommit = nil, fail
					}
				})
				if _, err := b.bookings.Change(t.Context(), owner, r.ID, moves(300, 400)); !fault.Is(err, fault.Unavailable) {
					t.Fatalf("got %v", err)
				}
				g.set(func(g *gates) { g.beforeCommit, g.afterCommit = nil, nil })
				r = b.change(t, r.ID, quantity(2))
				if moved := r.Span.Start == at(300); moved != stored || r.Quantity != 2 {
					t.Errorf("the next change starts from %v and results in %d hosts", r.Span, r.Quantity)
				}
				agree(t, []*scene{a, b})
			})
		})
	}
}

// What a replica learns between a decision and its commit does not raise the limit.
func TestALimitIsHeldAgainstWhatWasKnownAtTheDecision(t *testing.T) {
	gated(t, []string{"a", "b", "c"}, func(t *testing.T, a, b *scene, g *gates) {
		goOn := g.holdCommit(anyCommit)
		var running sync.WaitGroup
		running.Go(func() { // keeps the turn of host a
			if _, err := b.bookings.Book(t.Context(), booking.Caller{ProjectID: "other"}, only("a", during(1, 1000, 1100)), nil); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		a.book(t, only("b", during(1, 100, 200)))
		b.follow(t)
		running.Go(func() { // the second of the two allowed hosts
			_, err := b.bookings.Book(t.Context(), owner, only("a", during(1, 100, 200)), nil)
			refusal(t, err)
		})
		synctest.Wait()
		a.book(t, only("c", during(1, 150, 160))) // is booked on the other replica
		b.follow(t)
		close(goOn)
		running.Wait()
		agree(t, []*scene{a, b})
	}, limited(planning.Limits{Hosts: 2}))
}

func TestAnEventIsNotLostWhenTheClockIsSetBack(t *testing.T) {
	s := newScene(t, named("a"))
	id, asked := s.book(t, during(1, 100, 200)).ID, 0
	s.options.Now = func() span.Instant {
		if asked++; asked == 2 { // the agenda read the clock; now the event reads it
			return at(99)
		}
		return s.clock()
	}
	s.restart(t)
	s.now.Store(int64(at(100)))
	asked = 0
	s.bookings.CarryOut(t.Context())
	s.carryOut(t, 101)
	if got := s.get(t, id).Status; got != reservation.Active {
		t.Errorf("the reservation is %s", got)
	}
}

// The records already show that this replica has begun the event, but the replica does not
// know that.
func TestAnEventWhoseBeginningIsInDoubtIsCarriedOutAllTheSame(t *testing.T) {
	cloud := &servers{}
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		id := b.book(t, during(1, 100, 200)).ID
		g.set(func(g *gates) {
			g.afterCommit = func(booking.Commit) error { return fault.New(fault.Unavailable, "the database does not answer") }
		})
		b.now.Store(int64(at(100)))
		b.bookings.CarryOut(t.Context())
		g.set(func(g *gates) { g.afterCommit = nil })
		b.follow(t)
		if err := b.bookings.TakeOver(t.Context(), func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
		b.bookings.Wait()
		if r := b.get(t, id); r.Status != reservation.Active || len(cloud.begun) != 1 {
			t.Errorf("the reservation is %s and its start began %d times", r.Status, len(cloud.begun))
		}
		agree(t, []*scene{a, b})
	}, func(o *booking.Options) { o.Cloud = cloud })
}

func TestAClientThatGoesAwayFailsNobodyElse(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		a.book(t, during(1, 100, 200))
		b.follow(t)
		goOn, reads := make(chan struct{}), 0
		impatient, hangUp := context.WithCancel(t.Context())
		g.set(func(g *gates) {
			g.beforeRecall = func(ctx context.Context) error {
				if reads++; reads == 1 {
					<-goOn
				}
				return ctx.Err()
			}
		})
		var running sync.WaitGroup
		running.Go(func() { _ = b.bookings.Follow(t.Context()) })
		synctest.Wait()
		running.Go(func() {
			if _, err := b.bookings.Book(impatient, owner, during(1, 100, 200), nil); !errors.Is(err, context.Canceled) {
				t.Errorf("the canceled request got %v", err)
			}
		})
		synctest.Wait()
		running.Go(func() {
			_, err := b.bookings.Book(t.Context(), owner, during(1, 100, 200), nil)
			refusal(t, err)
		})
		synctest.Wait()
		hangUp()
		close(goOn)
		running.Wait()
	})
}

func TestARefusalKnowsWhatWasLearnedSinceTheDecision(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		id := a.book(t, during(1, 100, 200)).ID
		b.follow(t)
		if _, err := a.bookings.Cancel(t.Context(), owner, id); err != nil {
			t.Fatal(err)
		}
		goOn, first := make(chan struct{}), true
		g.set(func(g *gates) {
			g.afterRecall = func(context.Context) error {
				if first {
					first = false
					<-goOn // it has read that the host is free, but has not applied that yet
				}
				return nil
			}
		})
		var running sync.WaitGroup
		running.Go(func() { b.follow(t) })
		synctest.Wait()
		running.Go(func() { b.book(t, during(1, 100, 200)) })
		synctest.Wait()
		close(goOn)
		running.Wait()
		agree(t, []*scene{a, b})
	})
}

func TestAnEventThatIsSlowToStoreKeepsNoOtherBack(t *testing.T) {
	gated(t, []string{"a", "b"}, func(t *testing.T, _, b *scene, g *gates) {
		slow, other := b.book(t, only("a", during(1, 50, 100))).ID, b.book(t, only("b", during(1, 100, 200))).ID
		b.passTo(t, at(60))
		b.bookings.Wait()
		goOn := g.holdCommit(func(c booking.Commit) bool { return c.Revisions[0].Reservation.ID == slow })
		b.now.Store(int64(at(101)))
		b.bookings.CarryOut(t.Context())
		synctest.Wait()
		if got := b.get(t, other).Status; got != reservation.Active {
			t.Errorf("the other reservation is %s while an end is being stored", got)
		}
		close(goOn)
		b.bookings.Wait()
		if got := b.get(t, slow).Status; got != reservation.Ended {
			t.Errorf("the slow reservation is %s", got)
		}
	}, func(o *booking.Options) { o.Parallel = 4 })
}

// A commit, of the same or of another reservation, is in flight while the records change.
func TestNothingInFlightKeepsAReplicaFromLearning(t *testing.T) {
	for name, host := range map[string]string{"on the same host": "a", "on another host": "b"} {
		t.Run(name, func(t *testing.T) {
			gated(t, []string{"a", "b"}, func(t *testing.T, a, b *scene, g *gates) {
				id := a.book(t, only("a", during(1, 100, 200))).ID
				b.follow(t)
				goOn := g.holdCommit(anyCommit)
				var running sync.WaitGroup
				running.Go(func() {
					if _, err := b.bookings.Book(t.Context(), owner, only(host, during(1, 500, 600)), nil); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				if _, err := a.bookings.Cancel(t.Context(), owner, id); err != nil {
					t.Fatal(err)
				}
				g.set(func(g *gates) { g.Records = hides{a.memory, id} }) // the log does not list it yet
				a.book(t, only("a", during(1, 150, 250)))
				b.follow(t)
				if next, ok := b.bookings.NextClaim("a", at(0)); !ok || next.Start != at(150) {
					t.Errorf("the first claim on host a is %v", next)
				}
				close(goOn)
				running.Wait()
				agree(t, []*scene{a, b})
			})
		})
	}
}

func TestARequestDoesNotOutlastItsTime(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, _, b *scene, g *gates) {
		r := b.book(t, during(1, 100, 200))
		goOn := g.holdCommit(anyCommit)
		var running sync.WaitGroup
		running.Go(func() { b.change(t, r.ID, ends(300)) })
		synctest.Wait()
		for name, act := range map[string]func(ctx context.Context) error{
			"a change of the same reservation": func(ctx context.Context) error {
				_, err := b.bookings.Cancel(ctx, owner, r.ID)
				return err
			},
			"a booking on the same host": func(ctx context.Context) error {
				_, err := b.bookings.Book(ctx, owner, during(1, 500, 600), nil)
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := act(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want context.DeadlineExceeded", name, err)
			}
			cancel()
		}
		close(goOn)
		running.Wait()
		b.follow(t)
		b.check(t)
	})
}

// The clock jumps ahead while an entry of the log is not visible yet.
func TestALateEntryOfTheLogIsWaitedForWhateverTheClockSays(t *testing.T) {
	still := func(o *booking.Options) { o.Elapsed = func() time.Duration { return 0 } }
	gated(t, []string{"a", "b"}, func(t *testing.T, a, b *scene, g *gates) {
		id := a.book(t, only("a", during(1, 1000, 2000))).ID
		b.follow(t)
		if _, err := a.bookings.Cancel(t.Context(), owner, id); err != nil {
			t.Fatal(err)
		}
		a.book(t, only("b", during(1, 1000, 2000)))
		g.set(func(g *gates) { g.Records = hides{a.memory, id} })
		b.follow(t)
		b.now.Add(100)
		b.follow(t)
		g.set(func(g *gates) { g.Records = a.memory })
		b.follow(t)
		agree(t, []*scene{a, b})
	}, still)
}

// forgets are records that have deleted a reservation.
type forgets struct {
	hides
}

func (f forgets) Recall(ctx context.Context, q booking.Recall) (booking.Recalled, error) {
	asked := q
	asked.IDs = nil
	got, err := f.hides.Recall(ctx, asked)
	for _, id := range q.IDs {
		if id == f.id {
			got.Gone = append(got.Gone, id)
		}
	}
	return got, err
}

func TestWhatWasPurgedLeavesTheReplicasThatMissedItsEnd(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		id := a.book(t, during(1, 100, 200)).ID
		b.follow(t)
		if _, err := a.bookings.Cancel(t.Context(), owner, id); err != nil {
			t.Fatal(err)
		}
		g.set(func(g *gates) { g.Records = forgets{hides{a.memory, id}} })
		if err := b.bookings.Resync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if next, held := b.bookings.NextClaim("a", at(0)); held {
			t.Errorf("the replica still holds %v", next)
		}
	})
}

// A cancellation claims nothing, so requests that claim time on its hosts do not stand in
// its way.
func TestGivingBackNeverCompetes(t *testing.T) {
	for name, give := range map[string]func(s *scene, t *testing.T, id string) error{
		"cancel": func(s *scene, t *testing.T, id string) error {
			_, err := s.bookings.Cancel(t.Context(), owner, id)
			return err
		},
		"shorten": func(s *scene, t *testing.T, id string) error {
			_, err := s.bookings.Change(t.Context(), owner, id, ends(5000))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
				id := b.book(t, during(1, 100, 10000)).ID
				b.passTo(t, at(150))
				commits := int64(0)
				g.set(func(g *gates) {
					g.beforeCommit = func(booking.Commit) error {
						commits++
						a.book(t, during(1, 20000+100*commits, 20100+100*commits))
						return nil
					}
				})
				if err := give(b, t, id); err != nil || commits != 1 {
					t.Errorf("after %d commits: %v", commits, err)
				}
				agree(t, []*scene{a, b})
			})
		})
	}
}

// A resync reads before a booking is stored, and applies what it has read after the booking
// is acknowledged.
func TestWhatIsStoredWhileTheRecordsAreReadIsNotForgotten(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		store, read, first := g.holdCommit(anyCommit), make(chan struct{}), true
		g.set(func(g *gates) {
			g.afterRecall = func(context.Context) error {
				if first {
					first = false
					<-read
				}
				return nil
			}
		})
		var running sync.WaitGroup
		running.Go(func() { b.book(t, during(1, 100, 200)) })
		synctest.Wait() // the commit is in flight
		running.Go(func() {
			if err := b.bookings.Resync(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait() // the resync has read
		close(store)
		synctest.Wait() // the booking is acknowledged
		close(read)
		running.Wait()
		_, err := b.bookings.Book(t.Context(), owner, during(1, 100, 200), nil)
		refusal(t, err)
		agree(t, []*scene{a, b})
	})
}

// lagging are records whose reads do not see the latest commits.
type lagging struct {
	booking.Records
	behind booking.Records
}

func (l lagging) Recall(ctx context.Context, q booking.Recall) (booking.Recalled, error) {
	return l.behind.Recall(ctx, q)
}

func TestAReadThatLagsBehindMakesNobodyForget(t *testing.T) {
	gated(t, []string{"a"}, func(t *testing.T, a, b *scene, g *gates) {
		b.book(t, during(1, 100, 200))
		g.set(func(g *gates) { g.Records = lagging{a.memory, memory.New()} })
		if err := b.bookings.Resync(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.set(func(g *gates) { g.Records = a.memory })
		_, err := b.bookings.Book(t.Context(), owner, during(1, 100, 200), nil)
		refusal(t, err)
		agree(t, []*scene{a, b})
	})
}

func TestAnEventThatCannotBeStoredIsTriedOnceAtATime(t *testing.T) {
	for name, parallel := range map[string]int{"one after the other": 0, "several at once": 4} {
		t.Run(name, func(t *testing.T) {
			gated(t, []string{"a"}, func(t *testing.T, _, b *scene, g *gates) {
				b.book(t, during(1, 100, 20000))
				var tried int // written while g.mu is held
				g.set(func(g *gates) {
					g.beforeCommit = func(booking.Commit) error {
						g.set(func(*gates) { tried++ })
						return fault.New(fault.Unavailable, "the database is read-only")
					}
				})
				for now := int64(100); now < 112; now++ {
					b.now.Store(int64(at(now)))
					tried = 0
					b.bookings.CarryOut(t.Context())
					b.bookings.Wait()
					if tried != 1 {
						t.Fatalf("at %d there were %d attempts", now, tried)
					}
				}
			}, func(o *booking.Options) { o.Parallel = parallel })
		})
	}
}

// The clock of one replica is a second behind that of the replica that added a host.
func TestAClaimOfNoTimeIsNotMade(t *testing.T) {
	s := newScene(t, named("a", "b"))
	id := s.book(t, during(1, 100, 300)).ID
	s.carryOut(t, 100)
	s.now.Store(int64(at(201)))
	s.change(t, id, quantity(2)) // a host from 201 on
	s.now.Store(int64(at(200)))
	if r, err := s.bookings.Change(t.Context(), owner, id, ends(201)); err == nil {
		for _, c := range r.Claims {
			if c.Span.Empty() {
				t.Errorf("the reservation claims %v", c)
			}
		}
	} else {
		refusal(t, err)
	}
	s.now.Store(int64(at(202)))
	s.check(t)
}

func TestAReservationWhoseEndIsLateKeepsItsTimeWhateverTheClockSays(t *testing.T) {
	s := newScene(t, named("a"))
	s.book(t, during(1, 100, 200))
	s.carryOut(t, 100)
	s.now.Store(int64(at(210)))
	s.bookings.Prune()
	s.now.Store(int64(at(150)))
	_, err := s.bookings.Book(t.Context(), owner, during(1, 160, 190), nil)
	refusal(t, err)
	s.check(t)
}
