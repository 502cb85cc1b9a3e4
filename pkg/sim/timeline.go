// Package sim lets the service's own packages run on a virtual clock: a Timeline of events
// takes the place of time, a Desk of package booking decides on memory alone, and everything
// random follows from a seed. It also has what every experiment needs around that: runs side
// by side, means with their confidence, tables and reports. The experiments are in the rooms
// beside it: deadline, energy, preemption and replay.
package sim

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Order says which of the events at one instant come first.
type Order int

// The orders: what ends makes room before new work comes, and who looks sees it all.
const (
	Ending   Order = iota // hosts become free, machines come up
	Arriving              // new work
	Looking               // who measures and decides, such as the power controller
)

// Timeline is a virtual clock and what is to happen. Of what is to happen at one instant,
// the lower Order comes first, and of equals what was entered first. It is for one goroutine.
type Timeline struct {
	now     span.Instant
	entered int64
	ahead   happenings
}

// NewTimeline gives a Timeline that stands at from.
func NewTimeline(from span.Instant) *Timeline { return &Timeline{now: from} }

// Now is the instant at which the Timeline stands.
func (t *Timeline) Now() span.Instant { return t.now }

// At lets something happen at an instant; one that is over is now.
func (t *Timeline) At(at span.Instant, order Order, do func() error) {
	t.entered++
	heap.Push(&t.ahead, happening{max(at, t.now), order, t.entered, do})
}

// After is At so many seconds from now.
func (t *Timeline) After(seconds int64, order Order, do func() error) {
	t.At(t.now.Add(seconds), order, do)
}

// Run lets everything happen that is to happen before until, and stands there then. It
// stops at the first error, and where ctx ends.
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

// checkEvery is after how many events it is seen whether the run shall end.
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
