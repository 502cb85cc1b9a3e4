// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// mostTogether is the largest number of new reservations that one transaction stores. The
// transaction takes a database longer for each of them, and they all wait for the last.
const mostTogether = 16

// company is new reservations of one project that claim time on the same hosts, and that one
// transaction stores, all or none: a transaction on a host waits for the one before, and a first
// fit leads many bookings to the same hosts.
type company struct {
	key string
	ctx context.Context // of the transaction; it ends when no member waits
	end context.CancelFunc

	// Guarded by companies.mu:
	attempts []*attempt
	sealed   bool // the attempts are being stored
	left     int  // members of a sealed company whose contexts have ended

	over chan struct{} // closed when err is set
	err  error
}

// companies contains the companies that wait for their hosts and have room for another member, by
// key.
type companies struct {
	mu   sync.Mutex
	open map[string]*company
}

// commitNew is commit for a new reservation. If the hosts are free, it waits for nothing. Otherwise
// the reservation joins those that wait for the same hosts. A reservation with an idempotency key
// stays alone, so that a used key affects no others.
func (d *Service) commitNew(ctx context.Context, a *attempt) (err error) {
	if a.key != nil {
		return d.commit(ctx, a)
	}
	alone := []*attempt{a}
	ctx, end := tracing.Step(ctx, "commit", factsOf(nil, alone)...)
	defer func() { end(err) }()
	hosts := d.claimedTogether(alone)
	keys := d.claimingKeys(alone, hosts)
	if unlock, free := d.claiming.tryLock(keys...); free {
		defer unlock()
		return d.storeTogether(ctx, nil, hosts, alone)
	}
	c, first := d.companies.join(ctx, a.next.ProjectID+" "+strings.Join(keys, " "), a)
	if first {
		go d.storeCompany(c, hosts, keys)
	}
	select {
	case <-c.over:
	case <-ctx.Done():
		if d.companies.leave(c, a) {
			return d.notStored(alone, fmt.Errorf("wait for others: %w", ctx.Err()))
		}
		<-c.over
	}
	return c.err
}

// join adds an attempt to the open company of a key. first is true if the company is new.
func (cs *companies) join(ctx context.Context, key string, a *attempt) (c *company, first bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c, ok := cs.open[key]
	if !ok {
		c = &company{key: key, over: make(chan struct{})}
		c.ctx, c.end = context.WithCancel(context.WithoutCancel(ctx)) // a member that leaves does not end the others' transaction
		if cs.open == nil {
			cs.open = make(map[string]*company)
		}
		cs.open[key] = c
	}
	if c.attempts = append(c.attempts, a); len(c.attempts) == mostTogether {
		delete(cs.open, key)
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
	if cs.open[c.key] == c {
		delete(cs.open, c.key)
	}
}

// storeCompany stores the attempts of a company when its hosts are free.
func (d *Service) storeCompany(c *company, hosts, keys []string) {
	defer close(c.over)
	defer c.end()
	unlock, err := d.claiming.lock(c.ctx, keys...)
	attempts := d.companies.seal(c)
	switch {
	case err != nil:
		c.err = d.notStored(attempts, err)
	case len(attempts) == 0:
		unlock()
	default:
		defer unlock()
		c.err = d.storeTogether(c.ctx, nil, hosts, attempts)
	}
}
