package besteffort

import (
	"sort"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// profile is what is free on a node from now on.
type profile struct {
	name string
	// listed says that the node takes best-effort work. Of one that does not, any more, it is
	// only known when reservations have the whole of it.
	listed   bool
	segments []segment // by at; the last one has no end
	guests   []guest   // that are on it now
	// leaving is what those have that are ended now in no time: they are on the node until
	// they are seen to be over.
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

// guest is a virtual machine that is on the node until an instant.
type guest struct {
	place int64
	until span.Instant
	shape resource.Vector
}

// index gives the segment that an instant is in; what is over counts as the first.
func (p *profile) index(at span.Instant) int {
	if len(p.segments) < 2 || at < p.segments[1].at {
		return 0
	}
	return sort.Search(len(p.segments), func(i int) bool { return p.segments[i].at > at }) - 1
}

// split has a segment begin at an instant, and gives its index.
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

// bounds gives the segments [from, to) that a span is, split where it must be.
func (p *profile) bounds(s span.Span) (from, to int) {
	from, to = p.split(s.Start), len(p.segments)
	if s.End != span.Forever {
		to = p.split(s.End)
	}
	return from, to
}

// hold takes what a reservation has.
func (p *profile) hold(s span.Span, resources resource.Vector) {
	from, to := p.bounds(s)
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

// take takes what a virtual machine has.
func (p *profile) take(s span.Span, shape resource.Vector) {
	if s.Empty() {
		return
	}
	from, to := p.bounds(s)
	for i := from; i < to; i++ {
		p.segments[i].free = p.segments[i].free.Sub(shape)
	}
}

// room is how many virtual machines, at most n, a segment has room for.
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

// times is how often a shape, at most n times, fits into what is free. Only what the shape asks
// for counts: where there is less than nothing of something else, it does not matter.
func times(free, shape resource.Vector, n int) int {
	return int(min(free.Times(shape), int64(n)))
}

// lasts gives until when, at most end, there is room for n virtual machines from an instant
// on, and which segment ends that; where there is none at once, it is the instant.
func (p *profile) lasts(from, end span.Instant, shape resource.Vector, n int) (until span.Instant, ender int) {
	for i := p.index(from); i < len(p.segments) && p.segments[i].at < end; i++ {
		if p.room(i, shape, n) < n {
			return max(from, p.segments[i].at), i
		}
	}
	return end, -1
}

// suspends says whether what runs into a segment will be suspended for it: a reservation
// begins then that leaves no room for it beside those that are on the node now, of which
// none is younger: that would be suspended first.
func (p *profile) suspends(i int, place int64, shape resource.Vector) bool {
	s := &p.segments[i]
	if !s.hold || s.shut > 0 {
		return s.hold
	}
	left := s.held
	for _, g := range p.guests {
		if g.until <= s.at {
			continue
		}
		if g.place > place {
			return false
		}
		left = left.Sub(g.shape)
	}
	return times(left, shape, 1) == 0
}
