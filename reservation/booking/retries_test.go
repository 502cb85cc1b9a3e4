// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// away is a cloud on which some events fail. It records each attempt.
type away struct {
	now   func() int64 // seconds after base
	mu    sync.Mutex
	fails map[reservation.EventType]bool
	tried []string // each as "event time"
}

func (c *away) Carry(_ context.Context, _ reservation.Reservation, event reservation.EventType) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried = append(c.tried, fmt.Sprintf("%s %d", event, c.now()))
	if c.fails[event] {
		return fault.New(fault.Unavailable, "nova does not answer at %d", c.now())
	}
	return nil
}

// onCloud returns a scene whose cloud fails at these events.
func onCloud(t tester, adjust func(o *booking.Options), fails ...reservation.EventType) (*scene, *away) {
	cloud := &away{fails: make(map[reservation.EventType]bool)}
	for _, event := range fails {
		cloud.fails[event] = true
	}
	s := newScene(t, named("a"), adjust, func(o *booking.Options) { o.Cloud, o.Replica = cloud, "one" })
	cloud.now = func() int64 { return int64(s.clock() - base) }
	return s, cloud
}

// let advances the clock from first to last, and carries out what is due each second.
func (s *scene) let(t tester, first, last int64) {
	for now := first; now <= last; now++ {
		s.now.Store(int64(at(now)))
		s.bookings.CarryOut(t.Context())
		s.bookings.Wait()
	}
}

// The attempts continue where they were after a restart of the service in between.
func TestAStartThatFailsIsTriedSoonThenSeldomAndGivenUpAtTheEnd(t *testing.T) {
	causes := &causes{}
	s, cloud := onCloud(t, causes.keep, reservation.StartEvent)
	id := s.book(t, warned()).ID
	s.let(t, 99, 120)
	s.restart(t)
	s.let(t, 121, 300)
	want := []string{"start 100", "start 102", "start 104", "start 108", "start 116", "start 132", "start 164"}
	if diff := cmp.Diff(want, cloud.tried); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	r := s.get(t, id)
	wantLog := []reservation.Event{
		{Type: reservation.CreatedEvent, Time: at(0), State: reservation.EventDone, Done: at(0)},
		{Type: reservation.FailedEvent, Time: at(200), State: reservation.EventDone, Done: at(200),
			Detail: "Almanac stopped retrying its start: nova does not answer at 164"},
	}
	if diff := cmp.Diff(wantLog, r.Events); diff != "" || r.Status != reservation.Failed {
		t.Errorf("the reservation is %s; log (-want +got):\n%s", r.Status, diff)
	}
	last := causes.list[len(causes.list)-1]
	if diff := cmp.Diff(reservation.Cause{Action: reservation.ActionStart, Detail: "nova does not answer at 164"}, last); diff != "" {
		t.Errorf("last entry of the audit trail (-want +got):\n%s", diff)
	}
	s.check(t)
}

func TestAShortTroubleMakesAStartSecondsLate(t *testing.T) {
	s, cloud := onCloud(t, func(*booking.Options) {}, reservation.StartEvent)
	id := s.book(t, during(1, 100, 200)).ID
	s.let(t, 100, 105)
	if r := s.get(t, id); r.Events[1].Detail != "nova does not answer at 104" || r.Status != reservation.Starting {
		t.Errorf("meanwhile the reservation is %s, %+v", r.Status, r.Events[1])
	}
	cloud.fails = nil
	s.let(t, 106, 108)
	r := s.get(t, id)
	want := reservation.Event{Type: reservation.StartEvent, Time: at(100), State: reservation.EventDone, Done: at(108), Detail: "8s after its time"}
	if diff := cmp.Diff(want, r.Events[1]); diff != "" || r.Status != reservation.Active {
		t.Errorf("the reservation is %s; start (-want +got):\n%s", r.Status, diff)
	}
}

// The first attempt is late because the service was down.
func TestTheFirstFailureIsSoonTriedAgainHoweverLateItComes(t *testing.T) {
	s, cloud := onCloud(t, func(*booking.Options) {}, reservation.StartEvent)
	s.book(t, during(1, 100, 2000))
	s.let(t, 1000, 1070)
	if diff := cmp.Diff([]string{"start 1000", "start 1002", "start 1062"}, cloud.tried); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

func TestAnEndThatFailsIsTriedEveryMinuteForADay(t *testing.T) {
	s, cloud := onCloud(t, func(*booking.Options) {}, reservation.EndEvent)
	id := s.book(t, during(1, 100, 200)).ID
	s.let(t, 100, 200)
	for now := int64(202); now < 200+24*3600; now += 2 {
		s.let(t, now, now)
	}
	if n := len(cloud.tried); n < 24*60 || n > 24*60+10 {
		t.Errorf("%d attempts in a day", n)
	}
	wantStatus(t, s, id, reservation.Ending)
	if _, err := s.bookings.Offer(t.Context(), owner, during(1, 90_000, 90_050)); err != nil {
		t.Errorf("the host is not free after the end: %v", err)
	}
	tried := len(cloud.tried)
	s.let(t, 200+24*3600, 300+24*3600)
	r := s.get(t, id)
	last := r.Events[len(r.Events)-1]
	if r.Status != reservation.Failed || last.Type != reservation.FailedEvent || len(cloud.tried) != tried {
		t.Errorf("the reservation is %s, and %d attempts later the log ends with %+v", r.Status, len(cloud.tried)-tried, last)
	}
	s.check(t)
}

func TestAStartIsTriedAsSoonAsItsHostIsReplaced(t *testing.T) {
	s, cloud := onCloud(t, func(*booking.Options) {}, reservation.StartEvent)
	id := s.book(t, during(1, 100, 2000)).ID
	s.hosts = named("a", "b")
	s.observe(t)
	s.let(t, 100, 230) // the next attempt would be at 288
	s.heal(t, id, failing("a"), true)
	cloud.fails = nil
	s.let(t, 231, 231)
	if r := s.get(t, id); r.Status != reservation.Active || r.Claims[0].Host != "b" {
		t.Errorf("the reservation is %s and has %v", r.Status, claimed(r))
	}
}

func TestWhatFailsToStartCanBeGivenUp(t *testing.T) {
	s, cloud := onCloud(t, func(*booking.Options) {}, reservation.StartEvent)
	id := s.book(t, during(1, 100, 200)).ID
	s.let(t, 100, 110)
	if _, err := s.bookings.Cancel(t.Context(), owner, id); err != nil {
		t.Fatal(err)
	}
	tried := len(cloud.tried)
	s.book(t, during(1, 110, 120))
	cloud.fails = nil
	s.let(t, 110, 300)
	if got := cloud.tried[tried:]; len(got) != 2 { // start and end of the other reservation
		t.Errorf("after the cancellation the cloud carried out %v", got)
	}
	s.check(t)
}

func TestAWarningAsksTheCloudForNothing(t *testing.T) {
	s, cloud := onCloud(t, func(*booking.Options) {}, reservation.BeforeEndEvent)
	id := s.book(t, warned()).ID
	s.let(t, 100, 200)
	if diff := cmp.Diff([]string{"start 100", "end 200"}, cloud.tried); diff != "" || s.get(t, id).Status != reservation.Ended {
		t.Errorf("the reservation is %s; attempts (-want +got):\n%s", s.get(t, id).Status, diff)
	}
}

func TestTheDeskSaysThatSomethingIsAnother(t *testing.T) {
	all := replicas(t, 2, named("a"))
	id := all[0].book(t, during(1, 100, 200)).ID
	if !news(all[0]) || news(all[0]) || news(all[1]) {
		t.Error("a booking must be news once on its replica, and not yet on the other")
	}
	all[1].follow(t)
	if !news(all[1]) {
		t.Error("what another replica has stored must be news")
	}
	all[1].follow(t)
	all[0].heal(t, id, failing(), false)
	if news(all[0]) || news(all[1]) {
		t.Error("there is news without a change")
	}
}

func TestAnEndIsNewsAndAStartIsNone(t *testing.T) {
	s, _ := onCloud(t, func(*booking.Options) {})
	s.book(t, during(1, 100, 200))
	news(s)
	s.let(t, 100, 199)
	if news(s) {
		t.Error("a start must not be news, because it changes no promise")
	}
	s.let(t, 200, 201)
	if !news(s) {
		t.Error("an end must be news, because it makes room")
	}
}

// news reports whether there was news since the last call.
func news(s *scene) bool {
	select {
	case <-s.bookings.News():
		return true
	default:
		return false
	}
}
