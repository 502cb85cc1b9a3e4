// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/tests/built"
)

// curve is a tariff with another price for each hour of a day, in a file.
type curve struct {
	begin  time.Time
	prices []int         // by hour from begin on; no two of a day are equal
	room   map[int64]int // by start: how many bookings an hour has room for
	file   string
}

const days = 12

// newCurve draws the prices.
func newCurve(t *testing.T, random *rand.Rand) *curve {
	t.Helper()
	c := &curve{begin: time.Now().UTC().Add(24 * time.Hour).Truncate(24 * time.Hour), room: make(map[int64]int), file: filepath.Join(t.TempDir(), "tariff.csv")}
	lines := []string{"start,price"}
	for range days {
		c.prices = append(c.prices, random.Perm(24)...)
	}
	for hour, price := range c.prices {
		lines = append(lines, fmt.Sprintf("%s,%d", c.at(hour).Format(time.RFC3339), price))
		c.room[c.at(hour).Unix()] = 2
	}
	lines = append(lines, c.at(len(c.prices)).Format(time.RFC3339)+",", "")
	if err := os.WriteFile(c.file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *curve) at(hour int) time.Time { return c.begin.Add(time.Duration(hour) * time.Hour) }

// request asks for half of the hosts in the cheapest hour of a day.
func (c *curve) request(day int) v1.ReservationRequest {
	start, end, lasts, half := c.at(24*day), c.at(24*day+24), v1.Duration(3600), 5
	return v1.ReservationRequest{Name: "cheap", StartTime: &start, EndTime: &end, Duration: &lasts, Quantity: &half, Policy: "cheapest"}
}

// filled returns how many bookings each hour of a day has if so many came one after the other, each in the cheapest hour with room.
func (c *curve) filled(day, bookings int) map[int64]int {
	hours := make([]int, 24)
	for i := range hours {
		hours[i] = 24*day + i
	}
	slices.SortFunc(hours, func(a, b int) int { return c.prices[a] - c.prices[b] })
	full := make(map[int64]int)
	for _, hour := range hours {
		at := c.at(hour).Unix()
		if n := min(bookings, c.room[at]); n > 0 {
			full[at], bookings = n, bookings-n
		}
	}
	return full
}

// take books hosts for two hours of each day: half of one and all of another.
func (c *curve) take(b *retried, random *rand.Rand) {
	for day := range days {
		hours := random.Perm(24)
		for i, hosts := range []int{5, 10} {
			start, lasts := c.at(24*day+hours[i]), v1.Duration(3600)
			b.book(0, v1.ReservationRequest{Name: "taken", StartTime: &start, Duration: &lasts, Quantity: &hosts})
			c.room[start.Unix()] -= hosts / 5
		}
	}
}

// inCheapestHours reads the reservations without Almanac's code: those of each day fill its hours in the order of their prices.
func (c *curve) inCheapestHours(b *retried) {
	b.t.Helper()
	hours, bookings := make(map[int]map[int64]int), make(map[int]int)
	b.checker.Each("SELECT start_at FROM reservations WHERE name = 'cheap'", func(rows *sql.Rows) error {
		var at int64
		err := rows.Scan(&at)
		day := int(at-c.begin.Unix()) / (24 * 3600)
		if hours[day] == nil {
			hours[day] = make(map[int64]int)
		}
		hours[day][at]++
		bookings[day]++
		return err
	})
	for day, got := range hours {
		if diff := cmp.Diff(c.filled(day, bookings[day]), got); diff != "" {
			b.t.Errorf("day %d: bookings by start (-cheapest +stored):\n%s", day, diff)
		}
	}
}

// Clients book the cheapest hour of a day at two replicas, which are killed again and again. No booking lies in an hour while a
// cheaper one has room, each acknowledged booking is there once, and no host is promised twice.
func TestEachBookingHasTheCheapestStartWhenReplicasAreKilled(t *testing.T) {
	drawn := rand.New(rand.NewPCG(1, 1))
	c := newCurve(t, drawn)
	b := startRetried(t, func(*built.Guarded) {}, "OS_TARIFF__SOURCE="+c.file)
	c.take(b, drawn)
	work := func(_ context.Context, i int, random *rand.Rand) { b.book(i, c.request(random.IntN(days))) }
	underKills(t, b.r, b.sent.Load, work, func(quiet bool) {
		b.checker.Check(16)
		if quiet { // until then a booking can be stored before one that was decided earlier
			c.inCheapestHours(b)
			b.nothingLostOrDoubled()
		}
	})
	for key, its := range b.booked {
		if its.asked.Policy != its.answer.Policy && its.asked.Policy != "" {
			t.Errorf("%s is booked by %s: %s", key, its.answer.Policy, its.answer.PolicyReason)
		}
	}
	b.sentOnceMore()
}
