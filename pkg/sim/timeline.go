// SPDX-License-Identifier: Apache-2.0

// Package sim runs the service's own packages on a virtual clock: a Timeline of events replaces
// time, a Booking runs package booking in memory, and a seed determines all random numbers. It
// also has the tools of experiments: parallel runs, means with confidence intervals, findings,
// tables and reports. The experiments are in the packages below it: deadline, energy, packing,
// preemption, replay and staging.
package sim

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Order determines the sequence of events at the same instant.
type Order int

// The orders: ends free hosts before new work arrives, and controllers see both.
const (
	Ending   Order = iota // hosts become free, machines come up
	Arriving              // new work
	Looking               // controllers measure and decide
)

// Timeline is a virtual clock with scheduled events. Events at one instant happen by Order and
// then in the order of scheduling. It is not safe for concurrent use.
type Timeline struct {
	now     span.Instant
	entered int64
	ahead   happenings
}

// NewTimeline returns a Timeline whose clock shows from.
func NewTimeline(from span.Instant) *Timeline { return &Timeline{now: from} }

// Now returns the instant on the clock.
func (t *Timeline) Now() span.Instant { return t.now }

// At schedules do for an instant; an instant in the past means now.
func (t *Timeline) At(at span.Instant, order Order, do func() error) {
	t.entered++
	heap.Push(&t.ahead, happening{max(at, t.now), order, t.entered, do})
}

// After schedules do for the instant that is that many seconds from now.
func (t *Timeline) After(seconds int64, order Order, do func() error) {
	t.At(t.now.Add(seconds), order, do)
}

// Run runs all events before until and sets the clock to until. It stops at the first error,
// and when ctx ends.
func (t *Timeline) Run(ctx context.Context, until span.Instant) error {
	for n := 0; len(t.ahead) > 0 && t.ahead[0].at < until; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		next := heap.Pop(&t.ahead).(happening)
		t.now = next.at
		if err := next.do(); err != nil {
			return fmt.Errorf("at %v of the simulation: %w", t.now, err)
		}
	}
	if until != span.Forever {
		t.now = max(t.now, until)
	}
	return nil
}

// checkEvery is the number of events between two checks of the context.
const checkEvery = 256

type happening struct {
	at      span.Instant
	order   Order
	entered int64
	do      func() error
}

// happenings is a heap.
type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].order, h[j].order), cmp.Compare(h[i].entered, h[j].entered)) < 0
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = happening{}
	*h = (*h)[:len(*h)-1]
	return last
}
