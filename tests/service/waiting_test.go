// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
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

// Two projects wait for the hosts of a third. The first gets them when they are given back, and must confirm; as it does not, the second has them.
// Each step is told on the bus.
func TestTenantsWaitForRoomAndAreToldOfEachStep(t *testing.T) {
	broker := labtest.RabbitMQ(t)
	told := chaos.Listen(t, broker)
	g := built.StartGuarded(t, "OS_DEFAULT__TRANSPORT_URL="+broker, "OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER=messagingv2", "OS_OSLO_MESSAGING_RABBIT__RABBIT_QUORUM_QUEUE=true")
	do := func(u labtest.User, want int, says []string, arguments ...string) string {
		t.Helper()
		out, stderr, exit := g.As(u, arguments...)
		built.WantExit(t, strings.Join(arguments[:2], " "), stderr, exit, want, says...)
		return strings.TrimSpace(out)
	}
	create := func(name, hosts string, more ...string) []string {
		return append([]string{"reservation", "create", name, "--start", "+1d", "--end", "+2d", "--duration", "20h", "--quantity", hosts, "-f", "value", "-c", "ID"}, more...)
	}
	status := func(u labtest.User, id string) string {
		return do(u, 0, nil, "reservation", "show", id, "-f", "value", "-c", "Status")
	}

	all := do(labtest.Demo, 0, nil, create("all", "10")...)
	do(labtest.Demo2, 5, []string{"not enough hosts"}, create("refused", "4")...)
	first := do(labtest.Demo2, 0, []string{"waits"}, create("first", "4", "--wait-until", "+1d", "--hold", "10s")...)
	made := time.Now().Unix()
	built.Eventually(t, "the second does not pass", func() bool { return time.Now().Unix() > made }) // the order is by seconds
	second := do(labtest.Demo, 0, []string{"waits"}, create("second", "10", "--wait-until", "+1d")...)
	late := do(labtest.Demo2, 0, []string{"waits"}, create("late", "10", "--wait-until", "+4s")...)
	for id, place := range map[string]string{first: "1 of 3", second: "2 of 3", late: "3 of 3"} {
		u := map[string]labtest.User{first: labtest.Demo2, second: labtest.Demo, late: labtest.Demo2}[id]
		if shown := do(u, 0, nil, "reservation", "show", id); !strings.Contains(shown, place) || !strings.Contains(shown, "waiting") {
			t.Errorf("want place %s in\n%s", place, shown)
		}
	}
	do(labtest.Demo2, 5, []string{"waits for room"}, "reservation", "change", first, "--quantity", "2")
	do(labtest.Demo2, 3, nil, "reservation", "show", second) // another project's
	built.Eventually(t, "the wait does not end", func() bool { return status(labtest.Demo2, late) == "canceled" })

	do(labtest.Demo, 0, nil, "reservation", "delete", all, "--yes")
	if is, waits := status(labtest.Demo2, first), status(labtest.Demo, second); is != "pending" || waits != "waiting" {
		t.Errorf("once there is room, the first is %s and the second %s", is, waits)
	}
	built.Eventually(t, "nobody gets what was not confirmed", func() bool { return status(labtest.Demo, second) == "pending" })
	if is := status(labtest.Demo2, first); is != "canceled" {
		t.Errorf("what nobody confirmed is %s", is)
	}
	built.Eventually(t, "a step is not told", func() bool {
		told.Mu.Lock()
		defer told.Mu.Unlock()
		counts := map[string]int{}
		for event, times := range told.Events {
			_, eventType, _ := strings.Cut(event, " ")
			counts[eventType] += times
		}
		return counts["reservation.create"] == 4 && counts["reservation.book"] == 2 && counts["reservation.expire"] == 2 && counts["reservation.cancel"] == 1
	})
}

// onDay asks for hosts for an hour of a day, and waits until then.
func onDay(name string, day time.Time, hosts int) v1.ReservationRequest {
	end, duration := day.Add(time.Hour), v1.Duration(3600)
	return v1.ReservationRequest{Name: name, StartTime: &day, EndTime: &end, Duration: &duration, WaitUntil: &day, Quantity: &hosts}
}

// couldBeServed returns how many reservations wait for a day that has room for them; its SQL knows that all of a day have the same time.
func couldBeServed(c *chaos.Checker) int64 {
	return c.Number("SELECT COUNT(*) FROM reservations AS w WHERE w.status = 'waiting' AND w.quantity + " +
		"(SELECT COALESCE(SUM(p.quantity), 0) FROM reservations AS p WHERE p.status = 'pending' AND p.start_at = w.start_at) <= 10")
}

// The reservations of each day are canceled at one replica while others ask for the day at the other one: whoever comes first, each is booked once, and
// nobody waits for a day that has room.
func TestTwoReplicasBookWhatWaitsOnce(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection, "OS_LIMITS__MAX_WAITING_PER_PROJECT=1000")
	r := chaos.StartReplicas(t, settings, settings)
	c := chaos.NewChecker(t, "mysql", labtest.DSN(t, connection))
	begin := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	for round := range 12 {
		day := begin.AddDate(0, 0, round)
		var held [2]v1.Reservation
		for i := range held {
			var err error
			if held[i], err = r.Client(i).CreateReservation(t.Context(), onDay("held", day, 5), client.CreateOptions{}); err != nil || held[i].Waiting != nil {
				t.Fatal(held[i].Status, err)
			}
		}
		var clients sync.WaitGroup
		for i := range 6 {
			clients.Go(func() {
				if _, err := r.Client(i).CreateReservation(t.Context(), onDay("asked", day, 3+i%3), client.CreateOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
		for i, one := range held {
			clients.Go(func() {
				if err := r.Client(i+round%2).DeleteReservation(t.Context(), one.ID); err != nil {
					t.Error(err)
				}
			})
		}
		clients.Wait()
	}
	built.Eventually(t, "somebody waits for a day that has room", func() bool { return couldBeServed(c) == 0 })
	c.Check(16)
	booked := c.Number("SELECT COUNT(*) FROM reservations WHERE status = 'pending'")
	if waits := c.Number("SELECT COUNT(*) FROM reservations WHERE status = 'waiting'"); booked+waits != 12*6 {
		t.Errorf("%d are booked and %d wait, of %d", booked, waits, 12*6)
	}
	c.Each("SELECT reservation_id, COUNT(*) FROM changes WHERE action = 'book' GROUP BY reservation_id", func(rows *sql.Rows) error {
		var id string
		var times int
		err := rows.Scan(&id, &times)
		if times != 1 {
			t.Errorf("%s was booked %d times", id, times)
		}
		return err
	})
	t.Logf("%d were booked, %d of them after a wait", booked, c.Number("SELECT COUNT(*) FROM changes WHERE action = 'book'"))
}

// Clients ask for days, wait, and cancel at two replicas that are killed again and again: what was acknowledged is stored, a cancellation and what it books are
// stored together, and in the end nobody waits for a day that has room.
func TestNobodyWaitsInVainWhenAReplicaIsKilled(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection, "OS_LIMITS__MAX_WAITING_PER_PROJECT=10000")
	r := chaos.StartReplicas(t, settings, settings)
	c := chaos.NewChecker(t, "mysql", labtest.DSN(t, connection))
	begin := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	var sent, again, acknowledged atomic.Int64
	work := func(ctx context.Context, i int, random *rand.Rand) {
		n := sent.Add(1)
		key := fmt.Sprintf("request %d", n)
		request := onDay(key, begin.AddDate(0, 0, int(n/6)), 4+random.IntN(6))
		var made v1.Reservation
		for try := i; ; try++ { // without ctx: each request gets its answer, from whichever replica
			var err error
			if made, err = r.Client(try).CreateReservation(t.Context(), request, client.CreateOptions{IdempotencyKey: key}); err == nil {
				break
			}
			if !busy(err) && !gone(err) {
				t.Errorf("unexpected answer: %v", err)
				return
			}
			again.Add(1)
		}
		acknowledged.Add(1)
		if random.IntN(2) == 0 && ctx.Err() == nil {
			if err := r.Client(i).DeleteReservation(ctx, made.ID); err != nil && ctx.Err() == nil && !refused(err) && !busy(err) && !gone(err) {
				t.Errorf("unexpected answer: %v", err)
			}
		}
	}
	underKills(t, r, sent.Load, work, func(quiet bool) {
		c.Check(16)
		if quiet {
			built.Eventually(t, "somebody waits for a day that has room", func() bool { return couldBeServed(c) == 0 })
		}
	})
	if stored := c.Number("SELECT COUNT(*) FROM reservations"); stored != acknowledged.Load() {
		t.Errorf("%d requests are acknowledged, %d are stored", acknowledged.Load(), stored)
	}
	c.Check(16)
	booked := c.Number("SELECT COUNT(*) FROM changes WHERE action = 'book'")
	t.Logf("%d requests, %d sent again, %d booked after a wait, %d wait", sent.Load(), again.Load(), booked, c.Number("SELECT COUNT(*) FROM reservations WHERE status = 'waiting'"))
	if booked == 0 {
		t.Error("nothing was booked after a wait")
	}
}
