// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"slices"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Promises is the part of booking.Service that the weigher reads.
type Promises interface {
	// Promised returns each host that is promised at t or later, once, with the first claim
	// that is not over at t.
	Promised(t span.Instant) []reservation.Claim
}

// Revised is Promises with a revision. They are not read again while Revision returns the same
// number.
type Revised interface {
	Promises
	Revision() uint64
}

// FreeTimeWeigher is weigher 1 of paper 004: it prefers hosts that are free for a long time until
// their next claim. It applies to requests outside reservations; inside, all hosts weigh 0.
//
// A host that is free for t weighs t / (t + half): 0 during a claim, 1/2 if a claim begins in half,
// 1 if there is none ahead. The scale is fixed, so that an hour matters when claims are near, and
// does not when all are weeks away.
type FreeTimeWeigher struct {
	Promises Promises
	kept     atomic.Pointer[starts] // of Revised
}

// starts are the instants at which the next claims begin, for each host.
type starts struct {
	states   *inventory.States
	revision uint64
	good     span.Span      // the instants at which the claims are the next ones
	at       []span.Instant // by host of states; span.Forever is never
}

// half is the free time, in seconds, that weighs half as much as unlimited free time: a day.
const half = 24 * 60 * 60

func (*FreeTimeWeigher) Name() string { return "FreeTimeWeigher" }

// Weigh sets weights between 0 and 1.
func (w *FreeTimeWeigher) Weigh(s *inventory.States, r *placing.Request, now span.Instant, hosts []int, raw []float64) {
	if inside(r) {
		clear(raw)
		return
	}
	at := w.starts(s, now).at
	for k, i := range hosts {
		raw[k] = 1
		if at[i] != span.Forever {
			free := float64(max(0, at[i]-now))
			raw[k] = free / (free + half)
		}
	}
}

// Basis returns the starts: they are others after each change of the claims.
func (w *FreeTimeWeigher) Basis(s *inventory.States, r *placing.Request, now span.Instant) any {
	if inside(r) {
		return hostAlone{}
	}
	return w.starts(s, now)
}

// starts returns the instants at which the next claims begin.
func (w *FreeTimeWeigher) starts(s *inventory.States, now span.Instant) *starts {
	revised, ok := w.Promises.(Revised)
	if !ok {
		return gather(w.Promises, s, now)
	}
	revision := revised.Revision() // before the promises, so that a change in between is read again
	if kept := w.kept.Load(); kept != nil && kept.revision == revision && s.SameHosts(kept.states) && kept.good.Contains(now) {
		return kept
	}
	next := gather(revised, s, now)
	next.revision = revision
	w.kept.Store(next)
	return next
}

// gather returns when each host is promised next, and for how long this is true.
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

// inside reports whether the request names a reservation, by its hint or its flavor.
func inside(r *placing.Request) bool {
	_, hinted := r.Hints[placing.ReservationHint]
	_, marked := r.ExtraSpecs[inventory.ReservationMark]
	return hinted || marked
}
