// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"iter"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Availability returns at most limit windows in which there is room for the requested quantity and duration, and the number
// of hosts that match. The error is an Invalid fault for an invalid request, and a *reservation.Refusal if the limits allow
// no start.
func Availability(v View, req reservation.Request, limit int) (windows []calendar.Window, matched int, err error) {
	a, err := parseRequest(req, v)
	if err != nil {
		return nil, 0, err
	}
	s, err := newSearch(v.lasting(span.Forever), a)
	if err != nil {
		return nil, 0, err
	}
	if refusal := s.refusing().limited(); refusal != nil {
		return nil, 0, refusal
	}
	s.pricing().decide()
	for w := range s.allowed(s.query) {
		if len(windows) == limit {
			return windows, s.mostMatched(), nil
		}
		windows = append(windows, w)
	}
	if len(windows) == 0 {
		if refusal := s.refusing().refuseLimits(); refusal != nil {
			return nil, 0, refusal
		}
	}
	return windows, s.mostMatched(), nil
}

// NextStart returns the first start after the requested window at which there is room, however late; 0 if the limits or the
// hosts allow none. The request is one for which Availability returns no window.
func NextStart(v View, req reservation.Request) (span.Instant, error) {
	a, err := parseRequest(req, v)
	if err != nil {
		return 0, err
	}
	s, err := newSearch(v.lasting(span.Forever), a)
	if err != nil {
		return 0, err
	}
	s.fruitless = s.query.Deadline.Add(-s.query.Duration)
	return s.refusing().earliest(), nil
}

// windowsOf returns the starts of a part of a query at which there is room, in order.
func (s *search) windowsOf(part calendar.Query) iter.Seq[calendar.Window] {
	if s.request.Kind == reservation.Instances {
		return slices.Values(s.view.Calendar.SliceWindows(s.slices(part)))
	}
	return s.view.Calendar.Windows(part)
}

// windows returns the maximal runs of starts of a query at which there is room, and a required rule can be kept, in order.
func (s *search) windows(q calendar.Query) iter.Seq[calendar.Window] {
	if s.lying != nil && !s.lying.rule.Preferred {
		return s.ruled().windowsLying(q)
	}
	return s.windowsAnywhere(q)
}

// windowsAnywhere returns the maximal runs of starts of a query at which there is room, in order.
func (s *search) windowsAnywhere(q calendar.Query) iter.Seq[calendar.Window] {
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

// freeAt returns the Free of a window that begins at a start with room. If all hosts must have one value, it is the most that one
// of the values has.
func (s *search) freeAt(start span.Instant) (free int) {
	if s.ruled().sameRequired() {
		for _, one := range s.ruled().onEach() {
			free = max(free, one.freeAt(start))
		}
		return free
	}
	for w := range s.windowsOf(s.startingAt(start)) {
		return w.Free
	}
	return 0
}
