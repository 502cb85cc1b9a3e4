// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// table is the state that replicas share in a database: one lease and an outbox.
type table struct {
	mu     sync.Mutex
	holder string
	epoch  int64
	until  time.Time
	unsent []int64

	heard   map[int64]int // how often each message was sent
	refused int           // marks refused because another replica had acquired the lease
}

// seat is a replica on the table. Its broker takes time to confirm a message.
type seat struct {
	*table
	name    string
	confirm time.Duration
}

func (s seat) Take(_ context.Context, name string, ttl time.Duration) (job.Lease, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holder != s.name {
		if time.Now().Before(s.until) {
			return job.Lease{}, false, nil
		}
		s.holder = s.name
		s.epoch++
	}
	s.until = time.Now().Add(ttl)
	return job.Lease{Name: name, Epoch: s.epoch}, true, nil
}

func (s seat) Unsent(_ context.Context, limit int) (list []reservation.Change, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, place := range s.unsent[:min(limit, len(s.unsent))] {
		list = append(list, reservation.Change{Place: place})
	}
	return list, nil
}

func (s seat) MarkSent(_ context.Context, lease job.Lease, places []int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lease.Epoch != s.epoch {
		s.refused++
		return errors.New("the lease was lost to another process")
	}
	s.unsent = slices.DeleteFunc(s.unsent, func(place int64) bool { return slices.Contains(places, place) })
	return nil
}

func (s seat) Notify(ctx context.Context, c reservation.Change) error {
	s.mu.Lock()
	s.heard[c.Place]++
	s.mu.Unlock()
	select {
	case <-time.After(s.confirm):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestEachMessageIsSentOnceAlsoWhereABatchTakesLongerThanTheLease(t *testing.T) {
	for name, confirm := range map[string]time.Duration{
		"a broker far away": 90 * time.Millisecond, "one that is slow": 700 * time.Millisecond, "one that barely lives": 5 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				shared := &table{heard: make(map[int64]int)}
				for place := range int64(250) {
					shared.unsent = append(shared.unsent, place)
				}
				for _, name := range []string{"a", "b", "c"} {
					s := seat{shared, name, confirm}
					go upkeep.Notifications(s, s, s).Run(ctx, slog.New(slog.DiscardHandler))
				}
				time.Sleep(time.Hour) // on the bubble's clock
				cancel()
				synctest.Wait()
				if len(shared.unsent) > 0 || shared.refused > 0 {
					t.Errorf("after an hour %d messages still wait, and %d marks were refused", len(shared.unsent), shared.refused)
				}
				for place, times := range shared.heard {
					if times != 1 {
						t.Errorf("message %d was sent %d times", place, times)
					}
				}
			})
		})
	}
}

func TestAMessageThatHangsHoldsBackNoNoteOfThoseBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{heard: make(map[int64]int), unsent: []int64{1, 2, 3}}
		s := seat{table: shared, name: "a"}
		hangs := hanging{s, 3}
		begun := time.Now()
		if err := upkeep.Notifications(s, s, hangs).Step(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v, want context.DeadlineExceeded", err)
		}
		if took := time.Since(begun); took >= 8*time.Second || !slices.Equal(shared.unsent, []int64{3}) {
			t.Errorf("after %v, %v wait; want 3 alone, before the lease is over", took, shared.unsent)
		}
	})
}

// hanging is a notifier that does not return at one place.
type hanging struct {
	seat
	at int64
}

func (h hanging) Notify(ctx context.Context, c reservation.Change) error {
	if c.Place == h.at {
		<-ctx.Done()
		return ctx.Err()
	}
	return h.seat.Notify(ctx, c)
}
