// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// holding allows holds of ten minutes, that many at once.
func holding(most int) func(*booking.Options) {
	return limited(planning.Limits{Hold: 600, Holds: most})
}

// held requests hosts throughout [start, end), and holds them for that many seconds.
func held(quantity int, start, end, seconds int64) reservation.Request {
	req := during(quantity, start, end)
	req.Hold = seconds
	return req
}

var confirmation = planning.Change{Hold: new(int64(0))}

func TestAHoldThatNobodyConfirmsExpiresAndFreesItsHosts(t *testing.T) {
	s := newScene(t, named("a"), holding(1))
	r := s.book(t, held(1, 1000, 2000, 300))
	if r.Status != reservation.Pending || r.HeldUntil() != at(300) {
		t.Fatalf("it is %s until %v", r.Status, r.HeldUntil())
	}
	_, err := s.bookings.Book(t.Context(), other, during(1, 1500, 1600), nil)
	refusal(t, err)
	s.passTo(t, at(299))
	if now := s.get(t, r.ID); now.Status != reservation.Pending || now.Version != r.Version {
		t.Fatalf("a second before its time it is %s, version %d", now.Status, now.Version)
	}
	s.passTo(t, at(302))
	over := s.get(t, r.ID)
	last := over.Events[len(over.Events)-1]
	want := reservation.Event{Type: reservation.ExpireEvent, Time: at(300), State: reservation.EventDone, Done: at(302), Detail: planning.HoldExpired}
	if over.Status != reservation.Canceled || len(over.Claims) > 0 || last != want {
		t.Errorf("after its time it is %s with %v, and its log ends with %+v", over.Status, over.Claims, last)
	}
	if n := s.bookings.Expired(); n != 1 {
		t.Errorf("%d expired holds are counted, want 1", n)
	}
	if _, err := s.bookings.Book(t.Context(), other, during(1, 1000, 2000), nil); err != nil {
		t.Errorf("its hosts: %v", err)
	}
	if _, err := s.bookings.Change(t.Context(), owner, r.ID, confirmation); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "the hold expired at "+at(300).String()) {
		t.Errorf("a confirmation afterwards: %v", err)
	}
	s.check(t)
}

func TestAConfirmedHoldIsAReservationLikeAnyOther(t *testing.T) {
	s := newScene(t, named("a"), holding(1))
	r := s.book(t, held(1, 1000, 2000, 300))
	s.now.Store(int64(at(299)))
	kept := s.change(t, r.ID, confirmation)
	if kept.HeldUntil() != 0 || !slices.Equal(kept.Claims, r.Claims) || kept.Span != r.Span {
		t.Errorf("it is held until %v with %v", kept.HeldUntil(), kept.Claims)
	}
	changed, _ := kept.LastEvent(reservation.ChangedEvent)
	if changed.Detail != "held_until from "+at(300).String()+" to none" {
		t.Errorf("the log has %q", changed.Detail)
	}
	if again := s.change(t, r.ID, confirmation); again.Version != kept.Version {
		t.Error("a second confirmation changes it")
	}
	s.book(t, held(1, 3000, 4000, 300)) // the first one does not count any more
	for _, now := range []int64{300, 1000} {
		s.passTo(t, at(now))
	}
	if r := s.get(t, r.ID); r.Status != reservation.Active {
		t.Errorf("at its start it is %s", r.Status)
	}
	if n := s.bookings.Expired(); n != 1 { // that of the one that nobody confirmed
		t.Errorf("%d expired holds are counted, want 1", n)
	}
	s.check(t)
}

// The service may be down when a hold ends, and until the start.
func TestAHoldEndsBeforeItsReservationBegins(t *testing.T) {
	s := newScene(t, named("a"), holding(1))
	r := s.book(t, held(1, 300, 2000, 300))
	s.now.Store(int64(at(1000)))
	if _, err := s.bookings.Change(t.Context(), owner, r.ID, confirmation); !fault.Is(err, fault.Conflict) {
		t.Errorf("a confirmation before the end is carried out, and after its time: %v", err)
	}
	s.restart(t)
	s.passTo(t, at(1000))
	r = s.get(t, r.ID)
	if _, began := r.LastEvent(reservation.StartEvent); r.Status != reservation.Canceled || began {
		t.Errorf("it is %s, and its log has %+v", r.Status, r.Events)
	}
	s.book(t, during(1, 1000, 2000))
	s.check(t)
}

func TestAHeldReservationIsNotMovedAndMovesNothing(t *testing.T) {
	s := newScene(t, named("a"), holding(2))
	waits := movable(1, 1000, 3000, 1000, 100)
	waits.Hold = 300
	r := s.bookMovable(t, waits)
	_, err := s.bookings.Book(t.Context(), owner, during(1, 1500, 1700), nil)
	refusal(t, err)
	if _, err := s.bookings.Change(t.Context(), other, r.ID, confirmation); err != nil {
		t.Fatal(err)
	}
	s.book(t, during(1, 1500, 1700)) // for which it makes way, since it keeps its notice
	if r = s.get(t, r.ID); r.Span.Start != at(1700) {
		t.Errorf("once it is confirmed it moves to %v", r.Span)
	}

	s = newScene(t, named("a"), holding(2))
	s.bookMovable(t, movable(1, 1000, 3000, 1000, 100))
	_, err = s.bookings.Book(t.Context(), owner, held(1, 1500, 1700, 300), nil)
	refusal(t, err)
	s.book(t, during(1, 1500, 1700))
}

func TestTheLimitOnHoldsIsOfEachProjectAndNamesTheNextExpiry(t *testing.T) {
	s := newScene(t, named("a", "b", "c", "d"), holding(2))
	s.book(t, held(1, 1000, 2000, 300))
	s.now.Store(int64(at(10)))
	s.book(t, held(1, 1000, 2000, 100))
	_, err := s.bookings.Book(t.Context(), owner, held(1, 1000, 2000, 200), nil)
	if r := refusal(t, err); r.Constraint != reservation.MaxHolds || r.Message !=
		"the project has as many holds as it may, 2; confirm or cancel one, or wait until the next one expires at "+at(110).String() || r.EarliestStart != 0 || r.LargestQuantity != 0 {
		t.Errorf("%+v", r)
	}
	s.book(t, during(1, 1000, 2000))
	if _, err := s.bookings.Book(t.Context(), other, held(1, 1000, 2000, 200), nil); err != nil {
		t.Errorf("another project: %v", err)
	}
	if _, use := s.bookings.Use(owner.ProjectID); use.Holds != 2 {
		t.Errorf("it holds %d", use.Holds)
	}
	s.passTo(t, at(110))
	s.restart(t)
	if _, use := s.bookings.Use(owner.ProjectID); use.Holds != 1 {
		t.Errorf("after an expiry it holds %d", use.Holds)
	}
	s.book(t, held(1, 1000, 2000, 200))
	s.check(t)
}

func TestTheLimitOnHoldsIsKeptByAllReplicasTogether(t *testing.T) {
	for range 20 {
		all := replicas(t, 3, named("a", "b", "c", "d", "e", "f"), unsteady(0), holding(2))
		var clients sync.WaitGroup
		var booked atomic.Int64
		for i := range 18 {
			clients.Go(func() {
				_, err := all[i%3].bookings.Book(t.Context(), owner, only(string(rune('a'+i%6)), held(1, 1000, 2000, 300)), nil)
				if err == nil {
					booked.Add(1)
				} else {
					refusal(t, err)
				}
			})
		}
		clients.Wait()
		if booked.Load() != 2 {
			t.Fatalf("%d are held, the limit is 2", booked.Load())
		}
		agree(t, all)
	}
}

// One replica confirms while the other carries out the end of the hold: the time of each decision says which of them it is.
func TestAConfirmationAndTheEndOfAHoldHaveOneOutcome(t *testing.T) {
	for range 50 {
		all := replicas(t, 2, named("a"), unsteady(0), holding(1))
		id := all[0].book(t, held(1, 1000, 2000, 300)).ID
		if err := all[1].bookings.Follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		var confirmed error
		both.Go(func() { _, confirmed = all[0].bookings.Change(t.Context(), owner, id, confirmation) })
		both.Go(func() {
			all[1].now.Store(int64(at(300)))
			if _, failed := all[1].bookings.CarryOut(t.Context()); len(failed) > 0 {
				t.Errorf("carry out: %v", failed)
			}
		})
		both.Wait()
		r := all[0].get(t, id)
		switch {
		case confirmed == nil && (r.Status != reservation.Pending || r.HeldUntil() != 0 || len(r.Claims) != 1):
			t.Fatalf("it was confirmed, and is %s until %v with %v", r.Status, r.HeldUntil(), r.Claims)
		case confirmed != nil && !fault.Is(confirmed, fault.Conflict):
			t.Fatal(confirmed)
		case confirmed != nil:
			all[1].passTo(t, at(301))
			if r = all[0].get(t, id); r.Status != reservation.Canceled || len(r.Claims) > 0 {
				t.Fatalf("the confirmation failed with %v, and it is %s with %v", confirmed, r.Status, r.Claims)
			}
		}
		agree(t, all)
	}
}

// expected is a hold as the test keeps account of it.
type expected struct {
	until  span.Instant
	claims []reservation.Claim
	kept   bool         // confirmed
	over   span.Instant // when its end was carried out, if it was
}

// pastOf returns the parts of claims before an instant.
func pastOf(claims []reservation.Claim, now span.Instant) (past []reservation.Claim) {
	for _, c := range claims {
		if c.Span.End = min(c.Span.End, now); !c.Span.Empty() {
			past = append(past, c)
		}
	}
	return past
}

// TestHoldsEndAtTheirTime compares a service, which restarts at any time, with an account of its holds: none outlives its time, a
// confirmation within the time always succeeds and one after it never does, an expired one leaves its hosts free and nothing else,
// and the project never has more than its limit.
func TestHoldsEndAtTheirTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 3
		s := newScene(t, named("a", "b", "c", "d"), holding(most))
		all := map[string]*expected{}
		counted := func() (n int) {
			for _, h := range all {
				if !h.kept && s.clock() < h.until {
					n++
				}
			}
			return n
		}
		one := func(t *rapid.T) (string, *expected) {
			if len(all) == 0 {
				t.Skip("nothing is held")
			}
			id := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "id")
			return id, all[id]
		}
		t.Repeat(map[string]func(*rapid.T){
			"hold": func(t *rapid.T) {
				start := rapid.Int64Range(600, 3000).Draw(t, "after") + int64(s.clock()-base)
				req := held(rapid.IntRange(1, 2).Draw(t, "quantity"), start, start+rapid.Int64Range(1, 2000).Draw(t, "length"), rapid.Int64Range(10, 600).Draw(t, "hold"))
				before := counted()
				r, err := s.bookings.Book(t.Context(), owner, req, nil)
				switch {
				case before >= most:
					if refusal(t, err).Constraint != reservation.MaxHolds {
						t.Fatalf("with %d holds: %v", before, err)
					}
				case err == nil:
					all[r.ID] = &expected{until: s.clock().Add(req.Hold), claims: r.Claims}
				default:
					if c := refusal(t, err).Constraint; c != reservation.HostsFree {
						t.Fatalf("with %d holds: %v", before, err)
					}
				}
			},
			"confirm": func(t *rapid.T) {
				id, h := one(t)
				if h.kept && !s.get(t, id).Status.Live() {
					t.Skip("it is over")
				}
				_, err := s.bookings.Change(t.Context(), owner, id, confirmation)
				inTime := h.kept || s.clock() < h.until
				if inTime != (err == nil) || err != nil && !fault.Is(err, fault.Conflict) {
					t.Fatalf("a confirmation of %s, held until %v, at %v: %v", id, h.until, s.clock(), err)
				}
				h.kept = inTime
			},
			"cancel": func(t *rapid.T) {
				id, h := one(t)
				if s.get(t, id).Status != reservation.Pending || !h.kept && s.clock() >= h.until {
					t.Skip("it is over")
				}
				if _, err := s.bookings.Cancel(t.Context(), owner, id); err != nil {
					t.Fatal(err)
				}
				delete(all, id)
			},
			"pass":    func(t *rapid.T) { s.now.Add(rapid.Int64Range(0, 400).Draw(t, "seconds")) },
			"restart": func(t *rapid.T) { s.restart(t) },
			"": func(t *rapid.T) {
				s.passTo(t, s.clock())
				for id, h := range all {
					r := s.get(t, id)
					if s.clock() >= r.Span.Start && h.kept {
						continue // it began as any other
					}
					due, want := h.until, h.claims
					if h.over == 0 && s.clock() >= h.until {
						h.over = s.clock()
					}
					switch {
					case h.kept:
						due = 0
					case h.over != 0:
						due, want = 0, pastOf(h.claims, h.over)
					}
					if diff := cmp.Diff(want, r.Claims); diff != "" || r.HeldUntil() != due || r.Status.Live() != (h.kept || h.over == 0) {
						t.Fatalf("at %v, %s is %s, held until %v; want %v; claims (-want +got):\n%s", s.clock(), id, r.Status, r.HeldUntil(), due, diff)
					}
				}
				if n := counted(); n > most {
					t.Fatalf("the project holds %d", n)
				}
				s.check(t)
			},
		})
	})
}

func TestAHoldIsCheckedBeforeItIsBooked(t *testing.T) {
	s := newScene(t, named("a"), holding(1))
	for name, tc := range map[string]struct {
		req  reservation.Request
		want string
	}{
		"too short":           {held(1, 1000, 2000, 9), "must be from 10s to 10m0s, not 9s"},
		"too long":            {held(1, 1000, 2000, 601), "must be from 10s to 10m0s, not 10m1s"},
		"negative":            {held(1, 1000, 2000, -60), "must be from 10s to 10m0s, not -1m0s"},
		"longer than until":   {held(1, 299, 2000, 300), fmt.Sprintf("would end at %v, after the latest start that was asked for, %v; ask for a later start or for a shorter hold", at(300), at(299))},
		"for all of a window": {held(1, 0, 2000, 300), fmt.Sprintf("would end at %v, after the latest start that was asked for, %v; ask for a later start or for a shorter hold", at(300), at(0))},
	} {
		_, err := s.bookings.Offer(t.Context(), owner, tc.req)
		if f := fault.Of(err); f == nil || f.Field != "hold" || f.Message != tc.want {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	window := held(1, 100, 1000, 300)
	window.Duration = 500
	soon := reservation.Request{Terms: reservation.Terms{Quantity: 1}, Duration: 500, Hold: 300}
	for name, req := range map[string]reservation.Request{"a window": window, "no time": soon} {
		if plan, err := s.bookings.Offer(t.Context(), owner, req); err != nil || plan.Span != span.New(at(300), 500) || plan.HeldUntil != at(300) {
			t.Errorf("with %s it begins at %v and is held until %v, %v; want both at %v", name, plan.Span.Start, plan.HeldUntil, err, at(300))
		}
	}
	for name, adjust := range map[string]func(*booking.Options){"by no limits": limited(planning.Limits{}), "by the operator": limited(planning.Limits{Holds: 3})} {
		_, err := newScene(t, named("a"), adjust).bookings.Offer(t.Context(), owner, held(1, 1000, 2000, 60))
		if f := fault.Of(err); f == nil || f.Field != "hold" || !strings.Contains(f.Message, "is not offered on this cloud") {
			t.Errorf("not allowed %s: %v", name, err)
		}
	}
}

// The hold begins when the start is requested, which may be as late as answers hold.
func TestTheEarliestStartOfAHoldCanStillBeHeldLater(t *testing.T) {
	s := newScene(t, named("a"), holding(1), func(o *booking.Options) { o.AnswersHold = 120 })
	s.book(t, during(1, 0, 310))
	_, err := s.bookings.Book(t.Context(), owner, held(1, 300, 400, 300), nil)
	earliest := refusal(t, err).EarliestStart
	if earliest != at(420) {
		t.Errorf("it is %v, want %v: the end of a hold that begins in two minutes", earliest, at(420))
	}
	s.passTo(t, at(120))
	s.book(t, held(1, int64(earliest-base), int64(earliest-base)+100, 300))
}
