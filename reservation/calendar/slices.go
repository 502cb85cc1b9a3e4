// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"cmp"
	"iter"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Affinity is how the slices of one request are distributed over hosts.
type Affinity string

// The affinities.
const (
	AffinityNone      Affinity = "none"      // wherever they fit
	AffinitySame      Affinity = "same"      // all on one host
	AffinityDifferent Affinity = "different" // at most one on a host
)

// SliceQuery is a search for Quantity slices of one shape at the same time. Its other fields have
// the meaning of those of Query.
type SliceQuery struct {
	Query
	Shape    resource.Vector
	Affinity Affinity
}

// Room is the number of slices of a shape that fit on a host.
type Room struct {
	Host, Slices int
}

// EarliestSlices returns the smallest start from which there is room for the slices; false if there
// is none. It is the ready time, or a time at which a claim ends or a host becomes usable.
func (c *Calendar) EarliestSlices(q SliceQuery) (span.Instant, bool) {
	for at, room := range c.room(&q, q.Quantity, q.Quantity) {
		if room >= q.Quantity {
			return at, true
		}
	}
	return 0, false
}

// MostSlices returns the largest number of slices for which there is room from any one start of the
// query, whatever its Quantity. At most limit slices count on each host.
func (c *Calendar) MostSlices(q SliceQuery, limit int) int {
	most := 0
	if q.Affinity != AffinitySame {
		for _, room := range c.room(&q, limit, 1) {
			most = max(most, room)
		}
		return most
	}
	q.Query, q.Affinity = c.complete(q.Query), AffinityNone
	for host := range q.Hosts.All() {
		for s := c.stairs(&q, host, limit); s != nil; s = s.climbed() {
			most = max(most, int(s.counted))
		}
	}
	return most
}

// SliceWindows returns the maximal runs of starts from which there is room for the slices. Free
// counts at most the query's Quantity on each host.
func (c *Calendar) SliceWindows(q SliceQuery) []Window {
	var windows []Window
	open := false
	for at, room := range c.room(&q, q.Quantity, q.Quantity) {
		switch {
		case room >= q.Quantity && !open:
			windows = append(windows, Window{Start: at, LatestStart: q.latest(), Free: room})
			open = true
		case room < q.Quantity && open:
			windows[len(windows)-1].LatestStart = at - 1
			open = false
		}
	}
	return windows
}

// RoomAt returns the hosts on which slices fit from start on, sorted by host number, each with the
// number of slices, at most the query's Quantity.
func (c *Calendar) RoomAt(q SliceQuery, start span.Instant) []Room {
	q.Query = c.complete(q.Query)
	limit, w := int64(q.Quantity), q.Window(start)
	if q.Affinity == AffinityDifferent {
		limit = 1
	}
	var rooms []Room
	for host := range q.Hosts.All() {
		if q.availableFrom(host) > start {
			continue
		}
		if n := c.lanes[host].fits(w, q.Shape, limit); n > 0 {
			rooms = append(rooms, Room{host, int(n)})
		}
	}
	return rooms
}

// room iterates over the starts at which the room changes, each with the number of slices that fit
// from then on; each host counts up to limit. It yields nothing if fewer than least would fit even
// on empty hosts.
func (c *Calendar) room(q *SliceQuery, limit, least int) iter.Seq2[span.Instant, int] {
	q.Query = c.complete(q.Query)
	return func(yield func(span.Instant, int) bool) {
		if q.latest() < q.Ready || c.roomWhenEmpty(q, limit) < int64(least) {
			return
		}
		total, changes := c.roomAtFirst(q, limit)
		level := func() int {
			if q.Affinity == AffinitySame {
				return int(min(total, int64(limit)))
			}
			return int(total)
		}
		if !yield(q.Ready, level()) {
			return
		}
		for len(changes) > 0 {
			at := changes[0].at
			for len(changes) > 0 && changes[0].at == at {
				total += changes[0].of.counted - changes[0].before
				changes = changes.next()
			}
			if !yield(at, level()) {
				return
			}
		}
	}
}

// roomWhenEmpty returns how many slices fit on hosts without other claims.
func (c *Calendar) roomWhenEmpty(q *SliceQuery, limit int) int64 {
	total := int64(0)
	for host := range q.Hosts.All() {
		s := c.lanes[host].held.shapeOf(q.Shape, c.lanes[host].capacity, q.mostOn(limit))
		total += q.count(s.most, limit)
	}
	return total
}

// roomAtFirst returns the room at the ready time and the later changes.
func (c *Calendar) roomAtFirst(q *SliceQuery, limit int) (total int64, changes changes) {
	for host := range q.Hosts.All() {
		s := c.stairs(q, host, limit)
		if s == nil {
			continue
		}
		if s.at == q.Ready {
			total += s.counted
			changes = changes.with(s)
		} else {
			changes = append(changes, change{at: s.at, of: s})
		}
	}
	changes.order()
	return total, changes
}

// mostOn returns the number of slices on one host from which more do not matter.
func (q *SliceQuery) mostOn(limit int) int64 {
	if q.Affinity == AffinityDifferent {
		return 1
	}
	return int64(limit)
}

// count returns how many of the slices that fit on one host count: with affinity SameHost, all that
// are requested or none.
func (q *SliceQuery) count(room int64, limit int) int64 {
	if q.Affinity == AffinitySame && room < int64(limit) {
		return 0
	}
	return room
}

// Slot is an entry of the paper's availability list: the hosts that are busy from Time until
// the next slot.
type Slot struct {
	Time span.Instant
	Busy []int
}

// Slots returns the calendar as the availability list of paper 003 section 4.1: times strictly
// increase, neighbors differ, the first slot is not empty and the last one is.
func (c *Calendar) Slots() []Slot {
	type change struct {
		at    span.Instant
		host  int
		comes bool
	}
	var changes []change
	for host := range c.lanes {
		for _, w := range c.lanes[host].busy() {
			changes = append(changes, change{w.Start, host, true}, change{w.End, host, false})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	busy := hostset.New(c.Hosts())
	var list []Slot
	for i, ch := range changes {
		if ch.comes {
			busy.Add(ch.host)
		} else {
			busy.Remove(ch.host)
		}
		if i+1 == len(changes) || changes[i+1].at != ch.at {
			list = append(list, Slot{ch.at, slices.AppendSeq([]int{}, busy.All())})
		}
	}
	return list
}
