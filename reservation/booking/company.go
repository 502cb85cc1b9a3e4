// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// mostTogether is the largest number of new reservations that one transaction stores. The
// transaction takes a database longer for each of them, and they all wait for the last.
const mostTogether = 16

// company is new reservations of one project that one transaction stores, all or none. All bookings
// of a project change its usage, so that their transactions would wait for each other's commit to
// disk.
type company struct {
	project string
	ctx     context.Context // of the transaction; it ends when no member waits
	end     context.CancelFunc

	// Guarded by companies.mu:
	attempts []*attempt
	sealed   bool // the attempts are being stored
	left     int  // members of a sealed company whose contexts have ended

	over chan struct{} // closed when err is set
	err  error
}

// companies contains the companies that wait until the transaction before is over and have room for
// another member, by project.
type companies struct {
	storing locks[string] // by project
	mu      sync.Mutex
	open    map[string]*company
}

// commitNew is commit for a new reservation. If no other new reservation of the project is being
// stored, it waits for nothing. Otherwise it joins those that wait. A reservation with an idempotency
// key stays alone, so that a used key affects no others.
func (d *Service) commitNew(ctx context.Context, a *attempt) (err error) {
	if a.key != nil {
		return d.commit(ctx, a)
	}
	if unlock, free := d.companies.storing.tryLock(a.next.ProjectID); free {
		defer unlock()
		return d.commit(ctx, a)
	}
	ctx, end := tracing.Step(ctx, "commit with others", factsOf(nil, []*attempt{a})...)
	defer func() { end(err) }()
	c, first := d.companies.join(ctx, a)
	if first {
		go d.storeCompany(c)
	}
	select {
	case <-c.over:
	case <-ctx.Done():
		if d.companies.leave(c, a) {
			return d.notStored([]*attempt{a}, fmt.Errorf("wait for others: %w", ctx.Err()))
		}
		<-c.over
	}
	return c.err
}

// join adds an attempt to the open company of its project. first is true if the company is new.
func (cs *companies) join(ctx context.Context, a *attempt) (c *company, first bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	project := a.next.ProjectID
	c, ok := cs.open[project]
	if !ok {
		c = &company{project: project, over: make(chan struct{})}
		c.ctx, c.end = context.WithCancel(context.WithoutCancel(ctx)) // a member that leaves does not end the others' transaction
		if cs.open == nil {
			cs.open = make(map[string]*company)
		}
		cs.open[project] = c
	}
	if c.attempts = append(c.attempts, a); len(c.attempts) == mostTogether {
		delete(cs.open, project)
	}
	return c, !ok
}

// leave records that the context of a member has ended. It reports whether it has removed the
// member's attempt, which is then not stored.
func (cs *companies) leave(c *company, a *attempt) (removed bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.sealed {
		c.left++
	} else {
		c.attempts = slices.DeleteFunc(c.attempts, func(other *attempt) bool { return other == a })
	}
	if c.left == len(c.attempts) {
		cs.shut(c)
		c.end()
	}
	return !c.sealed
}

// seal returns the attempts of a company, which nobody can join or leave any more.
func (cs *companies) seal(c *company) []*attempt {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.sealed = true
	cs.shut(c)
	return c.attempts
}

// shut lets nobody join a company any more. The caller holds mu.
func (cs *companies) shut(c *company) {
	if cs.open[c.project] == c {
		delete(cs.open, c.project)
	}
}

// storeCompany stores the attempts of a company when the transaction before is over.
func (d *Service) storeCompany(c *company) {
	defer close(c.over)
	defer c.end()
	unlock, err := d.companies.storing.lock(c.ctx, c.project)
	attempts := d.companies.seal(c)
	switch {
	case err != nil:
		c.err = d.notStored(attempts, err)
	case len(attempts) == 0:
		unlock()
	default:
		defer unlock()
		c.err = d.commitTogether(c.ctx, nil, attempts...)
	}
}
