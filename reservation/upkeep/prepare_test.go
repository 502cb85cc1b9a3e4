// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// prepare runs one step of the preparation, 20 s after the previous one.
func (w *town) prepare() {
	w.t.Helper()
	w.pass(20)
	if err := w.Prepare(w.ctx()); err != nil {
		w.t.Fatalf("prepare: %v", err)
	}
}

func TestHostsAreFencedAtOnceAndTheReservationsThingsMadeInTime(t *testing.T) {
	w := newTown(t, "a", "b")
	w.book(1, 5000, "a")
	w.prepare()
	if host, err := w.boot("x", "anybody", w.plainFlavor(), w.Now()); err != nil || host != "b" || len(w.traces(1)) > 0 {
		t.Errorf("a stranger's instance went to %q (%v), and the cloud has %v", host, err, w.traces(1))
	}
	w.pass(4500)
	w.prepare()
	if got := len(w.traces(1)); got != 3 {
		t.Errorf("the cloud has %v, want an aggregate, a flavor and a trait", w.traces(1))
	}
	if w.admitted(1) {
		t.Error("the owner is admitted before the start")
	}
}

func TestOfOneReservationThatFailsTheOthersKnowNothing(t *testing.T) {
	w := newTown(t, "a", "b", "c")
	w.book(1, 100, "a", "gone", "c")
	w.book(2, 100, "b")
	w.modelCloud.flavors[id(9)] = inventory.Flavor{ID: id(9), Name: fence.FlavorPrefix + id(1)} // its name is the name of reservation 1's flavor
	w.pass(20)
	if err := w.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), "another flavor has that name") {
		t.Errorf("error %v, want that of reservation 1", err)
	}
	if got := len(w.traces(2)); got != 3 {
		t.Errorf("for reservation 2 the cloud has %v", w.traces(2))
	}
	l, _ := w.modelCloud.Layout(t.Context())
	if got := fmt.Sprint(l.Aggregates[fence.Aggregate].Hosts); got != "[a b c]" {
		t.Errorf("the fence has %s, want a, b and c", got)
	}
}

func TestStrangersAreToldToGoAsConfiguredWhenItIsTime(t *testing.T) {
	far, near := int64(500), int64(100) // seconds to the start, with 600 of lead time and 120 for evictions
	for _, c := range []struct {
		name                string
		normal, preemptible upkeep.Order
		ahead               int64
		change              func(*inventory.Instance)
		want                string
	}{
		{"a normal one is waited for", upkeep.OrderWait, upkeep.OrderDelete, near, nil, "[]"},
		{"a normal one is migrated from the lead time on", upkeep.OrderMigrate, upkeep.OrderDelete, far, nil, "[migrate x]"},
		{"none before the lead time", upkeep.OrderMigrate, upkeep.OrderDelete, 700, nil, "[]"},
		{"a normal one is never deleted", upkeep.OrderDelete, upkeep.OrderDelete, near, nil, "[]"},
		{"a preemptible one has its time", upkeep.OrderMigrate, upkeep.OrderDelete, far, preemptible, "[]"},
		{"a preemptible one is deleted", upkeep.OrderMigrate, upkeep.OrderDelete, near, preemptible, "[delete x]"},
		{"or shelved", upkeep.OrderMigrate, upkeep.OrderShelve, near, preemptible, "[shelve x]"},
		{"or migrated", upkeep.OrderWait, upkeep.OrderMigrate, near, preemptible, "[migrate x]"},
		{"or waited for", upkeep.OrderMigrate, upkeep.OrderWait, near, preemptible, "[]"},
		{"it is never merely stopped", upkeep.OrderMigrate, upkeep.OrderStop, near, preemptible, "[]"},
		{"one that is locked is left", upkeep.OrderMigrate, upkeep.OrderDelete, near, func(i *inventory.Instance) { i.Preemptible, i.Locked = true, true }, "[]"},
		{"that one is protected counts for nothing", upkeep.OrderMigrate, upkeep.OrderDelete, near, func(i *inventory.Instance) { i.Preemptible, i.Protected = true, true }, "[delete x]"},
		{"one that is busy is left until it is not", upkeep.OrderMigrate, upkeep.OrderDelete, near, func(i *inventory.Instance) { i.Task = "resize_prep" }, "[]"},
		{"one that only Placement knows is left", upkeep.OrderMigrate, upkeep.OrderDelete, near, func(i *inventory.Instance) { *i = inventory.Instance{ID: "x", Host: "a"} }, "[]"},
	} {
		w := newTown(t, "a", "b")
		w.rules.Normal, w.rules.Preemptible = c.normal, c.preemptible
		w.restart()
		w.book(1, c.ahead+20, "a")
		w.putStranger("x", "a", c.change)
		w.prepare()
		if got := fmt.Sprint(w.given()); got != c.want {
			t.Errorf("%s: orders %s, want %s", c.name, got, c.want)
		}
	}
}

// The controller of best-effort work suspends its servers: it has some time to notice the
// reservation, and then until its own deadline. After that, the server is evicted like any
// other preemptible instance.
func TestServersOfBestEffortWorkAreLeftToItInTime(t *testing.T) {
	w := newTown(t, "a", "b")
	deadline := span.Instant(0)
	var unknown error
	w.departing = func(context.Context, ...string) (map[string]span.Instant, error) {
		return map[string]span.Instant{"x": deadline}, unknown
	}
	w.restart()
	w.book(1, 200, "a")
	w.putStranger("x", "a", preemptible)
	w.pass(80)
	begin := w.Now().Add(20)
	for _, step := range []struct { // each 20 s after the previous one
		deadline span.Instant
		unknown  error
		want     string
	}{
		{0, nil, "[]"}, // the controller may not have noticed it yet
		{0, nil, "[]"},
		{begin.Add(30), nil, "[]"},           // it is being suspended
		{0, errors.New("no database"), "[]"}, // it may be
		{begin.Add(30), nil, "[delete x]"},   // it is not being suspended
	} {
		deadline, unknown = step.deadline, step.unknown
		w.prepare()
		if got := fmt.Sprint(w.given()); got != step.want {
			t.Errorf("%d s after the server was in the way, the orders are %s, want %s", w.Now()-begin, got, step.want)
		}
	}
}

// Preemptible instances that arrive later fill what the owner does not use, until shortly
// before the next start.
func TestFillersStayWhileAReservationRunsAndGoBeforeTheNextStart(t *testing.T) {
	for _, fill := range []bool{true, false} {
		w := newTown(t, "a", "b")
		w.rules.Fill, w.rules.Normal = fill, upkeep.OrderMigrate
		w.restart()
		w.start(1, reservation.OnEndDelete, "a")
		r, _ := w.Reservation(id(1))
		r.Status = reservation.Active
		w.set(r)
		w.putStranger("filler", "a", preemptible)
		w.prepare()
		want := "[]"
		if !fill {
			want = "[delete filler]"
		}
		if got := fmt.Sprint(w.given()); got != want {
			t.Errorf("with filling %v the orders are %s, want %s", fill, got, want)
		}
		if !fill {
			continue
		}
		w.putStranger("normal", "a", nil)
		w.putStranger("protected", "a", func(i *inventory.Instance) { i.Preemptible, i.Protected = true, true })
		w.prepare()
		if got := slices.Sorted(slices.Values(w.given())); !slices.Equal(got, []string{"delete protected", "migrate normal"}) {
			t.Errorf("the orders are %s, want orders for the instances that do not make room", got)
		}
		w.book(2, int64(r.Span.End-w.Now()), "a")
		w.pass(int64(r.Span.End-w.Now()) - 100)
		w.prepare()
		if !slices.Contains(w.given(), "delete filler") {
			t.Errorf("the orders are %s, want the filler deleted before the next start", w.given())
		}
	}
}

func TestNobodyFillsHostsInMaintenance(t *testing.T) {
	w := newTown(t, "a")
	w.rules.Fill = true
	w.restart()
	r := w.maintain(1, 0, "a")
	r.Status = reservation.Active
	w.set(r)
	w.putStranger("filler", "a", preemptible)
	w.prepare()
	if got := fmt.Sprint(w.given()); got != "[delete filler]" {
		t.Errorf("the orders are %s", got)
	}
}

func TestAnOrderIsGivenOnceAndAgainAfterMinutes(t *testing.T) {
	w := newTown(t, "a", "b")
	w.rules.Normal = upkeep.OrderMigrate
	w.restart()
	w.book(1, 500, "a")
	w.putStranger("x", "a", nil)
	w.stuck["x"] = true
	lost := func() { // Nova has lost the order
		w.modelCloud.mu.Lock()
		defer w.modelCloud.mu.Unlock()
		w.guests["x"].Task, w.guests["x"].order = "", ""
	}
	for range 8 {
		w.prepare()
		lost()
	}
	if got := len(w.given()); got != 1 {
		t.Errorf("in 160 s, Nova gets the order %d times", got)
	}
	w.pass(60)
	w.prepare()
	if got := len(w.given()); got != 2 {
		t.Errorf("after minutes, Nova gets the order %d times, want twice", got)
	}
	if n := strings.Count(w.log.String(), "instances of others occupy a reserved host"); n != 1 {
		t.Errorf("the log reports the same host %d times, want once", n)
	}
}

func TestOnlyStrangersThatAreNotToldToGoAreAWarning(t *testing.T) {
	for order, want := range map[upkeep.Order]string{upkeep.OrderMigrate: "level=INFO", upkeep.OrderWait: "level=WARN"} {
		w := newTown(t, "a", "b")
		w.rules.Normal = order
		w.restart()
		w.book(1, 500, "a")
		w.putStranger("x", "a", nil)
		w.prepare()
		for line := range strings.Lines(w.log.String()) {
			if strings.Contains(line, "instances of others occupy a reserved host") && !strings.Contains(line, want) {
				t.Errorf("%s: %s", order, line)
			}
		}
		if evicted := strings.Contains(w.log.String(), "evicting an instance"); evicted != (order == upkeep.OrderMigrate) {
			t.Errorf("%s: the log reports an eviction: %v", order, evicted)
		}
	}
}

func TestAnOrderIsGivenAgainAtOnceInAnotherState(t *testing.T) {
	w := newTown(t, "a", "b")
	w.rules.Normal = upkeep.OrderMigrate
	w.restart()
	w.book(1, 500, "a")
	w.putStranger("x", "a", nil)
	w.stuck["x"] = true
	w.prepare()
	w.guests["x"].Status, w.guests["x"].Task, w.guests["x"].order = "VERIFY_RESIZE", "", ""
	w.prepare()
	if got := fmt.Sprint(w.given()); got != "[migrate x migrate x]" {
		t.Errorf("orders %s, want the second one, which confirms", got)
	}
}

func TestAnOrderThatWasRefusedIsTriedAgain(t *testing.T) {
	w := newTown(t, "a", "b")
	w.rules.Normal = upkeep.OrderMigrate
	w.restart()
	w.book(1, 500, "a")
	w.putStranger("x", "a", nil)
	w.fail["migrate"] = errors.New("409")
	w.prepare()
	delete(w.fail, "migrate")
	w.prepare()
	if got := fmt.Sprint(w.given()); got != "[migrate x]" {
		t.Errorf("orders %s", got)
	}
}

func TestGuestsOfTheReservationThatHasTheHostBeforeAreNoStrangersYet(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.rules.Normal = upkeep.OrderMigrate
	w.restart()
	w.put(inventory.Instance{ID: "own-spot", ProjectID: "p1", Host: "a", Status: "ACTIVE", Preemptible: true,
		Flavor: inventory.Flavor{ExtraSpecs: map[string]string{inventory.ReservationMark: id(1)}}})
	w.book(2, 1000, "a")
	w.pass(950)
	w.prepare()
	if got := w.given(); len(got) > 0 || strings.Contains(w.log.String(), "occupy a reserved host") {
		t.Errorf("orders %v; log %s", got, &w.log)
	}
}

func TestInDoubtPreparationOnlyAdds(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.cancel(1)
	w.book(2, 100, "b")
	w.putStranger("spot", "b", preemptible)
	w.untrusted = "half of the hosts are missing"
	w.prepare()
	if len(w.traces(2)) == 0 {
		t.Error("what was missing was not made")
	}
	if _, there := w.guest("spot"); !there || len(w.traces(1)) == 0 || len(w.given()) > 0 {
		t.Errorf("in doubt: orders %v, left of the canceled reservation %v", w.given(), w.traces(1))
	}
}

// cancel cancels a reservation, as the booking service does.
func (w *town) cancel(n int) {
	r, _ := w.Reservation(id(n))
	r.Status, r.Updated = reservation.Canceled, w.Now()
	for i := range r.Claims {
		r.Claims[i].Span.End = w.Now()
	}
	if w.Now() <= r.Span.Start {
		r.Claims = nil
	}
	w.set(r)
}

func TestAReservationThatIsCanceledWhileItRunsIsClearedUpAsItsOnEndSays(t *testing.T) {
	for onEnd, want := range map[reservation.OnEnd]string{
		reservation.OnEndDelete: "[stop own-a delete own-a]", reservation.OnEndShelve: "[shelve own-a]",
		reservation.OnEndStop: "[stop own-a]", reservation.OnEndLeave: "[]",
	} {
		w := running(t, onEnd, "a")
		w.pass(100)
		w.cancel(1)
		w.prepare()
		if w.admitted(1) {
			t.Errorf("%s: the owner can still boot", onEnd)
		}
		for range 5 {
			w.prepare()
		}
		if got := fmt.Sprint(w.given()); got != want || len(w.traces(1)) > 0 {
			t.Errorf("%s: orders %s, want %s; the cloud still has %v", onEnd, got, want, w.traces(1))
		}
		if host, err := w.boot("next", "anybody", w.plainFlavor(), w.Now()); err != nil || host != "a" {
			t.Errorf("%s: the host is not back in the pool: %q, %v", onEnd, host, err)
		}
	}
}

func TestAReservationThatIsCanceledBeforeItsStartLeavesNothing(t *testing.T) {
	w := newTown(t, "a", "b")
	w.book(1, 300, "a")
	w.prepare()
	w.cancel(1)
	w.prepare()
	w.prepare()
	if left := w.traces(1); len(left) > 0 {
		t.Errorf("the cloud still has %v", left)
	}
}

func TestWhatNoRecordKnowsIsLeftToTheDoctor(t *testing.T) {
	w := newTown(t, "a")
	w.book(1, 0, "a")
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	w.putOwn(1, "own-a", "a")
	before := len(w.carried)
	delete(w.known, id(1))
	delete(w.live, id(1))
	w.prepare()
	if len(w.carried) > before || len(w.given()) > 0 {
		t.Errorf("the preparation changes an orphan: %v, %v", w.carried[before:], w.given())
	}
}

func TestWhatAnotherReplicaHasJustBookedKeepsItsFence(t *testing.T) {
	w := newTown(t, "a", "b")
	w.book(1, 0, "a")
	if err := w.begin(1, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	delete(w.live, id(1)) // this replica does not know the booking yet
	w.prepare()
	if host, err := w.boot("x", "anybody", w.plainFlavor(), w.Now()); err != nil || host != "b" {
		t.Errorf("a stranger's instance went to %q, %v", host, err)
	}
	if len(w.traces(1)) != 3 || !w.admitted(1) {
		t.Errorf("for the other replica's reservation the cloud has %v", w.traces(1))
	}
}

func TestAnEndUnderWayIsNotDisturbed(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.waited = func() {
		if err := w.Prepare(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := w.finish(); err != nil {
		t.Fatal(err)
	}
	w.waited = nil
	if left := w.traces(1); len(left) > 0 {
		t.Errorf("the cloud still has %v", left)
	}
}

func TestHostsWithoutStrangersAreNotAskedAgainAndAgain(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a", "b")
	w.book(2, 500, "c")
	w.prepare()
	clear(w.calls)
	w.prepare()
	if n := w.count("on"); n > 0 {
		t.Errorf("the preparation looks at %d hosts although the inventory has no strangers and no start is near", n)
	}
	w.pass(380)
	w.prepare()
	if n := w.count("on"); n != 1 {
		t.Errorf("shortly before a start on one host, the preparation looks at %d hosts", n)
	}
}

func TestAHostJoinsNoAggregateWhoseTraitItCouldNotGet(t *testing.T) {
	w := newTown(t, "a")
	w.book(1, 100, "a")
	w.fail[string(fence.AddTraits)] = errors.New("409")
	if err := w.Prepare(t.Context()); err == nil {
		t.Error("the failure is not reported")
	}
	l, _ := w.modelCloud.Layout(t.Context())
	for name, a := range l.Aggregates {
		if len(a.Hosts) > 0 {
			t.Errorf("aggregate %s has %v", name, a.Hosts)
		}
	}
}

func TestWhatHasEndedMeanwhileIsNotMadeAgain(t *testing.T) {
	w := running(t, reservation.OnEndDelete, "a")
	w.pass(999)
	delete(w.flavors, id(1))
	delete(w.aggregates, fence.AggregatePrefix+id(1))
	ended := false
	w.slow = func(kind string) {
		if kind == "carry" && !ended {
			ended = true
			if err := w.finish(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := w.Prepare(t.Context()); err != nil && !strings.Contains(err.Error(), "no such aggregate") {
		t.Error(err)
	}
	if left := w.traces(1); len(left) > 1 { // a step of that moment may leave one
		t.Errorf("the cloud still has %v", left)
	}
	w.prepare()
	w.prepare()
	if left := w.traces(1); len(left) > 0 {
		t.Errorf("in the end, the cloud still has %v", left)
	}
}

func TestOneReplicaPreparesAtATimeAndWhenSomethingWasBooked(t *testing.T) {
	w := newTown(t, "a")
	w.book(1, 100, "a")
	changed := make(chan struct{})
	if err := w.Preparation(&shared{taken: true}, changed).Step(t.Context()); err != nil || len(w.calls) > 0 {
		t.Errorf("without the lease the job made calls %v, %v", w.calls, err)
	}
	mine := w.Preparation(&shared{}, changed)
	if err := mine.Step(t.Context()); err != nil || len(w.traces(1)) == 0 {
		t.Errorf("with the lease the cloud has %v, %v", w.traces(1), err)
	}
	if mine.Wake != (<-chan struct{})(changed) {
		t.Error("a booking does not wake the job")
	}
}
