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

// working asks for hosts on five days, from some day on, 9 to 17 in Paris.
func working(name string, day time.Time, hosts int) v1.SeriesRequest {
	return v1.SeriesRequest{
		Name: name, Rule: "FREQ=DAILY;COUNT=5", LocalStart: day.Format("2006-01-02") + "T09:00", TimeZone: "Europe/Paris", Duration: 8 * 3600, Quantity: &hosts,
	}
}

// A tenant books each working day over the change of the clock, skips a day, takes fewer hosts from some day on, and cancels the rest.
// The refusal of another tenant names the days that are taken. Each step is told on the bus.
func TestATenantReservesEachWorkingDayAndIsToldOfEachStep(t *testing.T) {
	broker := labtest.RabbitMQ(t)
	told := chaos.Listen(t, broker)
	g := built.StartGuarded(t, "OS_DEFAULT__TRANSPORT_URL="+broker, "OS_OSLO_MESSAGING_NOTIFICATIONS__DRIVER=messagingv2", "OS_OSLO_MESSAGING_RABBIT__RABBIT_QUORUM_QUEUE=true")
	do := func(u labtest.User, want int, says []string, arguments ...string) string {
		t.Helper()
		out, stderr, exit := g.As(u, arguments...)
		built.WantExit(t, strings.Join(arguments[:2], " "), stderr, exit, want, says...)
		return out
	}
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	monday := nextChangeOfTheClock(time.Now(), paris).AddDate(0, 0, -6)
	create := func(name, hosts string) []string {
		return []string{"series", "create", name, "--rule", "FREQ=WEEKLY;BYDAY=MO,FR;COUNT=4", "--start", monday.Format("2006-01-02") + "T09:00", "--time-zone", "Europe/Paris", "--duration", "8h", "--quantity", hosts}
	}

	do(labtest.Demo, 0, nil, create("course", "8")...)
	do(labtest.Demo2, 5, []string{"4 of 4 occurrences", monday.Format("2006-01-02") + "T09:00:00"}, create("lab", "3")...)
	do(labtest.Demo2, 0, nil, create("lab", "2")...)
	lines := strings.Fields(do(labtest.Demo, 0, nil, "reservation", "list", "-f", "value", "-c", "ID", "-c", "Start"))
	if len(lines) != 8 {
		t.Fatalf("the list is %q", lines)
	}
	for i := range 4 {
		if start, err := time.Parse(time.RFC3339, lines[2*i+1]); err != nil || start.In(paris).Hour() != 9 {
			t.Errorf("occurrence %d begins at %s", i, lines[2*i+1])
		}
	}
	do(labtest.Demo, 0, nil, "reservation", "delete", lines[2], "--yes")
	do(labtest.Demo, 0, nil, "series", "change", "course", "--from", monday.AddDate(0, 0, 7).Format("2006-01-02"), "--quantity", "4")
	do(labtest.Demo, 0, nil, "series", "delete", "course", "--from", lines[7], "--yes")
	shown := do(labtest.Demo, 0, nil, "series", "show", "course")
	if strings.Count(shown, "canceled") != 2 || strings.Count(shown, "pending") != 2 {
		t.Errorf("the series is\n%s", shown)
	}
	do(labtest.Demo2, 3, nil, "series", "show", "course") // another project's
	built.Eventually(t, "a step is not told", func() bool {
		told.Mu.Lock()
		defer told.Mu.Unlock()
		counts := map[string]int{}
		for event, times := range told.Events {
			_, eventType, _ := strings.Cut(event, " ")
			counts[eventType] += times
		}
		return counts["reservation.create"] == 8 && counts["reservation.change"] == 2 && counts["reservation.cancel"] == 2
	})
}

// nextChangeOfTheClock returns the next last Sunday of March or October that is at least two weeks away.
func nextChangeOfTheClock(now time.Time, in *time.Location) time.Time {
	for month := now.Year() * 12; ; month++ {
		last := time.Date(month/12, time.Month(month%12+1), 31, 12, 0, 0, 0, in)
		last = last.AddDate(0, 0, -int(last.Weekday()))
		if (last.Month() == time.March || last.Month() == time.October) && last.After(now.AddDate(0, 0, 14)) {
			return last
		}
	}
}

// Two replicas are asked at once for series on the same days, for which there is room once: one is booked whole, the other is refused.
func TestTwoReplicasPromiseTheDaysOfASeriesOnce(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection)
	r := chaos.StartReplicas(t, settings, settings)
	for round := range 8 {
		day := time.Now().AddDate(0, 0, 2+7*round)
		var both sync.WaitGroup
		var booked atomic.Int64
		for i := range 4 {
			both.Go(func() {
				_, err := r.Client(i).CreateSeries(t.Context(), working("s", day.AddDate(0, 0, i%2), 6), client.CreateOptions{})
				if err == nil {
					booked.Add(1)
				} else if !refused(err) {
					t.Errorf("unexpected answer: %v", err)
				}
			})
		}
		both.Wait()
		if booked.Load() != 1 {
			t.Errorf("round %d: %d series are booked on days that have room for one", round, booked.Load())
		}
	}
	c := chaos.NewChecker(t, "mysql", labtest.DSN(t, connection))
	c.Check(16)
	wholeSeries(t, c)
}

// wholeSeries reads the series without Almanac's code: each has its five days, and each reservation of a series has one.
func wholeSeries(t *testing.T, c *chaos.Checker) (series int) {
	t.Helper()
	c.Each("SELECT s.id, COUNT(r.id), COUNT(DISTINCT r.occurrence) FROM series s LEFT JOIN reservations r ON r.series_id = s.id GROUP BY s.id", func(rows *sql.Rows) error {
		var id string
		var reservations, days int
		err := rows.Scan(&id, &reservations, &days)
		if reservations != 5 || days != 5 {
			t.Errorf("series %s has %d reservations on %d days", id, reservations, days)
		}
		series++
		return err
	})
	if n := c.Number("SELECT COUNT(*) FROM reservations WHERE series_id <> '' AND series_id NOT IN (SELECT id FROM series)"); n != 0 {
		t.Errorf("%d reservations are of no series", n)
	}
	return series
}

// Clients book, change and cancel series at two replicas that are killed again and again: each series is whole or not there, a change
// is of all that it is about, and a request that is sent again with its key makes no second series.
func TestSeriesAreWholeWhenAReplicaIsKilled(t *testing.T) {
	connection := labtest.Database(t)
	built.Migrate(t, connection)
	settings := append(unhurried(), "OS_DATABASE__CONNECTION="+connection)
	r := chaos.StartReplicas(t, settings, settings)
	c := chaos.NewChecker(t, "mysql", labtest.DSN(t, connection))
	begin := time.Now().AddDate(0, 0, 2)
	var sent, again atomic.Int64
	work := func(ctx context.Context, i int, random *rand.Rand) {
		n := sent.Add(1)
		key := fmt.Sprintf("series %d", n)
		request := working(key, begin.AddDate(0, 0, int(n/3)), 1+random.IntN(5))
		var made v1.Series
		for try := i; ; try++ { // without ctx: each request gets its answer, from whichever replica
			var err error
			if made, err = r.Client(try).CreateSeries(t.Context(), request, client.CreateOptions{IdempotencyKey: key}); err == nil {
				break
			}
			if refused(err) {
				return
			}
			if !busy(err) && !gone(err) {
				t.Errorf("unexpected answer: %v", err)
				return
			}
			again.Add(1)
		}
		var err error
		switch third := made.Occurrences[2].Local; random.IntN(3) {
		case 0:
			_, err = r.Client(i).ChangeSeries(ctx, made.ID, third, v1.SeriesChange{Quantity: new(1)})
		case 1:
			err = r.Client(i).DeleteSeries(ctx, made.ID, third)
		}
		if err != nil && ctx.Err() == nil && !refused(err) && !busy(err) && !gone(err) {
			t.Errorf("unexpected answer: %v", err)
		}
	}
	check := func(bool) {
		c.Check(16)
		wholeSeries(t, c)
		// The last three of a series have changed together.
		c.Each("SELECT series_id, MAX(quantity), MIN(quantity), COUNT(DISTINCT status) FROM (SELECT series_id, quantity, status, ROW_NUMBER() OVER (PARTITION BY series_id ORDER BY occurrence) AS place "+
			"FROM reservations WHERE series_id <> '') AS o WHERE place > 2 GROUP BY series_id", func(rows *sql.Rows) error {
			var id string
			var most, least, statuses int
			err := rows.Scan(&id, &most, &least, &statuses)
			if most != least || statuses != 1 {
				t.Errorf("series %s was changed in part: quantities from %d to %d, %d statuses", id, least, most, statuses)
			}
			return err
		})
	}
	underKills(t, r, sent.Load, work, check)
	names := c.Number("SELECT COUNT(DISTINCT name) FROM series")
	if series := wholeSeries(t, c); int64(series) != names {
		t.Errorf("%d series have %d names: one was made twice", series, names)
	}
	t.Logf("%d requests, %d sent again, %d series", sent.Load(), again.Load(), names)
}
