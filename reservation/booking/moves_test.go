// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// movable asks for hosts for so many seconds within [start, end), with a notice.
func movable(quantity int, start, end, duration, notice int64) reservation.Request {
	req := during(quantity, start, end)
	req.Duration, req.Notice = duration, notice
	return req
}

// other is the owner of what moves.
var other = booking.Caller{ProjectID: "other", UserID: "bob"}

// bookMovable books a movable reservation of the other project.
func (s *scene) bookMovable(t tester, req reservation.Request) reservation.Reservation {
	t.Helper()
	r, err := s.bookings.Book(t.Context(), other, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAMovableReservationMakesWay(t *testing.T) {
	s := newScene(t, named("a"))
	m := s.bookMovable(t, movable(1, 1000, 3000, 1000, 100))
	if m.Span != span.New(at(1000), 1000) || m.Window != (span.Span{Start: at(1000), End: at(3000)}) {
		t.Fatalf("it is booked for %v in %v", m.Span, m.Window)
	}
	offer, err := s.bookings.Offer(t.Context(), owner, during(1, 1500, 1700))
	if err != nil || offer.Span != span.New(at(1500), 200) {
		t.Fatalf("the offer is %v, %v", offer.Span, err)
	}
	if s.get(t, m.ID).Version != m.Version || s.bookings.Moved() > 0 {
		t.Error("an offer moves it")
	}
	s.book(t, during(1, 1500, 1700))
	if n := s.bookings.Moved(); n != 1 {
		t.Errorf("%d moves are counted, want 1", n)
	}
	after := s.get(t, m.ID)
	if after.Span != span.New(at(1700), 1000) {
		t.Errorf("it is moved to %v", after.Span)
	}
	last, _ := after.LastEvent(reservation.MovedEvent)
	if last.Detail != planning.Difference(m, after) || last.State != reservation.EventDone {
		t.Errorf("the log has %+v", last)
	}
	var due []span.Instant
	for _, e := range after.Events {
		if e.State == reservation.EventDue {
			due = append(due, e.Time)
		}
	}
	if diff := cmp.Diff([]span.Instant{at(1700), at(2700)}, due); diff != "" {
		t.Errorf("events are due at (-want +got):\n%s", diff)
	}
	s.check(t)
	s.passTo(t, at(1700))
	if r := s.get(t, m.ID); r.Status != reservation.Active {
		t.Errorf("at its new start it is %s", r.Status)
	}
}

func TestWhatDoesNotMove(t *testing.T) {
	for name, tc := range map[string]struct {
		req  reservation.Request
		ask  reservation.Request
		now  int64
		make func(s *scene, id string) // what happens before
	}{
		"with a fixed start":           {req: during(1, 1000, 2000), ask: during(1, 1500, 1700)},
		"past its deadline":            {req: movable(1, 1000, 2100, 1000, 100), ask: during(1, 1500, 1700)},
		"to a start within its notice": {req: movable(1, 1000, 2100, 1000, 999), ask: during(1, 1500, 1700)},
		"within its notice":            {req: movable(1, 1000, 3000, 1000, 100), ask: during(1, 1500, 1700), now: 900},
		"for a large request":          {req: movable(1, 1000, 3000, 1000, 100), ask: during(1, 1500, 1751)},
		"when its owner has fixed it": {req: movable(1, 1000, 3000, 1000, 100), ask: during(1, 1500, 1700), make: func(s *scene, id string) {
			_, _ = s.bookings.Change(t.Context(), other, id, planning.Change{Notice: new(int64(0))})
		}},
		"when its owner has chosen a day": {req: movable(1, 1000, 3000, 1000, 100), ask: during(1, 1500, 1700), make: func(s *scene, id string) { _, _ = s.bookings.Change(t.Context(), other, id, moves(1100, 2100)) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a"))
			m := s.bookMovable(t, tc.req)
			if tc.make != nil {
				tc.make(s, m.ID)
			}
			before := s.get(t, m.ID)
			s.passTo(t, at(tc.now))
			_, err := s.bookings.Book(t.Context(), owner, tc.ask, nil)
			if r := refusal(t, err); r.Constraint != reservation.HostsFree {
				t.Errorf("refused by %s", r.Constraint)
			}
			if after := s.get(t, m.ID); after.Span != before.Span {
				t.Errorf("it moves from %v to %v", before.Span, after.Span)
			}
		})
	}
}

func TestANoticeNeedsAWindow(t *testing.T) {
	s := newScene(t, named("a"))
	for name, req := range map[string]reservation.Request{
		"no window": movable(1, 1000, 2000, 1000, 10),
		"negative":  movable(1, 1000, 3000, 1000, -1),
		"image":     func() reservation.Request { r := movable(1, 1000, 3000, 1000, 10); r.Image = "i"; return r }(),
		"maintenance": func() reservation.Request {
			r := movable(0, 1000, 3000, 1000, 10)
			r.Maintenance, r.Hosts = true, []string{"a"}
			return r
		}(),
	} {
		_, err := s.bookings.Book(t.Context(), owner, req, nil)
		if f := fault.Of(err); !fault.Is(err, fault.Invalid) || f.Field != "notice" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The limit of another project holds for what moves.
func TestAMoveKeepsTheLimitOfItsProject(t *testing.T) {
	s := newScene(t, named("a", "b"), limited(planning.Limits{Hosts: 1}))
	m := s.bookMovable(t, movable(1, 1000, 3000, 1000, 100))
	if _, err := s.bookings.Book(t.Context(), other, during(1, 2000, 3000), nil); err != nil {
		t.Fatal(err)
	}
	third := booking.Caller{ProjectID: "third"}
	if _, err := s.bookings.Book(t.Context(), third, during(1, 1500, 1700), nil); err != nil {
		t.Fatal(err) // there is a free host
	}
	_, err := s.bookings.Book(t.Context(), owner, during(1, 1500, 1700), nil)
	if refusal(t, err).Constraint != reservation.HostsFree || s.get(t, m.ID).Span != m.Span {
		t.Errorf("it moves to %v, where its project has a host already", s.get(t, m.ID).Span)
	}
	s.check(t)
}

// outcomes are those of storing something.
var outcomes = map[string]struct {
	fails  error
	stores bool
}{
	"stored":                    {nil, true},
	"not stored":                {reservation.ErrStale, false},
	"lost":                      {fault.New(fault.Unavailable, "the disk is full"), false},
	"stored in spite of errors": {fault.New(fault.Unavailable, "the connection was lost"), true},
}

// While a move is stored, the old and the new places are held; when it fails, all is as it was.
func TestAMoveIsStoredWholeOrNotAtAll(t *testing.T) {
	for name, asks := range map[string]struct {
		hosts  []string
		before []reservation.Request // of the owner
		mover  reservation.Request
		ask    func(s *scene) error
		taken  []reservation.Request // while the move is stored
	}{
		"for a booking": {
			hosts: []string{"a"}, mover: movable(1, 1000, 3000, 1000, 100),
			ask: func(s *scene) error {
				_, err := s.bookings.Book(t.Context(), owner, during(1, 1500, 1700), nil)
				return err
			},
			taken: []reservation.Request{during(1, 1000, 1100), during(1, 1500, 1700), during(1, 2600, 2700)},
		},
		"for an extension": {
			hosts: []string{"a", "b"}, before: []reservation.Request{only("a", during(1, 500, 1000))}, mover: during(1, 1000, 2000),
			ask: func(s *scene) error {
				_, err := s.bookings.Change(t.Context(), owner, s.live(t)[0].ID, planning.Change{End: new(at(1700))})
				return err
			},
			taken: []reservation.Request{during(1, 1000, 1100), during(1, 1900, 2000), during(2, 900, 1000)},
		},
	} {
		for outcome, tc := range outcomes {
			t.Run(name+" "+outcome, func(t *testing.T) {
				records := &doubtful{stores: true}
				w := &watched{storing: func() error { return nil }}
				s := newScene(t, named(asks.hosts...), func(o *booking.Options) {
					records.Records = o.Records
					w.Records = records
					o.Records = w
				})
				for _, req := range asks.before {
					s.book(t, req)
				}
				m := s.bookMovable(t, asks.mover)
				w.storing = func() error {
					for _, taken := range asks.taken {
						if _, err := s.bookings.Offer(t.Context(), owner, taken); err == nil {
							t.Errorf("%v is offered while the move is stored", taken.Start)
						}
					}
					records.fails, records.stores = tc.fails, tc.stores
					return nil
				}
				if err := asks.ask(s); (err == nil) != (tc.fails == nil) {
					t.Fatalf("the request returns %v", err)
				}
				w.storing, records.fails, records.stores = func() error { return nil }, nil, true
				if err := s.bookings.Follow(t.Context()); err != nil {
					t.Fatal(err)
				}
				if moved := !slices.Equal(s.get(t, m.ID).Claims, m.Claims); moved != tc.stores {
					t.Errorf("it has moved: %v", moved)
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
}

// promised follows movable reservations through all that a service learns.
type promised struct {
	mu      sync.Mutex
	wrong   []string
	moves   int
	rehomed int // moves of one without a notice to other hosts
}

func (p *promised) learn(l booking.Learned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.Before == nil || l.After == nil || l.After.Version != l.Before.Version+1 { // it learns of several changes at once
		return
	}
	was, _ := l.Before.LastEvent(reservation.MovedEvent)
	if last, moved := l.After.LastEvent(reservation.MovedEvent); moved && l.Before.Notice == 0 && last != was {
		p.rehomed++
		if l.Before.Span != l.After.Span || l.Before.Quantity != l.After.Quantity || l.Before.Status != reservation.Pending || l.After.Status != reservation.Pending {
			p.wrong = append(p.wrong, fmt.Sprintf("%s gets other hosts: %+v becomes %+v", l.Before.ID, l.Before, l.After))
		}
	}
	if l.Before.Span == l.After.Span || l.Before.Notice == 0 || l.After.Notice == 0 {
		return
	}
	p.moves++
	before, after := l.Before, l.After
	if !before.Window.Covers(after.Span) || before.Window != after.Window || before.Span.Seconds() != after.Span.Seconds() || before.Quantity != after.Quantity ||
		before.Status != reservation.Pending || after.Span.Start < after.Updated.Add(before.Notice) || before.Span.Start <= after.Updated.Add(before.Notice) {
		p.wrong = append(p.wrong, fmt.Sprintf("%s at %v: %v in %v with notice %d becomes %v", before.ID, after.Updated, before.Span, before.Window, before.Notice, after.Span))
	}
}

// Whatever is booked, changed and canceled at three replicas, each move keeps what was promised.
func TestEachMoveKeepsItsPromise(t *testing.T) {
	for name, records := range map[string]func(*booking.Options){
		"steady":                    unsteady(0),
		"failing":                   unsteady(3),
		"storing in spite of error": func(o *booking.Options) { o.Records = &liars{Records: o.Records, every: 5} },
	} {
		t.Run(name, func(t *testing.T) {
			moves, rehomed := 0, 0
			for seed := range uint64(4) {
				all := replicas(t, 3, named("a", "b", "c"), records, limited(planning.Limits{Hosts: 8}))
				kept := new(promised)
				for _, s := range all {
					s.bookings.Listen(kept.learn)
				}
				var clients sync.WaitGroup
				for worker := range uint64(6) {
					clients.Go(func() {
						chance := rand.New(rand.NewPCG(seed, worker))
						for range 80 {
							all[worker%3].bookAround(t, chance)
						}
					})
				}
				clients.Wait()
				for _, s := range all {
					for range 3 {
						if err := s.bookings.Follow(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				}
				agree(t, all)
				for _, wrong := range kept.wrong {
					t.Error(wrong)
				}
				moves, rehomed = moves+kept.moves, rehomed+kept.rehomed
			}
			if moves == 0 || rehomed == 0 {
				t.Errorf("%d have moved to another time, %d to other hosts", moves, rehomed)
			}
			t.Log(moves, "moves were learned of, and", rehomed, "to other hosts alone")
		})
	}
}

// bookAround books movable reservations, small ones and maintenance, extends and cancels, and lets time pass.
func (s *scene) bookAround(t *testing.T, chance *rand.Rand) {
	seconds := func(most int) int64 { return 10 * chance.Int64N(int64(most)) }
	by := projects[chance.IntN(len(projects))]
	var err error
	switch chance.IntN(10) {
	case 8:
		req := maintenance(0, 0, s.hosts[chance.IntN(len(s.hosts))].Name)
		req.Start = s.clock() + 10 + span.Instant(seconds(20))
		req.End = req.Start.Add(10 + seconds(3))
		_, err = s.bookings.Book(t.Context(), by, req, nil)
	case 0, 1, 2:
		req := reservation.Request{Terms: reservation.Terms{Quantity: 1 + chance.IntN(3), Notice: 1 + seconds(4)}, Start: s.clock() + 10 + span.Instant(seconds(20))}
		req.Duration = 80 + seconds(6)
		req.End = req.Start.Add(req.Duration + 10 + seconds(60))
		_, err = s.bookings.Book(t.Context(), by, req, nil)
	case 3, 4, 5:
		req := reservation.Request{Terms: reservation.Terms{Quantity: 1}, Start: s.clock() + 10 + span.Instant(seconds(20)), Duration: 10 + seconds(2)}
		_, err = s.bookings.Book(t.Context(), by, req, nil)
	case 9:
		if live := s.bookings.Live(span.Span{Start: 0, End: span.Forever}); len(live) > 0 {
			r := live[chance.IntN(len(live))]
			_, err = s.bookings.Change(t.Context(), booking.Caller{Admin: true}, r.ID, planning.Change{End: new(r.Span.End + 10 + span.Instant(seconds(4)))})
		}
	case 6:
		s.now.Add(chance.Int64N(25))
		_, _ = s.bookings.CarryOut(t.Context())
		s.bookings.Prune()
	default:
		if live := s.bookings.Live(span.Span{Start: 0, End: span.Forever}); len(live) > 0 {
			_, err = s.bookings.Cancel(t.Context(), booking.Caller{Admin: true}, live[chance.IntN(len(live))].ID)
		}
	}
	if err != nil {
		expectKinds(t, err, fault.Invalid, fault.Conflict, fault.NotFound, fault.Unavailable)
	}
}

// What has room moves nothing.
func TestWhatHasRoomMovesNothing(t *testing.T) {
	s := newScene(t, named("a", "b"))
	m := s.bookMovable(t, movable(1, 1000, 3000, 1000, 100))
	s.book(t, during(1, 1500, 1700))
	if r := s.get(t, m.ID); r.Version != m.Version || !slices.Equal(r.Claims, m.Claims) {
		t.Errorf("it is moved to %v on %v", r.Span, r.HostNames())
	}
}
