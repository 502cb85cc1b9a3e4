// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// bound is the limit on the hosts that a project holds at one instant, as one decision uses it.
type bound struct {
	most int        // 0 means no limit
	held span.Count // what the project holds, without the reservation that is changed
	own  span.Count // what that reservation holds, which is never refused
}

// keeps returns the parts of w, in order, in which the project may hold quantity more hosts.
func (b bound) keeps(quantity int, w span.Span) []span.Span {
	switch {
	case b.most == 0:
		return []span.Span{w}
	case b.own.IsZero():
		return b.held.AtMost(b.most-quantity, w)
	}
	var broken span.Count
	for part, held := range b.held.Steps(w) {
		if held > b.most-quantity {
			broken = broken.Add(part, 1)
		}
	}
	for part, own := range b.own.Steps(w) {
		if own >= quantity {
			broken = broken.Add(part, -1)
		}
	}
	return broken.AtMost(0, w)
}

// keepsAll reports whether the project may hold quantity more hosts throughout w.
func (b bound) keepsAll(quantity int, w span.Span) bool {
	kept := b.keeps(quantity, w)
	return len(kept) == 1 && kept[0] == w
}

// quantity returns the largest number of additional hosts that the project may hold throughout w.
func (b bound) quantity(w span.Span) int {
	switch {
	case b.most == 0:
		return math.MaxInt32
	case b.own.IsZero():
		return max(b.most-b.held.Most(w), 0)
	}
	return sort.Search(max(b.most, b.own.Most(w)), func(less int) bool { return !b.keepsAll(less+1, w) })
}

// findAnywhere returns the start that the policy chooses for q among those at which the limit is kept,
// wherever the hosts are; false if there is none.
func (s *search) findAnywhere(q calendar.Query, policy calendar.Policy) (span.Instant, bool) {
	kept, parts := s.bound.keeps(q.Quantity, span.Span{Start: q.Ready, End: q.Deadline}), s.parts(q)
	if policy == calendar.PolicyCheapest && q.Deadline > q.Window(q.Ready).End {
		return s.pricing().cheapest(parts, kept)
	}
	if policy != calendar.PolicyFirstFit && len(parts) > 1 {
		best, found := policy.Best(func(yield func(calendar.Candidate) bool) {
			for _, part := range parts {
				for candidate := range s.view.Calendar.CandidatesWithin(part, kept) {
					if !yield(candidate) {
						return
					}
				}
			}
		})
		return best.Start, found
	}
	for _, part := range parts {
		start, ok := span.Instant(0), false
		if s.request.Kind == reservation.Instances {
			start, ok = s.view.Calendar.EarliestSlicesWithin(s.slices(part), kept)
		} else {
			start, ok = s.view.Calendar.FindWithin(part, policy, kept)
		}
		if ok {
			return start, true
		}
	}
	return 0, false
}

// mostKept returns the largest quantity for which q has a start with room that keeps the limit.
func (s *search) mostKept(q calendar.Query) int {
	if s.lying != nil && !s.lying.rule.Preferred {
		return s.ruled().mostLying(q)
	}
	return s.ruled().mostAnywhere(q)
}

// mostAnywhere is mostKept wherever the hosts are.
func (s ruled) mostAnywhere(q calendar.Query) int {
	most := s.most(q)
	switch {
	case s.bound.most == 0:
		return most
	case q.Deadline <= q.Ready.Add(q.Duration): // there is one start
		return min(most, s.bound.quantity(q.Window(q.Ready)))
	}
	return sort.Search(min(most, s.bound.most), func(less int) bool {
		q.Quantity = less + 1
		_, ok := s.findAnywhere(q, calendar.PolicyFirstFit)
		return !ok
	})
}

// refuseHosts returns the refusal if the limit on hosts is the obstacle, with the start from which
// it would be kept. It returns nil if something else is the obstacle, such as hosts that could
// never hold the request.
func (s *search) refuseHosts() *reservation.Refusal {
	if s.bound.most == 0 || s.request.Quantity <= s.bound.most && s.refusing().never() {
		return nil
	}
	window := span.Span{Start: s.query.Ready, End: s.query.Deadline}
	if s.bound.keepsAll(s.request.Quantity, window) && len(s.wakes) == 0 {
		return nil
	}
	keeps := slices.ContainsFunc(s.bound.keeps(s.request.Quantity, window), func(part span.Span) bool {
		return part.Seconds() >= s.request.duration
	})
	if keeps {
		unlimited := *s
		unlimited.bound = bound{}
		if _, _, ok := unlimited.start(); !ok {
			return nil
		}
	}
	r := s.refusing().refuseLimit(reservation.MaxHosts, s.bound.sentence(s.request.Quantity, window, s.request.duration, keeps), s.refusing().largest())
	r.EarliestStart = s.refusing().earliest()
	return r
}

// sentence returns a sentence that states how quantity more hosts, for that many seconds within w,
// exceed the limit. somewhere is true if they would keep it from some start in w.
func (b bound) sentence(quantity int, w span.Span, seconds int64, somewhere bool) string {
	switch {
	case quantity > b.most:
		return fmt.Sprintf("the request is for %d hosts; a project may hold %d at once", quantity, b.most)
	case somewhere:
		return fmt.Sprintf("the project may hold %d hosts at once; it would hold more from each start at which there is room", b.most)
	case w.Seconds() > seconds:
		return fmt.Sprintf("the project may hold %d hosts at once; it would hold more from each start between %v and %v",
			b.most, w.Start, w.End.Add(-seconds))
	}
	at := w.Start
	if kept := b.keeps(quantity, w); len(kept) > 0 && kept[0].Start == at {
		at = kept[0].End
	}
	return fmt.Sprintf("the project would hold %d hosts at %v; it may hold %d at once", b.held.At(at)+quantity, at, b.most)
}
