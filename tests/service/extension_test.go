// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/chaos"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// A tenant's reservation ends later on the hosts that a neighbor has next: the neighbor has other hosts at the same time, and is told.
// Where no other hosts are free, the extension is refused and names the latest end.
func TestAReservationEndsLaterAndItsNeighborIsTold(t *testing.T) {
	broker := labtest.RabbitMQ(t)
	told := chaos.Listen(t, broker)
	g := built.StartGuarded(t, "OS_DEFAULT__TRANSPORT_URL="+broker, "OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER=messagingv2", "OS_OSLO_MESSAGING_RABBIT__RABBIT_QUORUM_QUEUE=true")
	day := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	at := func(hours int) string { return day.Add(time.Duration(hours) * time.Hour).UTC().Format(time.RFC3339) }
	do := func(u labtest.User, want int, says []string, arguments ...string) {
		t.Helper()
		_, stderr, exit := g.As(u, append([]string{"reservation"}, arguments...)...)
		built.WantExit(t, arguments[0], stderr, exit, want, says...)
	}
	show := func(u labtest.User, name string) (r v1.Reservation) {
		t.Helper()
		out, stderr, exit := g.As(u, "reservation", "show", name, "-f", "api")
		built.WantExit(t, "show", stderr, exit, 0)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}

	do(labtest.Demo, 0, nil, "create", "course", "--quantity", "5", "--start", at(0), "--end", at(2))
	do(labtest.Demo2, 0, nil, "create", "lab", "--quantity", "5", "--start", at(0), "--end", at(2)) // so that the course itself cannot have other hosts
	do(labtest.Demo2, 0, nil, "create", "seminar", "--quantity", "5", "--start", at(2), "--end", at(4))
	before := show(labtest.Demo2, "seminar")
	do(labtest.Demo, 0, nil, "extend", "course", "--by", "1h", "--dry-run")
	if r := show(labtest.Demo2, "seminar"); r.Events[len(r.Events)-1].Type == "moved" {
		t.Fatalf("a dry run moves the neighbor: %+v", r.Events)
	}
	do(labtest.Demo, 0, nil, "extend", "course", "--by", "1h")
	after := show(labtest.Demo2, "seminar")
	if !after.Start.Equal(before.Start) || !after.End.Equal(before.End) || after.Quantity != 5 || !slices.ContainsFunc(after.Events, func(e v1.Event) bool { return e.Type == "moved" && e.Detail == "other hosts at the same time" }) {
		t.Errorf("the neighbor becomes %+v", after)
	}
	if r := show(labtest.Demo, "course"); !r.End.Equal(day.Add(3 * time.Hour)) {
		t.Errorf("the course ends at %v", r.End)
	}
	built.Eventually(t, "the neighbor is not told", func() bool {
		told.Mu.Lock()
		defer told.Mu.Unlock()
		return told.Events[after.ID+" reservation.move"] == 1
	})

	do(labtest.Demo2, 0, nil, "create", "lecture", "--quantity", "10", "--start", at(4), "--end", at(5))
	do(labtest.Demo, 5, []string{"the latest end is " + at(4)}, "extend", "course", "--by", "2h")
}

// One replica is asked to extend a reservation over hosts that a neighbor has next, while the other is asked for the hosts to which the
// neighbor would go. One of them is refused, and nothing is promised twice.
func TestAnExtensionAndABookingAtTwoReplicasPromiseNothingTwice(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection)
	r := chaos.StartReplicas(t, settings, settings)
	c := chaos.NewChecker(t, "mysql", labtest.DSN(t, connection))
	extended, booked := 0, 0
	for round := range 12 {
		begin := time.Now().Add(time.Duration(24*(1+round)) * time.Hour).Truncate(time.Second)
		book := func(i int, from time.Duration, hosts int) (v1.Reservation, error) {
			return r.Client(i).CreateReservation(t.Context(), small(begin.Add(from), hosts), client.CreateOptions{})
		}
		mine, err := book(round, 0, 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []time.Duration{0, time.Hour} { // beside it, and on its hosts later
			if _, err := book(round, from, 5); err != nil {
				t.Fatal(err)
			}
		}
		var both sync.WaitGroup
		var extension, booking error
		both.Go(func() {
			_, extension = r.Client(0).ChangeReservation(t.Context(), mine.ID, v1.ReservationChange{EndTime: new(mine.End.Add(time.Hour))})
		})
		both.Go(func() { _, booking = book(1, time.Hour, 5) })
		both.Wait()
		for _, err := range []error{extension, booking} {
			if err != nil && !refused(err) {
				t.Errorf("unexpected answer: %v", err)
			}
		}
		if (extension == nil) == (booking == nil) {
			t.Errorf("the extension: %v; the booking: %v", extension, booking)
		}
		if extension == nil {
			extended++
		} else {
			booked++
		}
	}
	c.Check(16)
	if n := c.Number("SELECT COUNT(*) FROM events WHERE type = 'moved'"); int(n) != extended {
		t.Errorf("%d were extended, and %d neighbors were moved", extended, n)
	}
	t.Logf("%d were extended, %d booked", extended, booked)
}

// Clients extend reservations over hosts that their neighbors have next, at two replicas that are killed again and again: an extension
// is stored with the move of its neighbor or not at all, and no host is promised twice.
func TestExtensionsAreWholeWhenAReplicaIsKilled(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection)
	r := chaos.StartReplicas(t, settings, settings)
	c := chaos.NewChecker(t, "mysql", labtest.DSN(t, connection))
	begin := time.Now().Add(24 * time.Hour).Truncate(time.Hour)
	moves := func() int64 { return c.Number("SELECT COUNT(*) FROM events WHERE type = 'moved'") }
	var days atomic.Int64
	work := func(ctx context.Context, i int, _ *rand.Rand) {
		day := begin.Add(time.Duration(days.Add(1)) * 24 * time.Hour)
		var mine v1.Reservation
		var err error
		for n, from := range []time.Duration{0, 0, time.Hour} { // the one to extend, one beside it, and one on its hosts later
			var booked v1.Reservation
			if booked, err = r.Client(i).CreateReservation(ctx, small(day.Add(from), 5), client.CreateOptions{}); err != nil {
				break
			}
			if n == 0 {
				mine = booked
			}
		}
		if err == nil {
			_, err = r.Client(i).ChangeReservation(ctx, mine.ID, v1.ReservationChange{EndTime: new(mine.End.Add(time.Hour))})
		}
		if err != nil && ctx.Err() == nil && !busy(err) && !gone(err) {
			t.Errorf("unexpected answer: %v", err)
		}
	}
	underKills(t, r, moves, work, func(bool) { c.Check(16) })
	extended := c.Number("SELECT COUNT(*) FROM reservations WHERE end_at - start_at = 7200")
	if n := moves(); n != extended {
		t.Errorf("%d reservations are extended, and %d neighbors are moved", extended, n)
	}
	t.Logf("%d extensions in %d days", extended, days.Load())
}
