// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the checker reads the database without Almanac's code

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/tests/built"
)

// claimsByHost reads the claims that count from the database file, without Almanac's code.
func claimsByHost(t *testing.T, folder string) map[string][][2]int64 {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, "almanac.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT c.host, c.start_at, c.end_at FROM claims c JOIN reservations r ON r.id = c.reservation_id
		WHERE r.status IN ('pending', 'starting', 'active', 'ending') ORDER BY c.host, c.start_at`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	claims := make(map[string][][2]int64)
	for rows.Next() {
		var host string
		var w [2]int64
		if err := rows.Scan(&host, &w[0], &w[1]); err != nil {
			t.Fatal(err)
		}
		claims[host] = append(claims[host], w)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return claims
}

func mustNotOverlap(t *testing.T, folder string) {
	t.Helper()
	for host, claims := range claimsByHost(t, folder) {
		for i := range len(claims) - 1 {
			if claims[i][1] > claims[i+1][0] {
				t.Errorf("%s is promised twice: %v and %v", host, claims[i], claims[i+1])
			}
		}
	}
}

// Eight clients book, change and delete while almanacd is killed again and again.
func TestNothingAcknowledgedIsLostWhenTheServiceIsKilled(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	kept := &ledger{reservations: make(map[string]v1.Reservation), doubtful: make(map[string]bool)}
	begin := time.Now().Add(time.Hour).Truncate(time.Second)
	for round := range uint64(4) {
		s := built.Start(t, folder, "OS_DATABASE__BUSY_TIMEOUT=1m") // eight clients write at once
		var clients sync.WaitGroup
		for i := range uint64(8) {
			random := rand.New(rand.NewPCG(round, i))
			clients.Go(func() { kept.work(t, s.Client(t), begin, random) })
		}
		built.Eventually(t, "no 30 bookings in a round", func() bool { return kept.count() >= 30*(int(round)+1) })
		s.Kill()
		clients.Wait()
		mustNotOverlap(t, folder)
	}
	kept.compare(t, built.Start(t, folder).Client(t))
}

// ledger holds the answers that the clients got.
type ledger struct {
	mu           sync.Mutex
	booked       int
	reservations map[string]v1.Reservation // the last acknowledged state
	doubtful     map[string]bool           // a change was sent without an answer
}

func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.booked
}

// work books, extends and deletes until the service is gone.
func (l *ledger) work(t *testing.T, c *client.Client, begin time.Time, random *rand.Rand) {
	for {
		start := begin.Add(time.Duration(random.IntN(200)) * time.Hour)
		quantity, duration := 1+random.IntN(3), v1.Duration(3600*(1+random.IntN(12)))
		r, err := c.CreateReservation(t.Context(), v1.ReservationRequest{Name: "r", StartTime: &start, Duration: &duration, Quantity: &quantity}, client.CreateOptions{})
		if err == nil {
			l.acknowledge(r)
			err = l.modify(t.Context(), c, r, random)
		}
		if answer, ok := errors.AsType[*client.Error](err); err != nil && (!ok || answer.Status == 0) {
			return // the service is gone
		} else if ok && answer.Status != 409 {
			t.Errorf("unexpected answer: %v", err)
			return
		}
	}
}

// modify extends or deletes every other reservation.
func (l *ledger) modify(ctx context.Context, c *client.Client, r v1.Reservation, random *rand.Rand) error {
	switch random.IntN(4) {
	case 0:
		l.doubt(r.ID)
		later := r.End.Add(time.Hour)
		changed, err := c.ChangeReservation(ctx, r.ID, v1.ReservationChange{EndTime: &later})
		if err == nil {
			l.acknowledge(changed)
		} else if answer, ok := errors.AsType[*client.Error](err); ok && answer.Status == 409 {
			l.acknowledge(r) // refused: the reservation is unchanged
		}
		return err
	case 1:
		l.doubt(r.ID)
		err := c.DeleteReservation(ctx, r.ID)
		if err == nil {
			r.Status = "canceled"
			l.acknowledge(r)
		}
		return err
	}
	return nil
}

func (l *ledger) acknowledge(r v1.Reservation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.reservations[r.ID]; !known {
		l.booked++
	}
	l.reservations[r.ID] = r
	delete(l.doubtful, r.ID)
}

func (l *ledger) doubt(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doubtful[id] = true
}

// compare compares the stored reservations with the acknowledged ones.
func (l *ledger) compare(t *testing.T, c *client.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored := make(map[string]v1.Reservation)
	for r, err := range c.ListReservations(t.Context(), client.ReservationFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		stored[r.ID] = r
		if len(r.Hosts) != r.Quantity {
			t.Errorf("%s has %d of %d hosts", r.ID, len(r.Hosts), r.Quantity)
		}
	}
	for id, told := range l.reservations {
		got, there := stored[id]
		switch {
		case l.doubtful[id]:
		case told.Status == "canceled":
			if there {
				t.Errorf("%s was canceled, but exists", id)
			}
		case !there:
			t.Errorf("%s was acknowledged, but is lost", id)
		case !got.End.Equal(told.End) || strings.Join(got.Hosts, " ") != strings.Join(told.Hosts, " ") && !moved(got):
			t.Errorf("%s is %v to %v on %v; the client has an answer with end %v on %v", id, got.Start, got.End, got.Hosts, told.End, told.Hosts)
		}
	}
	t.Logf("%d bookings acknowledged, %d without an answer to their last change", l.booked, len(l.doubtful))
}

// moved reports whether a reservation has got other hosts for the extension of another one.
func moved(r v1.Reservation) bool {
	return slices.ContainsFunc(r.Events, func(e v1.Event) bool { return e.Type == "moved" })
}
