// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sequential returns jobs of one task each.
func sequential(hosts int, cpu, memory []float64) *Problem {
	p := &Problem{Hosts: Identical(hosts)}
	for i := range cpu {
		p.Jobs = append(p.Jobs, Job{ID: fmt.Sprintf("j%d", i+1), CPU: cpu[i], Memory: memory[i], Tasks: 1})
	}
	return p
}

func all(value float64, n int) []float64 { return slices.Repeat([]float64{value}, n) }

// hosts returns the host of each job's only task.
func (at Placement) hosts() []int { return flat(at) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 5e-6 {
		t.Errorf("%s is %.6f, want %.6f", what, got, want)
	}
}

func place(t *testing.T, p *Problem, name string) Placement {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	algorithm, err := Tools{Chance: rand.New(rand.NewPCG(1, 1))}.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	at, err := algorithm(t.Context(), p)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !p.Fits(at) {
		t.Errorf("%s puts more memory on a host than it has: %v", name, at)
	}
	return at
}

// deterministic returns the algorithms that use no random numbers.
func deterministic() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return name == "rrnd" || name == "rrnz" })
}

func TestThreeTasksOnTwoHosts(t *testing.T) { // check A002-1
	p := sequential(2, all(.6, 3), all(.1, 3))
	near(t, "the bound", p.Bound(), 1)
	for _, name := range []string{"exact", "mcb8", "gr", "adapt"} {
		near(t, name, p.MinYield(place(t, p, name)), .8333333)
	}
	at := place(t, p, "gr")
	if diff := cmp.Diff([]int{0, 1, 0}, at.hosts()); diff != "" {
		t.Errorf("gr (-want +got):\n%s", diff)
	}
	o, err := Tools{}.Solve(t.Context(), p, MCBs[7].Place)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the average", o.Average, .8888889)
	sorted := slices.Sorted(slices.Values(o.Yields))
	near(t, "the largest yield", sorted[2], 1)
	near(t, "the second", sorted[1], .8333333)
}

func TestTheSecondPhaseServesTheSmallestNeedsFirst(t *testing.T) { // check A002-2
	p := sequential(1, []float64{.2, .4, .9}, all(0, 3))
	got := p.Raise(Placement{{0}, {0}, {0}}, .5)
	for i, want := range []float64{1, .875, .5} {
		near(t, p.Jobs[i].ID, got[i], want)
	}
}

func TestSixJobsOnThreeHosts(t *testing.T) { // check A002-3
	p := sequential(3, []float64{.8, .7, .6, .5, .4, .3}, []float64{.5, .2, .6, .3, .7, .4})
	near(t, "the bound", p.Bound(), .9090909)
	near(t, "exact", p.MinYield(place(t, p, "exact")), .9090909)
	for name, want := range map[string]struct {
		hosts []int
		yield float64
	}{"gr": {[]int{0, 1, 2, 2, 1, 0}, .9090909}, "sg": {[]int{2, 2, 1, 0, 0, 1}, .6666667}} {
		at := place(t, p, name)
		if diff := cmp.Diff(want.hosts, at.hosts()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		near(t, name, p.MinYield(at), want.yield)
	}
	at := place(t, p, "mcb8")
	near(t, "mcb8", p.MinYield(at), .9090909)
	h := at.hosts()
	if h[0] != h[5] || h[1] != h[4] || h[2] != h[3] {
		t.Errorf("mcb8 places %v, want jobs 0 and 5, 1 and 4, 2 and 3 together", h)
	}
	for _, m := range []MCB{MCBs[0], MCBs[3]} {
		if _, err := m.Place(t.Context(), p); !isInfeasible(err) {
			t.Errorf("%s: got %v, want no placement", m.Name, err)
		}
	}
}

func isInfeasible(err error) bool {
	_, is := errors.AsType[*Infeasible](err)
	return is
}

func TestMemoryThatFitsInSumOnlyIsNoPlacement(t *testing.T) { // check A002-4
	for _, memory := range [][]float64{{.6, .6, .6, .1}, {.9, .9, .9}} {
		p := sequential(2, all(.5, len(memory)), memory)
		near(t, "the bound", p.Bound(), 1)
		for _, name := range deterministic() {
			algorithm, err := Tools{}.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			if at, err := algorithm(t.Context(), p); !isInfeasible(err) {
				t.Errorf("%s: got %v, %v for memory %v", name, at, err, memory)
			}
		}
	}
}

func TestTwoLargeAndTwoSmallJobs(t *testing.T) { // check A002-5
	p := sequential(2, []float64{1, 1, .5, .5}, all(.5, 4))
	near(t, "the bound", p.Bound(), .6666667)
	for _, name := range deterministic() {
		if name == "sg" || name == "gb" || name == "sgb" {
			continue
		}
		near(t, name, p.MinYield(place(t, p, name)), .6666667)
	}
}

func TestThreePartition(t *testing.T) { // check A002-6
	p := sequential(3, []float64{.26, .27, .47, .30, .31, .39, .33, .33, .34}, all(0, 9))
	near(t, "exact", p.MinYield(place(t, p, "exact")), 1)
	for _, name := range deterministic() {
		if got := p.MinYield(place(t, p, name)); got > 1 {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if got := p.MinYield(place(t, p, "mcb8")); got < .89 || got > .9 {
		t.Errorf("mcb8: got %v, want about 0.893", got)
	}
}

func TestAMoveTakesItsBudget(t *testing.T) { // check A002-7
	p := sequential(2, []float64{.9, .9}, []float64{.4, .3})
	p.Current = Placement{{0}, {0}}
	for _, name := range []string{"exact", "adapt"} {
		for _, c := range []struct{ budget, yield float64 }{{.29, .5555556}, {.30, 1}} {
			p.Budget = c.budget
			near(t, fmt.Sprintf("%s with %v", name, c.budget), p.MinYield(place(t, p, name)), c.yield)
		}
	}
	p.Jobs = append(p.Jobs, Job{ID: "j3", CPU: .6, Memory: .2, Tasks: 1})
	p.Current, p.Budget = append(p.Current, nil), 0
	for _, name := range []string{"exact", "adapt"} {
		at := place(t, p, name)
		if diff := cmp.Diff(Placement{{0}, {0}, {1}}, at); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		near(t, name, p.MinYield(at), .5555556)
	}
}

func TestTheTasksOfAJobGetTheSame(t *testing.T) { // check A002-8
	p := &Problem{Hosts: Identical(3), Jobs: []Job{
		{ID: "A", CPU: .6, Tasks: 2}, {ID: "B", CPU: .7, Tasks: 1}, {ID: "C", CPU: .7, Tasks: 1}, {ID: "D", CPU: 1, Tasks: 1}, {ID: "E", CPU: 1, Tasks: 1},
	}}
	at := Placement{{0, 1}, {0}, {1}, {2}, {2}}
	near(t, "the smallest yield", p.MinYield(at), .5)
	near(t, "the average", Mean(p.Raise(at, .5)), .7)
}
