// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Lease is the right to do some work. One process holds it at a time. Its epoch grows with
// every change of holder: the store refuses a write that names an older epoch.
type Lease struct {
	Name  string
	Epoch int64
}

// Leases grants leases to the processes that share it.
type Leases interface {
	// Take acquires a lease for ttl, or renews it; held is false if another process has it.
	Take(ctx context.Context, name string, ttl time.Duration) (lease Lease, held bool, err error)
}

// ErrLost is the error of a step if another process has acquired its lease, or may soon.
var ErrLost = errors.New("the lease was lost to another process")

// longestQuiet is for how long a step without a call to Ensure keeps its lease. A longer step is
// assumed to hang, so that another process should get the lease.
const longestQuiet = 5 * time.Minute

// Held is a lease while a step works under it. A step keeps one rule, so that two processes
// never act at the same time:
//
//   - it stores what it is about to do, in a write that names Lease;
//   - it calls Ensure right before it acts outside of the store;
//   - it acts with the context that Hold passes to it.
//
// The lease is renewed meanwhile. The context ends when another process has taken the lease,
// or when a quarter of the lease is left and no renewal has succeeded.
type Held struct {
	Lease
	leases Leases
	ttl    time.Duration
	ctx    context.Context
	end    context.CancelCauseFunc
	quiet  atomic.Int64 // renewals since the last call to Ensure

	mu     sync.Mutex
	expiry *time.Timer
}

// Hold acquires a lease and runs step under it. It reports whether this process has the lease; if
// not, step does not run.
func Hold(ctx context.Context, leases Leases, name string, ttl time.Duration, step func(ctx context.Context, held *Held) error) (held bool, err error) {
	h := &Held{leases: leases, ttl: ttl}
	h.ctx, h.end = context.WithCancelCause(ctx)
	defer h.end(nil)
	h.expiry = h.expire()
	defer func() { h.expiry.Stop() }()
	if h.Lease, held, err = leases.Take(ctx, name, ttl); err != nil || !held {
		return false, err
	}
	var renewal sync.WaitGroup
	renewal.Go(h.renew)
	defer renewal.Wait()
	defer h.end(nil)
	err = step(h.ctx, h)
	if cause := context.Cause(h.ctx); err != nil && cause != nil && ctx.Err() == nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return true, err
}

// Leased returns a step for a job that runs only in the process that has the lease.
func Leased(leases Leases, name string, ttl time.Duration, step func(ctx context.Context, held *Held) error) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		_, err := Hold(ctx, leases, name, ttl, step)
		return err
	}
}

// Ensure renews the lease. It fails if another process has taken it, and if the store does not
// answer: this process may have been suspended, and cannot know. After a failure the step's context
// has ended, and every further call fails.
func (h *Held) Ensure(ctx context.Context) error {
	h.quiet.Store(0)
	if h.ctx.Err() != nil {
		return context.Cause(h.ctx)
	}
	err := h.take(ctx)
	if err != nil {
		h.end(err)
	}
	return err
}

// renew renews the lease until the step ends. An error of the store does not end the step; expire
// does.
func (h *Held) renew() {
	every := h.ttl / 4
	for Pause(h.ctx, every) == nil {
		if h.quiet.Add(1) <= int64(longestQuiet/every) {
			_ = h.take(h.ctx)
		}
	}
}

// take takes the lease once more, which prolongs it. If another process has had it meanwhile, the work
// ends with ErrLost.
func (h *Held) take(ctx context.Context) error {
	expiry := h.expire()
	again, held, err := h.leases.Take(ctx, h.Name, h.ttl)
	if err == nil && (!held || again.Epoch != h.Epoch) {
		err = ErrLost
		h.end(err)
	}
	if err != nil {
		expiry.Stop()
		return err
	}
	h.mu.Lock()
	h.expiry, expiry = expiry, h.expiry
	h.mu.Unlock()
	expiry.Stop()
	return nil
}

// expire ends the step before the lease can end.
func (h *Held) expire() *time.Timer {
	return time.AfterFunc(h.ttl*3/4, func() { h.end(ErrLost) })
}
