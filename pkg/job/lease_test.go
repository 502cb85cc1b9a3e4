// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
)

// table holds one lease, as a database does.
type table struct {
	mu     sync.Mutex
	holder string
	epoch  int64
	until  time.Time
}

// process is one of several that share the table.
type process struct {
	*table
	name string
	// meet, unless nil, runs before each attempt to take a lease; its error fails the attempt.
	meet func() error
}

const ttl = 8 * time.Second

func (p process) Take(_ context.Context, name string, ttl time.Duration) (job.Lease, bool, error) {
	if p.meet != nil {
		if err := p.meet(); err != nil {
			return job.Lease{}, false, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holder != p.name {
		if time.Now().Before(p.until) {
			return job.Lease{}, false, nil
		}
		p.holder, p.epoch = p.name, p.epoch+1
	}
	p.until = time.Now().Add(ttl)
	return job.Lease{Name: name, Epoch: p.epoch}, true, nil
}

// freeAfter waits until another process gets the lease and returns how long that took.
func (tb *table) freeAfter() time.Duration {
	begun := time.Now()
	for {
		if _, held, _ := (process{table: tb, name: "other"}).Take(context.Background(), "work", ttl); held {
			return time.Since(begun)
		}
		time.Sleep(time.Second)
	}
}

func TestOnlyTheHolderOfALeaseDoesTheStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, steps := &table{}, 0
		step := func(_ context.Context, held *job.Held) error {
			if steps++; held.Lease != (job.Lease{Name: "work", Epoch: 1}) {
				t.Errorf("the step has the lease %+v", held.Lease)
			}
			return errors.New("the step fails")
		}
		held, err := job.Hold(t.Context(), process{table: shared, name: "a"}, "work", ttl, step)
		if !held || err == nil || err.Error() != "the step fails" {
			t.Errorf("a holds the lease: %v, %v", held, err)
		}
		if held, err := job.Hold(t.Context(), process{table: shared, name: "b"}, "work", ttl, step); held || err != nil {
			t.Errorf("b holds the lease too: %v, %v", held, err)
		}
		away := process{shared, "a", func() error { return errAway }}
		if err := job.Leased(away, "work", ttl, step)(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("without a store: %v", err)
		}
		if steps != 1 {
			t.Errorf("%d steps, want 1", steps)
		}
	})
}

func TestALeaseIsRenewedWhileItsStepRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{}
		var free time.Duration
		var waiting sync.WaitGroup
		_, err := job.Hold(t.Context(), process{table: shared, name: "a"}, "work", ttl, func(ctx context.Context, _ *job.Held) error {
			waiting.Go(func() { free = shared.freeAfter() })
			return job.Pause(ctx, 4*time.Minute)
		})
		waiting.Wait()
		if err != nil || free < 4*time.Minute || free > 4*time.Minute+ttl+time.Second {
			t.Errorf("another got the lease after %v; the step: %v", free, err)
		}
	})
}

func TestAStepThatHangsLosesItsLeaseAndOneThatActsDoesNot(t *testing.T) {
	for name, act := range map[string]bool{"hangs": false, "acts": true} {
		synctest.Test(t, func(t *testing.T) {
			shared, lasted := &table{}, time.Duration(0)
			begun := time.Now()
			held, err := job.Hold(t.Context(), process{table: shared, name: "a"}, "work", ttl, func(ctx context.Context, held *job.Held) error {
				defer func() { lasted = time.Since(begun) }()
				for range 60 {
					if err := job.Pause(ctx, time.Minute); err != nil {
						return err
					}
					if act {
						if err := held.Ensure(ctx); err != nil {
							return err
						}
					}
				}
				return nil
			})
			switch {
			case act && (err != nil || lasted != time.Hour):
				t.Errorf("a step that %s ends after %v: %v", name, lasted, err)
			case !act && (!errors.Is(err, job.ErrLost) || !errors.Is(err, context.Canceled) || lasted > 6*time.Minute || shared.freeAfter() == 0):
				t.Errorf("a step that %s ends after %v: %v", name, lasted, err)
			}
			if !held {
				t.Errorf("a step that %s had no lease", name)
			}
		})
	}
}

func TestAStepEndsWhereItsLeaseCannotBeRenewedBeforeAnotherProcessGetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &table{}
		var away atomic.Bool
		p := process{shared, "a", func() error {
			if away.Load() {
				return errAway
			}
			return nil
		}}
		_, err := job.Hold(t.Context(), p, "work", ttl, func(ctx context.Context, _ *job.Held) error {
			if err := job.Pause(ctx, time.Minute); err != nil {
				return err
			}
			away.Store(true)
			begun := time.Now()
			<-ctx.Done()
			if lasted := time.Since(begun); lasted > ttl*3/4 || shared.freeAfter() == 0 {
				t.Errorf("the step ended %v after the store was away", lasted)
			}
			return context.Cause(ctx)
		})
		if !errors.Is(err, job.ErrLost) {
			t.Errorf("the step ended with %v", err)
		}
	})
}

func TestAFailedRenewalAloneEndsNoStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := 0
		p := process{&table{}, "a", func() error {
			if taken++; taken%2 == 0 {
				return errAway
			}
			return nil
		}}
		_, err := job.Hold(t.Context(), p, "work", ttl, func(ctx context.Context, _ *job.Held) error { return job.Pause(ctx, time.Minute) })
		if err != nil || taken < 10 {
			t.Errorf("after %d renewals: %v", taken, err)
		}
	})
}

func TestAStepWithoutItsLeaseActsNoMore(t *testing.T) {
	for name, lose := range map[string]func(shared *table) error{
		"another process has it":    func(shared *table) error { shared.holder = "other"; return nil },
		"another process had it":    func(shared *table) error { shared.epoch++; return nil },
		"the store does not answer": func(*table) error { return errAway },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := &table{}
				p := process{table: shared, name: "a"}
				lost := false
				p.meet = func() error {
					if lost {
						return lose(shared)
					}
					return nil
				}
				_, err := job.Hold(t.Context(), p, "work", ttl, func(ctx context.Context, held *job.Held) error {
					if err := held.Ensure(ctx); err != nil {
						t.Fatal(err)
					}
					lost = true
					first := held.Ensure(ctx)
					lost, shared.holder, shared.epoch = false, "a", 1 // as if the lease returned
					if second := held.Ensure(ctx); first == nil || second == nil || ctx.Err() == nil {
						t.Errorf("the step continues: %v, %v, %v", first, second, ctx.Err())
					}
					return first
				})
				if !errors.Is(err, job.ErrLost) && !errors.Is(err, errAway) {
					t.Error(err)
				}
			})
		})
	}
}

// Processes hang, their store is slow or away, and they are suspended before they act.
func TestTwoProcessesNeverActAtTheSameTime(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
			defer cancel()
			shared, acting, acts := &table{}, map[string]bool{}, map[string]int{}
			var mu sync.Mutex
			var all sync.WaitGroup
			for _, name := range []string{"a", "b", "c"} {
				chance := rand.New(rand.NewPCG(seed, uint64(name[0])))
				var drawing sync.Mutex
				draw := func(n int64) int64 {
					drawing.Lock()
					defer drawing.Unlock()
					return chance.Int64N(n)
				}
				var suspended atomic.Pointer[time.Time] // until then
				suspended.Store(&time.Time{})
				p := process{shared, name, func() error {
					time.Sleep(time.Until(*suspended.Load()))
					time.Sleep(time.Duration(draw(int64(time.Second))))
					if draw(10) == 0 {
						time.Sleep(time.Duration(draw(int64(2 * ttl))))
						return errAway
					}
					return nil
				}}
				act := func(ctx context.Context) error {
					if draw(5) == 0 {
						until := time.Now().Add(time.Duration(draw(int64(3 * ttl))))
						suspended.Store(&until)
						time.Sleep(time.Until(until))
					}
					if ctx.Err() != nil { // as an HTTP client does
						return ctx.Err()
					}
					mu.Lock()
					if acting[name] = true; len(acting) > 1 {
						t.Errorf("with seed %d, %v act at the same time", seed, acting)
					}
					acts[name]++
					mu.Unlock()
					err := job.Pause(ctx, time.Duration(draw(int64(ttl))))
					mu.Lock()
					delete(acting, name)
					mu.Unlock()
					return err
				}
				j := job.Leased(p, "work", ttl, func(ctx context.Context, held *job.Held) error {
					for range draw(5) {
						if err := held.Ensure(ctx); err != nil {
							return err
						}
						if err := act(ctx); err != nil {
							return err
						}
					}
					return nil
				})
				all.Go(func() {
					for job.Pause(ctx, time.Duration(draw(int64(2*ttl)))) == nil {
						_ = j(ctx) // a failed step is tried again
					}
				})
			}
			all.Wait()
			if len(acts) != 3 {
				t.Errorf("with seed %d only %v act", seed, acts)
			}
		})
	}
}
