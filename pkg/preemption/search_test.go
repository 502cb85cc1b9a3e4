// SPDX-License-Identifier: Apache-2.0

package preemption_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/preemption"
)

// question is the input of a search.
type question struct {
	lacks, costs []int64
	amounts      [][]int64 // by candidate and dimension
}

func (q question) enough(set []int) bool {
	for d, lack := range q.lacks {
		for _, i := range set {
			lack -= q.amounts[i][d]
		}
		if lack > 0 {
			return false
		}
	}
	return true
}

func (q question) cost(set []int) (cost int64) {
	for _, i := range set {
		cost += q.costs[i]
	}
	return cost
}

// brute tries all subsets and returns the one with the least cost, then the fewest instances,
// then the lowest places.
func (q question) brute() (best []int, ok bool) {
	for bits := range 1 << len(q.costs) {
		var set []int
		for i := range q.costs {
			if bits&(1<<i) != 0 {
				set = append(set, i)
			}
		}
		if !q.enough(set) {
			continue
		}
		if !ok || q.before(set, best) {
			best, ok = set, true
		}
	}
	return best, ok
}

func (q question) before(a, b []int) bool {
	if x, y := q.cost(a), q.cost(b); x != y {
		return x < y
	}
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return slices.Compare(a, b) < 0
}

// drawQuestion draws a question with many ties, with instances that cost nothing and instances
// that free nothing.
func drawQuestion(t *rapid.T) question {
	q := question{lacks: make([]int64, rapid.IntRange(1, 4).Draw(t, "dimensions"))}
	most := rapid.SampledFrom([]int64{2, 6, 40, 1000}).Draw(t, "most")
	for d := range q.lacks {
		q.lacks[d] = rapid.Int64Range(1, 2*most).Draw(t, "lack")
	}
	dearest := rapid.SampledFrom([]int64{0, 1, 5, 3600, 1 << 40}).Draw(t, "dearest")
	for range rapid.IntRange(0, 14).Draw(t, "candidates") {
		amounts := make([]int64, len(q.lacks))
		for d := range amounts {
			amounts[d] = rapid.Int64Range(0, most).Draw(t, "amount")
		}
		q.amounts, q.costs = append(q.amounts, amounts), append(q.costs, rapid.Int64Range(0, dearest).Draw(t, "cost"))
	}
	return q
}

func TestTheCheapestSetIsThatOfAllSubsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		want, possible := q.brute()
		got, ok := preemption.Cheapest(q.lacks, q.costs, q.amounts)
		if ok != possible || !slices.Equal(got, want) {
			t.Fatalf("%+v: got %v (%v), want %v (%v)", q, got, ok, want, possible)
		}
		limit := rapid.Int64Range(0, 2*q.cost(want)+2).Draw(t, "limit")
		least := limit
		if possible {
			least = min(limit, q.cost(want))
		}
		if cost := preemption.CheapestCost(q.lacks, q.costs, q.amounts, limit); cost != least {
			t.Fatalf("%+v: the cost below %d is %d, want %d", q, limit, cost, least)
		}
	})
}

// table solves a question with small lacks by dynamic programming over what is still lacking.
func (q question) table() (set []int, ok bool) {
	type price struct{ cost, count int64 }
	const never = 1 << 60
	states := int64(1)
	for _, lack := range q.lacks {
		states *= lack + 1
	}
	// after returns the state that follows another one when i leaves.
	after := func(state int64, i int) (next int64) {
		unit := int64(1)
		for d, lack := range q.lacks {
			left := state / unit % (lack + 1)
			next += max(0, left-q.amounts[i][d]) * unit
			unit *= lack + 1
		}
		return next
	}
	cheaper := func(a, b price) bool { return a.cost < b.cost || a.cost == b.cost && a.count < b.count }
	n := len(q.costs)
	least := make([][]price, n+1) // by the first candidate that may leave, and state
	for k := n; k >= 0; k-- {
		least[k] = make([]price, states)
		for state := range states {
			switch {
			case k == n && state > 0:
				least[k][state] = price{never, 0}
			case k < n:
				with := least[k+1][after(state, k)]
				least[k][state] = price{with.cost + q.costs[k], with.count + 1}
				if without := least[k+1][state]; !cheaper(least[k][state], without) && without != least[k][state] {
					least[k][state] = without
				}
			}
		}
	}
	state := states - 1
	if least[0][state].cost >= never {
		return nil, false
	}
	for k := range n {
		next := after(state, k)
		if with := least[k+1][next]; (price{with.cost + q.costs[k], with.count + 1}) == least[k][state] {
			set, state = append(set, k), next
		}
	}
	return set, true
}

func TestTheCheapestSetOfManyIsThatOfTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		q := question{lacks: make([]int64, 1+r.IntN(3))}
		for d := range q.lacks {
			q.lacks[d] = 1 + r.Int64N(20)
		}
		most := 1 + r.Int64N(6)
		dearest := rapid.SampledFrom([]int64{0, 3, 3599}).Draw(t, "dearest")
		for range 20 + r.IntN(80) {
			amounts := make([]int64, len(q.lacks))
			for d := range amounts {
				amounts[d] = r.Int64N(most + 1)
			}
			q.amounts, q.costs = append(q.amounts, amounts), append(q.costs, r.Int64N(dearest+1))
		}
		want, possible := q.table()
		got, ok := preemption.Cheapest(q.lacks, q.costs, q.amounts)
		if ok != possible || !slices.Equal(got, want) {
			t.Fatalf("%+v: got %v (%v), want %v (%v)", q, got, ok, want, possible)
		}
	})
}

// If the search ends early, its set is still sufficient and contains no needless instance.
func TestASetThatMayNotBeTheCheapestHasNothingNeedless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		q := randomQuestion(r, rapid.SampledFrom(kinds).Draw(t, "kind"), 64, 0.05+r.Float64()/2)
		set := preemption.CheapestWithin(rapid.IntRange(0, 500).Draw(t, "effort"), q.lacks, q.costs, q.amounts)
		if !q.enough(set) {
			t.Fatalf("%v is not enough", set)
		}
		for n := range set {
			if q.enough(slices.Delete(slices.Clone(set), n, n+1)) {
				t.Fatalf("%d is needless in %v", set[n], set)
			}
		}
	})
}

// The search finishes with 64 instances on a host with three resources, unless every cost is
// proportional to the amounts and the request needs several of the instances.
func TestTheSearchFinishesWith64Instances(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, kind := range []string{"uncorrelated", "equal costs", "flavors", "prices of flavors"} {
		for range 200 {
			q := randomQuestion(r, kind, 64, r.Float64()/2)
			if kind == "prices of flavors" {
				q.lacks = withDisk[r.IntN(len(withDisk))]
			}
			if best, first, tooMany := preemption.Nodes(q.lacks, q.costs, q.amounts); tooMany {
				t.Errorf("%s: gave up after %d and %d nodes", kind, best, first)
			}
		}
	}
}

// kinds are the shapes of questions for tests and benchmarks.
var kinds = []string{"uncorrelated", "correlated", "equal costs", "flavors", "prices of flavors"}

// flavors are sizes of general, lean and fat flavors, with and without disks.
var flavors = [][]int64{
	{1, 1024, 10}, {1, 2048, 20}, {2, 2048, 20}, {2, 4096, 40}, {2, 16384, 0}, {4, 4096, 0}, {4, 8192, 80}, {4, 32768, 80}, {8, 8192, 40}, {8, 16384, 160}, {8, 65536, 0}, {16, 32768, 320},
}

// withDisk are the flavors that have some of all resources.
var withDisk = slices.DeleteFunc(slices.Clone(flavors), func(amounts []int64) bool { return slices.Contains(amounts, 0) })

// randomQuestion returns a question with n instances on a host with three resources. The request
// is for this part of what they have.
func randomQuestion(r *rand.Rand, kind string, n int, part float64) question {
	q := question{lacks: make([]int64, 3)}
	sums := make([]int64, 3)
	for range n {
		amounts := []int64{1 + r.Int64N(8), 512 * (1 + r.Int64N(32)), r.Int64N(81)}
		cost := r.Int64N(3600)
		switch kind {
		case "correlated":
			cost = amounts[0]*200 + amounts[1]/8 + amounts[2]*10 + r.Int64N(200)
		case "equal costs":
			cost = 100
		case "flavors":
			amounts = flavors[r.IntN(len(flavors))]
		case "prices of flavors":
			amounts = flavors[r.IntN(len(flavors))]
			cost = 10_000*amounts[0] + amounts[1] + 100*amounts[2]
		}
		q.amounts, q.costs = append(q.amounts, amounts), append(q.costs, cost)
		for d, amount := range amounts {
			sums[d] += amount
		}
	}
	for d, sum := range sums {
		q.lacks[d] = max(1, int64(float64(sum)*part))
	}
	return q
}

func BenchmarkSearchOf64Instances(b *testing.B) {
	for _, kind := range kinds {
		for _, part := range []float64{0.04, 0.1, 0.25, 0.5} {
			b.Run(fmt.Sprintf("%s/%v", kind, part), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				questions := make([]question, 1000)
				for i := range questions {
					questions[i] = randomQuestion(r, kind, 64, part)
				}
				var times []time.Duration
				worst, over := 0, 0
				for b.Loop() {
					times = times[:0]
					for _, q := range questions {
						start := time.Now()
						preemption.Cheapest(q.lacks, q.costs, q.amounts)
						times = append(times, time.Since(start))
					}
				}
				for _, q := range questions {
					best, first, tooMany := preemption.Nodes(q.lacks, q.costs, q.amounts)
					worst = max(worst, best, first)
					if tooMany {
						over++
					}
				}
				slices.Sort(times)
				b.ReportMetric(float64(times[500].Nanoseconds())/1000, "µs-p50")
				b.ReportMetric(float64(times[990].Nanoseconds())/1000, "µs-p99")
				b.ReportMetric(float64(times[999].Nanoseconds())/1000, "µs-worst")
				b.ReportMetric(float64(worst), "nodes")
				b.ReportMetric(float64(over), "unfinished")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
