package calendar

import (
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	// bucketSeconds is the width of a bucket. Narrower buckets leave fewer hosts
	// open to a look at their lane, and cost more words to unite.
	bucketSeconds = 3600
	// indexReach is the number of buckets from the index's first, nearly two years.
	indexReach = 1 << 14
)

// index has for each bucket the hosts that are busy at any time of it. A bucket
// without any has no set.
type index struct {
	hosts   int
	first   int64 // number of buckets[0]; bucket b is [b*bucketSeconds, (b+1)*bucketSeconds)
	buckets []hostset.Set
}

func newIndex(from span.Instant) index { return index{first: bucketOf(from)} }

// bucketOf is the number of the bucket that t lies in.
func bucketOf(t span.Instant) int64 {
	b := int64(t) / bucketSeconds
	if int64(t)%bucketSeconds < 0 {
		b--
	}
	return b
}

// end is the number of the first bucket that the index does not reach.
func (x *index) end() int64 { return x.first + indexReach }

// touched gives the numbers [from, to) of the buckets within reach that share an
// instant with w.
func (x *index) touched(w span.Span) (from, to int64) {
	return max(bucketOf(w.Start), x.first), min(bucketOf(w.End-1)+1, x.end())
}

// at is the set of bucket b, nil where nobody is busy or the index does not reach.
func (x *index) at(b int64) hostset.Set {
	if i := b - x.first; i >= 0 && i < int64(len(x.buckets)) {
		return x.buckets[i]
	}
	return nil
}

func (x *index) mark(host int, w span.Span) {
	from, to := x.touched(w)
	for b := from; b < to; b++ {
		i := int(b - x.first)
		if i >= len(x.buckets) {
			x.buckets = append(x.buckets, make([]hostset.Set, i+1-len(x.buckets))...)
		}
		if len(x.buckets[i])*64 <= host {
			grown := hostset.New(x.hosts)
			copy(grown, x.buckets[i])
			x.buckets[i] = grown
		}
		x.buckets[i].Add(host)
	}
}

// unmark clears host in the buckets of w in which it is no longer busy.
func (x *index) unmark(host int, w span.Span, busy spans) {
	from, to := x.touched(w)
	for b := from; b < to; b++ {
		set := x.at(b)
		if set.Has(host) && busy.free(bucketSpan(b)) {
			set.Remove(host)
		}
	}
}

func bucketSpan(b int64) span.Span {
	return span.Span{Start: span.Instant(b * bucketSeconds), End: span.Instant((b + 1) * bucketSeconds)}
}

// advance lets the index begin with the bucket of t.
func (x *index) advance(t span.Instant) {
	first := bucketOf(t)
	if first <= x.first {
		return
	}
	gone := min(first-x.first, int64(len(x.buckets)))
	x.buckets = append([]hostset.Set(nil), x.buckets[gone:]...)
	x.first = first
}

// split divides the hosts of among over w: free has those that the index knows
// to be free, open those that only their lane can tell; the rest are busy.
func (x *index) split(w span.Span, among hostset.Set) (free, open hostset.Set) {
	inside, edges := hostset.New(x.hosts), hostset.New(x.hosts)
	from, to := x.touched(w)
	for b := from; b < to && b-x.first < int64(len(x.buckets)); b++ {
		set := x.at(b)
		if set == nil {
			continue
		}
		if w.Covers(bucketSpan(b)) {
			inside.Unite(set)
		} else {
			edges.Unite(set)
		}
	}
	known := bucketOf(w.Start) >= x.first && bucketOf(w.End-1) < x.end()
	free, open = edges, inside // their room is reused
	for i, word := range among {
		possible := word &^ inside[i]
		if known {
			free[i], open[i] = possible&^edges[i], possible&edges[i]
		} else {
			free[i], open[i] = 0, possible
		}
	}
	return free, open
}
