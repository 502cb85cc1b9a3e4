// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// openings is what has become free since what waits was looked at.
type openings struct {
	since planning.Freed
	heard chan struct{} // receives a value when there may be room for what waits
}

// note notes what has become free while some wait.
func (o *openings) note(waiting line, f planning.Freed) {
	if waiting.count() > 0 || len(f.Made) > 0 {
		o.since = both(o.since, f)
		job.Poke(o.heard)
	}
}

// learn notes what a change of an entry frees that memory learns of; e is nil for a new reservation, r if it is gone.
func (o *openings) learn(waiting line, e *entry, r *reservation.Reservation, now span.Instant) {
	if r != nil && r.Status == reservation.Waiting && (e == nil || e.attempt != nil && e.attempt.before.ID == "") {
		// Another replica may have freed room while this one was decided on.
		o.note(waiting, planning.Freed{Made: map[string]bool{r.ID: true}})
	}
	if e != nil && r != nil && e.r.HeldUntil() != 0 && r.HeldUntil() == 0 {
		if made := waiting.holding(r.ProjectID); len(made) > 0 { // the project has one hold less
			o.note(waiting, planning.Freed{Made: made})
		}
	}
	if e == nil || waiting.count() == 0 || r != nil && r.Status.Live() && holdsSame(&e.r, r) {
		return
	}
	if f := freedBy(&e.r, r, now); !f.Within.Empty() {
		o.note(waiting, f)
	}
}

// take returns what was noted, and forgets it.
func (o *openings) take() (f planning.Freed) {
	f, o.since = o.since, planning.Freed{}
	return f
}

// both returns what has become free in two ways.
func both(f, more planning.Freed) planning.Freed {
	f.All = f.All || more.All
	switch {
	case f.Within.Empty():
		f.Within = more.Within
	case !more.Within.Empty():
		f.Within = span.Span{Start: min(f.Within.Start, more.Within.Start), End: max(f.Within.End, more.Within.End)}
	}
	f.Projects, f.Made = union(f.Projects, more.Projects), union(f.Made, more.Made)
	return f
}

func union(a, b map[string]bool) map[string]bool {
	if a == nil {
		return maps.Clone(b)
	}
	maps.Copy(a, b)
	return a
}

// freedBy returns what a change of a reservation frees, after being nil if it is gone: at most its claims from now on.
func freedBy(before, after *reservation.Reservation, now span.Instant) (f planning.Freed) {
	kept := make(map[string][]reservation.Claim)
	if after != nil && after.Status.Live() && before.Resources.Equal(after.Resources) {
		for _, c := range after.Claims {
			kept[c.Host] = append(kept[c.Host], c)
		}
	}
	for _, c := range before.Claims {
		stays := func(k reservation.Claim) bool {
			return k.Span.Covers(c.Span) && k.Slices >= c.Slices && (k.Slices == 0) == (c.Slices == 0)
		}
		if slices.ContainsFunc(kept[c.Host], stays) {
			continue
		}
		c.Span.Start = max(c.Span.Start, now)
		f = both(f, planning.Freed{Within: c.Span})
	}
	if !f.Within.Empty() {
		f.Projects = map[string]bool{before.ProjectID: true}
	}
	return f
}
