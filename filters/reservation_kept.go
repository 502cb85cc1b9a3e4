package filters

import (
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Revised are Promises with a revision. Their results after a call of Revision are valid as long
// as Revision returns the same number, apart from the passage of time.
type Revised interface {
	Promises
	Revision() uint64
}

// promisedHosts is the result of Promises.Promised, by host of states.
type promisedHosts struct {
	states   *inventory.States
	revision uint64
	good     span.Span // the instants at which it is valid
	claims   []reservation.Claim
	places   []int   // of each claim's host; -1 if the states have no such host
	which    []int32 // by host: the index of its claim
}

// keptPromises are those of the last decision.
type keptPromises struct{ last atomic.Pointer[promisedHosts] }

// promised returns the promised hosts; those of the previous decision if they are still valid.
func (f Reservation) promised(s *inventory.States, now span.Instant) *promisedHosts {
	revised, ok := f.Promises.(Revised)
	if !ok || f.kept == nil {
		return gather(f.Promises, s, now)
	}
	revision := revised.Revision() // before the promises, so that a change in between is read again
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
