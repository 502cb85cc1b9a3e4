// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"database/sql"
	"encoding/json"
	"math/rand/v2"
	"net/http"
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

// A tenant lets a simulation move; another tenant's small request moves it within its window, and the owner is told. It
// moves for no large request, and no more once its owner has fixed it.
func TestAMovableReservationMakesWayAndItsOwnerIsTold(t *testing.T) {
	broker := labtest.RabbitMQ(t)
	told := chaos.Listen(t, broker)
	g := built.StartGuarded(t, "OS_DEFAULT__TRANSPORT_URL="+broker, "OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER=messagingv2", "OS_OSLO_MESSAGING_RABBIT__RABBIT_QUORUM_QUEUE=true")
	day := time.Now().Add(24 * time.Hour).Truncate(time.Second)
	at := func(hours int) string { return day.Add(time.Duration(hours) * time.Hour).UTC().Format(time.RFC3339) }
	create := func(u labtest.User, want int, says []string, arguments ...string) {
		t.Helper()
		_, stderr, exit := g.As(u, append([]string{"reservation", "create"}, arguments...)...)
		built.WantExit(t, arguments[0], stderr, exit, want, says...)
	}
	simulation := func() (r v1.Reservation) {
		t.Helper()
		out, stderr, exit := g.As(labtest.Demo, "reservation", "show", "simulation", "-f", "api")
		built.WantExit(t, "show", stderr, exit, 0)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}

	create(labtest.Demo, 0, nil, "simulation", "--quantity", "10", "--duration", "4h", "--start", at(0), "--end", at(12), "--notice", "1h")
	before := simulation()
	create(labtest.Demo2, 5, []string{"not enough hosts available"}, "large", "--quantity", "10", "--start", at(1), "--duration", "3h")
	if r := simulation(); !r.Start.Equal(before.Start) {
		t.Fatalf("a large request moves the simulation from %v to %v", before.Start, r.Start)
	}
	create(labtest.Demo2, 0, nil, "class", "--quantity", "3", "--start", at(1), "--duration", "2h")
	after := simulation()
	if after.Start.Before(day.Add(3*time.Hour)) || after.End.After(day.Add(12*time.Hour)) || after.End.Sub(after.Start) != 4*time.Hour || after.Quantity != 10 {
		t.Errorf("the simulation is moved from %v to %v, until %v", before.Start, after.Start, after.End)
	}
	moved := func(r v1.Reservation) (n int) {
		for _, e := range r.Events {
			if e.Type == "moved" {
				n++
			}
		}
		return n
	}
	if moved(after) != 1 {
		t.Errorf("its log is %+v", after.Events)
	}
	built.Eventually(t, "the owner is not told", func() bool {
		told.Mu.Lock()
		defer told.Mu.Unlock()
		return told.Events[after.ID+" reservation.move"] == 1
	})
	built.Eventually(t, "the metrics do not count the move", func() bool {
		return strings.Contains(g.Send("", http.MethodGet, "/metrics", "").Text, "almanac_reservations_moved_total 1\n")
	})

	_, stderr, exit := g.As(labtest.Demo, "reservation", "change", "simulation", "--notice", "0m")
	built.WantExit(t, "fixing it", stderr, exit, 0)
	create(labtest.Demo2, 5, []string{"not enough hosts available"}, "seminar", "--quantity", "3", "--start", after.Start.Format(time.RFC3339), "--duration", "2h")
	if r := simulation(); !r.Start.Equal(after.Start) || moved(r) != 1 {
		t.Errorf("a fixed reservation moves to %v: %+v", r.Start, r.Events)
	}
}

// inTheirWindows reads the movable reservations without Almanac's code: each lies in its window, with the length that it had.
// It returns how many there are, and how many were moved.
func inTheirWindows(t *testing.T, c *chaos.Checker, length int64) (there, moved int) {
	t.Helper()
	c.Each(`SELECT id, start_at, end_at, window_start, window_end, status,
		(SELECT COUNT(*) FROM events e WHERE e.reservation_id = reservations.id AND e.type = 'moved') FROM reservations WHERE notice > 0`, func(rows *sql.Rows) error {
		var id, status string
		var start, end, from, to, moves int64
		if err := rows.Scan(&id, &start, &end, &from, &to, &status, &moves); err != nil {
			return err
		}
		if start < from || end > to || end-start != length {
			t.Errorf("%s (%s) lies from %d to %d, its window from %d to %d", id, status, start, end, from, to)
		}
		if there++; moves > 0 {
			moved++
		}
		return nil
	})
	return there, moved
}

// small asks for some hosts for an hour, at a fixed time.
func small(start time.Time, hosts int) v1.ReservationRequest {
	lasts := v1.Duration(3600)
	return v1.ReservationRequest{Name: "small", StartTime: &start, Duration: &lasts, Quantity: &hosts}
}

// flexible asks for all ten hosts for four hours in a window of so many, with a notice.
func flexible(start time.Time, hours int) v1.ReservationRequest {
	lasts, notice, hosts, end := v1.Duration(4*3600), v1.Duration(1800), 10, start.Add(time.Duration(hours)*time.Hour)
	return v1.ReservationRequest{Name: "flexible", StartTime: &start, EndTime: &end, Duration: &lasts, Notice: &notice, Quantity: &hosts}
}

// Two replicas are asked at once for the hosts of a movable reservation, by requests that all lie where it is. It moves for
// those that are booked, and nothing is promised twice.
func TestTwoReplicasMoveTheSameReservationAndPromiseNothingTwice(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection)
	r := chaos.StartReplicas(t, settings, settings)
	booked := 0
	for round := range 8 {
		begin := time.Now().Add(time.Duration(24*(1+round)) * time.Hour).Truncate(time.Second)
		if _, err := r.Client(round).CreateReservation(t.Context(), flexible(begin, 16), client.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		var clients sync.WaitGroup
		var mu sync.Mutex
		for i := range 8 {
			to, start := r.Client(i), begin.Add(time.Duration(i%4)*time.Hour)
			clients.Go(func() {
				_, err := to.CreateReservation(t.Context(), small(start, 5), client.CreateOptions{})
				if err != nil && !refused(err) {
					t.Errorf("unexpected answer: %v", err)
				}
				if err == nil {
					mu.Lock()
					booked++
					mu.Unlock()
				}
			})
		}
		clients.Wait()
	}
	c := chaos.NewChecker(t, "mysql", labtest.DSN(t, connection))
	c.Check(16)
	there, moved := inTheirWindows(t, c, 4*3600)
	if there != 8 || moved < 8 {
		t.Errorf("of %d movable reservations %d were moved, want all eight", there, moved)
	}
	if n := c.Number("SELECT COUNT(*) FROM reservations WHERE notice = 0"); int(n) != booked || booked < 8 {
		t.Errorf("%d requests were told that they are booked, %d are stored", booked, n)
	}
}

// Clients book what can move and what moves it at two replicas, and one replica is killed again and again: each movable reservation
// stays within its window, whole, and no host is promised twice.
func TestMovesAreWholeWhenAReplicaIsKilled(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection)
	r := chaos.StartReplicas(t, settings, settings)
	c := chaos.NewChecker(t, "mysql", labtest.DSN(t, connection))
	begin := time.Now().Add(24 * time.Hour).Truncate(time.Hour)
	moves := func() int64 { return c.Number("SELECT COUNT(*) FROM events WHERE type = 'moved'") }
	var sent atomic.Int64
	work := func(ctx context.Context, i int, random *rand.Rand) {
		day := begin.Add(time.Duration(sent.Add(1)/20) * 24 * time.Hour) // a new day again and again, since no move is possible in a full one
		request := flexible(day, 12)
		if random.IntN(4) > 0 {
			request = small(day.Add(time.Duration(random.IntN(8))*time.Hour), 1+random.IntN(8))
		}
		_, err := r.Client(i).CreateReservation(ctx, request, client.CreateOptions{})
		if err != nil && ctx.Err() == nil && !refused(err) && !busy(err) && !gone(err) {
			t.Errorf("unexpected answer: %v", err)
		}
	}
	underKills(t, r, moves, work, func(bool) {
		c.Check(16)
		inTheirWindows(t, c, 4*3600)
	})
	there, moved := inTheirWindows(t, c, 4*3600)
	t.Logf("%d moves of %d of %d movable reservations", moves(), moved, there)
}
