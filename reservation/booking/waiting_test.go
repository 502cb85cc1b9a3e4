// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// waiting allows ten waiting reservations of each project, and holds of ten minutes.
var waiting = limited(planning.Limits{Waiting: 10, Hold: 600})

// askers are of different projects.
var askers = []booking.Caller{{ProjectID: "one"}, {ProjectID: "two"}, {ProjectID: "three"}, {ProjectID: "four"}, {ProjectID: "five"}}

// patient is a request that waits as long as it can.
func patient(req reservation.Request) reservation.Request {
	seconds := req.Duration
	if seconds == 0 {
		seconds = int64(req.End - req.Start)
	}
	req.WaitUntil = req.End.Add(-seconds - req.Hold)
	return req
}

// waits books a request for which there is no room.
func (s *scene) waits(t tester, by booking.Caller, req reservation.Request) reservation.Reservation {
	t.Helper()
	r, err := s.bookings.Book(t.Context(), by, req, nil)
	if err != nil || r.Status != reservation.Waiting || len(r.Claims) > 0 {
		t.Fatalf("the request is %s with %v, %v; want that it waits", r.Status, r.Claims, err)
	}
	return r
}

func (s *scene) cancel(t tester, by booking.Caller, id string) {
	t.Helper()
	if _, err := s.bookings.Cancel(t.Context(), by, id); err != nil {
		t.Fatalf("cancel %s: %v", id, err)
	}
}

// statuses returns the stored statuses of reservations.
func (s *scene) statuses(t tester, list ...reservation.Reservation) (all []string) {
	for _, r := range list {
		all = append(all, string(s.get(t, r.ID).Status))
	}
	return all
}

func TestWhatWaitsIsBookedInTheCommitThatMakesRoom(t *testing.T) {
	for name, free := range map[string]func(s *scene, id string) error{
		"a cancellation": func(s *scene, id string) error { _, err := s.bookings.Cancel(t.Context(), owner, id); return err },
		"an earlier end": func(s *scene, id string) error {
			_, err := s.bookings.Change(t.Context(), owner, id, planning.Change{End: new(at(1200))})
			return err
		},
		"fewer hosts": func(s *scene, id string) error {
			_, err := s.bookings.Change(t.Context(), owner, id, quantity(1))
			return err
		},
		"the cancellation of its lease": func(s *scene, id string) error {
			_, err := s.bookings.CancelLease(t.Context(), owner, id)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var commits []booking.Commit
			s := newScene(t, named("a", "b"), waiting, func(o *booking.Options) {
				o.Records = &overheard{Records: o.Records, heard: func(c booking.Commit) { commits = append(commits, c) }}
			})
			r := s.book(t, during(2, 1000, 2000))
			w := s.waits(t, other, patient(during(1, 1500, 1800)))
			commits = nil
			if err := free(s, r.ID); err != nil {
				t.Fatal(err)
			}
			if len(commits) != 1 || len(commits[0].Revisions) != 2 {
				t.Fatalf("it takes %d commits", len(commits))
			}
			booked := s.get(t, w.ID)
			event, _ := booked.LastEvent(reservation.BookedEvent)
			if booked.Status != reservation.Pending || booked.Span != w.Span || !booked.Window.Empty() || len(booked.Claims) != 1 || event.Done != at(0) || booked.Version != 2 {
				t.Errorf("it is %s at %v with %v, and its log has %+v", booked.Status, booked.Span, booked.Claims, booked.Events)
			}
			s.passTo(t, at(1500))
			if now := s.get(t, w.ID); now.Status != reservation.Active {
				t.Errorf("at its start it is %s", now.Status)
			}
			s.check(t)
		})
	}
}

// overheard are records whose commits a test hears of.
type overheard struct {
	booking.Records
	heard func(booking.Commit)
}

func (o *overheard) Commit(ctx context.Context, c booking.Commit) error {
	o.heard(c)
	return o.Records.Commit(ctx, c)
}

func TestAHoldThatExpiresAndAHostThatComesMakeRoom(t *testing.T) {
	s := newScene(t, named("a"), waiting)
	s.book(t, held(1, 1000, 2000, 300))
	first, second := s.waits(t, other, patient(during(1, 1000, 2000))), s.waits(t, owner, patient(during(1, 1500, 2000)))
	s.passTo(t, at(300))
	s.serve(t)
	s.hosts = named("a", "b")
	s.observe(t)
	if got := s.statuses(t, first, second); !slices.Equal(got, []string{"pending", "waiting"}) {
		t.Errorf("after the hold they are %v", got)
	}
	s.serve(t)
	if got := s.statuses(t, first, second); !slices.Equal(got, []string{"pending", "pending"}) {
		t.Errorf("with another host they are %v", got)
	}
	s.check(t)
}

// serve books what waits for what has become free, if the service is told that something has.
func (s *scene) serve(t tester) {
	t.Helper()
	select {
	case <-s.bookings.Room():
		if err := s.bookings.BookFreed(t.Context()); err != nil {
			t.Fatal(err)
		}
	default:
	}
}

// The first of each project comes before the second of any, so that no project keeps others out by many requests.
func TestEachProjectHasItsTurn(t *testing.T) {
	s := newScene(t, named("a"), waiting)
	r := s.book(t, during(1, 1000, 5000))
	var list []reservation.Reservation
	for i, by := range []booking.Caller{owner, owner, owner, other, other, askers[2]} {
		s.now.Store(int64(at(int64(i))))
		list = append(list, s.waits(t, by, patient(during(1, 1000, 5000))))
	}
	var places []int
	for _, w := range list {
		place, of := s.bookings.Line(w.ID)
		if places = append(places, place); of != len(list) {
			t.Errorf("%d wait", of)
		}
	}
	if want := []int{1, 4, 6, 2, 5, 3}; !slices.Equal(places, want) {
		t.Errorf("their places are %v, want %v", places, want)
	}
	s.restart(t)
	var order []int
	for range list {
		s.cancel(t, booking.Caller{ProjectID: r.ProjectID}, r.ID)
		i := slices.IndexFunc(list, func(w reservation.Reservation) bool { return s.get(t, w.ID).Status == reservation.Pending })
		r, order = list[i], append(order, i)
	}
	// A project whose first request was booked has its next one in the first round then.
	if want := []int{0, 1, 2, 3, 4, 5}; !slices.Equal(order, want) {
		t.Errorf("they are booked in the order %v, want %v", order, want)
	}
}

func TestWhoDoesNotFitIsPassedOver(t *testing.T) {
	s := newScene(t, named("a", "b"), waiting)
	r := s.book(t, only("a", during(1, 1000, 2000)))
	s.book(t, only("b", during(1, 1000, 2000)))
	large := s.waits(t, other, patient(during(2, 1000, 2000)))
	small := s.waits(t, askers[2], patient(during(1, 1000, 2000)))
	s.cancel(t, owner, r.ID)
	if got := s.statuses(t, large, small); !slices.Equal(got, []string{"waiting", "pending"}) {
		t.Errorf("they are %v", got)
	}
	s.check(t)
}

func TestAWaitEnds(t *testing.T) {
	s := newScene(t, named("a"), waiting)
	s.book(t, during(1, 0, 2000))
	req := patient(during(1, 1000, 1500))
	req.WaitUntil = at(600)
	w := s.waits(t, other, req)
	s.passTo(t, at(599))
	if s.get(t, w.ID).Status != reservation.Waiting {
		t.Error("it ends too early")
	}
	s.passTo(t, at(601))
	over := s.get(t, w.ID)
	last := over.Events[len(over.Events)-1]
	want := reservation.Event{Type: reservation.ExpireEvent, Time: at(600), State: reservation.EventDone, Done: at(601), Detail: planning.WaitExpired}
	if over.Status != reservation.Canceled || last != want {
		t.Errorf("it is %s, and its log ends with %+v", over.Status, last)
	}
	if _, err := s.bookings.Cancel(t.Context(), other, w.ID); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "waited until "+at(600).String()) {
		t.Errorf("a cancellation afterwards: %v", err)
	}
	if place, of := s.bookings.Line(w.ID); place != 0 || of != 0 {
		t.Errorf("its place is %d of %d", place, of)
	}
	s.check(t)
}

func TestWhatNobodyConfirmsGoesToTheNext(t *testing.T) {
	s := newScene(t, named("a"), waiting)
	r := s.book(t, during(1, 5000, 6000))
	first := s.waits(t, other, patient(held(1, 5000, 6000, 300)))
	second := s.waits(t, askers[2], patient(during(1, 5000, 6000)))
	s.now.Store(int64(at(1000)))
	s.cancel(t, owner, r.ID)
	if got := s.get(t, first.ID); got.HeldUntil() != at(1300) || got.Hold != 0 {
		t.Fatalf("the first is held until %v", got.HeldUntil())
	}
	s.passTo(t, at(1300))
	s.serve(t)
	if got := s.statuses(t, first, second); !slices.Equal(got, []string{"canceled", "pending"}) {
		t.Errorf("they are %v", got)
	}
	s.check(t)
}

func TestWhatWaitsIsCanceledAndNotChanged(t *testing.T) {
	s := newScene(t, named("a"), waiting)
	r := s.book(t, during(1, 1000, 2000))
	w := s.waits(t, owner, patient(during(1, 1000, 2000)))
	for name, c := range map[string]planning.Change{"quantity": quantity(2), "name": renamed("x"), "confirmation": confirmation, "end": ends(1500)} {
		if _, err := s.bookings.Change(t.Context(), owner, w.ID, c); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	s.cancel(t, owner, w.ID)
	s.cancel(t, owner, r.ID)
	if got := s.statuses(t, w, r); !slices.Equal(got, []string{"canceled", "canceled"}) {
		t.Errorf("they are %v", got)
	}
	s.check(t)
}

func TestOnlyWhatMayBeMetLaterWaits(t *testing.T) {
	limits := planning.Limits{Waiting: 1, Hosts: 4, Duration: 5000, Hold: 600}
	for name, tc := range map[string]struct {
		req    reservation.Request
		before int
		want   string
	}{
		"more hosts than there are":          {req: patient(during(4, 1000, 2000)), want: "pool"},
		"more hosts than the limit":          {req: patient(during(5, 1000, 2000)), want: "max_hosts_per_project"},
		"longer than the limit":              {req: patient(during(1, 1000, 9000)), want: "max_duration"},
		"more waiting ones than the limit":   {req: patient(during(1, 1000, 2000)), before: 1, want: "free_hosts"},
		"longer than until the latest start": {req: func() reservation.Request { r := during(1, 1000, 2000); r.WaitUntil = at(1001); return r }(), want: "wait_until"},
		"a wait that is over":                {req: func() reservation.Request { r := during(1, 1000, 2000); r.WaitUntil = at(0); return r }(), want: "wait_until"},
		"a hold that would begin too late":   {req: func() reservation.Request { r := held(1, 1000, 2000, 300); r.WaitUntil = at(701); return r }(), want: "wait_until"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c"), limited(limits))
			for i := range 3 {
				if _, err := s.bookings.Book(t.Context(), askers[i], during(1, 0, 4000), nil); err != nil {
					t.Fatal(err)
				}
			}
			for range tc.before {
				s.waits(t, askers[4], patient(during(1, 1000, 2000)))
			}
			_, err := s.bookings.Book(t.Context(), askers[4], tc.req, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) && fault.Of(err).Field != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if _, offered := s.bookings.Offer(t.Context(), askers[4], tc.req); fmt.Sprint(offered) != fmt.Sprint(err) {
				t.Errorf("offered %v, asked %v", offered, err)
			}
		})
	}
	s := newScene(t, named("a"))
	if _, err := s.bookings.Book(t.Context(), owner, patient(during(1, 1000, 2000)), nil); fault.Of(err).Field != "wait_until" {
		t.Errorf("on a cloud where none waits: %v", err)
	}
	s = newScene(t, named("a"), waiting, func(o *booking.Options) { o.Enforcement = &enforcement.Checker{} })
	if _, err := s.bookings.Book(t.Context(), owner, patient(during(1, 1000, 2000)), nil); !fault.Is(err, fault.Denied) {
		t.Errorf("on a cloud that checks each booking: %v", err)
	}
}

// Whose promise lacks a host comes before those who only wait, for as long as it takes to heal it.
func TestRoomGoesFirstToWhatLacksAHost(t *testing.T) {
	s := newScene(t, named("a", "b"), waiting)
	r := s.book(t, only("a", during(1, 0, 2000)))
	c := s.book(t, only("b", during(1, 0, 2000)))
	w := s.waits(t, other, patient(during(1, 1000, 2000)))
	if lacks := s.heal(t, r.ID, failing("a"), true); lacks.Degraded == "" {
		t.Fatalf("it lacks no host: %+v", lacks)
	}
	s.cancel(t, owner, c.ID)
	s.serve(t)
	if is := s.get(t, w.ID); is.Status != reservation.Waiting {
		t.Errorf("what waits is %s before what lacks a host is healed", is.Status)
	}
	if err := s.bookings.BookAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is := s.get(t, w.ID); is.Status != reservation.Pending {
		t.Errorf("later it is %s", is.Status)
	}
	s.check(t)
}

// Time alone makes room, as starts come nearer than the farthest allowed: whoever waits has it at the end of the wait, if nobody has looked before.
func TestTheEndOfAWaitIsALastLook(t *testing.T) {
	s := newScene(t, named("a"), limited(planning.Limits{Waiting: 1, StartAhead: 3600}))
	req := during(1, 3700, 3800)
	req.WaitUntil = at(200)
	w := s.waits(t, owner, req)
	s.passTo(t, at(200))
	if is := s.get(t, w.ID); is.Status != reservation.Pending || is.Span != w.Span {
		t.Errorf("at the end of the wait it is %s at %v", is.Status, is.Span)
	}
	s.check(t)
}

func TestAConfirmationMakesRoomForTheNextHold(t *testing.T) {
	s := newScene(t, named("a", "b"), limited(planning.Limits{Waiting: 1, Hold: 600, Holds: 1}))
	r := s.book(t, held(1, 1000, 2000, 300))
	w := s.waits(t, owner, patient(held(1, 1000, 2000, 300)))
	s.change(t, r.ID, confirmation)
	s.serve(t)
	if is := s.get(t, w.ID); is.HeldUntil() != at(300) {
		t.Errorf("it is %s, and held until %v", is.Status, is.HeldUntil())
	}
	s.check(t)
}

// More may have been made than one turn looks at.
func TestAllThatWereMadeMeanwhileAreLookedAt(t *testing.T) {
	s := newScene(t, named("a"), limited(planning.Limits{Waiting: 300}))
	s.book(t, during(1, 1000, 2000))
	for range 200 {
		s.waits(t, other, patient(during(1, 1000, 2000)))
	}
	s.serve(t)
	if s.bookings.Counted().ByStatus[reservation.Waiting] != 200 {
		t.Error("some are booked without room")
	}
	s.check(t)
}

// A request without times waits for any start until the end of its wait.
func TestARequestWithoutTimesWaitsForTheFirstRoom(t *testing.T) {
	s := newScene(t, named("a"), waiting)
	r := s.book(t, during(1, 0, 9000))
	w := s.waits(t, other, reservation.Request{Terms: reservation.Terms{Quantity: 1}, Duration: 100, WaitUntil: at(5000)})
	if w.Window != (span.Span{Start: at(0), End: at(5100)}) || w.WaitsUntil() != at(5000) {
		t.Errorf("it waits until %v for %v", w.WaitsUntil(), w.Window)
	}
	if next, err := s.bookings.NextRoom(t.Context(), w); err != nil || next != at(9000) {
		t.Errorf("the next room is at %v, %v", next, err)
	}
	s.passTo(t, at(3000))
	s.change(t, r.ID, planning.Change{End: new(at(3500))})
	if booked := s.get(t, w.ID); booked.Span != span.New(at(3500), 100) {
		t.Errorf("it is %s at %v", booked.Status, booked.Span)
	}
	s.check(t)
}

// What an offer names for a request that would wait is what the booking makes.
func TestAnOfferSaysThatTheRequestWouldWait(t *testing.T) {
	s := newScene(t, named("a"), waiting)
	s.book(t, during(1, 0, 9000))
	plan, err := s.bookings.Offer(t.Context(), other, patient(held(1, 2000, 3000, 200)))
	w := s.waits(t, other, patient(held(1, 2000, 3000, 200)))
	if err != nil || plan.WaitsUntil != w.WaitsUntil() || plan.Span != w.Span || len(plan.Claims) > 0 || w.Hold != 200 {
		t.Errorf("it offers %+v, %v", plan, err)
	}
}

func TestACancellationWithABookingIsStoredWholeOrNotAtAll(t *testing.T) {
	for outcome, tc := range outcomes {
		t.Run(outcome, func(t *testing.T) {
			records := &doubtful{stores: true}
			w := &watched{storing: func() error { return nil }}
			s := newScene(t, named("a"), waiting, func(o *booking.Options) {
				records.Records = o.Records
				w.Records = records
				o.Records = w
			})
			r := s.book(t, during(1, 1000, 2000))
			waits := s.waits(t, other, patient(during(1, 1500, 1800)))
			w.storing = func() error {
				for _, taken := range []reservation.Request{during(1, 1000, 1100), during(1, 1500, 1800)} {
					if _, err := s.bookings.Offer(t.Context(), owner, taken); err == nil {
						t.Errorf("%v is offered while it is stored", taken.Start)
					}
				}
				records.fails, records.stores = tc.fails, tc.stores
				return nil
			}
			if _, err := s.bookings.Cancel(t.Context(), owner, r.ID); (err == nil) != (tc.fails == nil) {
				t.Fatalf("the cancellation returns %v", err)
			}
			w.storing, records.fails, records.stores = func() error { return nil }, nil, true
			if err := s.bookings.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := []string{"pending", "waiting"}
			if tc.stores {
				want = []string{"canceled", "pending"}
			}
			if got := s.statuses(t, r, waits); !slices.Equal(got, want) {
				t.Errorf("they are %v, want %v", got, want)
			}
			s.check(t)
			before := s.answers(t)
			s.restart(t) // as after a kill at this moment
			if diff := cmp.Diff(before, s.answers(t)); diff != "" {
				t.Errorf("answers (-before +after a restart):\n%s", diff)
			}
			s.check(t)
		})
	}
}

// Replicas race to book what waits, and for the room, while it is canceled.
func TestReplicasBookWhatWaitsOnce(t *testing.T) {
	for range 20 {
		all := replicas(t, 3, named("a", "b"), unsteady(0), waiting)
		var held, line []reservation.Reservation
		for i := range 4 {
			held = append(held, all[0].book(t, only(string(rune('a'+i%2)), during(1, int64(1000+1000*(i/2)), int64(2000+1000*(i/2))))))
		}
		for i := range 8 {
			line = append(line, all[0].waits(t, askers[i%4], patient(during(1, int64(1000+1000*(i%2)), int64(2000+1000*(i%2))))))
		}
		for _, s := range all {
			s.follow(t)
		}
		var clients sync.WaitGroup
		for i, r := range held {
			clients.Go(func() { all[i%3].cancel(t, owner, r.ID) })
		}
		for i := range 4 {
			clients.Go(func() { _, _ = all[i%3].bookings.Cancel(t.Context(), askers[i], line[i].ID) })
		}
		clients.Wait()
		for range 2 {
			for _, s := range all {
				s.follow(t)
				s.serve(t)
			}
		}
		agree(t, all)
		booked := 0
		for _, r := range all[0].live(t) {
			if r.Status == reservation.Waiting {
				if all[0].fits(t, r) {
					t.Errorf("%s waits although there is room", r.ID)
				}
			} else {
				booked++
			}
		}
		if booked != 4 {
			t.Fatalf("%d hold the room of four", booked)
		}
	}
}

// fits reports whether there is room for a waiting reservation, at any of the starts that a multiple of ten seconds after base is.
func (s *scene) fits(t tester, w reservation.Reservation) bool {
	t.Helper()
	live := s.live(t)
	for start := max(w.Window.Start, s.clock()); start+span.Instant(w.Span.Seconds()) <= w.Window.End; start += 10 {
		if s.fitsAt(w, span.New(start, w.Span.Seconds()), live) {
			return true
		}
	}
	return false
}

// fitsAt reports whether there is room at a time beside reservations, instant by instant.
func (s *scene) fitsAt(w reservation.Reservation, at span.Span, live []reservation.Reservation) bool {
	room := 0
	for _, h := range s.hosts {
		least := w.Quantity
		for _, t := range turns(at, live...) {
			whole, slices := use(live, h.Name, t)
			switch {
			case whole > 0 || w.Kind == reservation.Hosts && !slices.IsZero():
				least = 0
			case w.Kind == reservation.Instances:
				least = min(least, int(h.Capacity.Sub(slices).Times(w.Resources)))
			}
		}
		if h.Reservable && least > 0 {
			room += map[bool]int{true: 1, false: least}[w.Kind == reservation.Hosts]
		}
	}
	if room < w.Quantity {
		return false
	}
	most := s.options.Limits.Hosts
	for _, t := range turns(at, live...) {
		held := w.Quantity
		for _, r := range live {
			if r.ProjectID == w.ProjectID {
				held += count(r, "", t)
			}
		}
		if most > 0 && held > most {
			return false
		}
	}
	return true
}

// inLine returns what waits in the order of the rule: by how many of the same project were made before, then by when it was made.
func inLine(list []reservation.Reservation) []reservation.Reservation {
	waits := slices.DeleteFunc(slices.Clone(list), func(r reservation.Reservation) bool { return r.Status != reservation.Waiting })
	before := func(r reservation.Reservation) (n int) {
		for _, o := range waits {
			if o.ProjectID == r.ProjectID && (o.Created < r.Created || o.Created == r.Created && o.ID < r.ID) {
				n++
			}
		}
		return n
	}
	keys := make(map[string]string)
	for _, r := range waits {
		keys[r.ID] = fmt.Sprintf("%04d %d %s", before(r), r.Created, r.ID)
	}
	slices.SortFunc(waits, func(a, b reservation.Reservation) int { return strings.Compare(keys[a.ID], keys[b.ID]) })
	return waits
}

// Nobody waits who could be served, and nobody is overtaken against the rule: after each event, those are booked who fit one after the other in the
// order of the line, and no others.
func TestNobodyWaitsWhoCouldBeServed(t *testing.T) {
	served := 0
	rapid.Check(t, func(t *rapid.T) {
		l := planning.Limits{Waiting: 20, Hold: 600, Hosts: rapid.SampledFrom([]int{0, 2, 3}).Draw(t, "limit")}
		s := newScene(t, named("a", "b", "c")[:rapid.IntRange(1, 3).Draw(t, "hosts")], limited(l))
		for range rapid.IntRange(4, 25).Draw(t, "events") {
			s.event(t)
			before := s.stored(t)
			s.makeRoom(t)
			s.serve(t)
			served += s.wantServed(t, before)
			s.check(t)
		}
		s.restart(t)
		s.serve(t)
		s.check(t)
	})
	if served == 0 {
		t.Error("nothing that waited was booked")
	}
	t.Logf("%d that waited were booked", served)
}

// event lets a project ask for something that may wait.
func (s *scene) event(t *rapid.T) {
	start := 10 * rapid.Int64Range(0, 30).Draw(t, "start")
	start = max(start, int64(s.clock()-base)+10)
	req := during(rapid.IntRange(1, 3).Draw(t, "quantity"), start, start+10*rapid.Int64Range(2, 12).Draw(t, "window"))
	req.Duration = min(10*rapid.Int64Range(1, 10).Draw(t, "duration"), int64(req.End-req.Start))
	if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
		c := cpus(rapid.Int64Range(1, 8).Draw(t, "vcpus"), req.Quantity, 0, 0)
		req.Kind, req.Resources = c.Kind, c.Resources
	}
	if latest := int64(req.End-s.clock()) - req.Duration; latest > 0 && rapid.IntRange(0, 4).Draw(t, "patience") > 0 {
		req.WaitUntil = req.End.Add(-req.Duration)
	}
	_, err := s.bookings.Book(t.Context(), askers[rapid.IntRange(0, 2).Draw(t, "project")], req, nil)
	if err != nil {
		refusal(t, err)
	}
	s.serve(t)
}

// makeRoom draws what may make room.
func (s *scene) makeRoom(t *rapid.T) {
	r, there := drawLive(t, s)
	by := booking.Caller{ProjectID: r.ProjectID}
	switch kind := rapid.IntRange(0, 7).Draw(t, "room"); {
	case kind == 0:
		s.passTo(t, s.clock()+span.Instant(10*rapid.Int64Range(1, 5).Draw(t, "later")))
	case kind == 1 && len(s.hosts) < 4:
		s.hosts = named("a", "b", "c", "d")[:len(s.hosts)+1]
		s.observe(t)
	case kind == 2 && s.options.Limits.Hosts > 0:
		s.options.Limits.Hosts++
		s.bookings.Configure(s.options.Limits, s.options.Defaults)
	case !there:
	case kind <= 4 && r.Status.Promised():
		c := planning.Change{End: new(max(s.clock(), r.Span.Start) + 10)}
		if kind == 3 {
			c = quantity(1)
		}
		_, _ = s.bookings.Change(t.Context(), by, r.ID, c)
	default:
		s.cancel(t, by, r.ID)
	}
}

// wantServed compares what was booked since before with the rule, and returns how many that waited were booked.
func (s *scene) wantServed(t tester, before []reservation.Reservation) (served int) {
	t.Helper()
	now := make(map[string]reservation.Reservation)
	for _, r := range s.stored(t) {
		now[r.ID] = r
	}
	var live []reservation.Reservation // without what was booked
	for _, r := range before {
		if after := now[r.ID]; r.Status != reservation.Waiting && after.Status.Live() {
			live = append(live, after)
		}
	}
	for _, w := range inLine(before) {
		after := now[w.ID]
		if after.Status == reservation.Canceled {
			continue
		}
		fits := false
		for start := max(w.Window.Start, s.clock()); start+span.Instant(w.Span.Seconds()) <= w.Window.End; start += 10 {
			fits = fits || s.fitsAt(w, span.New(start, w.Span.Seconds()), live)
		}
		if booked := after.Status != reservation.Waiting; booked != fits {
			t.Fatalf("%s of %s is %s; that there is room for it in its turn is %v\nnow %v\nbefore: %+v\nafter: %+v", w.ID, w.ProjectID, after.Status, fits, s.clock(), before, slices.Collect(maps.Values(now)))
		}
		if fits {
			served++
			live = append(live, after)
		}
	}
	return served
}
