package filters

import (
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Revised are Promises that say when they have changed: what they gave after Revision
// was read is true for as long as it gives the same number, but for the passing of time.
type Revised interface {
	Promises
	Revision() uint64
}

// promisedHosts is what Promises.Promised gives, by place in states.
type promisedHosts struct {
	states   *inventory.States
	revision uint64
	good     span.Span // the instants at which it is true
	claims   []reservation.Claim
	places   []int   // of each claim's host; -1 where the states have no such host
	which    []int32 // by place of a host: which of the claims is on it
}

// keptPromises are those of the last decision.
type keptPromises struct{ last atomic.Pointer[promisedHosts] }

// promised returns the promised hosts; those of the decision before where they are the same.
func (f Reservation) promised(s *inventory.States, now span.Instant) *promisedHosts {
	revised, ok := f.Promises.(Revised)
	if !ok || f.kept == nil {
		return gather(f.Promises, s, now)
	}
	revision := revised.Revision() // before they are read: what changes meanwhile is read again
	if last := f.kept.last.Load(); last != nil && s.SameHosts(last.states) && last.revision == revision && last.good.Contains(now) {
		return last
	}
	next := gather(f.Promises, s, now)
	next.revision = revision
	f.kept.last.Store(next)
	return next
}

func gather(from Promises, s *inventory.States, now span.Instant) *promisedHosts {
	claims := from.Promised(now)
	p := &promisedHosts{
		states: s, good: span.Span{Start: now, End: span.Forever}, claims: claims, places: make([]int, len(claims)), which: make([]int32, s.Len()),
	}
	for n, c := range claims {
		if c.Span.End > now {
			p.good.End = min(p.good.End, c.Span.End)
		}
		i, known := s.Index(c.Host)
		if !known {
			i = -1
		} else {
			p.which[i] = int32(n)
		}
		p.places[n] = i
	}
	return p
}
