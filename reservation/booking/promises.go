// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// memoryLock counts how often the memory that it guards may have changed.
type memoryLock struct {
	sync.RWMutex
	revision atomic.Uint64
}

func (l *memoryLock) Lock() {
	l.RWMutex.Lock()
	l.revision.Add(1)
}

// lockToLook locks like Lock, for a section that changes nothing in memory except what the
// calendar and the index share with their snapshots.
func (l *memoryLock) lockToLook() { l.RWMutex.Lock() }

// Revision increases with every change of what is promised, and may increase without one. Results
// that were read after a revision stay true while the revision stays the same, apart from what
// depends on the time.
func (d *Service) Revision() uint64 { return d.mu.revision.Load() }

// Reservation returns a live reservation; false means that none has that id.
func (d *Service) Reservation(id string) (reservation.Reservation, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if e, ok := d.live[id]; ok {
		return e.r, true
	}
	return reservation.Reservation{}, false
}

// InLease returns the ids of the project's live reservations in the lease, sorted.
func (d *Service) InLease(lease, project string) (ids []string) {
	for r := range d.state().live.byStart.until(span.Forever) {
		if lease != "" && r.Membership.LeaseID == lease && r.ProjectID == project {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// Promised returns each host that is promised at t or later, once, with the first claim that is
// not over at t: one that ends after t, or whose reservation has not ended yet. Claims that
// touch or overlap are merged, without Slices.
func (d *Service) Promised(t span.Instant) []reservation.Claim {
	s := d.state()
	overdue := s.overdue(t)
	var claims []reservation.Claim
	for number, name := range s.hosts.names {
		next, ok := s.calendar.NextBusy(number, t)
		if late, is := overdue[name]; is {
			next, ok = late, true
		}
		if ok {
			claims = append(claims, reservation.Claim{Host: name, Span: next})
		}
	}
	return claims
}

// Fillable returns the hosts that active reservations have at t, without those in maintenance, and
// without those that another reservation has or that one needs within ahead seconds.
func (d *Service) Fillable(t span.Instant, ahead int64) map[string]bool {
	hosts, kept := map[string]bool{}, map[string]bool{}
	for r := range d.state().live.byStart.until(t.Add(ahead)) {
		for _, c := range r.Claims {
			switch {
			case r.Status == reservation.Active && !r.Maintenance && c.Span.Contains(t):
				hosts[c.Host] = true
			case c.Span.Start <= t.Add(ahead) && (c.Span.End > t || c.Span.End == r.Span.End):
				kept[c.Host] = true // the reservation is late, is ending, starts soon, or is maintenance
			}
		}
	}
	maps.DeleteFunc(hosts, func(host string, _ bool) bool { return kept[host] })
	return hosts
}

// overdue returns the hosts of reservations that are live beyond their span, with that span.
func (s *state) overdue(t span.Instant) map[string]span.Span {
	late := map[string]span.Span{}
	for r := range s.live.byRelease.until(t) {
		if r.Span.End > t {
			continue // only some of its hosts were released
		}
		for _, c := range r.Claims {
			if c.Span.End == r.Span.End {
				late[c.Host] = c.Span
			}
		}
	}
	return late
}

// Snapshot returns the inventory that decisions use.
func (d *Service) Snapshot() *inventory.Snapshot {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.hosts.snapshot
}

// Live returns the live reservations whose span overlaps w, sorted by start, then id.
func (d *Service) Live(w span.Span) []reservation.Reservation {
	return d.state().overlapping(w)
}

func (s *state) overlapping(w span.Span) (list []reservation.Reservation) {
	for r := range s.live.byStart.until(w.End - 1) {
		if r.Span.Overlaps(w) {
			list = append(list, *r)
		}
	}
	return list
}

// Availability returns at most limit windows in which there is room for the requested quantity and
// duration, and the number of hosts that match. It applies the limits as a booking does: the error
// is a *reservation.Refusal if they allow no start.
func (d *Service) Availability(ctx context.Context, by Caller, req reservation.Request, limit int) (windows []calendar.Window, matched int, err error) {
	if err := d.deciding.Enter(ctx, by.ProjectID); err != nil {
		return nil, 0, err
	}
	defer d.deciding.Leave(by.ProjectID)
	v := d.view(by, by.ProjectID)
	a, err := parseRequest(req, v)
	if err != nil {
		return nil, 0, err
	}
	s, err := newSearch(v, a)
	if err != nil {
		return nil, 0, err
	}
	if refusal := s.limited(); refusal != nil {
		return nil, 0, refusal
	}
	for w := range s.allowed(s.query) {
		if len(windows) == limit {
			return windows, s.mostMatched(), nil
		}
		windows = append(windows, w)
	}
	if len(windows) == 0 {
		if refusal := s.refuseLimits(); refusal != nil {
			return nil, 0, refusal
		}
	}
	return windows, s.mostMatched(), nil
}

// windowsOf returns the starts of a part of a query at which there is room, in order.
func (s *search) windowsOf(part calendar.Query) iter.Seq[calendar.Window] {
	if s.request.Kind == reservation.Instances {
		return slices.Values(s.view.Calendar.SliceWindows(s.slices(part)))
	}
	return s.view.Calendar.Windows(part)
}

// windows returns the maximal runs of starts of a query at which there is room, in order.
func (s *search) windows(q calendar.Query) iter.Seq[calendar.Window] {
	return func(yield func(calendar.Window) bool) {
		var open *calendar.Window // a start now may continue with the later ones
		for _, part := range s.parts(q) {
			for w := range s.windowsOf(part) {
				if open != nil && open.LatestStart+1 == w.Start {
					w.Start, w.Free = open.Start, open.Free
				} else if open != nil && !yield(*open) {
					return
				}
				open = &w
			}
		}
		if open != nil {
			yield(*open)
		}
	}
}

// allowed returns the parts of the windows of a query whose starts keep the limit on hosts, in order.
func (s *search) allowed(q calendar.Query) iter.Seq[calendar.Window] {
	kept := s.bound.keeps(q.Quantity, span.Span{Start: q.Ready, End: q.Deadline})
	return func(yield func(calendar.Window) bool) {
		for w := range s.windows(q) {
			for len(kept) > 0 && kept[0].End.Add(-q.Duration) < w.Start {
				kept = kept[1:]
			}
			for _, part := range kept {
				if part.Start > w.LatestStart {
					break
				}
				starts := calendar.Window{Start: max(w.Start, part.Start), LatestStart: min(w.LatestStart, part.End.Add(-q.Duration)), Free: w.Free}
				if starts.Start > starts.LatestStart {
					continue
				}
				if starts.Start > w.Start {
					starts.Free = s.freeAt(starts.Start)
				}
				if !yield(starts) {
					return
				}
			}
		}
	}
}

// freeAt returns the Free of a window that begins at a start with room.
func (s *search) freeAt(start span.Instant) int {
	for w := range s.windowsOf(s.startingAt(start)) {
		return w.Free
	}
	return 0
}
