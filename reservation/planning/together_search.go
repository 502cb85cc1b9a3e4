// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// This file has the search for a start, if the hosts must lie to each other as the request asks.

// find returns the start that the policy chooses for q among those at which the limit on hosts and a required rule are kept;
// false if there is none. With the rule same, the policy chooses one start on the hosts of each value, and the earliest of
// these is the start.
func (s *search) find(q calendar.Query, policy calendar.Policy) (span.Instant, bool) {
	start, ok := s.findAnywhere(q, policy)
	if !ok || s.lying == nil || s.lying.rule.Preferred {
		return start, ok
	}
	only := q
	only.Ready, only.Deadline, only.Hosts = start, start.Add(q.Duration), s.hostsAt(start)
	soonest := policy == calendar.PolicyFirstFit || q.Deadline <= q.Ready.Add(q.Duration) // no other start is earlier
	if soonest && s.lying.keeps(s.ruled().roomAt(only).byValue, q.Quantity) {
		return start, true
	}
	if s.ruled().spreadRequired() {
		for w := range s.allowed(s.imaging().from(q, start+1)) {
			return w.Start, true
		}
		return 0, false
	}
	start, ok = 0, false
	for _, one := range s.ruled().onEach() {
		if at, found := one.findAnywhere(one.ruled().part(q), policy); found && (!ok || at < start) {
			start, ok = at, true
		}
	}
	return start, ok
}

// keeps reports whether a required rule is kept by some choice of quantity hosts or instances.
func (l *lying) keeps(room []int, quantity int) bool {
	if l.rule.Rule == reservation.TogetherSame {
		return l.fitting(room, quantity) != noValue
	}
	return l.withRoom(room) >= l.rule.Values
}

// windowsLying returns the parts of the windows of a query at whose starts a required rule can be kept.
func (s ruled) windowsLying(q calendar.Query) iter.Seq[calendar.Window] {
	if s.sameRequired() {
		return slices.Values(s.windowsSame(q))
	}
	runs := s.spreadStarts(q)
	return func(yield func(calendar.Window) bool) {
		for w := range s.windowsAnywhere(q) {
			for _, run := range runs {
				part := calendar.Window{Start: max(w.Start, run.Start), LatestStart: min(w.LatestStart, run.End-1), Free: w.Free}
				if part.Start > part.LatestStart {
					continue
				}
				if part.Start > w.Start {
					part.Free = s.freeAt(part.Start)
				}
				if !yield(part) {
					return
				}
			}
		}
	}
}

// windowsSame returns the runs of starts at which one value has room for all. Free is the most that one of them has.
func (s ruled) windowsSame(q calendar.Query) (merged []calendar.Window) {
	var all []calendar.Window
	for _, one := range s.onEach() {
		all = slices.AppendSeq(all, one.windowsAnywhere(one.ruled().part(q)))
	}
	slices.SortFunc(all, func(a, b calendar.Window) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Free, a.Free))
	})
	for _, w := range all {
		if last := len(merged) - 1; last >= 0 && w.Start <= merged[last].LatestStart+1 {
			merged[last].LatestStart = max(merged[last].LatestStart, w.LatestStart)
		} else {
			merged = append(merged, w)
		}
	}
	return merged
}

// spreadStarts returns the starts of a query at which enough values have room for one host or instance, as spans of starts.
func (s ruled) spreadStarts(q calendar.Query) (runs []span.Span) {
	type turn struct {
		at     span.Instant
		values int
	}
	var turns []turn
	for _, one := range s.onEach() {
		part := one.ruled().part(q)
		part.Quantity = 1
		for w := range one.windowsAnywhere(part) {
			turns = append(turns, turn{w.Start, 1}, turn{w.LatestStart + 1, -1})
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	values, open := 0, false
	for i, t := range turns {
		if values += t.values; i+1 < len(turns) && turns[i+1].at == t.at {
			continue
		}
		switch enough := values >= s.lying.rule.Values; {
		case enough && !open:
			runs = append(runs, span.Span{Start: t.at})
		case !enough && open:
			runs[len(runs)-1].End = t.at
		}
		open = values >= s.lying.rule.Values
	}
	return runs
}

// mostLying is mostKept if a required rule must be kept.
func (s ruled) mostLying(q calendar.Query) (most int) {
	if s.sameRequired() {
		for _, one := range s.onEach() {
			most = max(most, one.mostKept(one.ruled().part(q)))
		}
		return most
	}
	least := s.lying.rule.Values
	more := sort.Search(max(s.most(q)-least+1, 0), func(more int) bool {
		q.Quantity = least + more
		_, ok := s.find(q, calendar.PolicyFirstFit)
		return !ok
	})
	if more == 0 {
		return 0
	}
	return least + more - 1
}

// fewestOnEach is fewestTransfers if all hosts must have one value: the values with the least room come first.
func (s imaging) fewestOnEach(start span.Instant) (best try) {
	room, ones := s.ruled().roomAt(s.startingAt(start)).byValue, s.ruled().onEach()
	order := s.lying.roomiest(room)
	slices.Reverse(order)
	least := int64(0)
	for _, value := range order {
		if room[value] < s.request.Quantity {
			continue
		}
		t := ones[value].imaging().fewestTransfers(start)
		if t.ok {
			return t
		}
		if seconds := s.staged.secondsTo(t.claims, start); best.claims == nil || seconds < least {
			best, least = t, seconds
		}
	}
	return best
}

// explainLying states in a refusal that a rule alone is the obstacle, if it is.
func (s refusing) explainLying(r *reservation.Refusal) {
	if apart := s.request.Together; apart.ApartFrom != "" {
		apart.ApartFrom = ""
		if without := s.by(apart); without.startsAtAll() || s.never() && !without.never() {
			r.Constraint, r.Message = reservation.HostsTogether, s.noRoomApart(r)
			return
		}
	}
	if s.lying != nil && !s.lying.rule.Preferred && s.by(reservation.Together{}).startsAtAll() {
		r.Constraint, r.Message = reservation.HostsTogether, s.noRoomLying(r.Wanted)
	}
}

// by returns the search with another rule.
func (s refusing) by(rule reservation.Together) refusing {
	a := s.request
	a.Together = rule
	return searchBy(s.view, a, &filtered{s.filter, s.match}).refusing()
}

// startsAtAll reports whether the search finds a start.
func (s refusing) startsAtAll() bool {
	_, _, ok := s.start()
	return ok
}

// noRoomLying returns a sentence about the room in w, which begins at the earliest start of the search, that states how near the
// hosts come to the rule.
func (s refusing) noRoomLying(w span.Span) string {
	all, rule := fault.Counted(s.request.Quantity, s.request.what()), s.lying.rule
	now, empty := s.ruled().roomAt(s.startingAt(s.query.Ready)).byValue, s.emptyRoom(s.matching(true))
	if rule.Rule == reservation.TogetherSpread {
		return fmt.Sprintf("there is no room for %s on %d values of %s: %d values have room from %v to %v, and %d if nothing is promised",
			all, rule.Values, rule.By, s.lying.withRoom(now), w.Start, w.End, s.lying.withRoom(empty))
	}
	nearest := len(s.lying.values) // hosts without the property; a required rule has none of them
	for i := range s.lying.values {
		if nearest == len(s.lying.values) || s.nearer(i, nearest, now, empty) {
			nearest = i
		}
	}
	if nearest == len(s.lying.values) {
		return fmt.Sprintf("there is no room for %s on one value of %s: no host has one", all, rule.By)
	}
	return fmt.Sprintf("there is no room for %s on one value of %s: %s comes nearest, with room for %d from %v to %v, and for %d if nothing is promised",
		all, rule.By, s.lying.values[nearest], now[nearest], w.Start, w.End, empty[nearest])
}

// nearer reports whether a value comes nearer to having room than another one, given the room now and that of empty hosts.
func (s refusing) nearer(value, other int, now, empty []int) bool {
	can, couldOther := empty[value] >= s.request.Quantity, empty[other] >= s.request.Quantity
	if !can && !couldOther {
		return empty[value] > empty[other]
	}
	return can && !couldOther || can == couldOther && cmp.Or(cmp.Compare(now[value], now[other]), cmp.Compare(empty[value], empty[other])) > 0
}

// withRoom returns how many values have room.
func (l *lying) withRoom(room []int) (values int) {
	for _, n := range room[:len(l.values)] {
		values += btoi(n > 0)
	}
	return values
}

// emptyRoom returns for how many hosts or instances each value would have room without other reservations.
func (s refusing) emptyRoom(hosts hostset.Set) []int {
	room := make([]int, len(s.lying.values)+1)
	for number := range hosts.All() {
		times := s.roomWhenEmpty(number)
		if i := s.lying.place(number); s.request.Affinity == calendar.AffinitySame {
			room[i] = max(room[i], times)
		} else {
			room[i] += times
		}
	}
	return room
}
