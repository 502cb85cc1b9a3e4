package weighers

import (
	"slices"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Promises tells what is promised.
type Promises interface {
	// Promised gives each host that is promised at t or later, once, with the first time
	// that is not over at t.
	Promised(t span.Instant) []reservation.Claim
}

// Revised are Promises that say when they change: while Revision gives the same number,
// the same is promised. They are not asked anew for each request.
type Revised interface {
	Promises
	Revision() uint64
}

// FreeTimeWeigher is weigher 1 of paper 004: it prefers hosts that are free for long
// until the next claim on them. It is for requests outside reservations; inside all
// hosts weigh 0.
//
// A host that is free for t weighs t / (t + half): 0 where it is promised now, 1/2 where
// a claim begins in half, 1 where none is ahead. The scale is fixed, so that an hour
// counts where claims are near, and counts for nothing where all are weeks off.
type FreeTimeWeigher struct {
	Promises Promises
	kept     atomic.Pointer[starts] // of Revised
}

// starts are when the next claims begin.
type starts struct {
	states   *inventory.States
	revision uint64
	good     span.Span      // the instants at which they are the next ones
	at       []span.Instant // by place in states; span.Forever is never
}

// half is the free time that is worth half of one without end, in seconds: a day.
const half = 24 * 60 * 60

// Name is the weigher's name.
func (*FreeTimeWeigher) Name() string { return "FreeTimeWeigher" }

// Weigh gives a share of 1.
func (w *FreeTimeWeigher) Weigh(s *inventory.States, r *placing.Request, now span.Instant, hosts []int, raw []float64) {
	if inside(r) {
		clear(raw)
		return
	}
	at := w.starts(s, now)
	for k, i := range hosts {
		raw[k] = 1
		if at[i] != span.Forever {
			free := float64(max(0, at[i]-now))
			raw[k] = free / (free + half)
		}
	}
}

// starts gives when the next claim on each host begins.
func (w *FreeTimeWeigher) starts(s *inventory.States, now span.Instant) []span.Instant {
	revised, ok := w.Promises.(Revised)
	if !ok {
		return gather(w.Promises, s, now).at
	}
	revision := revised.Revision() // before they are read: what changes meanwhile is read again
	if kept := w.kept.Load(); kept != nil && kept.revision == revision && s.SameHosts(kept.states) && kept.good.Contains(now) {
		return kept.at
	}
	next := gather(revised, s, now)
	next.revision = revision
	w.kept.Store(next)
	return next.at
}

func gather(p Promises, s *inventory.States, now span.Instant) *starts {
	next := &starts{states: s, good: span.Span{Start: now, End: span.Forever}, at: slices.Repeat([]span.Instant{span.Forever}, s.Len())}
	for _, c := range p.Promised(now) {
		if c.Span.End > now {
			next.good.End = min(next.good.End, c.Span.End)
		}
		if i, known := s.Index(c.Host); known {
			next.at[i] = c.Span.Start
		}
	}
	return next
}

// inside says that the request names a reservation, by its hint or by its flavor.
func inside(r *placing.Request) bool {
	_, hinted := r.Hints[placing.ReservationHint]
	_, marked := r.ExtraSpecs[inventory.ReservationMark]
	return hinted || marked
}
