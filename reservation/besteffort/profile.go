// SPDX-License-Identifier: Apache-2.0

package besteffort

import (
	"sort"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// profile is the free capacity of a node from now on.
type profile struct {
	name string
	// listed reports whether the node accepts best-effort work. For a node that no longer does,
	// the profile only has when reservations hold the whole node.
	listed   bool
	segments []segment // by at; the last one has no end
	guests   []guest   // that are on it now, or will be
	changes  int       // how often something was subtracted
	// leaving is the capacity of VMs that are ended now in no time. They stay on the node until
	// the next situation shows that they are gone.
	leaving resource.Vector
}

// segment is what is free from an instant until the next segment.
type segment struct {
	at   span.Instant
	free resource.Vector
	held resource.Vector // what reservations leave, whoever else is there
	shut int             // how many reservations have the whole node
	hold bool            // a reservation begins then
}

// guest is a VM that is on the node for a time.
type guest struct {
	place int64
	span.Span
	shape resource.Vector
}

// index returns the segment of an instant; an instant in the past counts to the first.
func (p *profile) index(at span.Instant) int {
	if len(p.segments) < 2 || at < p.segments[1].at {
		return 0
	}
	return sort.Search(len(p.segments), func(i int) bool { return p.segments[i].at > at }) - 1
}

// split begins a segment at an instant, and returns its index.
func (p *profile) split(at span.Instant) int {
	i := p.index(at)
	if p.segments[i].at >= at {
		return i
	}
	p.segments = append(p.segments, segment{})
	copy(p.segments[i+1:], p.segments[i:])
	p.segments[i+1].at, p.segments[i+1].hold = at, false
	return i + 1
}

// bounds returns the segments [from, to) of a span, and splits them where necessary.
func (p *profile) bounds(s span.Span) (from, to int) {
	from, to = p.split(s.Start), len(p.segments)
	if s.End != span.Forever {
		to = p.split(s.End)
	}
	return from, to
}

// hold subtracts a reservation.
func (p *profile) hold(s span.Span, resources resource.Vector) {
	from, to := p.bounds(s)
	p.changes++
	p.segments[from].hold = true
	whole := resources.IsZero()
	for i := from; i < to; i++ {
		if whole {
			p.segments[i].shut++
		} else {
			p.segments[i].free = p.segments[i].free.Sub(resources)
			p.segments[i].held = p.segments[i].held.Sub(resources)
		}
	}
}

// take subtracts a VM.
func (p *profile) take(s span.Span, shape resource.Vector) {
	if s.Empty() {
		return
	}
	from, to := p.bounds(s)
	p.changes++
	for i := from; i < to; i++ {
		p.segments[i].free = p.segments[i].free.Sub(shape)
	}
}

// host plans a VM of a request on the node.
func (p *profile) host(r *Request, s span.Span) {
	p.take(s, r.Shape)
	p.guests = append(p.guests, guest{r.Place, s, r.Shape})
}

// room returns how many VMs, at most n, fit into a segment.
func (p *profile) room(i int, shape resource.Vector, n int) int {
	switch s := &p.segments[i]; {
	case s.shut > 0:
		return 0
	case !p.listed:
		return n
	default:
		return times(s.free, shape, n)
	}
}

// times returns how often a shape, at most n times, fits into what is free. Only the resources
// that the shape asks for count: others may be overcommitted.
func times(free, shape resource.Vector, n int) int {
	return int(min(free.Times(shape), int64(n)))
}

// lasts returns until when, at most end, n VMs fit from an instant on, and which segment ends
// that; the instant itself where they do not fit at once.
func (p *profile) lasts(from, end span.Instant, shape resource.Vector, n int) (until span.Instant, ender int) {
	for i := p.index(from); i < len(p.segments) && p.segments[i].at < end; i++ {
		if p.room(i, shape, n) < n {
			return max(from, p.segments[i].at), i
		}
	}
	return end, -1
}

// suspends reports whether a VM that runs into a segment will be suspended for it: a reservation
// begins there, and the VM does not fit beside those on the node that are as old or older.
// Younger ones would be suspended first.
func (p *profile) suspends(i int, place int64, shape resource.Vector) bool {
	s := &p.segments[i]
	if !s.hold || s.shut > 0 {
		return s.hold
	}
	left := s.held
	for _, g := range p.guests {
		if g.Start >= s.at || g.End <= s.at {
			continue
		}
		if g.place > place {
			return false
		}
		left = left.Sub(g.shape)
	}
	return times(left, shape, 1) == 0
}
