// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	// bucketSeconds is the width of a bucket in seconds. With narrower buckets, fewer hosts must be
	// looked up in their lanes, but more sets must be united.
	bucketSeconds = 3600
	// indexReach is the number of buckets of the index, nearly two years.
	indexReach = 1 << 14
)

// index contains, for each bucket, the set of the hosts that are busy at any time of it. A bucket
// without busy hosts has no set.
type index struct {
	hosts int
	first int64 // number of the first bucket; bucket b is [b*bucketSeconds, (b+1)*bucketSeconds)
	owner *owner
	// pages contain the buckets from base on; base is a multiple of pageBuckets and not after
	// first. Buckets before first are ignored.
	base  int64
	pages []*page
}

// pageBuckets is the number of buckets in a page, which calendars share or copy as a whole.
const pageBuckets = 64

// page contains consecutive buckets. Only its owner may change it. Bit i of own is 1 if the owner
// has made set i; the other sets are shared.
type page struct {
	owner *owner
	own   uint64
	sets  [pageBuckets]hostset.Set
}

func newIndex(from span.Instant, o *owner) index {
	first := bucketOf(from)
	return index{first: first, base: floor(first, pageBuckets) * pageBuckets, owner: o}
}

// share returns the index for another owner.
func (x *index) share(o *owner) index {
	shared := *x
	shared.owner, shared.pages = o, slices.Clone(x.pages)
	return shared
}

// floor returns a/b rounded down.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// bucketOf returns the number of the bucket that contains t.
func bucketOf(t span.Instant) int64 { return floor(int64(t), bucketSeconds) }

// end returns the number of the first bucket beyond the index.
func (x *index) end() int64 { return x.first + indexReach }

// known returns the number of the bucket after the last one that may have a set.
func (x *index) known() int64 {
	return max(x.first, min(x.base+int64(len(x.pages))*pageBuckets, x.end()))
}

// touched returns the numbers [from, to) of the buckets of the index that have an instant in common
// with w.
func (x *index) touched(w span.Span) (from, to int64) {
	return max(bucketOf(w.Start), x.first), min(bucketOf(w.End-1)+1, x.end())
}

// at returns the set of bucket b; nil if no host is busy or the bucket is outside the index.
func (x *index) at(b int64) hostset.Set {
	if i := b - x.base; b >= x.first && i < int64(len(x.pages))*pageBuckets && x.pages[i/pageBuckets] != nil {
		return x.pages[i/pageBuckets].sets[i%pageBuckets]
	}
	return nil
}

// writable returns the set of bucket b, copied if it is shared and with space for all hosts, so
// that the caller may change it.
func (x *index) writable(b int64) hostset.Set {
	i, of := int((b-x.base)/pageBuckets), int((b-x.base)%pageBuckets)
	if i >= len(x.pages) {
		x.pages = append(x.pages, make([]*page, i+1-len(x.pages))...)
	}
	p := x.pages[i]
	if p == nil || p.owner != x.owner {
		mine := &page{owner: x.owner}
		if p != nil {
			mine.sets = p.sets
		}
		p, x.pages[i] = mine, mine
	}
	if p.own&(1<<of) == 0 || len(p.sets[of])*64 < x.hosts {
		set := hostset.New(x.hosts)
		copy(set, p.sets[of])
		p.sets[of], p.own = set, p.own|1<<of
	}
	return p.sets[of]
}

// mark records that the host is held during w.
func (x *index) mark(host int, w span.Span) {
	from, to := x.touched(w)
	for b := from; b < to; b++ {
		if !x.at(b).Has(host) {
			x.writable(b).Add(host)
		}
	}
}

// unmark removes host from those buckets in w in which it is no longer busy.
func (x *index) unmark(host int, w span.Span, busy spans) {
	from, to := x.touched(w)
	for b := from; b < to; b++ {
		if x.at(b).Has(host) && busy.free(bucketSpan(b)) {
			x.writable(b).Remove(host)
		}
	}
}

func bucketSpan(b int64) span.Span {
	return span.Span{Start: span.Instant(b * bucketSeconds), End: span.Instant((b + 1) * bucketSeconds)}
}

// advance makes the index begin with the bucket of t.
func (x *index) advance(t span.Instant) {
	first := bucketOf(t)
	if first <= x.first {
		return
	}
	x.first = first
	if gone := floor(first-x.base, pageBuckets); gone > 0 {
		x.pages = slices.Clone(x.pages[min(gone, int64(len(x.pages))):])
		x.base += gone * pageBuckets
	}
}

// split divides the hosts of among for the span w: free contains those that are free according to
// the index, open those that must be looked up in their lanes; the others are busy.
func (x *index) split(w span.Span, among hostset.Set) (free, open hostset.Set) {
	inside, edges := hostset.New(x.hosts), hostset.New(x.hosts)
	from, to := x.touched(w)
	for b := from; b < min(to, x.known()); b++ {
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
	free, open = edges, inside // their memory is reused
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
