// SPDX-License-Identifier: Apache-2.0

package calendar_test

import (
	"math/bits"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// paperList is the availability list of paper 003 section 4: a linked list of records, each
// with the set of busy hosts until the next record. The tests use it as the oracle, the
// benchmarks as the baseline.
type paperList struct {
	hosts int
	head  *record // a sentinel before the first record, without busy hosts
}

type record struct {
	time span.Instant
	busy []uint64
	next *record
	prev *record
}

func newPaperList(hosts int) *paperList {
	return &paperList{hosts: hosts, head: &record{time: -1 << 62, busy: make([]uint64, (hosts+63)/64)}}
}

func (l *paperList) set(hosts []int) []uint64 {
	set := make([]uint64, (l.hosts+63)/64)
	for _, h := range hosts {
		set[h/64] |= 1 << (h % 64)
	}
	return set
}

// before returns the last record that is not later than t.
func (l *paperList) before(t span.Instant) *record {
	r := l.head
	for r.next != nil && r.next.time <= t {
		r = r.next
	}
	return r
}

// boundary returns the record at t, and inserts it if necessary.
func (l *paperList) boundary(t span.Instant) *record {
	r := l.before(t)
	if r.time == t {
		return r
	}
	b := &record{time: t, busy: append([]uint64(nil), r.busy...), next: r.next, prev: r}
	if r.next != nil {
		r.next.prev = b
	}
	r.next = b
	return b
}

// add is Algorithm 1 with both boundaries (E003-1).
func (l *paperList) add(w span.Span, hosts []int) {
	set := l.set(hosts)
	from, to := l.boundary(w.Start), l.boundary(w.End)
	for r := from; r != to; r = r.next {
		for i := range set {
			r.busy[i] |= set[i]
		}
	}
	l.clean(from, to)
}

// remove is Algorithm 2.
func (l *paperList) remove(w span.Span, hosts []int) {
	set := l.set(hosts)
	from, to := l.boundary(w.Start), l.boundary(w.End)
	for r := from; r != to; r = r.next {
		for i := range set {
			r.busy[i] &^= set[i]
		}
	}
	l.clean(from, to)
}

// clean drops the records of [from, to] that equal their predecessors.
func (l *paperList) clean(from, to *record) {
	for r := from; ; r = r.next {
		if equal(r.busy, r.prev.busy) {
			r.prev.next = r.next
			if r.next != nil {
				r.next.prev = r.prev
			}
		}
		if r == to {
			return
		}
	}
}

// find is Algorithm 3: it returns all feasible starts with their rectangles.
func (l *paperList) find(q calendar.Query) []calendar.Candidate {
	var found []calendar.Candidate
	for _, s := range l.starts(q) {
		if c, ok := l.rectangle(q, s); ok {
			found = append(found, c)
		}
	}
	return found
}

// starts returns the ready time, the latest start, and between them the boundaries and the
// boundaries minus the duration, ascending and without duplicates.
func (l *paperList) starts(q calendar.Query) []span.Instant {
	ready, latest := q.Ready, q.Deadline-span.Instant(q.Duration)
	if latest < ready {
		return nil
	}
	// Two walks in parallel: boundaries, and boundaries minus the duration.
	var starts []span.Instant
	put := func(t span.Instant) {
		if ready <= t && t <= latest && (len(starts) == 0 || starts[len(starts)-1] != t) {
			starts = append(starts, t)
		}
	}
	put(ready)
	at, minus := l.before(ready).next, l.before(ready+span.Instant(q.Duration)-1).next
	for at != nil || minus != nil {
		if minus == nil || at != nil && at.time <= minus.time-span.Instant(q.Duration) {
			put(at.time)
			at = at.next
		} else {
			put(minus.time - span.Instant(q.Duration))
			minus = minus.next
		}
		if at != nil && at.time > latest {
			at = nil
		}
		if minus != nil && minus.time-span.Instant(q.Duration) > latest {
			minus = nil
		}
	}
	put(latest)
	return starts
}

// freeAt returns the hosts that are idle throughout [s, s+duration).
func (l *paperList) freeAt(q calendar.Query, s span.Instant) []uint64 {
	free := make([]uint64, (l.hosts+63)/64)
	for h := range l.hosts {
		if q.Hosts == nil || q.Hosts.Has(h) {
			free[h/64] |= 1 << (h % 64)
		}
	}
	for r := l.before(s); r != nil && r.time < s+span.Instant(q.Duration); r = r.next {
		for i := range free {
			free[i] &^= r.busy[i]
		}
	}
	return free
}

func (l *paperList) rectangle(q calendar.Query, s span.Instant) (calendar.Candidate, bool) {
	free := l.freeAt(q, s)
	if count(free) < q.Quantity || count(free) == 0 {
		return calendar.Candidate{}, false
	}
	first := l.before(s)
	begin := s
	for r := first; begin > q.Now && disjoint(r.busy, free); r = r.prev {
		begin = max(r.time, q.Now)
	}
	end, last := s+span.Instant(q.Duration), first
	for last.next != nil && disjoint(last.next.busy, free) {
		last = last.next
	}
	if last.next != nil {
		end = last.next.time
	} else {
		end = max(q.Deadline, last.time)
	}
	return calendar.Candidate{Start: s, Begin: begin, End: end, Free: count(free)}, true
}

// slots returns the list in the form of the calendar's slots.
func (l *paperList) slots() []calendar.Slot {
	var list []calendar.Slot
	for r := l.head.next; r != nil; r = r.next {
		list = append(list, calendar.Slot{Time: r.time, Busy: members(r.busy)})
	}
	return list
}

func members(set []uint64) []int {
	hosts := []int{}
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			hosts = append(hosts, i*64+bits.TrailingZeros64(word))
		}
	}
	return hosts
}

func count(set []uint64) int {
	n := 0
	for _, word := range set {
		n += bits.OnesCount64(word)
	}
	return n
}

func equal(a, b []uint64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func disjoint(a, b []uint64) bool {
	for i := range a {
		if a[i]&b[i] != 0 {
			return false
		}
	}
	return true
}
