// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// slice is a claim of a part of a host for a span.
type slice struct {
	span   span.Span
	demand resource.Vector
}

func bySpan(a, b slice) int {
	return cmp.Or(cmp.Compare(a.span.Start, b.span.Start), cmp.Compare(a.span.End, b.span.End))
}

// lane is the claims of one host.
type lane struct {
	owner    *owner
	capacity resource.Vector
	whole    spans   // of whole-host claims
	slices   []slice // sorted by span
	held     usage   // of the slices
	mixed    spans   // whole and slices together; unused while there are no slices
}

func (l *lane) clone() *lane {
	return &lane{
		capacity: l.capacity, whole: slices.Clone(l.whole), slices: slices.Clone(l.slices),
		held: l.held.clone(), mixed: slices.Clone(l.mixed),
	}
}

// busy returns the spans in which the host is not wholly free.
func (l *lane) busy() spans {
	if len(l.slices) == 0 {
		return l.whole
	}
	return l.mixed
}

// fits returns how many slices of demand fit on the host throughout w, at most limit.
func (l *lane) fits(w span.Span, demand resource.Vector, limit int64) int64 {
	if !l.whole.free(w) {
		return 0
	}
	s := l.held.shapeOf(demand, l.capacity, limit)
	return l.held.least(&s, w)
}

// addSlice adds a slice to a host, in the order of time.
func (l *lane) addSlice(s slice) {
	at, _ := slices.BinarySearchFunc(l.slices, s, bySpan)
	l.slices = slices.Insert(l.slices, at, s)
	if len(l.slices) == 1 {
		l.mixed = slices.Clone(l.whole)
	}
	l.mixed = l.mixed.with(s.span)
	l.held.change(s.span, s.demand, 1)
}

// removeSlice removes one slice equal to s and reports whether there was one.
func (l *lane) removeSlice(s slice) bool {
	at, _ := slices.BinarySearchFunc(l.slices, s, bySpan)
	for at < len(l.slices) && l.slices[at].span == s.span && !l.slices[at].demand.Equal(s.demand) {
		at++
	}
	if at == len(l.slices) || l.slices[at].span != s.span {
		return false
	}
	l.slices = slices.Delete(l.slices, at, at+1)
	l.held.change(s.span, s.demand, -1)
	l.remix()
	return true
}

// remix computes mixed, the union of the whole-host claims and the slices.
func (l *lane) remix() {
	if len(l.slices) == 0 {
		l.mixed, l.held = nil, usage{}
		return
	}
	l.mixed = append(l.mixed[:0], l.whole...)
	for _, s := range l.slices {
		l.mixed = l.mixed.with(s.span)
	}
}

func (l *lane) addWhole(w span.Span) {
	l.whole = l.whole.with(w)
	if len(l.slices) > 0 {
		l.mixed = l.mixed.with(w)
	}
}

func (l *lane) removeWhole(w span.Span) {
	l.whole = l.whole.without(w)
	if len(l.slices) > 0 {
		l.mixed = l.mixed.without(w) // no slice overlaps a whole-host claim
	}
}

// outdated reports whether anything in the lane ended at or before t.
func (l *lane) outdated(t span.Instant) bool {
	return len(l.whole) > 0 && l.whole[0].End <= t ||
		slices.ContainsFunc(l.slices, func(s slice) bool { return s.span.End <= t })
}

// prune removes everything that ended at or before t.
func (l *lane) prune(t span.Instant) {
	l.whole = slices.Delete(l.whole, 0, l.whole.endingAfter(t))
	if len(l.slices) == 0 {
		return
	}
	l.slices = slices.DeleteFunc(l.slices, func(s slice) bool { return s.span.End <= t })
	l.held = usageOf(l.slices)
	l.remix()
}
