package calendar

import (
	"cmp"
	"iter"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Affinity says how the slices of one request lie on hosts.
type Affinity string

// The affinities.
const (
	AnyHosts       Affinity = "none"      // wherever they fit
	SameHost       Affinity = "same"      // all on one host
	DifferentHosts Affinity = "different" // at most one on a host
)

// SliceQuery asks for Quantity slices of one shape at the same time; the rest is
// as in Query.
type SliceQuery struct {
	Query
	Shape    resource.Vector
	Affinity Affinity
}

// Room is how many slices of a shape a host can take.
type Room struct {
	Host, Slices int
}

// EarliestSlices gives the smallest start from which the slices fit, false where
// there is none. It is the ready time, or a time at which a claim ends or a host
// becomes usable.
func (c *Calendar) EarliestSlices(q SliceQuery) (span.Instant, bool) {
	for at, room := range c.room(&q, q.Quantity) {
		if room >= q.Quantity {
			return at, true
		}
	}
	return 0, false
}

// MostSlices is the largest number of slices, up to limit, that fit together
// from any start of the query, whatever its Quantity.
func (c *Calendar) MostSlices(q SliceQuery, limit int) int {
	most := 0
	for _, room := range c.room(&q, limit) {
		most = max(most, room)
	}
	return most
}

// SliceWindows walks the maximal runs of starts from which the slices fit; Free
// counts slices up to the query's Quantity.
func (c *Calendar) SliceWindows(q SliceQuery) []Window {
	var windows []Window
	open := false
	for at, room := range c.room(&q, q.Quantity) {
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

// RoomAt gives the hosts that can take slices from start on, by host number, and
// how many each can, up to the query's Quantity.
func (c *Calendar) RoomAt(q SliceQuery, start span.Instant) []Room {
	q.Query = c.complete(q.Query)
	var rooms []Room
	for host := range q.Hosts.All() {
		if n := c.roomOn(&q, host, start, q.Quantity); n > 0 {
			rooms = append(rooms, Room{host, n})
		}
	}
	return rooms
}

// roomOn is how many slices host can take from start on, at most limit.
func (c *Calendar) roomOn(q *SliceQuery, host int, start span.Instant, limit int) int {
	if q.availableFrom(host) > start {
		return 0
	}
	if q.Affinity == DifferentHosts {
		limit = 1
	}
	return int(min(c.lanes[host].fits(q.Window(start), q.Shape), int64(limit)))
}

// turn is a start from which the room on a host may differ.
type turn struct {
	at   span.Instant
	host int
}

// room walks the starts at which the room changes, with the number of slices
// that fit from then on, each host counted up to limit.
func (c *Calendar) room(q *SliceQuery, limit int) iter.Seq2[span.Instant, int] {
	q.Query = c.complete(q.Query)
	return func(yield func(span.Instant, int) bool) {
		if q.latest() < q.Ready {
			return
		}
		rooms := make([]int, c.Hosts())
		total, largest := 0, 0
		set := func(host int, start span.Instant) {
			before := rooms[host]
			rooms[host] = c.roomOn(q, host, start, limit)
			total += rooms[host] - before
			if largest = max(largest, rooms[host]); before == largest && rooms[host] < before {
				largest = slices.Max(rooms)
			}
		}
		level := func() int {
			if q.Affinity == SameHost {
				return largest
			}
			return total
		}
		for host := range q.Hosts.All() {
			set(host, q.Ready)
		}
		if !yield(q.Ready, level()) {
			return
		}
		turns := c.turns(q)
		for i, t := range turns {
			set(t.host, t.at)
			if i+1 < len(turns) && turns[i+1].at == t.at {
				continue
			}
			if !yield(t.at, level()) {
				return
			}
		}
	}
}

// turns gives the starts after the ready time at which a claim has just ended, a
// claim just comes to lie in the window, or a host becomes usable.
func (c *Calendar) turns(q *SliceQuery) []turn {
	var turns []turn
	add := func(at span.Instant, host int) {
		if q.Ready < at && at <= q.latest() {
			turns = append(turns, turn{at, host})
		}
	}
	for host := range q.Hosts.All() {
		add(q.availableFrom(host), host)
		for _, held := range c.Held(host, span.Span{Start: q.Ready, End: q.Deadline}) {
			add(held.End, host)
			add(held.Start-span.Instant(q.Duration)+1, host)
		}
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.host, b.host)) })
	return slices.Compact(turns)
}
