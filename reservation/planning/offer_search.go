// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"math/bits"

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
	*search
	wish        *wish
	alternative int
	// cut is true if the effort ended before a search.
	cut *bool
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

// look counts searches.
func (r ranging) look(searches int) {
	if r.request.Kind == reservation.Instances {
		searches *= slicesCost
	}
	r.view.effort.look(searches * len(r.view.Hosts.names))
}

// slicesCost is how many times a search for whole hosts one for instances costs.
const slicesCost = 4

// first returns the first start for a quantity and a duration, in all windows; false if there is none.
func (r ranging) first(quantity, duration int64) (option, bool) {
	for _, w := range r.wish.windows {
		q := r.within(w, quantity, duration)
		if q.Deadline < q.Ready.Add(duration) {
			continue
		}
		r.look(1)
		if start, ok := r.find(q, calendar.PolicyFirstFit); ok {
			return option{r.alternative, start, quantity, duration}, true
		}
	}
	return option{}, false
}

// within returns the query for a quantity and a duration in a window.
func (r ranging) within(w span.Span, quantity, duration int64) calendar.Query {
	q := r.imaging().from(r.query, w.Start)
	q.Quantity, q.Duration = int(quantity), duration
	q.Deadline = min(w.End, r.view.Limits.horizon(r.view.Now).Add(duration))
	return q
}

// mostAt returns the option with the largest quantity at the start of another one, with its duration.
func (r ranging) mostAt(o option) option {
	r.look(1)
	q := r.startingAt(o.start)
	q.Duration, q.Deadline = o.duration, o.start.Add(o.duration)
	o.quantity = max(o.quantity, min(int64(r.mostKept(q)), r.mostFor(o.duration)))
	return o
}

// longestAt returns the option with the longest duration at the start of another one, with its quantity.
func (r ranging) longestAt(o option) option {
	r.look(1)
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
	end := o.start
	if r.request.Kind == reservation.Instances {
		end = r.view.Calendar.SlicesUntil(r.slices(q), o.start)
	} else {
		end = r.view.Calendar.Until(q, o.start)
	}
	o.duration = max(o.duration, int64(end-o.start))
	return o
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
	room := o.quantity
	for _, w := range r.wish.windows {
		if q := r.within(w, o.quantity, o.duration); !r.ended() && q.Deadline >= q.Ready.Add(o.duration) {
			r.look(1 + bits.Len(uint(r.bound.most)))
			room = max(room, min(int64(r.mostKept(q)), most))
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
	if r.request.Kind == reservation.Instances {
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
			r.look(1)
			q := r.within(part, o.quantity, o.duration+1)
			q.Deadline = part.End
			if longer, ok := r.view.Calendar.Longest(q, r.view.Limits.horizon(r.view.Now)); ok {
				o.start, o.duration = longer.Start, longer.Seconds()
			}
		}
	}
	return o
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
