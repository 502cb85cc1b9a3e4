// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// leases is the lease of several processes, which take it by their names.
type leases struct {
	mu     sync.Mutex
	now    func() span.Instant
	holder string
	epoch  int64
	until  span.Instant
}

type leasesOf struct {
	*leases
	name string
}

func (l leasesOf) Take(_ context.Context, name string, ttl time.Duration) (job.Lease, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder != l.name {
		if l.now() < l.until {
			return job.Lease{}, false, nil
		}
		l.holder, l.epoch = l.name, l.epoch+1
	}
	l.until = l.now().Add(int64(ttl / time.Second))
	return job.Lease{Name: name, Epoch: l.epoch}, true, nil
}

// guarded are the records of a model under this lease.
type guarded struct {
	*model
	leases *leases
}

func (g guarded) ChangePackingRun(ctx context.Context, lease job.Lease, id string, change func(*rebalance.Run) error) (rebalance.Run, error) {
	g.leases.mu.Lock()
	g.epoch = g.leases.epoch
	g.leases.mu.Unlock()
	return g.model.ChangePackingRun(ctx, lease, id, change)
}

// carrierOf returns the executor of one of several processes.
func (m *model) carrierOf(l *leases, name string) *rebalance.Executor {
	c := m.carrier()
	c.Leases, c.Records = leasesOf{l, name}, guarded{m, l}
	return c
}

func TestTheLeaseIsKeptWhileTheCloudIsReadHoweverLongThatTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := func() span.Instant { return span.Instant(time.Now().Unix()) }
		m, l := crowded(t), &leases{now: clock}
		m.apply(rebalance.Options{Migrations: 3})
		c := m.carrierOf(l, "slow")
		c.Now = clock
		c.Situation = func(ctx context.Context) (rebalance.Situation, error) {
			time.Sleep(200 * time.Second)
			return m.situation(ctx)
		}
		if err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		end := make(chan struct{})
		go func() {
			for job.Pause(t.Context(), time.Second) == nil {
				if _, held, _ := (leasesOf{l, "other"}).Take(t.Context(), "packing", time.Minute); held {
					t.Error("another has got the lease")
					return
				}
				select {
				case <-end:
					return
				default:
				}
			}
		}()
		for begun := time.Now(); !m.run.Over() && time.Since(begun) < time.Hour; time.Sleep(time.Second) {
			if err := c.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		close(end)
		m.wantEnd(rebalance.RunDone, "all moves were made", moved, moved, moved)
	})
}

func TestAReadingOfTheCloudDoesNotTakeForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := crowded(t)
		m.apply(rebalance.Options{Migrations: 1})
		c := m.carrier()
		c.Situation = func(ctx context.Context) (rebalance.Situation, error) {
			<-ctx.Done()
			return rebalance.Situation{}, ctx.Err()
		}
		begun := time.Now()
		if err := c.Step(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 10*time.Minute {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
	})
}

// The process pauses at any line, for longer than its lease.
func TestWhoWakesUpAfterItsLeaseMovesNothing(t *testing.T) {
	for _, moment := range []string{"read", "look", "store", "move"} {
		m := crowded(t)
		m.apply(rebalance.Options{Migrations: 2})
		l := &leases{now: func() span.Instant { return m.now }}
		other := m.carrierOf(l, "other")
		m.meddle = func(call string) error {
			if call != moment {
				return nil
			}
			m.meddle = nil
			if _, err := m.console().Stop(context.Background(), "bob", "run"); err != nil {
				t.Error(err)
			}
			for range 200 {
				_ = other.Step(context.Background())
				m.now++
			}
			return nil
		}
		_ = m.carrierOf(l, "paused").Step(context.Background())
		if m.number != 0 || m.run.Status != rebalance.RunStopped {
			t.Errorf("paused at a %s: the run is %s, and %d moves were begun: %v", moment, m.run.Status, m.number, m.progress())
		}
	}
}

// Between any two calls of a process other processes may make theirs, sometimes while it pauses
// for longer than its lease.
func TestProcessesThatTakeTurnsMoveOneAtATimeAndNothingAfterTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, box{name: "h1", memory: 16384, guests: crowd("i", 8)}, box{name: "h2", memory: 4096}, box{name: "h3", memory: 16384})
		var ids []string
		for _, g := range m.boxes[0].guests {
			ids = append(ids, g.ID)
		}
		m.apply(rebalance.Options{Migrations: rapid.IntRange(1, 4).Draw(t, "migrations")})
		m.fate = func(string) (int, bool) {
			return rapid.IntRange(1, 4).Draw(t, "looks"), rapid.IntRange(0, 5).Draw(t, "fails") == 0
		}
		l := &leases{now: func() span.Instant { return m.now }}
		processes := []*rebalance.Executor{m.carrierOf(l, "a"), m.carrierOf(l, "b")}
		pauses, paused := rapid.IntRange(0, 5).Draw(t, "pauses"), false
		begun := -1 // the number of moves at the end of the run
		step := func(c *rebalance.Executor) {
			_ = c.Step(context.Background())
			m.now++
			if m.run.Over() && begun < 0 {
				begun = m.number
			}
		}
		m.meddle = func(string) error {
			if paused || pauses == 0 || rapid.IntRange(0, 4).Draw(t, "is paused") > 0 {
				return nil
			}
			pauses--
			paused = true
			if rapid.IntRange(0, 3).Draw(t, "is stopped") == 0 {
				_, err := m.console().Stop(context.Background(), "bob", "run")
				if err != nil && !fault.Is(err, fault.NotFound) {
					t.Fatal(err)
				}
			}
			for range rapid.IntRange(1, 150).Draw(t, "seconds") {
				step(processes[1])
			}
			paused = false
			return nil
		}
		for range 1000 {
			if m.run.Over() {
				break
			}
			step(processes[0])
			m.whole(ids)
		}
		m.whole(ids)
		if !m.run.Over() || m.most > 1 || begun >= 0 && m.number != begun {
			t.Fatalf("the run is %s: %s; %d were under way at once, %d moves had begun at its end, %d have", m.run.Status, m.run.Reason, m.most, begun, m.number)
		}
	})
}
