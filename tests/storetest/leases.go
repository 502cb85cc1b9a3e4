// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
)

func testLeases(t *testing.T, create func(t *testing.T) (open func(t *testing.T) Subject)) {
	t.Run("one holds it until it ends or is released", func(t *testing.T) {
		open := create(t)
		testTakeOver(t, open(t), open(t))
	})
	t.Run("one of many that take it at once holds it", func(t *testing.T) {
		open := create(t)
		testOneHolder(t, open(t), open(t), open(t))
	})
	t.Run("a write under a lost lease does nothing", func(t *testing.T) {
		open := create(t)
		testFence(t, open(t), open(t))
	})
	t.Run("a replica runs until its ttl is over", func(t *testing.T) {
		open := create(t)
		testPresence(t, open(t), open(t))
	})
	t.Run("a replica that leaves ends its leases", func(t *testing.T) {
		open := create(t)
		testLeave(t, open(t), open(t))
	})
	t.Run("the clock of the database goes forward", func(t *testing.T) {
		c := offered[clock](t, create(t)(t))
		first, err := c.Now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if off := time.Since(first); off < -patience || off > patience {
			t.Errorf("it is %v off this machine's", off)
		}
		waitFor(t, func() bool {
			now, err := c.Now(t.Context())
			return err == nil && now.After(first) && now.Sub(first) < patience
		})
	})
}

// take acquires the lease "work".
func take(t *testing.T, s leases, ttl time.Duration) (job.Lease, bool) {
	t.Helper()
	lease, held, err := s.Take(t.Context(), "work", ttl)
	if err != nil {
		t.Fatalf("take: %v", err)
	}
	return lease, held
}

// patience is the longest wait for a condition.
const patience = 2 * time.Minute

// waitFor waits until holds returns true.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	timeout := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-timeout:
			t.Fatalf("waited %v", patience)
		case <-tick.C:
		}
	}
}

func testTakeOver(t *testing.T, stores ...Subject) {
	one, two := offered[leases](t, stores[0]), offered[leases](t, stores[1])
	const long, short = time.Hour, 300 * time.Millisecond
	for range 2 { // the second call prolongs it
		if lease, held := take(t, one, long); !held || lease != (job.Lease{Name: "work", Epoch: 1}) {
			t.Fatalf("the first to come gets %+v (%v), want epoch 1", lease, held)
		}
	}
	if lease, held := take(t, two, long); held {
		t.Fatalf("another gets %+v", lease)
	}
	if lease, held, err := two.Take(t.Context(), "other work", long); !held || lease.Epoch != 1 || err != nil {
		t.Errorf("another lease: %+v (%v): %v", lease, held, err)
	}
	if err := two.Release(t.Context(), job.Lease{Name: "work", Epoch: 9}); err != nil {
		t.Fatal(err)
	}
	if _, held := take(t, two, long); held {
		t.Fatal("another epoch released the lease")
	}
	if err := one.Release(t.Context(), job.Lease{Name: "work", Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	begin, third := time.Now(), job.Lease{}
	if lease, held := take(t, two, short); !held || lease.Epoch != 2 {
		t.Fatalf("after the release: %+v (%v), want epoch 2", lease, held)
	}
	waitFor(t, func() (held bool) {
		third, held = take(t, one, long)
		return held
	})
	if waited := time.Since(begin); third.Epoch != 3 || waited < short/2 {
		t.Errorf("taken over as %+v after %v, want epoch 3 after %v", third, waited, short)
	}
}

func testOneHolder(t *testing.T, stores ...Subject) {
	var wg sync.WaitGroup
	var held atomic.Int32
	for _, s := range stores {
		s := offered[leases](t, s)
		wg.Go(func() {
			if _, ok, err := s.Take(t.Context(), "work", time.Hour); err != nil {
				t.Error(err)
			} else if ok {
				held.Add(1)
			}
		})
	}
	wg.Wait()
	if held.Load() != 1 {
		t.Errorf("%d hold it", held.Load())
	}
}

func testFence(t *testing.T, stores ...Subject) {
	one, two := offered[leases](t, stores[0]), offered[leases](t, stores[1])
	old, _ := take(t, one, time.Hour)
	out := offered[outbox](t, stores[0])
	r := booked("r")
	mustCreate(t, stores[0], r)
	list, err := out.Unsent(t.Context(), 0)
	if err != nil || len(list) != 1 {
		t.Fatalf("unsent are %d: %v", len(list), err)
	}
	if err := one.Release(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	lease, held := take(t, two, time.Hour)
	if !held {
		t.Fatal("the other does not get the lease")
	}
	for name, write := range map[string]func() error{
		"mark sent": func() error { return out.MarkSent(t.Context(), old, []int64{list[0].Place}) },
		"purge keys": func() error {
			_, err := offered[keyPurger](t, stores[0]).PurgeKeys(t.Context(), old, 100)
			return err
		},
		"purge decisions": func() error {
			_, err := offered[decisions](t, stores[0]).PurgeDecisions(t.Context(), old, 100)
			return err
		},
		"change power": func() error {
			return offered[power](t, stores[0]).ChangePower(t.Context(), old, []string{"a"}, aPhase("a", energy.Asleep))
		},
		"change the energy settings": func() error {
			return offered[power](t, stores[0]).ChangeEnergySettings(t.Context(), old, aMode(energy.ModeAuto))
		},
		"save a report of energy": func() error {
			return offered[power](t, stores[0]).SaveEnergyReport(t.Context(), old, energy.Report{At: 7})
		},
		"add a demand": func() error {
			return offered[power](t, stores[0]).AddDemand(t.Context(), old, energy.Demand{At: 7}, 0)
		},
		"purge the audit": func() error {
			_, err := offered[power](t, stores[0]).PurgeAudit(t.Context(), old, 100)
			return err
		},
		"purge": func() error {
			_, err := offered[purger](t, stores[0]).Purge(t.Context(), old, 100, false, 10, nil)
			return err
		},
	} {
		if err := write(); !errors.Is(err, job.ErrLost) {
			t.Errorf("%s: %v, want job.ErrLost", name, err)
		}
	}
	if list, err := out.Unsent(t.Context(), 0); err != nil || len(list) != 1 {
		t.Errorf("unsent are %d: %v; want one still", len(list), err)
	}
	wantNoPower(t, offered[power](t, stores[0]))
	if err := offered[outbox](t, stores[1]).MarkSent(t.Context(), lease, []int64{list[0].Place}); err != nil {
		t.Errorf("the holder: %v", err)
	}
	if list, err := out.Unsent(t.Context(), 0); err != nil || len(list) != 0 {
		t.Errorf("unsent are %d: %v; want none", len(list), err)
	}
}

// testPresence tests the list of running replicas: the second one is present only for a moment, and
// then leaves before its time is over.
func testPresence(t *testing.T, first, second Subject) {
	one, two := offered[presence](t, first), offered[presence](t, second)
	there := func(s presence, ttl time.Duration) []string {
		t.Helper()
		names, err := s.Present(t.Context(), ttl)
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	if names := there(one, time.Minute); len(names) != 1 {
		t.Fatalf("alone it sees %v", names)
	}
	if names := there(two, time.Minute); len(names) != 2 || names[0] == names[1] {
		t.Fatalf("the second sees %v, want both", names)
	}
	there(two, 200*time.Millisecond)
	waitFor(t, func() bool { return len(there(one, time.Minute)) == 1 })
	there(two, time.Minute)
	if err := two.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names := there(one, time.Minute); len(names) != 1 {
		t.Errorf("after the second has left, the first sees %v", names)
	}
}

func testLeave(t *testing.T, first, second Subject) {
	one, two := offered[leases](t, first), offered[leases](t, second)
	held, _ := take(t, one, time.Hour)
	if _, free := take(t, two, time.Hour); free {
		t.Fatal("two have the lease at once")
	}
	if err := offered[presence](t, first).Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, free := take(t, two, time.Hour)
	if !free || next.Epoch != held.Epoch+1 {
		t.Errorf("after the first has left, the second gets the lease: %v, with epoch %d; want %d", free, next.Epoch, held.Epoch+1)
	}
	if err := offered[presence](t, first).Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, free := take(t, one, time.Hour); free {
		t.Error("leaving ends the lease of another")
	}
}
