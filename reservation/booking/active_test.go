// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// running books req and advances the clock to 150.
func (s *scene) running(t tester, req reservation.Request) reservation.Reservation {
	t.Helper()
	id := s.book(t, req).ID
	s.passTo(t, at(150))
	r := s.get(t, id)
	if r.Status != reservation.Active {
		t.Fatalf("%s is %s at 150", id, r.Status)
	}
	return r
}

func TestGrowthOfAnActiveReservationBeginsNow(t *testing.T) {
	for name, tc := range map[string]struct {
		req  reservation.Request
		want []reservation.Claim
	}{
		"hosts": {during(1, 100, 200), []reservation.Claim{
			{Host: "a", Span: span.Span{Start: at(100), End: at(200)}},
			{Host: "b", Span: span.Span{Start: at(150), End: at(200)}},
		}},
		"instances": {cpus(4, 1, 100, 200), []reservation.Claim{
			{Host: "a", Span: span.Span{Start: at(100), End: at(200)}, Slices: 1},
			{Host: "b", Span: span.Span{Start: at(150), End: at(200)}, Slices: 1},
		}},
		"instances beside themselves": {cpus(2, 1, 100, 200), []reservation.Claim{
			{Host: "a", Span: span.Span{Start: at(100), End: at(200)}, Slices: 1},
			{Host: "a", Span: span.Span{Start: at(150), End: at(200)}, Slices: 1},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c"))
			r := s.running(t, tc.req)
			if tc.req.Kind == reservation.Instances {
				s.book(t, only("a", cpus(4, 1, 150, 200)))
			}
			r = s.change(t, r.ID, quantity(2))
			if diff := cmp.Diff(tc.want, r.Claims); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			s.check(t)
		})
	}
}

func TestAShrinkingActiveReservationKeepsHostsWithGuests(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	r := s.running(t, during(3, 100, 200))
	s.host("b").InstanceCount, s.host("c").InstanceCount = 1, 2
	s.observe(t)
	if diff := cmp.Diff([]string{"c", "b"}, claimed(s.change(t, r.ID, quantity(2)))); diff != "" {
		t.Errorf("left of a, b and c (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c"}, claimed(s.change(t, r.ID, quantity(1)))); diff != "" {
		t.Errorf("left of b and c (-want +got):\n%s", diff)
	}
	s.book(t, during(2, 150, 200))
	s.check(t)
}

// Guests that run before the start belong to others, so they do not decide which hosts stay.
func TestAShrinkingPendingReservationKeepsItsFirstChoice(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.book(t, during(2, 100, 200))
	s.host("b").InstanceCount = 5
	s.observe(t)
	if diff := cmp.Diff([]string{"a"}, claimed(s.change(t, r.ID, quantity(1)))); diff != "" {
		t.Errorf("left of a and b (-want +got):\n%s", diff)
	}
}

func TestAnActiveReservationIsExtendedWhereItIsOrNotAtAll(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.running(t, during(1, 100, 200))
	s.book(t, only("b", during(1, 180, 190)))
	next := s.book(t, only("a", during(1, 300, 400)))
	before := s.stored(t)
	_, err := s.bookings.Change(t.Context(), owner, r.ID, ends(301))
	got := refusal(t, err)
	want := &reservation.Refusal{
		Constraint: reservation.HostsFree, Message: got.Message, Matched: 2, Free: 0, Wanted: span.Span{Start: s.clock(), End: at(301)},
		BlockedBy: []reservation.Block{{Host: "a", Span: next.Span}}, LatestEnd: at(300),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refusal (-want +got):\n%s", diff)
	}
	if sentence := fmt.Sprintf("promised to others from %v on; the latest end is %v", at(300), at(300)); !strings.HasSuffix(got.Message, sentence) {
		t.Errorf("the user reads %q, want %q at the end", got.Message, sentence)
	}
	if diff := cmp.Diff(before, s.stored(t)); diff != "" {
		t.Errorf("records (-before +after):\n%s", diff)
	}
	r = s.change(t, r.ID, ends(300))
	if diff := cmp.Diff([]reservation.Claim{{Host: "a", Span: span.Span{Start: at(100), End: at(300)}}}, r.Claims); diff != "" {
		t.Errorf("extended until the next reservation starts (-want +got):\n%s", diff)
	}
	s.check(t)
}

// The refusal and the search for the latest end read the clock one after the other.
func TestARefusedExtensionNamesNoLatestEndOnceTheReservationIsOver(t *testing.T) {
	for readings := range 8 {
		var left atomic.Int64
		left.Store(math.MaxInt64)
		s := newScene(t, named("a"), limited(planning.Limits{Duration: 150}), func(o *booking.Options) {
			now := o.Now
			o.Now = func() span.Instant {
				if left.Add(-1) < 0 {
					return at(290)
				}
				return now()
			}
		})
		r := s.book(t, cpus(1, 1, 100, 200))
		left.Store(int64(readings))
		_, err := s.bookings.Change(t.Context(), owner, r.ID, ends(300))
		if refused, ok := errors.AsType[*reservation.Refusal](err); ok && (refused.LatestEnd == 0 || refused.LatestEnd == at(250)) {
			continue
		}
		if !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v when the clock jumps after %d readings, want a conflict or a refusal that names 250 or nothing", err, readings)
		}
	}
}

func TestAnExtensionMayGiveUpTheHostsThatAreTaken(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.running(t, during(2, 100, 200))
	s.book(t, only("a", during(1, 200, 400)))
	_, err := s.bookings.OfferChange(t.Context(), owner, r.ID, ends(300))
	if got := refusal(t, err).LargestQuantity; got != 1 {
		t.Errorf("largest quantity %d, want 1", got)
	}
	r = s.change(t, r.ID, planning.Change{End: new(at(300)), Quantity: new(1)})
	if diff := cmp.Diff([]string{"b"}, claimed(r)); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}

// Two claims of one reservation on a host compete for the same room after the old end, and
// the refusal counts each instance once.
func TestInstancesThatGrewAreCountedOnceEach(t *testing.T) {
	s := newScene(t, named("a"))
	r := s.running(t, cpus(2, 2, 100, 200))
	r = s.change(t, r.ID, quantity(4)) // 8 of 8 vCPUs
	s.book(t, cpus(2, 1, 200, 300))
	_, err := s.bookings.Change(t.Context(), owner, r.ID, ends(300))
	if got := refusal(t, err).LargestQuantity; got != 3 {
		t.Errorf("largest quantity %d, want 3", got)
	}
	s.change(t, r.ID, planning.Change{End: new(at(300)), Quantity: new(3)})
	s.check(t)
}

func TestInstancesOfOneHostGrowThereOnly(t *testing.T) {
	s := newScene(t, named("a", "b"))
	req := cpus(2, 2, 100, 200)
	req.Affinity = calendar.AffinitySame
	r := s.running(t, req)
	_, err := s.bookings.OfferChange(t.Context(), owner, r.ID, quantity(5))
	if got := refusal(t, err).LargestQuantity; got != 4 {
		t.Errorf("largest quantity %d, want 4", got)
	}
	s.change(t, r.ID, quantity(4))
	s.check(t)
}

// A host may shrink, fail, leave the pool or leave the cloud. Its promises stay and can be
// released, but cannot grow.
func TestWhatIsHeldIsNotLost(t *testing.T) {
	lost := map[string]func(t *testing.T, s *scene){
		"smaller":                func(t *testing.T, s *scene) { s.host("a").Capacity = resource.Vector{VCPUs: 1}; s.observe(t) },
		"failed":                 func(t *testing.T, s *scene) { s.host("a").Power = inventory.PowerFailed; s.observe(t) },
		"no pool":                func(t *testing.T, s *scene) { s.host("a").Reservable = false; s.observe(t) },
		"gone":                   func(t *testing.T, s *scene) { s.hosts = nil; s.observe(t) },
		"smaller, and a restart": func(t *testing.T, s *scene) { s.host("a").Capacity = resource.Vector{VCPUs: 1}; s.restart(t) },
		"gone, and a restart":    func(t *testing.T, s *scene) { s.hosts = nil; s.restart(t) },
	}
	for how, lose := range lost {
		for status, now := range map[reservation.Status]int64{reservation.Pending: 0, reservation.Active: 150} {
			for _, req := range []reservation.Request{during(1, 100, 200), cpus(4, 2, 100, 200)} {
				t.Run(how+" "+string(status)+" "+string(req.Kind), func(t *testing.T) {
					s := newScene(t, named("a"))
					r := s.book(t, req)
					s.passTo(t, at(now))
					lose(t, s)
					if grows := strings.HasPrefix(how, "smaller") && req.Kind != reservation.Instances; !grows {
						_, err := s.bookings.Change(t.Context(), owner, r.ID, ends(210))
						refusal(t, err)
					}
					_, err := s.bookings.Change(t.Context(), owner, r.ID, quantity(9))
					if got := refusal(t, err).LargestQuantity; got != r.Quantity {
						t.Errorf("largest quantity %d, want %d", got, r.Quantity)
					}
					s.change(t, r.ID, renamed("night run"))
					r = s.change(t, r.ID, ends(190))
					if r.Quantity > 1 {
						r = s.change(t, r.ID, quantity(1))
					}
					if r.Claims[0].Host != "a" || r.Span.End != at(190) {
						t.Errorf("the reservation has %+v in %v, want a until 190", r.Claims, r.Span)
					}
					if _, err := s.bookings.Cancel(t.Context(), owner, r.ID); err != nil {
						t.Errorf("cancel: %v", err)
					}
				})
			}
		}
	}
}

// The end has passed but is not carried out yet.
func TestWhatIsOverCannotBeChanged(t *testing.T) {
	s := newScene(t, named("a"))
	r := s.running(t, during(1, 100, 200))
	next := s.book(t, during(1, 200, 210))
	s.now.Store(int64(at(220)))
	for name, c := range map[string]planning.Change{"extend": ends(300), "rename": renamed("x"), "grow": quantity(2)} {
		if _, err := s.bookings.Change(t.Context(), owner, r.ID, c); !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	if _, err := s.bookings.Change(t.Context(), owner, next.ID, ends(300)); !fault.Is(err, fault.Conflict) {
		t.Errorf("a reservation that never started: %v, want a conflict", err)
	}
	s.passTo(t, at(220))
	s.check(t)
}
