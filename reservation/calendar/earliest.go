// SPDX-License-Identifier: Apache-2.0

package calendar

import (
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// earliest finds the smallest feasible start.
//
// A start in bucket b needs hosts that are free in all buckets that are inside its window
// wherever in b it is: from b+1 to b+⌊duration/width⌋-1. If too few hosts are unmarked there,
// the whole bucket is ruled out; otherwise the lanes of the unmarked hosts decide.
func (c *Calendar) earliest(q Query) (span.Instant, bool) {
	from, latest := q.Ready, q.latest()
	if latest < from || q.Hosts.Count() < q.Quantity {
		return 0, false
	}
	if c.suffices(&q, from) {
		return from, true
	}
	bucket, known := bucketOf(from), c.index.known()
	if bucket < c.index.first {
		known = bucket // the index has no bucket that early
	}
	inside := newRun(&c.index, bucket+1, q.Duration/bucketSeconds-1)
	for ; bucket < known && from <= latest; bucket++ {
		to := min(bucketSpan(bucket).End-1, latest)
		if inside.countFree(q.Hosts) >= q.Quantity {
			if start, ok := c.earliestAmong(&q, inside.free(q.Hosts), from, to); ok {
				return start, true
			}
		}
		from = to + 1
		inside.advance()
	}
	return c.earliestAmong(&q, q.Hosts, from, latest)
}

// suffices reports whether enough hosts are free from start on. It first counts the hosts that are
// free according to the index, then those that must be looked up in their lanes.
func (c *Calendar) suffices(q *Query, start span.Instant) bool {
	w, enough := q.Window(start), 0
	free, open := c.index.split(w, q.Hosts)
	for host := range free.All() {
		if q.availableFrom(host) <= start {
			if enough++; enough == q.Quantity {
				return true
			}
		}
	}
	for host := range open.All() {
		if q.availableFrom(host) <= start && c.lanes[host].busy().free(w) {
			if enough++; enough == q.Quantity {
				return true
			}
		}
	}
	return false
}

// earliestAmong finds the smallest start in [from, to] with enough free hosts.
func (c *Calendar) earliestAmong(q *Query, hosts hostset.Set, from, to span.Instant) (span.Instant, bool) {
	openings := c.openings(q, hosts, from, to)
	if len(openings) < q.Quantity {
		return 0, false
	}
	for at, free := range levels(openings) {
		if free >= q.Quantity {
			return at, true
		}
	}
	return 0, false
}

// run is a sliding window of consecutive buckets: it provides the hosts that are busy in any of
// them, at constant cost for each step. It is a queue of two stacks: ahead contains, for each older
// bucket, the union of this bucket and all that follow it in the stack; newest is the union of the
// younger buckets.
type run struct {
	index     *index
	from, len int64 // buckets [from, from+len)
	ahead     []hostset.Set
	newest    hostset.Set
}

func newRun(x *index, from, length int64) *run {
	r := &run{index: x, from: from, len: max(length, 0)}
	r.restack()
	return r
}

// restack moves all buckets of the run to ahead.
func (r *run) restack() {
	r.ahead = r.ahead[:0]
	r.newest = hostset.New(r.index.hosts)
	union := hostset.New(r.index.hosts)
	// Buckets beyond the index are free and need no entry.
	end := min(r.from+r.len, r.index.known())
	for b := end - 1; b >= r.from; b-- {
		if set := r.index.at(b); set != nil {
			union = union.Clone()
			union.Unite(set)
		}
		r.ahead = append(r.ahead, union)
	}
}

// advance drops the first bucket and adds the one after the last.
func (r *run) advance() {
	if r.len == 0 {
		r.from++
		return
	}
	r.newest.Unite(r.index.at(r.from + r.len))
	r.from++
	if len(r.ahead) > 0 {
		r.ahead = r.ahead[:len(r.ahead)-1]
	}
	if len(r.ahead) == 0 {
		r.restack()
	}
}

func (r *run) older() hostset.Set {
	if len(r.ahead) == 0 {
		return hostset.New(r.index.hosts)
	}
	return r.ahead[len(r.ahead)-1]
}

// countFree returns the number of hosts of among that are busy in no bucket of the run.
func (r *run) countFree(among hostset.Set) int { return among.CountWithout(r.older(), r.newest) }

// free returns the hosts of among that are busy in no bucket of the run.
func (r *run) free(among hostset.Set) hostset.Set {
	free, older := among.Clone(), r.older()
	for i := range free {
		free[i] &^= older[i] | r.newest[i]
	}
	return free
}
