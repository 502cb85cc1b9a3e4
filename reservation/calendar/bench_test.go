// SPDX-License-Identifier: Apache-2.0

package calendar_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/tests/growth"
)

// The calendar workload of docs/performance.md: starts uniform over 90 days, durations
// log-uniform 1 to 72 h, sizes log-uniform 1 to 64, seed 1.
const (
	hour = 3600
	day  = 24 * hour
	week = 7 * day
)

type workload struct {
	random   *rand.Rand
	calendar *calendar.Calendar
	hosts    hostset.Set
	claims   []calendar.Claim
	held     int64 // host-seconds
}

func logUniform(r *rand.Rand, low, high float64) float64 {
	return low * math.Exp(r.Float64()*math.Log(high/low))
}

// request draws a request. It may start at any time between its ready time and slack seconds
// later.
func (w *workload) request(slack int64) calendar.Query {
	q := calendar.Query{
		Ready:    span.Instant(w.random.Int64N(90 * day)),
		Duration: int64(logUniform(w.random, 1, 72) * hour),
		Quantity: int(logUniform(w.random, 1, 65)),
	}
	q.Now, q.Deadline = q.Ready, q.Ready.Add(max(q.Duration, slack))
	return q
}

// book claims the lowest free hosts for the request at start.
func (w *workload) book(q calendar.Query, start span.Instant) []calendar.Claim {
	var claims []calendar.Claim
	for _, h := range w.calendar.FirstFree(q, start, w.hosts.All()) {
		claims = append(claims, calendar.Claim{Host: h, Span: q.Window(start)})
	}
	if err := w.calendar.Add(claims...); err != nil {
		panic(err)
	}
	return claims
}

// newWorkload books requests at their ready time, if they fit, until there are that many
// claims.
func newWorkload(hosts, claims int) *workload {
	w := &workload{random: rand.New(rand.NewPCG(1, 1)), calendar: calendar.New(make([]resource.Vector, hosts), 0), hosts: hostset.Full(hosts)}
	for len(w.claims) < claims {
		q := w.request(0)
		q.Quantity = min(q.Quantity, hosts, claims-len(w.claims))
		if start, ok := w.calendar.Find(q, calendar.PolicyFirstFit); ok {
			w.claims = append(w.claims, w.book(q, start)...)
			w.held += q.Duration * int64(q.Quantity)
		}
	}
	return w
}

// findAndBook books the query where it fits first, on the lowest free hosts.
func (w *workload) findAndBook(q calendar.Query) []calendar.Claim {
	if start, ok := w.calendar.Find(q, calendar.PolicyFirstFit); ok {
		return w.book(q, start)
	}
	return nil
}

// occupancy returns the share of the host-time of the 90 days that is claimed.
func (w *workload) occupancy() float64 {
	return float64(w.held) / float64(w.calendar.Hosts()) / (90 * day)
}

// list returns the paper's list with the same claims, built in one walk.
func (w *workload) list() *paperList {
	type change struct {
		at    span.Instant
		host  int
		comes bool
	}
	var changes []change
	for _, c := range w.claims {
		changes = append(changes, change{c.Span.Start, c.Host, true}, change{c.Span.End, c.Host, false})
	}
	slices.SortFunc(changes, func(a, b change) int {
		if a.at == b.at && a.comes != b.comes { // releases come before claims
			if a.comes {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.at, b.at)
	})
	l := newPaperList(w.calendar.Hosts())
	last := l.head
	for _, ch := range changes {
		if last.time != ch.at {
			last.next = &record{time: ch.at, busy: append([]uint64(nil), last.busy...), prev: last}
			last = last.next
		}
		if ch.comes {
			last.busy[ch.host/64] |= 1 << (ch.host % 64)
		} else {
			last.busy[ch.host/64] &^= 1 << (ch.host % 64)
		}
	}
	return l
}

// firstFit is the paper's search, stopped at the first feasible start.
func (l *paperList) firstFit(q calendar.Query) (span.Instant, bool) {
	for _, s := range l.starts(q) {
		if count(l.freeAt(q, s)) >= q.Quantity {
			return s, true
		}
	}
	return 0, false
}

// choose returns the start that the policy chooses among the rectangles.
func (l *paperList) choose(q calendar.Query, value func(calendar.Candidate) int64) (span.Instant, bool) {
	all := l.find(q)
	if len(all) == 0 {
		return 0, false
	}
	return slices.MinFunc(all, func(a, b calendar.Candidate) int { return cmp.Compare(value(a), value(b)) }).Start, true
}

func percentile(times []time.Duration, p float64) time.Duration {
	slices.Sort(times)
	return times[min(int(float64(len(times))*p), len(times)-1)]
}

func mean(times []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, t := range times {
		sum += t
	}
	return sum / time.Duration(len(times))
}

func timed(do func()) time.Duration {
	begin := time.Now()
	do()
	return time.Since(begin)
}

func megabytes() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// sizes lists the size of the rows in "Figures to reach", the same hosts at an occupancy of
// 0.6, and steps of ten in hosts and in claims.
var sizes = []struct{ hosts, claims int }{
	{100, 1_000}, {1_000, 1_000}, {1_000, 10_000}, {10_000, 10_000}, {10_000, 100_000}, {10_000, 780_000},
}

// BenchmarkFindAndBook is row 1 of "Figures to reach".
func BenchmarkFindAndBook(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("hosts=%d/claims=%d", size.hosts, size.claims), func(b *testing.B) {
			before := megabytes()
			w := newWorkload(size.hosts, size.claims)
			held := megabytes() - before
			var times []time.Duration
			var queries []calendar.Query
			for b.Loop() {
				q := w.request(week)
				q.Quantity = min(q.Quantity, size.hosts)
				var claims []calendar.Claim
				times = append(times, timed(func() { claims = w.findAndBook(q) }))
				if err := w.calendar.Remove(claims...); err != nil {
					b.Fatal(err)
				}
				queries = append(queries, q)
			}
			report(b, times, held, w.occupancy())
			list := w.list()
			compare(b, w, list, queries, times, calendar.PolicyFirstFit)
			early := make([]time.Duration, min(len(queries), 100))
			for i, q := range queries[:len(early)] {
				early[i] = timed(func() { list.firstFit(q) })
			}
			b.ReportMetric(float64(mean(early).Nanoseconds())/1e3, "list-stopping-us")
		})
	}
}

// BenchmarkGrowth measures a booking that is removed again, and the refusal that costs most.
func BenchmarkGrowth(b *testing.B) {
	growth.Measure(b, "find and book", func(b *testing.B, hosts int) growth.Run {
		w := newWorkload(hosts, growth.ClaimsPerHost*hosts)
		w.random = rand.New(rand.NewPCG(2, 2)) // the same queries in each size
		var claims []calendar.Claim
		return func() func() {
			if err := w.calendar.Remove(claims...); err != nil {
				b.Fatal(err)
			}
			q := w.request(week)
			return func() { claims = w.findAndBook(q) }
		}
	})
	growth.Measure(b, "refusal of instances", func(b *testing.B, hosts int) growth.Run {
		c, end := sliceMonth(b, hosts, growth.ClaimsPerHost*hosts)
		random := rand.New(rand.NewPCG(2, 2))
		return func() func() {
			q := sliceQuery(random, end, 1, allButTen(hosts))
			return func() { earliestOrMost(c, q) }
		}
	})
}

// BenchmarkPolicies is row 2 of "Figures to reach".
func BenchmarkPolicies(b *testing.B) {
	for _, size := range sizes[len(sizes)-2:] {
		w := newWorkload(size.hosts, size.claims)
		list := w.list()
		for _, policy := range calendar.PaperPolicies {
			b.Run(fmt.Sprintf("%s/hosts=%d/claims=%d", policy, size.hosts, size.claims), func(b *testing.B) {
				var times []time.Duration
				var queries []calendar.Query
				for b.Loop() {
					q := w.request(week)
					times = append(times, timed(func() { w.calendar.Find(q, policy) }))
					queries = append(queries, q)
				}
				report(b, times, 0, w.occupancy())
				compare(b, w, list, queries, times, policy)
			})
		}
	}
}

// compare runs the same queries on the paper's list, as many as ten seconds allow, and fails
// unless the answers are the same.
func compare(b *testing.B, w *workload, list *paperList, queries []calendar.Query, times []time.Duration, policy calendar.Policy) {
	var paper []time.Duration
	for begin := time.Now(); len(paper) < len(queries) && len(paper) < 50 && time.Since(begin) < 10*time.Second; {
		q := queries[len(paper)]
		want, feasible := span.Instant(0), false
		paper = append(paper, timed(func() { want, feasible = list.choose(q, choices[policy]) }))
		if got, ok := w.calendar.Find(q, policy); ok != feasible || got != want {
			b.Fatalf("%+v: start %d, the paper's list has %d", q, got, want)
		}
	}
	b.ReportMetric(float64(mean(paper).Nanoseconds())/1e3, "list-us")
	b.ReportMetric(float64(mean(paper))/float64(mean(times)), "x-faster")
}

func report(b *testing.B, times []time.Duration, megabytes, occupancy float64) {
	b.ReportMetric(float64(percentile(times, 0.5).Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(percentile(times, 0.99).Nanoseconds())/1e3, "p99-us")
	b.ReportMetric(float64(mean(times).Nanoseconds())/1e3, "mean-us") // ns/op includes drawing and removing the request
	b.ReportMetric(occupancy, "occupancy")
	if megabytes > 0 {
		b.ReportMetric(megabytes, "MB")
	}
}
