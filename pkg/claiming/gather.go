// SPDX-License-Identifier: Apache-2.0

package claiming

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

const (
	// sendersAtOnce is the number of transactions that a Gatherer sends at the same time. Placement
	// has a few processes, and transactions that wait for one would grow if they waited here.
	sendersAtOnce = 4
	// gathered is the largest number of consumers in a gathered transaction. Each adds 14 ms to a
	// transaction of 28 ms (docs/performance.md), and all of them wait for the last.
	gathered = 16
)

// Gatherer sends first claims of consumers that wait at the same time to Placement in one
// transaction: Placement writes eight consumers together in half the time of eight transactions. If
// fewer than sendersAtOnce transactions are in progress, a claim waits for nothing.
//
// It implements Placement. The methods but Claim, and claims of consumers that have allocations, go
// to the Placement that it contains.
type Gatherer struct {
	Placement

	mu      sync.Mutex
	senders int
	waiting []*member
}

// member is the claims of one call of Claim.
type member struct {
	ctx    context.Context
	claims []placing.Claim
	sent   bool       // is part of a transaction; guarded by Gatherer.mu
	answer chan error // has room for one
}

// Claim implements Placement. If Placement refuses a gathered transaction, which refuses the claims
// of all members, each member is sent alone, so that one without room does not affect the others.
func (g *Gatherer) Claim(ctx context.Context, claims []placing.Claim) error {
	if len(claims) > gathered || slices.ContainsFunc(claims, func(c placing.Claim) bool { return c.Generation != nil }) {
		return g.Placement.Claim(ctx, claims)
	}
	m := &member{ctx: ctx, claims: claims, answer: make(chan error, 1)}
	if g.enter(m) {
		defer g.leave()
		return g.Placement.Claim(ctx, claims)
	}
	select {
	case err := <-m.answer:
		return err
	case <-ctx.Done():
		return g.abandon(m)
	}
}

// enter reports whether the member may send its claims now. Otherwise the member waits.
func (g *Gatherer) enter(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.senders < sendersAtOnce {
		g.senders++
		return true
	}
	g.waiting = append(g.waiting, m)
	return false
}

// leave passes the place of a sender on to the members that wait, if there are any.
func (g *Gatherer) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if members := g.next(); len(members) > 0 {
		go func() {
			defer g.leave()
			g.send(members)
		}()
		return
	}
	g.senders--
}

// next removes the members of the next transaction from those that wait, the first ones first: up to
// gathered consumers, each of them once.
func (g *Gatherer) next() (members []*member) {
	consumers := map[string]bool{}
	g.waiting = slices.DeleteFunc(g.waiting, func(m *member) bool {
		its := map[string]bool{}
		for _, c := range m.claims {
			its[c.Consumer] = true
			if consumers[c.Consumer] {
				return false
			}
		}
		if len(consumers)+len(its) > gathered {
			return false
		}
		maps.Copy(consumers, its)
		members = append(members, m)
		m.sent = true
		return true
	})
	return members
}

// send sends the claims of the members in one transaction, and answers each member.
func (g *Gatherer) send(members []*member) {
	if len(members) == 1 {
		members[0].answer <- g.Placement.Claim(members[0].ctx, members[0].claims)
		return
	}
	var all []placing.Claim
	for _, m := range members {
		all = append(all, m.claims...)
	}
	// A member that leaves does not end the transaction of the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(members[0].ctx), CallTimeout)
	defer cancel()
	err := g.Placement.Claim(ctx, all)
	if err != nil && !errors.Is(err, placing.ErrUnsent) && Refused(err) {
		g.sendEach(members)
		return
	}
	for _, m := range members {
		m.answer <- err
	}
}

// sendEach sends the claims of each member in a transaction of its own, all at the same time.
func (g *Gatherer) sendEach(members []*member) {
	var sent sync.WaitGroup
	for _, m := range members {
		sent.Go(func() { m.answer <- g.Placement.Claim(m.ctx, m.claims) })
	}
	sent.Wait()
}

// abandon ends the wait of a member whose context has ended.
func (g *Gatherer) abandon(m *member) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !m.sent {
		g.waiting = slices.DeleteFunc(g.waiting, func(other *member) bool { return other == m })
		return fmt.Errorf("%w: %w", placing.ErrUnsent, unanswered(m.ctx.Err()))
	}
	return unanswered(m.ctx.Err())
}

func unanswered(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Message: "Placement has not answered yet", Err: err}
}
