package calendar

import (
	"cmp"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// spans is a set of instants as sorted spans that neither overlap nor touch.
type spans []span.Span

// endingAfter is the index of the first span that ends after t.
func (s spans) endingAfter(t span.Instant) int {
	return sort.Search(len(s), func(i int) bool { return s[i].End > t })
}

// free says that no instant of w is in the set.
func (s spans) free(w span.Span) bool {
	i := s.endingAfter(w.Start)
	return i == len(s) || s[i].Start >= w.End
}

// covers says that every instant of w is in the set.
func (s spans) covers(w span.Span) bool {
	i := s.endingAfter(w.Start)
	return i < len(s) && s[i].Covers(w)
}

// with gives the set and w, merged with what w overlaps or touches.
func (s spans) with(w span.Span) spans {
	first := sort.Search(len(s), func(i int) bool { return s[i].End >= w.Start })
	last := first
	for last < len(s) && s[last].Start <= w.End {
		w.Start, w.End = min(w.Start, s[last].Start), max(w.End, s[last].End)
		last++
	}
	return slices.Replace(s, first, last, w)
}

// without gives the set less the instants of w.
func (s spans) without(w span.Span) spans {
	first := s.endingAfter(w.Start)
	last := first
	var rest []span.Span
	for last < len(s) && s[last].Start < w.End {
		if before := (span.Span{Start: s[last].Start, End: w.Start}); !before.Empty() {
			rest = append(rest, before)
		}
		if after := (span.Span{Start: w.End, End: s[last].End}); !after.Empty() {
			rest = append(rest, after)
		}
		last++
	}
	return slices.Replace(s, first, last, rest...)
}

// slice is a part of a host held for a span.
type slice struct {
	span   span.Span
	demand resource.Vector
}

func bySpan(a, b slice) int {
	return cmp.Or(cmp.Compare(a.span.Start, b.span.Start), cmp.Compare(a.span.End, b.span.End))
}

// lane is what one host is held for.
type lane struct {
	capacity resource.Vector
	whole    spans   // held by whole-host claims
	slices   []slice // sorted by span
	mixed    spans   // whole and slices together; unused while there are no slices
}

// busy is the time in which the host is not free as a whole.
func (l *lane) busy() spans {
	if len(l.slices) == 0 {
		return l.whole
	}
	return l.mixed
}

// peak is the most that slices hold of each resource at any instant of w.
func (l *lane) peak(w span.Span) resource.Vector {
	var peak resource.Vector
	for i, s := range l.slices {
		if s.span.Start >= w.End {
			break
		}
		if !s.span.Overlaps(w) {
			continue
		}
		// Use rises only where a slice starts or where w does.
		peak = peak.Max(l.usedAt(max(s.span.Start, w.Start), i))
	}
	return peak
}

// usedAt is what slices hold at t; none after index last starts before t, save
// those that start together with it.
func (l *lane) usedAt(t span.Instant, last int) resource.Vector {
	var used resource.Vector
	for i, s := range l.slices {
		if i > last && s.span.Start > t {
			break
		}
		if s.span.Contains(t) {
			used = used.Add(s.demand)
		}
	}
	return used
}

// fits is how many slices of demand the host can take throughout w.
func (l *lane) fits(w span.Span, demand resource.Vector) int64 {
	if !l.whole.free(w) {
		return 0
	}
	return l.capacity.Sub(l.peak(w)).Times(demand)
}

func (l *lane) addSlice(s slice) {
	at, _ := slices.BinarySearchFunc(l.slices, s, bySpan)
	l.slices = slices.Insert(l.slices, at, s)
	if len(l.slices) == 1 {
		l.mixed = slices.Clone(l.whole)
	}
	l.mixed = l.mixed.with(s.span)
}

// removeSlice takes out one slice equal to s and says whether there was one.
func (l *lane) removeSlice(s slice) bool {
	at := slices.IndexFunc(l.slices, func(o slice) bool { return o.span == s.span && o.demand.Equal(s.demand) })
	if at < 0 {
		return false
	}
	l.slices = slices.Delete(l.slices, at, at+1)
	l.remix()
	return true
}

// remix recomputes mixed from the whole-host claims and the slices.
func (l *lane) remix() {
	if len(l.slices) == 0 {
		l.mixed = nil
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

// prune forgets what ended by t.
func (l *lane) prune(t span.Instant) {
	l.whole = slices.Delete(l.whole, 0, l.whole.endingAfter(t))
	if len(l.slices) > 0 {
		l.slices = slices.DeleteFunc(l.slices, func(s slice) bool { return s.span.End <= t })
		l.remix()
	}
}
