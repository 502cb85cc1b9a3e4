// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Facts are what a service has observed of images. They do not contain future transfers, which
// follow from the facts and the reservations: replicas with the same facts and reservations plan
// the same transfers, and no plan needs to be stored. Published facts never change.
type Facts struct {
	Site Site
	// Images are the images of known size, by id.
	Images map[string]Image
	// Pools are the images that hosts have, by host name. Each entry ends when the host may drop
	// the image if it is unused. An image that is being transferred is only in Running.
	Pools map[string][]Entry
	// Running are the transfers under way. They are Started, with their Start, their expected End,
	// and the deadline and expiry that they had when they began. A transfer in this list that is
	// not Started keeps its times too.
	Running []Transfer
}

// Image returns the image with an id; known is false if its size is unknown.
func (f *Facts) Image(id string) (i Image, known bool) {
	i, known = f.Images[id]
	i.ID = id
	return i, known
}

// State returns what the pools will contain and which transfers the demands need. demands are in
// the order in which they were made; State adds the one with the earliest start first, so that one
// transfer to a node serves all demands that need the image there later. A demand that began before
// now keeps the images that are there and gets no further transfer, unless it is Joining. Some of
// the transfers may be impossible in time.
func (f *Facts) State(now span.Instant, demands []Demand) State {
	demands = inOrder(demands)
	return f.state(now, demands, demands)
}

// inOrder returns the demands sorted by start, those of one start in their order.
func inOrder(demands []Demand) []Demand {
	if slices.IsSortedFunc(demands, func(a, b Demand) int { return cmp.Compare(a.Span.Start, b.Span.Start) }) {
		return demands
	}
	order := make([]int, len(demands))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(demands[a].Span.Start, demands[b].Span.Start), cmp.Compare(a, b))
	})
	sorted := make([]Demand, len(demands))
	for i, at := range order {
		sorted[i] = demands[at]
	}
	return sorted
}

// state is State for demands that are sorted by start; joining contains the Joining ones that have
// begun.
func (f *Facts) state(now span.Instant, demands, joining []Demand) State {
	d := newDraft(State{At: now, Transfers: f.Running, Pools: f.Pools}.without(now), f.Site, len(demands))
	for _, demand := range demands {
		d.enter(demand)
	}
	for _, demand := range joining {
		if demand.Joining && demand.Span.Start <= now && f.Wants(now, demand) {
			d.enterLate(demand)
		}
	}
	return d.State
}

// joinTime is the number of seconds after its start during which a node that joins a reservation
// late may still get its image.
const joinTime = 3600

// Wants reports whether a demand needs transfers: before its start and, if it is Joining, for a
// while after it. This while ends before the image could have arrived and expired again.
func (f *Facts) Wants(now span.Instant, d Demand) bool {
	until := int64(0)
	if d.Joining {
		until = f.joinTime()
	}
	return now < d.Span.Start.Add(until) && now < d.Span.End
}

// joinTime is joinTime for the site.
func (f *Facts) joinTime() int64 {
	if f.Site.Lifetime > 0 {
		return min(joinTime, f.Site.Lifetime)
	}
	return joinTime
}

// Admission returns an Admission for demands in addition to the given ones. Its Admit returns the
// state of all demands together, as State.Admit does.
func (f *Facts) Admission(now span.Instant, demands []Demand) *Admission {
	return f.Accepted(now, demands).Admission()
}

// Accepted returns the given demands as accepted ones, for many decisions about further ones.
func (f *Facts) Accepted(now span.Instant, demands []Demand) *Accepted {
	demands = inOrder(demands)
	return f.accepted(demands, f.state(now, demands, demands), sync.OnceValue(func() owners { return ownersOf(f, demands) }))
}

// accepted is Accepted for demands that are sorted by start, with what follows from them.
func (f *Facts) accepted(demands []Demand, before State, owners func() owners) *Accepted {
	a := newAccepted(f.Site, before, func(d Demand) State {
		after := follows(demands, d.Span.Start)
		all := make([]Demand, 0, len(demands)+1)
		all = append(append(append(all, demands[:after]...), d), demands[after:]...)
		return f.state(before.At, all, demands)
	})
	a.line = newLine(f.Site, before)
	a.parts = &parts{facts: f, demands: demands, before: before, owners: owners}
	a.until = sync.OnceValue(func() span.Instant { return f.turn(before.At, demands) })
	return a
}

// At returns what Facts.Accepted would return at an instant.
func (a *Accepted) At(now span.Instant) *Accepted {
	p := a.parts
	switch {
	case now == p.before.At:
		return a
	case now < p.before.At || now >= a.until():
		return p.facts.accepted(p.demands, p.facts.state(now, p.demands, p.demands), p.owners)
	}
	before := p.before
	before.At = now
	later := p.facts.accepted(p.demands, before, p.owners)
	later.nodes = a.nodes
	return later
}

// Without returns what Facts.Accepted would return without all demands with the id of one that is gone.
func (a *Accepted) Without(gone func(Demand) bool) *Accepted {
	p, ids := a.parts, map[string]bool{}
	for i := range p.demands {
		if gone(p.demands[i]) {
			ids[p.demands[i].ID] = true
		}
	}
	if len(ids) == 0 {
		return a
	}
	rest := slices.DeleteFunc(slices.Clone(p.demands), func(d Demand) bool { return ids[d.ID] })
	return p.facts.Accepted(p.before.At, rest)
}

// turn returns the first instant, at or after now, that is compared with the present when a state
// is computed: before it, the state is the same. Instants of images under way and in pools count, and
// those of demands.
func (f *Facts) turn(now span.Instant, demands []Demand) span.Instant {
	next := span.Forever
	note := func(instants ...span.Instant) {
		for _, at := range instants {
			if at >= now {
				next = min(next, at)
			}
		}
	}
	for i := range demands {
		d := &demands[i]
		note(d.Span.Start, d.Span.Start.Add(f.joinTime()), d.Span.End, d.Span.End.Add(f.Site.Lifetime))
	}
	for i := range f.Running {
		t := &f.Running[i]
		note(t.Start, t.End, t.Deadline, t.Expire)
	}
	for _, entries := range f.Pools {
		for i := range entries {
			note(entries[i].From, entries[i].Expire)
		}
	}
	return next
}

// follows returns the index, among demands sorted by start, at which State adds a further one.
func follows(demands []Demand, start span.Instant) int {
	return sort.Search(len(demands), func(i int) bool { return demands[i].Span.Start > start })
}
