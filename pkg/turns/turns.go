// SPDX-License-Identifier: Apache-2.0

// Package turns is a fair queue: it bounds how many callers run at once, and waiting parties take
// turns, so that a party with many requests does not keep the others out. A party is what the
// callers choose to be fair to, for example a project.
package turns

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Gate admits a bounded number of callers at once. Each party has a queue of waiting callers, first
// come first served, and free slots go to the parties in rotation: however long the queue of one
// party is, it delays another party by one caller at a time. Use New to make a Gate.
type Gate struct {
	mu      sync.Mutex
	slots   int
	free    int
	each    int                        // limit of one party inside; 0 means no limit
	inside  map[string]int             // callers that have a slot, by party; nil without a limit
	lines   map[string][]chan struct{} // waiting callers, by party
	parties []string                   // those with a queue, in the order of their turns
}

// New returns a gate that admits slots callers at once, at least one, and each callers of one
// party; 0 means no limit for a party.
func New(slots, each int) *Gate {
	g := &Gate{slots: max(1, slots), free: max(1, slots), each: each}
	if each > 0 {
		g.inside = make(map[string]int)
	}
	return g
}

// Enter waits for a slot until ctx ends. If it returns nil, the caller must call Leave.
func (g *Gate) Enter(ctx context.Context, party string) error { return g.enter(ctx, party, false) }

// EnterAhead is Enter for a caller that others wait for: it goes to the front of its party's
// queue.
func (g *Gate) EnterAhead(ctx context.Context, party string) error {
	return g.enter(ctx, party, true)
}

// Try takes a free slot for the party without waiting, and reports whether there was one; then the caller must call Leave.
func (g *Gate) Try(party string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.admits(party) {
		return false
	}
	g.admit(party)
	return true
}

// enter waits until the party may enter; ahead goes to the front of the party's queue.
func (g *Gate) enter(ctx context.Context, party string, ahead bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait in line: %w", err)
	}
	called := g.queue(party, ahead)
	if called == nil {
		return nil
	}
	select {
	case <-called:
		return nil
	case <-ctx.Done():
		if !g.quit(party, called) { // admitted at this moment
			g.Leave(party)
		}
		return fmt.Errorf("wait in line: %w", ctx.Err())
	}
}

// Empty reports whether nobody has a slot or waits for one.
func (g *Gate) Empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.free == g.slots
}

// Waiting returns how many callers of a party wait.
func (g *Gate) Waiting(party string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.lines[party])
}

// queue occupies a free slot and returns nil, or puts the caller into the queue and returns a
// channel that is closed when the caller has a slot.
func (g *Gate) queue(party string, ahead bool) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.admits(party) {
		g.admit(party)
		return nil
	}
	if g.lines == nil {
		g.lines = make(map[string][]chan struct{})
	}
	line, called := g.lines[party], make(chan struct{})
	if len(line) == 0 {
		g.parties = append(g.parties, party)
	}
	if ahead {
		g.lines[party] = slices.Insert(line, 0, called)
	} else {
		g.lines[party] = append(line, called)
	}
	return called
}

func (g *Gate) admit(party string) {
	g.free--
	if g.inside != nil {
		g.inside[party]++
	}
}

func (g *Gate) admits(party string) bool {
	return g.free > 0 && (g.each == 0 || g.inside[party] < g.each)
}

// quit removes the caller from the queue and reports whether it was still there.
func (g *Gate) quit(party string, called chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.lines[party], called)
	if i < 0 {
		return false
	}
	g.lines[party] = slices.Delete(g.lines[party], i, i+1)
	if len(g.lines[party]) == 0 {
		g.forget(party)
	}
	return true
}

// Leave ends the use of a slot by a caller of the party. The slot goes to the first waiting caller
// of the next party that is below its limit.
func (g *Gate) Leave(party string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free++
	if g.inside != nil {
		if g.inside[party]--; g.inside[party] == 0 {
			delete(g.inside, party)
		}
	}
	i := slices.IndexFunc(g.parties, g.admits)
	if i < 0 {
		return
	}
	next := g.parties[i]
	line := g.lines[next]
	close(line[0])
	g.admit(next)
	g.forget(next)
	if len(line) > 1 {
		g.lines[next], g.parties = line[1:], append(g.parties, next)
	}
}

// forget removes the queue of a party.
func (g *Gate) forget(party string) {
	delete(g.lines, party)
	g.parties = slices.DeleteFunc(g.parties, func(p string) bool { return p == party })
}
