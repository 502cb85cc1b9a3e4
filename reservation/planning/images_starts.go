// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// This file has the search for a start, if a request has an image. Between two turns, at which other
// hosts are free or have the image, the same transfers are needed, and a later start allows more of
// them.

// mostStarts is how many starts are tried at most where each is a search of its own.
const mostStarts = 16

// decideWithImage returns the plan for the start that was found without regard to the image or, if it is
// impossible, for another one that the request allows; false if there is none.
func (s imaging) decideWithImage(start span.Instant) (Plan, bool) {
	if t := s.tryAt(start); t.ok {
		return s.planWith(start, t), true
	}
	if s.request.immediate {
		return s.soonWithImage(start)
	}
	if p, ok := s.firstWithImage(s.from(s.query, start+1)); ok {
		return p, true
	}
	earlier := s.query
	earlier.Deadline = s.query.Window(start).End - 1
	p, ok := s.firstWithImage(earlier) // the policy may prefer a late start
	if !ok {
		s.fruitless = s.query.Deadline.Add(-s.query.Duration)
	}
	return p, ok
}

func (s imaging) planWith(start span.Instant, t try) Plan {
	claims := t.claims
	if !s.ruled().sameRequired() && s.staged.secondsTo(claims, start) < s.staged.secondsTo(s.claims(start), start) {
		claims = s.preferred(start, claims)
	}
	return s.planOn(start, claims)
}

// from returns the query without the starts before one.
func (s imaging) from(q calendar.Query, start span.Instant) calendar.Query {
	q.Ready, q.Hosts = start, s.hostsAt(start)
	return q
}

// soonWithImage returns the plan for a request without a time, which may wait for its image, but not
// until other reservations end: if hosts are free when the image could be on those that were free at the
// start, it begins then or, if others have the image sooner, before.
func (s imaging) soonWithImage(start span.Instant) (Plan, bool) {
	latest := s.view.Limits.horizon(s.view.Now)
	for range mostStarts {
		ready, ok := s.readyAfter(start, s.fewestTransfers(start))
		if !ok || ready > latest {
			return Plan{}, false
		}
		between := s.startingAt(ready)
		between.Ready = start + 1
		if p, ok := s.firstWithImage(between); ok {
			return p, true
		}
		if _, ok := s.find(s.startingAt(ready), calendar.PolicyFirstFit); !ok {
			return Plan{}, false
		}
		start = ready
	}
	return Plan{}, false
}

// readyAfter returns the first later start for which the transfers of t, which was tried for start, are
// possible.
func (s imaging) readyAfter(start span.Instant, t try) (span.Instant, bool) {
	if s.staged.admission.OneChannel() {
		return s.staged.firstRoom(s.staged.secondsTo(t.claims, start), start+1, false)
	}
	s.staged.work -= len(s.staged.admission.Before().Transfers)
	refusal := s.staged.admission.Refuse(s.staged.demand(planned, t.claims, s.query.Window(start)))
	if refusal == nil || refusal.Earliest <= start {
		return 0, false
	}
	return refusal.Earliest, true
}

// firstWithImage returns the plan for the first start of q at which there is room and the image can be
// on the hosts. It uses at most half of the work that is left; if that does not suffice, it tries a
// start at which no host needs to have the image before.
func (s imaging) firstWithImage(q calendar.Query) (Plan, bool) {
	rest := s.staged.work / 2
	start, ok := s.find(q, calendar.PolicyFirstFit)
	for ok && s.staged.work > rest {
		at, possible := s.notBefore(start)
		if !possible {
			return Plan{}, false
		}
		if at == start {
			break
		}
		q = s.from(q, at)
		start, ok = s.find(q, calendar.PolicyFirstFit)
	}
	if !ok {
		return Plan{}, false
	}
	for w := range s.allowed(s.from(q, start)) {
		for start = w.Start; start <= w.LatestStart; {
			if s.staged.work <= rest {
				return s.afterOthers(s.from(q, start))
			}
			at, possible := s.notBefore(start)
			if !possible {
				return Plan{}, false
			}
			if at > start {
				start = at
				continue
			}
			t := s.tryAt(start)
			if !t.ok {
				start, t = s.next(start, t, w.LatestStart)
			}
			if t.ok {
				return s.planWith(start, t), true
			}
		}
	}
	return Plan{}, false
}

// everMatching returns the hosts that match at some start of the query or later.
func (s imaging) everMatching() hostset.Set {
	hosts := s.query.Hosts
	if s.filter.Timely() {
		hosts = s.matching(true)
		hosts.Unite(s.query.Hosts)
	}
	return hosts
}

// notBefore returns the first start, at or after one, at which the image may be possible, as if all hosts
// that have the image were free; false if there is none.
func (s imaging) notBefore(start span.Instant) (span.Instant, bool) {
	least := s.leastTransfers(start)
	if least == 0 {
		return start, true
	}
	turn := s.imageTurn(start)
	room, ok := s.staged.firstRoom(s.staged.admission.Seconds(s.staged.image, make([]string, least)...), start, turn != span.Forever)
	switch {
	case ok && room <= turn:
		return room, true
	case turn == span.Forever:
		return 0, false
	}
	return turn, true
}

// leastTransfers returns how many hosts need a transfer for a start at least.
func (s imaging) leastTransfers(start span.Instant) int {
	hosts, quantity, largest := s.everMatching(), s.request.Quantity, 1
	for host := range s.staged.spans {
		number, known := s.view.Hosts.numbers[host]
		if !known || !hosts.Has(number) || !s.staged.has(host, start) {
			continue
		}
		if room := s.refusing().roomWhenEmpty(number); s.request.Affinity != calendar.AffinitySame {
			quantity -= room
		} else if room >= s.request.Quantity {
			return 0
		}
	}
	for number := range hosts.All() {
		largest = max(largest, s.refusing().roomWhenEmpty(number))
	}
	s.staged.work -= len(s.staged.spans)
	return max((quantity+largest-1)/largest, 0)
}

// imageTurn returns the first start, after another one, at which other hosts that match have the image
// or get it later; Forever if there is none.
func (s imaging) imageTurn(after span.Instant) span.Instant {
	next, hosts := span.Forever, s.everMatching()
	ages := s.query.Duration + s.view.Images.Facts.Site.Lifetime
	for host, spans := range s.staged.spans {
		if number, known := s.view.Hosts.numbers[host]; !known || !hosts.Has(number) {
			continue
		}
		for _, w := range spans {
			for _, turn := range []span.Instant{w.Start, w.End, w.Start.Add(-ages)} {
				if turn > after {
					next = min(next, turn)
				}
			}
		}
	}
	s.staged.work -= len(s.staged.spans)
	return next
}

// next returns the first start after one that was tried in vain at which the image may be possible, or
// that is no longer one of those up to latest. If it has tried that start, it returns the result too.
func (s imaging) next(start span.Instant, t try, latest span.Instant) (span.Instant, try) {
	turn := min(s.turn(start), latest+1)
	if replaces := slices.ContainsFunc(s.order, func(number int) bool { return s.replaces(number, start) }); !replaces || !s.staged.admission.OneChannel() {
		if at, ok := s.readyAfter(start, t); ok {
			turn = min(turn, at)
		}
		return turn, try{}
	}
	least, ok := s.staged.firstRoom(s.staged.secondsTo(t.claims, start), start+1, true)
	if !ok || least >= turn {
		return turn, try{}
	}
	found := s.tryAt(turn - 1)
	if !found.ok {
		return turn, try{}
	}
	sort.Search(int(turn-1-least), func(i int) bool {
		t := s.tryAt(least + span.Instant(i))
		if t.ok {
			turn, found = least+span.Instant(i)+1, t
		}
		return t.ok
	})
	return turn - 1, found
}

// turn returns the first start, after another one, at which other hosts are free or have the image, as
// far as that matters; Forever if there is none.
func (s imaging) turn(after span.Instant) span.Instant {
	next := s.imageTurn(after)
	for number := range s.hostsAt(after + 1).All() {
		if s.request.Kind == reservation.Instances || s.staged.spans[s.view.Hosts.names[number]] != nil {
			next = min(next, s.view.Calendar.NextTurn(s.query, number, after))
			s.staged.work--
		}
	}
	if after == s.view.Now && s.filter.Timely() {
		next = after + 1
	}
	return next
}

// afterOthers returns the plan for the first start of q from which on all hosts can get the image.
func (s imaging) afterOthers(q calendar.Query) (Plan, bool) {
	all := s.staged.admission.Seconds(s.staged.image, make([]string, min(s.request.Quantity, len(s.order)))...)
	at, ok := s.staged.firstRoom(all, q.Ready, false)
	if !ok {
		return Plan{}, false
	}
	start, ok := s.find(s.from(q, at), calendar.PolicyFirstFit)
	if !ok {
		return Plan{}, false
	}
	t := s.tryAt(start)
	if !t.ok {
		return Plan{}, false
	}
	return s.planWith(start, t), true
}
