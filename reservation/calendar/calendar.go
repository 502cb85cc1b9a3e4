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
	// Slice is the part of the host that is held; the zero Vector is the whole host.
	Slice resource.Vector
}

// Whole says that the claim holds the host as a whole.
func (c Claim) Whole() bool { return c.Slice.IsZero() }

// Calendar holds the claims of hosts 0 … Hosts()-1.
//
// A calendar and its snapshots share what neither of them has changed since: a change
// copies the lanes and the parts of the index that it touches, once after each snapshot.
type Calendar struct {
	lanes []*lane
	index index
	owner *owner // who may write a lane or a page without copying it; nil in a snapshot
}

// owner tells calendars apart that share their parts. It has a size, so that two differ.
type owner struct{ _ byte }

// New returns an empty calendar of hosts with these capacities. The index reaches
// from from onwards; claims before it are held all the same.
func New(capacity []resource.Vector, from span.Instant) *Calendar {
	c := &Calendar{owner: new(owner)}
	c.index = newIndex(from, c.owner)
	for _, v := range capacity {
		c.AddHost(v)
	}
	return c
}

// Snapshot returns the calendar as it is now, for any number of readers at once. It never
// changes, and panics where it is told to. It costs a pointer for each host and for each
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

// Fork returns a calendar with the claims of a snapshot, which may be changed.
func (c *Calendar) Fork() *Calendar {
	if c.owner != nil {
		return c.Snapshot().Fork()
	}
	f := &Calendar{lanes: slices.Clone(c.lanes), owner: new(owner)}
	f.index = c.index.share(f.owner)
	return f
}

// Unchanged reports whether nothing has been claimed or released on host, nor its capacity
// changed, between two calendars of which one is a snapshot of the other, taken at any time.
func (c *Calendar) Unchanged(other *Calendar, host int) bool {
	return host < len(c.lanes) && host < len(other.lanes) && c.lanes[host] == other.lanes[host]
}

// lane returns the lane of host, to be written.
func (c *Calendar) lane(host int) *lane {
	if c.owner == nil {
		panic("calendar: a snapshot was to be changed")
	}
	if l := c.lanes[host]; l.owner != c.owner {
		c.lanes[host] = l.clone()
		c.lanes[host].owner = c.owner
	}
	return c.lanes[host]
}

// Hosts is the number of hosts.
func (c *Calendar) Hosts() int { return len(c.lanes) }

// AddHost makes room for one more host and gives its number.
func (c *Calendar) AddHost(capacity resource.Vector) int {
	if c.owner == nil {
		panic("calendar: a snapshot was to be changed")
	}
	c.lanes = append(c.lanes, &lane{owner: c.owner, capacity: capacity})
	c.index.hosts = len(c.lanes)
	return len(c.lanes) - 1
}

// SetCapacity changes what host offers to slices from now on. Slices already
// held stay, even where they exceed the new capacity.
func (c *Calendar) SetCapacity(host int, capacity resource.Vector) {
	if !c.lanes[host].capacity.Equal(capacity) {
		c.lane(host).capacity = capacity
	}
}

// Add enters all claims or none. It fails when a span is empty, a host does not
// exist, or a claim does not fit beside those already held.
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

// Remove takes out all claims or none. A part of a whole-host claim may be
// removed, as for an early release; a slice is removed as it was added.
func (c *Calendar) Remove(claims ...Claim) error {
	for i, claim := range claims {
		if !c.withdrawOne(claim) {
			for _, removed := range claims[:i] {
				c.enter(removed)
			}
			return fmt.Errorf("release host %d for %v: it is not held so", claim.Host, claim.Span)
		}
	}
	return nil
}

// Prune forgets what ended by t, and lets the index begin there.
func (c *Calendar) Prune(t span.Instant) {
	reached := bucketSpan(c.index.end()).Start
	c.index.advance(t)
	for host := range c.lanes {
		if c.lanes[host].outdated(t) {
			c.lane(host).prune(t)
		}
		busy := c.lanes[host].busy()
		for _, w := range busy[busy.endingAfter(reached):] {
			c.index.mark(host, w) // within reach only now
		}
	}
}

// Free gives the hosts of among that nobody holds at any instant of w.
func (c *Calendar) Free(w span.Span, among hostset.Set) hostset.Set {
	free, open := c.index.split(w, among)
	for host := range open.All() {
		if c.lanes[host].busy().free(w) {
			free.Add(host)
		}
	}
	return free
}

// Held gives the spans of host's claims that share an instant with w, sorted;
// whole-host claims that touch come as one.
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

// NextBusy gives the first time in which host is held that ends after t; merged
// where claims touch or share it. ok is false when none follows.
func (c *Calendar) NextBusy(host int, t span.Instant) (next span.Span, ok bool) {
	busy := c.lanes[host].busy()
	i := busy.endingAfter(t)
	if i == len(busy) {
		return span.Span{}, false
	}
	return busy[i], true
}

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

// Restore enters claims that were promised before, as after a restart. Slices may
// exceed a capacity that has shrunk since; a whole-host claim over another claim
// is an error all the same, and leaves the calendar as it was.
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

func (c *Calendar) admitRestored(claim Claim) error {
	if claim.Whole() || claim.Host < 0 || claim.Host >= len(c.lanes) || claim.Span.Empty() {
		return c.admit(claim)
	}
	if !c.lanes[claim.Host].whole.free(claim.Span) {
		return fmt.Errorf("the host is held as a whole")
	}
	return nil
}
