// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Claim holds one host, or a slice of it, for one span.
type Claim struct {
	Host int
	Span span.Span
	// Slice is the claimed part of the host; the zero Vector means the whole host.
	Slice resource.Vector
}

// Whole reports whether the claim holds the whole host.
func (c Claim) Whole() bool { return c.Slice.IsZero() }

// Calendar contains the claims of the hosts 0 … Hosts()-1.
//
// A calendar and its snapshots share memory: a change copies the lanes and the parts of the index
// that it touches, once after each snapshot.
type Calendar struct {
	lanes []*lane
	index index
	owner *owner // may write lanes and pages without copying them; nil in a snapshot
}

// owner identifies a calendar among those that share memory. It has a size, so that the pointers of
// two owners differ.
type owner struct{ _ byte }

// New returns an empty calendar of hosts with these capacities. The index begins at from; earlier
// claims are possible too.
func New(capacity []resource.Vector, from span.Instant) *Calendar {
	c := &Calendar{owner: new(owner)}
	c.index = newIndex(from, c.owner)
	for _, v := range capacity {
		c.AddHost(v)
	}
	return c
}

// Snapshot returns the calendar in its present state, for any number of concurrent readers. It
// never changes; an attempt to change it panics. It copies a pointer for each host and for each
// page of the index.
func (c *Calendar) Snapshot() *Calendar {
	if c.owner == nil {
		return c
	}
	s := &Calendar{lanes: slices.Clone(c.lanes), index: c.index.share(nil)}
	c.owner = new(owner)
	c.index.owner = c.owner
	return s
}

// Fork returns a calendar with the same claims that can be changed.
func (c *Calendar) Fork() *Calendar {
	if c.owner != nil {
		return c.Snapshot().Fork()
	}
	f := &Calendar{lanes: slices.Clone(c.lanes), owner: new(owner)}
	f.index = c.index.share(f.owner)
	return f
}

// Unclaimed returns a calendar of the same hosts without claims.
func (c *Calendar) Unclaimed() *Calendar {
	capacity := make([]resource.Vector, len(c.lanes))
	for host := range capacity {
		capacity[host] = c.lanes[host].capacity
	}
	return New(capacity, 0)
}

// Unchanged reports whether host has the same claims and the same capacity in the calendar and in
// other, which is a snapshot of it or the other way round.
func (c *Calendar) Unchanged(other *Calendar, host int) bool {
	return host < len(c.lanes) && host < len(other.lanes) && c.lanes[host] == other.lanes[host]
}

// lane returns the lane of a host, copied if it is shared, so that the caller may change it.
func (c *Calendar) lane(host int) *lane {
	if c.owner == nil {
		panic("calendar: change of a snapshot")
	}
	if l := c.lanes[host]; l.owner != c.owner {
		c.lanes[host] = l.clone()
		c.lanes[host].owner = c.owner
	}
	return c.lanes[host]
}

// Hosts returns the number of hosts.
func (c *Calendar) Hosts() int { return len(c.lanes) }

// AddHost adds a host and returns its number.
func (c *Calendar) AddHost(capacity resource.Vector) int {
	if c.owner == nil {
		panic("calendar: change of a snapshot")
	}
	c.lanes = append(c.lanes, &lane{owner: c.owner, capacity: capacity})
	c.index.hosts = len(c.lanes)
	return len(c.lanes) - 1
}

// SetCapacity changes the capacity of a host for slices from now on. Existing slices stay, even if
// they exceed the new capacity.
func (c *Calendar) SetCapacity(host int, capacity resource.Vector) {
	if !c.lanes[host].capacity.Equal(capacity) {
		c.lane(host).capacity = capacity
	}
}

// Add adds all claims or none. It returns an error if a span is empty, a host does not exist, or
// there is no room for a claim beside existing ones.
func (c *Calendar) Add(claims ...Claim) error {
	for i, claim := range claims {
		if err := c.admit(claim); err != nil {
			c.withdraw(claims[:i])
			return fmt.Errorf("claim host %d for %v: %w", claim.Host, claim.Span, err)
		}
		c.enter(claim)
	}
	return nil
}

// Remove removes all claims or none. It can remove a part of a whole-host claim, for an early
// release; it can remove a slice only in the form in which it was added.
func (c *Calendar) Remove(claims ...Claim) error {
	for i, claim := range claims {
		if !c.withdrawOne(claim) {
			for _, removed := range claims[:i] {
				c.enter(removed)
			}
			return fmt.Errorf("release host %d for %v: there is no such claim", claim.Host, claim.Span)
		}
	}
	return nil
}

// Prune removes everything that ended at or before t; the index then begins at t.
func (c *Calendar) Prune(t span.Instant) {
	reached := bucketSpan(c.index.end()).Start
	c.index.advance(t)
	for host := range c.lanes {
		if c.lanes[host].outdated(t) {
			c.lane(host).prune(t)
		}
		busy := c.lanes[host].busy()
		for _, w := range busy[busy.endingAfter(reached):] {
			c.index.mark(host, w) // within reach only since the index advanced
		}
	}
}

// Free returns the hosts of among without a claim at any instant of w.
func (c *Calendar) Free(w span.Span, among hostset.Set) hostset.Set {
	free, open := c.index.split(w, among)
	for host := range open.All() {
		if c.lanes[host].busy().free(w) {
			free.Add(host)
		}
	}
	return free
}

// Held returns the spans of host's claims that overlap w, sorted; touching whole-host claims
// are merged.
func (c *Calendar) Held(host int, w span.Span) []span.Span {
	l := c.lanes[host]
	var held []span.Span
	for _, s := range l.whole[l.whole.endingAfter(w.Start):] {
		if s.Start >= w.End {
			break
		}
		held = append(held, s)
	}
	for _, s := range l.slices {
		if s.span.Start >= w.End {
			break
		}
		if s.span.Overlaps(w) {
			held = append(held, s.span)
		}
	}
	slices.SortFunc(held, compareSpans)
	return held
}

// NextBusy returns the first claimed span of host that ends after t, merged with claims that
// touch or overlap it. ok is false if there is none.
func (c *Calendar) NextBusy(host int, t span.Instant) (next span.Span, ok bool) {
	busy := c.lanes[host].busy()
	i := busy.endingAfter(t)
	if i == len(busy) {
		return span.Span{}, false
	}
	return busy[i], true
}

// NextEnd returns the first instant after t at which a claim ends, on any host; touching whole-host
// claims of a host count as one. ok is false if there is none.
func (c *Calendar) NextEnd(t span.Instant) (next span.Instant, ok bool) {
	next = span.Forever
	for _, l := range c.lanes {
		if i := l.whole.endingAfter(t); i < len(l.whole) {
			next = min(next, l.whole[i].End)
		}
		for _, s := range l.slices {
			if s.span.Start >= next {
				break // later slices end later still
			}
			if s.span.End > t {
				next = min(next, s.span.End)
			}
		}
	}
	return next, next != span.Forever
}

// admit returns an error if the claim cannot be added beside the others.
func (c *Calendar) admit(claim Claim) error {
	switch {
	case claim.Host < 0 || claim.Host >= len(c.lanes):
		return fmt.Errorf("there are %d hosts", len(c.lanes))
	case claim.Span.Empty():
		return fmt.Errorf("the span is empty")
	}
	l := c.lanes[claim.Host]
	if claim.Whole() {
		if !l.busy().free(claim.Span) {
			return fmt.Errorf("the host is held already")
		}
		return nil
	}
	if l.fits(claim.Span, claim.Slice, 1) < 1 {
		return fmt.Errorf("%v do not fit", claim.Slice)
	}
	return nil
}

// enter adds a claim that was admitted.
func (c *Calendar) enter(claim Claim) {
	l := c.lane(claim.Host)
	if claim.Whole() {
		l.addWhole(claim.Span)
	} else {
		l.addSlice(slice{claim.Span, claim.Slice})
	}
	c.index.mark(claim.Host, claim.Span)
}

func (c *Calendar) withdraw(claims []Claim) {
	for _, claim := range claims {
		c.withdrawOne(claim)
	}
}

// withdrawOne removes a claim, and reports whether the calendar had it.
func (c *Calendar) withdrawOne(claim Claim) bool {
	if claim.Host < 0 || claim.Host >= len(c.lanes) || claim.Span.Empty() {
		return false
	}
	l := c.lane(claim.Host)
	if claim.Whole() {
		if !l.whole.covers(claim.Span) {
			return false
		}
		l.removeWhole(claim.Span)
	} else if !l.removeSlice(slice{claim.Span, claim.Slice}) {
		return false
	}
	c.index.unmark(claim.Host, claim.Span, l.busy())
	return true
}

// Restore adds claims that were promised before, as after a restart. Slices may exceed a capacity
// that has become smaller since. A whole-host claim that overlaps another claim is still an error,
// and leaves the calendar unchanged.
func (c *Calendar) Restore(claims ...Claim) error {
	for i, claim := range claims {
		if err := c.admitRestored(claim); err != nil {
			c.withdraw(claims[:i])
			return fmt.Errorf("restore the claim on host %d for %v: %w", claim.Host, claim.Span, err)
		}
		c.enter(claim)
	}
	return nil
}

// admitRestored returns an error if a claim of the records cannot be added. Slices may be more than the
// host has now.
func (c *Calendar) admitRestored(claim Claim) error {
	if claim.Whole() || claim.Host < 0 || claim.Host >= len(c.lanes) || claim.Span.Empty() {
		return c.admit(claim)
	}
	if !c.lanes[claim.Host].whole.free(claim.Span) {
		return fmt.Errorf("the host is held as a whole")
	}
	return nil
}
