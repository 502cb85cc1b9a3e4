// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"math/bits"
)

// tally counts what happened to the jobs under a setting. Its memory does not grow with the number
// of jobs.
type tally struct {
	reserved, others asked
	// waits are the seconds from submission to start of the accepted jobs without a start of their
	// own.
	waits     quantiles
	slowdowns float64            // the sum of (wait + run time) / run time
	bounded   float64            // the same with run times of 10 s at least (Feitelson)
	refusals  map[string]int64   // by constraint
	parts     slots[part]        // by the time of submission
	used      slots[hostSeconds] // by the time of use
	inUse     float64            // host-seconds
	cut       int64              // jobs whose remaining time was too short because they began late
	paid      float64            // what the hosts in use cost, in hundredths for an hour; 0 without prices
	fallbacks int64              // starts that first fit chose instead of the tariff
	first     int64              // the first submission; last is the last end
	last      int64
}

// asked counts requested jobs, and those that were accepted.
type asked struct{ jobs, accepted int64 }

func (a asked) share() (float64, bool) {
	return float64(a.accepted) / float64(a.jobs), a.jobs > 0
}

// part sums up the jobs that were submitted in a part of the trace's time.
type part struct {
	reserved, others          asked
	waits, slowdowns, bounded float64
}

//lint:ignore U1000 slots calls it through its constraint
func (p part) plus(o part) part {
	return part{
		reserved: asked{p.reserved.jobs + o.reserved.jobs, p.reserved.accepted + o.reserved.accepted},
		others:   asked{p.others.jobs + o.others.jobs, p.others.accepted + o.others.accepted},
		waits:    p.waits + o.waits, slowdowns: p.slowdowns + o.slowdowns, bounded: p.bounded + o.bounded,
	}
}

type hostSeconds float64

//lint:ignore U1000 slots calls it through its constraint
func (h hostSeconds) plus(o hostSeconds) hostSeconds { return h + o }

// shortest is the run time, in seconds, that shorter jobs count with in a bounded slowdown.
const shortest = 10

// ask counts a requested job and, if it was accepted, its wait.
func (t *tally) ask(submit int64, reserved, accepted bool, wait, runtime int64) {
	p := part{}
	to, in := &t.others, &p.others
	if reserved {
		to, in = &t.reserved, &p.reserved
	}
	to.jobs, in.jobs = to.jobs+1, 1
	if accepted {
		to.accepted, in.accepted = to.accepted+1, 1
	}
	if accepted && !reserved {
		t.waits.add(wait)
		p.waits = float64(wait)
		p.slowdowns = float64(wait+runtime) / float64(runtime)
		p.bounded = max(1, float64(wait+runtime)/float64(max(shortest, runtime)))
		t.slowdowns += p.slowdowns
		t.bounded += p.bounded
	}
	t.parts.add(submit-t.first, p)
}

// use counts hosts that were in use from begin until end.
func (t *tally) use(begin, end int64, hosts float64) {
	t.last = max(t.last, end)
	t.inUse += float64(end-begin) * hosts
	begin, end = begin-t.first, end-t.first
	t.used.reach(end)
	for begin < end {
		next := min(end, (begin/t.used.width+1)*t.used.width)
		t.used.add(begin, hostSeconds(float64(next-begin)*hosts))
		begin = next
	}
}

// slots sum up values by time in at most mostSlots slots. A slot is an hour wide at first; when a
// value lies beyond the last slot, all slots become twice as wide.
type slots[T interface{ plus(T) T }] struct {
	width int64
	at    []T
}

const (
	mostSlots = 512
	firstSlot = 3600
)

// reach widens the slots until they cover a second.
func (s *slots[T]) reach(second int64) {
	for s.width = max(s.width, firstSlot); second/s.width >= mostSlots; s.width *= 2 {
		half := s.at[:0]
		for i := 0; i < len(s.at); i += 2 {
			both := s.at[i]
			if i+1 < len(s.at) {
				both = both.plus(s.at[i+1])
			}
			half = append(half, both)
		}
		s.at = half
	}
}

// add adds a value to the slot of a second.
func (s *slots[T]) add(second int64, value T) {
	s.reach(second)
	i := int(second / s.width)
	for len(s.at) <= i {
		var none T
		s.at = append(s.at, none)
	}
	s.at[i] = s.at[i].plus(value)
}

// merged returns the values as at most parts parts of equal width, and this width in seconds.
func (s *slots[T]) merged(parts int) (all []T, width int64) {
	each := max(1, (len(s.at)+parts-1)/parts)
	for i := 0; i < len(s.at); i += each {
		sum := s.at[i]
		for _, value := range s.at[i+1 : min(len(s.at), i+each)] {
			sum = sum.plus(value)
		}
		all = append(all, sum)
	}
	return all, s.width * int64(each)
}

// quantiles counts durations in seconds. Its quantiles are accurate to half a percent, and exact
// below 256 s.
type quantiles struct {
	counts []int64
	n      int64
	sum    float64
	most   int64
}

// exact is the number of values that have a counter of their own. Above it, each range between two
// powers of two is divided into half as many steps.
const (
	exact     = 256
	exactBits = 8
)

func (q *quantiles) add(seconds int64) {
	seconds = max(0, seconds)
	i := counterOf(seconds)
	for len(q.counts) <= i {
		q.counts = append(q.counts, 0)
	}
	q.counts[i]++
	q.n++
	q.sum += float64(seconds)
	q.most = max(q.most, seconds)
}

func counterOf(value int64) int {
	shift := max(0, bits.Len64(uint64(value))-exactBits)
	return shift*exact/2 + int(value>>shift)
}

// valueOf returns the largest value that the counter with an index counts.
func valueOf(counter int) int64 {
	if counter < exact {
		return int64(counter)
	}
	shift := (counter - exact/2) / (exact / 2)
	return int64(counter-shift*exact/2+1)<<shift - 1
}

func (q *quantiles) mean() (float64, bool) { return q.sum / float64(q.n), q.n > 0 }

// at returns the value that the given share of all values do not exceed; false if there are no
// values.
func (q *quantiles) at(share float64) (float64, bool) {
	rank, seen := int64(math.Ceil(share*float64(q.n))), int64(0)
	for i, n := range q.counts {
		if seen += n; seen >= rank && n > 0 {
			return float64(min(q.most, valueOf(i))), true
		}
	}
	return 0, false
}

// upTo returns how many values are at most that many seconds, with an error of half a percent of
// the seconds.
func (q *quantiles) upTo(seconds int64) (n int64) {
	last := counterOf(seconds)
	for i, c := range q.counts {
		if i <= last {
			n += c
		}
	}
	return n
}
