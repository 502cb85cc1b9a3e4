package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/placing"
)

const (
	// mostLeftovers is how many claims are remembered, some MB.
	mostLeftovers = 10_000
	// lateBy is how long after nobody waits for it any more a claim may still be granted:
	// Placement, or a balancer in front of it, may hold a request back.
	lateBy = time.Minute
)

// leftover is a claim that has been granted, or may have been or be yet, and of which
// nobody was told.
type leftover struct {
	claim placing.Claim
	until time.Time // when it is no longer looked for
}

// leftovers are those of a Dispatcher, the oldest first.
type leftovers struct {
	mu   sync.Mutex
	list []*leftover
	// turn has a value while none of them is being released.
	turn chan struct{}
}

// leave remembers claims for Sweep.
func (d *Dispatcher) leave(claims []placing.Claim) {
	if len(claims) == 0 {
		return
	}
	l, until := &d.leftovers, d.Now().Add(lateBy)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, claim := range claims {
		l.list = append(l.list, &leftover{claim, until})
		d.Log.Warn("Placement may have granted a claim of which nobody was told; it is released",
			"instance", claim.Consumer, "project", claim.ProjectID)
	}
	for over := len(l.list) - mostLeftovers; over > 0; over-- {
		d.Log.Error("a claim may stay in Placement, since too many are to be released; nova-manage placement audit finds it",
			"instance", l.list[0].claim.Consumer)
		l.list = l.list[1:]
	}
}

// adopt makes the leftovers of the request's own instances the task's: what it claims
// for them is not to be released.
func (t *task) adopt(ctx context.Context) error {
	l := &t.leftovers
	if !l.has(t.request.Instances) && !t.debts.have(t.request.Instances) {
		return nil
	}
	select {
	case <-l.turn:
		defer func() { l.turn <- struct{}{} }()
	case <-ctx.Done():
		return unanswered(ctx.Err())
	}
	t.lost = t.debts.adopt(t.request.Instances)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(one *leftover) bool {
		its := slices.Contains(t.request.Instances, one.claim.Consumer)
		if its {
			t.lost = append(t.lost, one.claim)
		}
		return its
	})
	return nil
}

func (l *leftovers) has(instances []string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.list, func(one *leftover) bool { return slices.Contains(instances, one.claim.Consumer) })
}

// Sweep releases what has been claimed without anybody being told: since the answer of
// Placement was lost and the time was up before it could be found out, or since the
// answer of Almanac was. It gives back what instances had that were to make room and run
// on. It is the step of a job; its errors are those of Placement.
//
// What another has changed since it leaves alone. What is granted more than lateBy
// afterwards, or left when almanacd is killed, nova-manage placement audit finds; but
// evictions of a replica that was killed are undone by the next that sweeps.
func (d *Dispatcher) Sweep(ctx context.Context) error {
	return errors.Join(d.takeOver(ctx), d.sweepLeftovers(ctx), d.sweepDebts(ctx))
}

func (d *Dispatcher) sweepLeftovers(ctx context.Context) error {
	l := &d.leftovers
	l.mu.Lock()
	all := slices.Clone(l.list)
	l.mu.Unlock()
	for _, one := range all {
		if err := d.sweep(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// sweep releases one, unless a task has adopted it meanwhile.
func (d *Dispatcher) sweep(ctx context.Context, one *leftover) error {
	l := &d.leftovers
	select {
	case <-l.turn:
		defer func() { l.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	there := slices.Contains(l.list, one)
	l.mu.Unlock()
	if !there {
		return nil
	}
	now := d.Now()
	has, err := d.Claims.AllocationsOf(ctx, one.claim.Consumer)
	if err != nil {
		return err
	}
	switch {
	case one.claim.Granted(has):
		if err := d.Claims.Release(ctx, []placing.Claim{one.claim}); err != nil {
			return err
		}
		d.Log.Info("a claim of which nobody was told is released", "instance", one.claim.Consumer)
	case has.Allocations.Equal(one.claim.Before) && now.Before(one.until):
		return nil // it may come yet
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(other *leftover) bool { return other == one })
	return nil
}
