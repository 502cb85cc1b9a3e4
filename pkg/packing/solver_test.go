// SPDX-License-Identifier: Apache-2.0

package packing_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/packing/glpk"
)

// solver returns GLPK, or skips the test if it is not installed.
func solver(t *testing.T) packing.Solver {
	t.Helper()
	s := glpk.Solver{Limit: 20 * time.Second}
	if err := s.Find(); err != nil {
		if os.Getenv("ALMANAC_LAB") != "" { // the lab installs it
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return s
}

// instance draws a problem; on average a third of the memory is free.
func instance(chance *rand.Rand, hosts, tasks, together int) *packing.Problem {
	p := &packing.Problem{Hosts: packing.Identical(hosts)}
	for left := tasks; left > 0; {
		n := min(left, 1+chance.IntN(together))
		left -= n
		p.Jobs = append(p.Jobs, packing.Job{
			ID: fmt.Sprintf("j%d", len(p.Jobs)), Tasks: n, CPU: .05 + .9*chance.Float64(),
			Memory: min(1, 4./3*chance.Float64()*float64(hosts)/float64(tasks)),
		})
	}
	return p
}

func infeasible(err error) bool {
	_, is := errors.AsType[*packing.Infeasible](err)
	return is
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestTheLargestAverageOfParallelJobsIsALinearProgram(t *testing.T) { // check A002-8
	p := &packing.Problem{Hosts: packing.Identical(3), Jobs: []packing.Job{
		{ID: "A", CPU: .6, Tasks: 2}, {ID: "B", CPU: .7, Tasks: 1}, {ID: "C", CPU: .7, Tasks: 1}, {ID: "D", CPU: 1, Tasks: 1}, {ID: "E", CPU: 1, Tasks: 1},
	}}
	yields, err := p.RaiseExactly(t.Context(), solver(t), packing.Placement{{0, 1}, {0}, {1}, {2}, {2}}, .5)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the average", packing.Mean(yields), .7)
	for i, want := range []float64{.5, 1, 1} {
		near(t, p.Jobs[i].ID, yields[i], want)
	}
}

func TestRaisingIsAsGoodAsTheLinearProgramForJobsOfOneTask(t *testing.T) {
	s := solver(t)
	for seed := range uint64(60) {
		together := 1
		if seed >= 30 {
			together = 3
		}
		p := instance(rand.New(rand.NewPCG(seed, 0)), 3, 12, together)
		at, err := packing.MCBs[7].Place(t.Context(), p)
		if infeasible(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		smallest := p.MinYield(at)
		largest, err := p.RaiseExactly(t.Context(), s, at, smallest)
		if err != nil {
			t.Fatal(err)
		}
		raised := packing.Mean(p.Raise(at, smallest))
		switch most := packing.Mean(largest); {
		case together == 1:
			near(t, fmt.Sprintf("seed %d: the average", seed), raised, most)
		case raised > most+1e-6:
			t.Errorf("seed %d: the average is %v, and the largest %v", seed, raised, most)
		}
	}
}

func TestTheRelaxedProblemReachesTheBound(t *testing.T) { // check A002-10
	s := solver(t)
	for seed := range uint64(30) {
		chance := rand.New(rand.NewPCG(seed, 1))
		p := instance(chance, 1+chance.IntN(5), 1+chance.IntN(12), 1+int(seed%3))
		found, err := p.Relaxed(t.Context(), s)
		if infeasible(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		near(t, fmt.Sprintf("seed %d: the yield", seed), found, p.Bound())
	}
}

func TestRoundingPlacesWithinTheMemoryAndMoreOftenWithNoZeroes(t *testing.T) { // check A002-10
	s := solver(t)
	const instances = 200
	solved := map[string]int{}
	for seed := range uint64(instances) {
		p := instance(rand.New(rand.NewPCG(seed, 2)), 4, 6+2*int(seed%4), 1)
		for k, r := range packing.Roundings(s, nil) {
			r.Chance = rand.New(rand.NewPCG(seed, uint64(k)))
			at, err := r.Place(t.Context(), p)
			if infeasible(err) {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", r.Name, err)
			}
			solved[r.Name]++
			if !p.Fits(at) || p.MinYield(at) > p.Bound()+1e-9 {
				t.Errorf("%s: %v does not fit", r.Name, at)
			}
		}
	}
	t.Logf("solved of %d: %v", instances, solved)
	if solved["rrnz"] < solved["rrnd"] || solved["rrnd"] == 0 {
		t.Errorf("solved are %v", solved)
	}
}

func TestRoundingWithTheSameSeedIsTheSame(t *testing.T) { // check A002-10
	s := solver(t)
	p := instance(rand.New(rand.NewPCG(7, 0)), 4, 6, 1)
	for k := range packing.Roundings(s, nil) {
		var before packing.Placement
		for range 2 {
			r := packing.Roundings(s, rand.New(rand.NewPCG(1, 2)))[k]
			at, err := r.Place(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, at); before != nil && diff != "" {
				t.Errorf("%s (-first +second):\n%s", r.Name, diff)
			}
			before = at
		}
	}
}

func TestTheIntegerProgramIsAsGoodAsTheSearch(t *testing.T) {
	s := solver(t)
	for seed := range uint64(40) {
		chance := rand.New(rand.NewPCG(seed, 3))
		p := instance(chance, 3, 7, 1+int(seed%2))
		if seed%4 == 1 {
			p.Hosts[1] = packing.Host{CPU: 2, Memory: .5}
		}
		if seed%3 == 0 {
			for _, j := range p.Jobs {
				p.Current = append(p.Current, slices.Repeat([]int{chance.IntN(3)}, j.Tasks))
			}
			p.Current[0] = nil
			p.Budget = chance.Float64()
		}
		if seed%5 == 0 {
			p.May = func(job, host int) bool { return (job+host)%4 != 0 }
		}
		one, oneErr := packing.Exact{}.Place(t.Context(), p)
		two, twoErr := packing.Program{Solver: s}.Place(t.Context(), p)
		if infeasible(oneErr) && infeasible(twoErr) {
			continue
		}
		if oneErr != nil || twoErr != nil {
			t.Errorf("seed %d: %v and %v", seed, oneErr, twoErr)
			continue
		}
		near(t, fmt.Sprintf("seed %d: the smallest yield", seed), p.MinYield(two), p.MinYield(one))
		if !p.Fits(two) || p.Current != nil && p.Moved(two) > p.Budget+1e-6 {
			t.Errorf("seed %d: %v does not fit", seed, two)
		}
	}
}
