// Package turns lets in so many at once, and lets those who wait take turns by party, so that
// one party with many requests does not keep the others out.
package turns

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Gate lets in a bounded number at once. Those who wait stand in the line of their party,
// first come first served, and the parties take turns: however long the line of one party is,
// it delays another party by one visitor each time. Make one with New.
type Gate struct {
	mu      sync.Mutex
	free    int
	each    int                        // how many of one party may be inside; 0 is any number
	inside  map[string]int             // by party; nil where any number may
	lines   map[string][]chan struct{} // who waits, by party
	parties []string                   // that have a line, the next first
}

// New returns a gate that lets in slots visitors at once, of each party at most each; 0 is no
// limit for a party. There is always one slot.
func New(slots, each int) *Gate {
	g := &Gate{free: max(1, slots), each: each}
	if each > 0 {
		g.inside = make(map[string]int)
	}
	return g
}

// Enter waits for a slot, no longer than ctx lasts. Whoever is let in calls Leave.
func (g *Gate) Enter(ctx context.Context, party string) error { return g.enter(ctx, party, false) }

// EnterAhead is Enter for a visitor that others wait for: it stands first in the line of its
// party.
func (g *Gate) EnterAhead(ctx context.Context, party string) error {
	return g.enter(ctx, party, true)
}

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
		if !g.quit(party, called) { // it was called this moment
			g.Leave(party)
		}
		return fmt.Errorf("wait in line: %w", ctx.Err())
	}
}

// Waiting returns how many of a party wait.
func (g *Gate) Waiting(party string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.lines[party])
}

// queue takes a free slot and returns nil, or returns what is closed once there is one.
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

// quit leaves the line, and reports whether it was still in it.
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

// Leave frees the slot that the party has had, for the first in the line of the next party.
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

// forget removes the line of a party.
func (g *Gate) forget(party string) {
	delete(g.lines, party)
	g.parties = slices.DeleteFunc(g.parties, func(p string) bool { return p == party })
}
