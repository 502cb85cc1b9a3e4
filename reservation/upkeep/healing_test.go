// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/booking/memory"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// ward is a booking service with failing hosts and the healing job under test.
type ward struct {
	bookings  *booking.Service
	memory    *memory.Records
	hosts     map[string]*inventory.Host
	now       span.Instant
	untrusted string
	read      span.Instant // when the hosts were last read; 0 is now
	rules     upkeep.HealingRules
	others    shared // the other replicas
	job       job.Job
}

// morning is the start of the ward's clock.
const morning = span.Instant(2_000_000_000)

func newWard(t *testing.T, hosts ...string) *ward {
	t.Helper()
	w := &ward{memory: memory.New(), hosts: make(map[string]*inventory.Host), now: morning, rules: upkeep.HealingRules{Grace: 60, Window: 3600}}
	for _, name := range hosts {
		w.hosts[name] = &inventory.Host{Name: name, Reservable: true, Capacity: resource.Vector{VCPUs: 8}}
	}
	ids := 0
	bookings, err := booking.Open(t.Context(), booking.Options{
		Records: w.memory, Keys: w.memory, Reader: w.memory,
		Defaults: planning.Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
		Now:      func() span.Instant { return w.now },
		NewID:    func() string { ids++; return fmt.Sprint("r", ids) },
	}, w.snapshot(t))
	if err != nil {
		t.Fatal(err)
	}
	w.bookings = bookings
	w.restart(w.bookings)
	return w
}

// restart starts the job again, on a booking service.
func (w *ward) restart(bookings upkeep.Healer) {
	w.job = upkeep.Healing(upkeep.HealingOptions{
		Booking: bookings, Leases: &w.others, Untrusted: func() string { return w.untrusted }, Rules: w.rules,
		Read: w.readAt,
		Now:  func() span.Instant { return w.now }, Log: slog.New(slog.DiscardHandler),
	})
}

func (w *ward) readAt() span.Instant {
	if w.read != 0 {
		return w.read
	}
	return w.now
}

func (w *ward) snapshot(t *testing.T) *inventory.Snapshot {
	t.Helper()
	var hosts []inventory.Host
	for _, h := range w.hosts {
		hosts = append(hosts, *h)
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pass advances the clock by seconds, with one step every five seconds.
func (w *ward) pass(t *testing.T, seconds int64) {
	t.Helper()
	w.bookings.Observe(w.snapshot(t))
	for range seconds / 5 {
		w.now += 5
		if _, failed := w.bookings.CarryOut(t.Context()); len(failed) > 0 {
			t.Fatal(failed)
		}
		if err := w.job.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// book books hosts for an hour; start is in seconds from now.
func (w *ward) book(t *testing.T, quantity int, start int64) string {
	t.Helper()
	req := reservation.Request{Terms: reservation.Terms{Quantity: quantity}, Start: w.now.Add(start), Duration: 3600}
	r, err := w.bookings.Book(t.Context(), booking.Caller{ProjectID: "demo"}, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

// want compares the hosts of a stored reservation, and whether it is degraded.
func (w *ward) want(t *testing.T, id string, degraded bool, hosts ...string) {
	t.Helper()
	r, err := w.memory.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hosts, r.HostNames()); diff != "" || (r.Degraded != "") != degraded {
		t.Errorf("%s is degraded: %q; hosts (-want +got):\n%s", id, r.Degraded, diff)
	}
}

func TestAHostThatFailsIsReplacedAfterTheGrace(t *testing.T) {
	for name, fail := range map[string]func(w *ward){
		"its nova-compute is down":       func(w *ward) { w.hosts["a"].Problem = "its nova-compute is down" },
		"it has left the cloud":          func(w *ward) { delete(w.hosts, "a") },
		"it is disabled: a disk is full": func(w *ward) { w.hosts["a"].Problem = "it is disabled: a disk is full" },
		"it is marked as failed":         func(w *ward) { w.hosts["a"].Power = inventory.PowerFailed },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWard(t, "a", "b")
			bookings := &frail{Service: w.bookings}
			w.restart(bookings)
			active, soon, later := w.book(t, 1, 0), w.book(t, 1, 3700), w.book(t, 1, 10_000)
			w.pass(t, 100)
			fail(w)
			w.pass(t, 60) // the first step starts the grace time
			w.want(t, active, false, "a")
			w.pass(t, 5)
			w.want(t, active, false, "b")
			w.want(t, soon, false, "b")
			w.want(t, later, false, "a")
			if !slices.Equal(bookings.told, []string{name, name}) {
				t.Errorf("the reasons are %q, want for both reservations %s", bookings.told, name)
			}
		})
	}
}

func TestAHostThatIsOffOnPurposeIsNotReplaced(t *testing.T) {
	for _, power := range []inventory.Power{inventory.PowerSleeping, inventory.PowerWaking} {
		w := newWard(t, "a", "b")
		id := w.book(t, 1, 600)
		w.hosts["a"].Power, w.hosts["a"].Problem = power, "its nova-compute is down"
		w.pass(t, 300)
		w.want(t, id, false, "a")
	}
}

func TestAHostInMaintenanceIsNotReplaced(t *testing.T) {
	w := newWard(t, "a", "b")
	req := reservation.Request{Terms: reservation.Terms{Maintenance: true}, Hosts: []string{"a"}, Start: w.now, Duration: 3600}
	r, err := w.bookings.Book(t.Context(), booking.Caller{ProjectID: "ops"}, req, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.hosts["a"].Problem = "its nova-compute is down"
	w.pass(t, 3000)
	w.want(t, r.ID, false, "a")
}

func TestOnlyTimeOfOneOutageThatIsBelievedCounts(t *testing.T) {
	down := func(w *ward) { w.hosts["a"].Problem = "its nova-compute is down" }
	for name, tc := range map[string]struct {
		interrupt func(t *testing.T, w *ward) // after 50 s of the outage
		after     int64                       // the host is replaced that many seconds later, not sooner
	}{
		"nothing":       {func(*testing.T, *ward) {}, 15},
		"back for once": {func(t *testing.T, w *ward) { w.hosts["a"].Problem = ""; w.pass(t, 5); down(w) }, 65},
		"doubt": {func(t *testing.T, w *ward) {
			w.untrusted = "8 of 10 hosts have gone"
			w.pass(t, 3600)
			w.untrusted = ""
		}, 15},
		"no reading for a while": {func(t *testing.T, w *ward) { w.read = w.now; w.pass(t, 100); w.read = 0 }, 5},
		"no reading for so long that there is doubt": {func(t *testing.T, w *ward) {
			w.read = w.now
			w.pass(t, 120)
			w.untrusted = "the hosts were last read 2m5s ago"
			w.pass(t, 3600)
			w.untrusted, w.read = "", 0
		}, 15},
		"a process that was stopped": {func(_ *testing.T, w *ward) { w.now += 3600 }, 65},
		"a clock that is set back":   {func(_ *testing.T, w *ward) { w.now -= 20 }, 20},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWard(t, "a", "b")
			req := reservation.Request{Terms: reservation.Terms{Quantity: 1}, Start: w.now, Duration: 36_000}
			r, err := w.bookings.Book(t.Context(), booking.Caller{ProjectID: "demo"}, req, nil)
			if err != nil {
				t.Fatal(err)
			}
			w.pass(t, 100)
			down(w)
			w.pass(t, 50)
			tc.interrupt(t, w)
			w.pass(t, tc.after-5)
			w.want(t, r.ID, false, "a")
			w.pass(t, 5)
			w.want(t, r.ID, false, "b")
		})
	}
}

func TestWhatStartsFirstIsHealedFirst(t *testing.T) {
	w := newWard(t, "a", "b", "c", "d")
	second, first := w.book(t, 1, 600), w.book(t, 1, 300)
	w.want(t, second, false, "a")
	w.want(t, first, false, "b")
	w.hosts["a"].Problem, w.hosts["b"].Problem, w.hosts["d"].Reservable = "its nova-compute is down", "its nova-compute is down", false
	w.pass(t, 65)
	w.want(t, first, false, "c")
	w.want(t, second, true, "a")
	w.hosts["d"].Reservable = true
	w.pass(t, 5)
	w.want(t, second, false, "d")
}

func TestAHostThatIsBackBeforeItWasReplacedTakesTheDegradationBack(t *testing.T) {
	w := newWard(t, "a")
	id := w.book(t, 1, 0)
	w.hosts["a"].Problem = "its nova-compute is down"
	w.pass(t, 65)
	w.want(t, id, true, "a")
	w.restart(w.bookings) // the new job does not know the start of the outage
	w.pass(t, 60)
	w.want(t, id, true, "a")
	w.hosts["a"].Problem = ""
	w.untrusted = "nobody has looked for 20 minutes"
	w.pass(t, 60)
	w.want(t, id, true, "a")
	w.untrusted = ""
	w.pass(t, 5)
	w.want(t, id, false, "a")
	r, _ := w.bookings.Reservation(id)
	var log []reservation.EventType
	for _, e := range r.Events {
		if e.State == reservation.EventDone {
			log = append(log, e.Type)
		}
	}
	if diff := cmp.Diff([]reservation.EventType{"created", "start", "degraded", "restored"}, log); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestAReplicaWithoutTheLeaseWatchesAndHealsOnceItHasIt(t *testing.T) {
	w := newWard(t, "a", "b")
	id := w.book(t, 1, 0)
	w.hosts["a"].Problem, w.others.taken = "its nova-compute is down", true
	w.pass(t, 300)
	w.want(t, id, false, "a")
	w.others.taken = false
	w.pass(t, 5)
	w.want(t, id, false, "b")
}

// frail is a booking service that cannot heal one reservation. It records which reservations
// it is asked to heal, and the reasons for host a.
type frail struct {
	*booking.Service
	id          string
	asked, told []string
}

func (f *frail) Heal(ctx context.Context, id string, failed planning.Failed) (reservation.Reservation, bool, error) {
	f.asked = append(f.asked, id)
	if reason, yes := failed("a"); yes {
		f.told = append(f.told, reason)
	}
	if id == f.id {
		return reservation.Reservation{}, false, errors.New("the database is away")
	}
	return f.Service.Heal(ctx, id, failed)
}

func TestAReservationThatCannotBeHealedKeepsNoOtherBack(t *testing.T) {
	w := newWard(t, "a", "b", "c", "d")
	first, second := w.book(t, 1, 300), w.book(t, 1, 600)
	f := &frail{Service: w.bookings, id: first}
	w.restart(f)
	w.hosts["a"].Problem, w.hosts["b"].Problem = "its nova-compute is down", "its nova-compute is down"
	w.pass(t, 60)
	w.now += 5
	if err := w.job.Step(t.Context()); err == nil || err.Error() != "heal reservation "+first+": the database is away" {
		t.Errorf("the failure is %v", err)
	}
	if !slices.Equal(f.asked, []string{first, second}) {
		t.Errorf("healed %v, want both in the order of their starts", f.asked)
	}
	w.want(t, first, false, "a")
	w.want(t, second, false, "c")
}
