// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"math/bits"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// option is a start, a quantity and a duration in seconds that an alternative has room for.
type option struct {
	alternative int
	start       span.Instant
	quantity    int64
	duration    int64
}

// ranging is the search for the options of one alternative of a wish. If there is room for an option, there is for a smaller
// quantity and a shorter duration from the same start on. So the largest of either is found by halving a range.
type ranging struct {
	*search             // for what lasts
	asked       *search // for a request that comes now
	wish        *wish
	alternative int
	// cut is true if the effort ended before a search.
	cut *bool
	// values are the searches on the hosts of each value that may have room, if a required rule must be kept.
	values []*search
}

// newRanging returns the search for the options of an alternative.
func newRanging(v View, w *wish, alternative int, cut *bool) (ranging, error) {
	s, err := newSearch(v, w.alternatives[alternative])
	if err != nil {
		return ranging{}, err
	}
	r := ranging{search: s.lasting(span.Forever), asked: s, wish: w, alternative: alternative, cut: cut}
	if r.lying == nil || r.lying.rule.Preferred {
		return r, nil
	}
	for value, one := range r.ruled().onEach() {
		least := 1
		if r.ruled().sameRequired() && r.request.Kind == reservation.Hosts {
			least = int(w.quantity.Min)
		}
		if r.lying.sizes[value] >= least {
			r.values = append(r.values, one)
		}
	}
	return r, nil
}

// valuesOfSearch is of how many values the sets of hosts take as long as one search on all hosts.
const valuesOfSearch = 64

// looks counts searches that follow. With a required rule each is one on all hosts, one for their room on each value, and one on
// the hosts of each value.
func (r ranging) looks(searches int) {
	if r.values != nil {
		searches *= 3 + len(r.values)/valuesOfSearch
	}
	r.view.look(r.request.Kind, searches)
}

// least returns the first start for the smallest quantity and the shortest duration; false if there is none.
func (r ranging) least() (option, bool) {
	quantity, duration := r.wish.quantity.Min, r.wish.duration.Min
	if quantity > r.mostFor(duration) || duration > r.longestFor(quantity) {
		return option{}, false
	}
	return r.first(quantity, duration)
}

// soonest is first; it returns false too if the effort has ended.
func (r ranging) soonest(quantity, duration int64) (option, bool) {
	if r.ended() {
		return option{}, false
	}
	return r.first(quantity, duration)
}

// ended reports whether the effort has ended, for a search that would follow.
func (r ranging) ended() bool {
	*r.cut = *r.cut || r.view.effort.over()
	return *r.cut
}

// first returns the first start for a quantity and a duration, in all windows; false if there is none.
func (r ranging) first(quantity, duration int64) (option, bool) {
	for _, w := range r.wish.windows {
		q := r.within(w, quantity, duration)
		if q.Deadline < q.Ready.Add(duration) {
			continue
		}
		r.looks(1)
		if start, ok := r.find(q, calendar.PolicyFirstFit); ok {
			return option{r.alternative, start, quantity, duration}, true
		}
	}
	return option{}, false
}

// within returns the query for a quantity and a duration in a window.
func (r ranging) within(w span.Span, quantity, duration int64) calendar.Query {
	start := w.Start
	if r.filter.Timely() && start > r.view.Now {
		start = max(start, r.view.future())
	}
	q := r.imaging().from(r.query, start)
	q.Quantity, q.Duration = int(quantity), duration
	q.Deadline = min(w.End, r.view.Limits.horizon(r.view.Now).Add(duration))
	return q
}

// mostAt returns the option with the largest quantity at the start of another one, with its duration.
func (r ranging) mostAt(o option) option {
	r.looks(1)
	q := r.startingAt(o.start)
	q.Duration, q.Deadline = o.duration, o.start.Add(o.duration)
	o.quantity = max(o.quantity, min(int64(r.mostIn(q)), r.mostFor(o.duration)))
	return o
}

// mostIn returns the largest quantity for which q has a start with room. If the hosts must be spread, it is a start with room for
// some: there are enough values then whatever the quantity.
func (r ranging) mostIn(q calendar.Query) (most int) {
	if !r.ruled().sameRequired() {
		return r.ruled().mostAnywhere(q)
	}
	for _, one := range r.values {
		most = max(most, one.mostKept(one.ruled().part(q)))
	}
	return most
}

// longestAt returns the option with the longest duration at the start of another one, with its quantity.
func (r ranging) longestAt(o option) option {
	r.looks(1)
	q := r.startingAt(o.start)
	q.Quantity, q.Deadline = int(o.quantity), o.start.Add(r.longestFor(o.quantity))
	for _, w := range r.wish.windows {
		if w.Contains(o.start) {
			q.Deadline = min(q.Deadline, w.End)
		}
	}
	if kept := r.bound.keeps(q.Quantity, span.Span{Start: o.start, End: q.Deadline}); len(kept) > 0 && kept[0].Start == o.start {
		q.Deadline = kept[0].End
	}
	o.duration = max(o.duration, int64(r.until(q, o.start)-o.start))
	return o
}

// until returns the latest instant until which there is room from start on.
func (r ranging) until(q calendar.Query, start span.Instant) span.Instant {
	if r.values == nil {
		return untilOn(r.search, q, start)
	}
	spread, ends := r.ruled().spreadRequired(), make([]span.Instant, len(r.values))
	for i, one := range r.values {
		part := one.ruled().part(q)
		if spread {
			part.Quantity = 1
		}
		ends[i] = untilOn(one, part, start)
	}
	slices.Sort(ends)
	if spread {
		return min(untilOn(r.search, q, start), ends[len(ends)-r.lying.rule.Values])
	}
	return ends[len(ends)-1]
}

// untilOn is until for a query on some hosts, however they lie.
func untilOn(s *search, q calendar.Query, start span.Instant) span.Instant {
	if s.request.Kind == reservation.Instances {
		return s.view.Calendar.SlicesUntil(s.slices(q), start)
	}
	return s.view.Calendar.Until(q, start)
}

// most returns the soonest option with the largest quantity that has room anywhere for the duration of o, which is the
// soonest with its own quantity.
func (r ranging) most(o option) option {
	most := r.mostFor(o.duration)
	if most <= o.quantity {
		return o
	}
	if all, ok := r.soonest(most, o.duration); ok {
		return all
	}
	if r.ruled().spreadRequired() {
		climb(o.quantity, most-1, func(quantity int64) (int64, bool) {
			found, ok := r.soonest(quantity, o.duration)
			if ok {
				o = r.mostAt(found)
			}
			return o.quantity, ok
		})
		return o
	}
	room := o.quantity
	for _, w := range r.wish.windows {
		if q := r.within(w, o.quantity, o.duration); !r.ended() && q.Deadline >= q.Ready.Add(o.duration) {
			r.looks(1 + bits.Len(uint(r.bound.most)))
			room = max(room, min(int64(r.mostIn(q)), most))
		}
	}
	if room == o.quantity {
		return o
	}
	if more, ok := r.soonest(room, o.duration); ok {
		return more
	}
	return o
}

// longest returns the soonest option with the longest duration that has room anywhere for the quantity of o, which is the
// soonest one of all with that quantity.
func (r ranging) longest(o option) option {
	o = r.longestAt(o)
	longest := r.longestFor(o.quantity)
	if longest <= o.duration {
		return o
	}
	if whole, ok := r.soonest(o.quantity, longest); ok {
		return whole
	}
	if r.request.Kind == reservation.Instances || r.ruled().spreadRequired() {
		climb(o.duration, longest-1, func(duration int64) (int64, bool) {
			found, ok := r.soonest(o.quantity, duration)
			if ok {
				o = r.longestAt(found)
			}
			return o.duration, ok
		})
		return o
	}
	for _, w := range r.wish.windows {
		w.Start = max(w.Start, o.start+1) // there is no room before, and o is the longest there
		for _, part := range r.bound.keeps(int(o.quantity), w) {
			if r.ended() {
				return o
			}
			r.looks(1)
			q := r.within(part, o.quantity, o.duration+1)
			q.Deadline = part.End
			if longer, ok := r.longestIn(q); ok {
				o.start, o.duration = longer.Start, longer.Seconds()
			}
		}
	}
	return o
}

// longestIn returns the longest span with room for a query about hosts that lasts at least as long as it, from the first possible
// start on; false if there is none.
func (r ranging) longestIn(q calendar.Query) (longest span.Span, found bool) {
	latest := r.view.Limits.horizon(r.view.Now)
	if r.values == nil {
		return r.view.Calendar.Longest(q, latest)
	}
	for _, one := range r.values {
		if other, ok := r.view.Calendar.Longest(one.ruled().part(q), latest); ok && (other.Seconds() > q.Duration || !found || other.Start < longest.Start) {
			longest, found, q.Duration = other, true, other.Seconds()
		}
	}
	return longest, found
}

// climb tries numbers from low, which is known to be possible, to high, until it has tried the largest that is possible. If
// a number is possible, so are all smaller ones; try reports whether one is, and how large a number is possible then.
func climb(low, high int64, try func(number int64) (possible int64, ok bool)) {
	for next := high; low < high; next = low + (high-low+1)/2 {
		if possible, ok := try(next); ok {
			low = possible
		} else {
			high = next - 1
		}
	}
}

// mostFor returns the largest quantity of the wish that the host-hours allow for a duration.
func (r ranging) mostFor(duration int64) int64 {
	return min(r.wish.quantity.Max, int64(r.view.Limits.quantity(r.view.Held, duration)))
}

// longestFor returns the longest duration of the wish that the limits allow for a quantity.
func (r ranging) longestFor(quantity int64) int64 {
	longest, l := r.wish.duration.Max, r.view.Limits
	if l.Duration > 0 {
		longest = min(longest, l.Duration)
	}
	if l.HostSeconds > 0 {
		longest = min(longest, (l.HostSeconds-r.view.Held.HostSeconds)/quantity)
	}
	return longest
}
