// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"cmp"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// usage is the amount of resources of one host that slices hold over time, as a step function. Step
// i lasts from at[i] to at[i+1], the last one forever; before at[0] and in the last step nothing is
// held. Neighboring steps differ.
type usage struct {
	classes []string // the custom resource classes that some slice has held
	at      []span.Instant
	amounts []int64 // by step: vCPUs, MB of memory, GB of disk, then the classes
}

const standardResources = 3

func (u *usage) width() int { return standardResources + len(u.classes) }

// step returns the amounts of step i.
func (u *usage) step(i int) []int64 {
	w := u.width()
	return u.amounts[i*w : (i+1)*w : (i+1)*w]
}

// during returns the index of the step at t; -1 means before the first.
func (u *usage) during(t span.Instant) int {
	return sort.Search(len(u.at), func(i int) bool { return u.at[i] > t }) - 1
}

// usageOf returns the usage of slices, which are sorted by span.
func usageOf(list []slice) usage {
	var u usage
	type turn struct {
		at   span.Instant
		of   int
		sign int64
	}
	turns := make([]turn, 0, 2*len(list))
	for i, s := range list {
		u.row(s.demand) // makes the columns
		turns = append(turns, turn{s.span.Start, i, 1}, turn{s.span.End, i, -1})
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	sum, last := make([]int64, u.width()), make([]int64, u.width())
	for i, t := range turns {
		for column, amount := range u.row(list[t.of].demand) {
			sum[column] += t.sign * amount
		}
		if (i+1 == len(turns) || turns[i+1].at != t.at) && !slices.Equal(sum, last) {
			u.at, u.amounts = append(u.at, t.at), append(u.amounts, sum...)
			copy(last, sum)
		}
	}
	return u
}

func (u *usage) clone() usage {
	return usage{classes: slices.Clone(u.classes), at: slices.Clone(u.at), amounts: slices.Clone(u.amounts)}
}

// change adds sign times demand throughout w.
func (u *usage) change(w span.Span, demand resource.Vector, sign int64) {
	row := u.row(demand)
	from, to := u.cut(w.Start), u.cut(w.End)
	for i := from; i < to; i++ {
		step := u.step(i)
		for column := range step {
			step[column] += sign * row[column]
		}
	}
	u.join(to)
	u.join(from)
}

// row returns demand as a row of amounts, one for each column. It adds columns for new resource
// classes.
func (u *usage) row(demand resource.Vector) []int64 {
	for class, amount := range demand.Custom {
		if amount != 0 && !slices.Contains(u.classes, class) {
			u.widen(class)
		}
	}
	row := make([]int64, 0, u.width())
	row = append(row, demand.VCPUs, demand.MemoryMB, demand.DiskGB)
	for _, class := range u.classes {
		row = append(row, demand.Custom[class])
	}
	return row
}

// widen adds a custom resource class; nothing of it is used yet.
func (u *usage) widen(class string) {
	wide := make([]int64, 0, len(u.at)*(u.width()+1))
	for i := range u.at {
		wide = append(append(wide, u.step(i)...), 0)
	}
	u.classes, u.amounts = append(u.classes, class), wide
}

// cut makes a step begin at t, if none does, and returns its index.
func (u *usage) cut(t span.Instant) int {
	i := u.during(t)
	if i >= 0 && u.at[i] == t {
		return i
	}
	row := make([]int64, u.width())
	if i >= 0 {
		copy(row, u.step(i))
	}
	u.at = slices.Insert(u.at, i+1, t)
	u.amounts = slices.Insert(u.amounts, (i+1)*u.width(), row...)
	return i + 1
}

// join removes step i if it equals the one before it.
func (u *usage) join(i int) {
	before := make([]int64, u.width())
	if i > 0 {
		before = u.step(i - 1)
	}
	if slices.Equal(before, u.step(i)) {
		u.at = slices.Delete(u.at, i, i+1)
		u.amounts = slices.Delete(u.amounts, i*u.width(), (i+1)*u.width())
	}
}

// shape is the need of one slice on one host, prepared for comparison with the host's usage.
type shape struct {
	// most is how many slices fit on the empty host.
	most  int64
	needs []need // of resources that slices hold too
}

// need is the amount that one slice needs of the resource in a column of the usage.
type need struct {
	column          int
	amount, offered int64
}

// shapeOf returns the shape for a host of that capacity. At most limit slices count on it.
func (u *usage) shapeOf(demand, capacity resource.Vector, limit int64) shape {
	s := shape{most: min(capacity.Times(demand), limit)}
	add := func(column int, amount, offered int64) {
		if amount > 0 {
			s.needs = append(s.needs, need{column, amount, offered})
		}
	}
	add(0, demand.VCPUs, capacity.VCPUs)
	add(1, demand.MemoryMB, capacity.MemoryMB)
	add(2, demand.DiskGB, capacity.DiskGB)
	for i, class := range u.classes {
		add(standardResources+i, demand.Custom[class], capacity.Custom[class])
	}
	return s
}

// fits returns how many slices fit in addition to the held amounts.
func (s *shape) fits(held []int64) int64 {
	room := s.most
	for i := range s.needs {
		n := &s.needs[i]
		// amount*room does not overflow: it is at most what the host offers.
		if left := n.offered - held[n.column]; n.amount*room > left {
			room = max(left, 0) / n.amount
		}
	}
	return room
}

// least returns the smallest number of slices that fit at any instant of w.
func (u *usage) least(s *shape, w span.Span) int64 {
	room := s.most
	for i := max(u.during(w.Start), 0); i < len(u.at) && u.at[i] < w.End && room > 0; i++ {
		room = min(room, s.fits(u.step(i)))
	}
	return room
}
