// SPDX-License-Identifier: Apache-2.0

package packing_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/packing"
)

// best returns the largest smallest yield within the budget, by exhaustive search; -1 if there is
// no placement.
func best(p *packing.Problem) float64 {
	at := make(packing.Placement, len(p.Jobs))
	found := -1.0
	var try func(i int)
	try = func(i int) {
		if i == len(at) {
			if p.Fits(at) && p.Moved(at) <= p.Budget+1e-9 {
				found = max(found, p.MinYield(at))
			}
			return
		}
		for h := range p.Hosts {
			if p.Current[i] != nil && p.Current[i][0] == h || p.May(i, h) {
				at[i] = []int{h}
				try(i + 1)
			}
		}
	}
	try(0)
	return found
}

func TestJobsStayWhereTheyMayBeAndMovesHaveTheirPrices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &packing.Problem{Hosts: packing.Identical(rapid.IntRange(1, 3).Draw(t, "hosts")), Budget: float64(rapid.IntRange(0, 4).Draw(t, "budget"))}
		barred := map[[2]int]bool{}
		for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
			p.Jobs = append(p.Jobs, packing.Job{
				ID: fmt.Sprint("j", i), CPU: float64(rapid.IntRange(1, 10).Draw(t, "cpu")) / 10, Memory: float64(rapid.IntRange(0, 5).Draw(t, "memory")) / 10, Tasks: 1,
			})
			p.Price = append(p.Price, float64(rapid.IntRange(0, 2).Draw(t, "price")))
			var now []int
			if rapid.IntRange(0, 4).Draw(t, "new") > 0 {
				now = []int{rapid.IntRange(0, len(p.Hosts)-1).Draw(t, "now")}
			}
			p.Current = append(p.Current, now)
			for h := range p.Hosts {
				barred[[2]int{i, h}] = rapid.IntRange(0, 2).Draw(t, "barred") == 0
			}
		}
		p.May = func(job, host int) bool { return !barred[[2]int{job, host}] }
		want := best(p)
		for name, algorithm := range map[string]packing.Algorithm{"exact": packing.Exact{}.Place, "adapt": packing.Adapt{}.Place} {
			at, err := algorithm(t.Context(), p)
			if infeasible, is := errors.AsType[*packing.Infeasible](err); is {
				if want >= 0 && (name == "exact" || infeasible.Proven) {
					t.Fatalf("%s finds nothing, and %v is possible: %v", name, want, err)
				}
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			if !p.Fits(at) || p.Moved(at) > p.Budget+1e-9 {
				t.Fatalf("%s: %v does not fit, or moves %v of %v", name, at, p.Moved(at), p.Budget)
			}
			for i, hosts := range at {
				if p.Current[i] == nil && !p.May(i, hosts[0]) || p.Current[i] != nil && p.Current[i][0] != hosts[0] && !p.May(i, hosts[0]) {
					t.Fatalf("%s: job %d may not be on host %d", name, i, hosts[0])
				}
			}
			if got := p.MinYield(at); got > want+1e-9 || name == "exact" && got < want-1e-9 {
				t.Fatalf("%s: %v, want %v", name, got, want)
			}
		}
	})
}

func TestPricesThatMakeNoSenseAreRefused(t *testing.T) {
	for _, prices := range [][]float64{{}, {1, 1}, {-1}} {
		p := packing.Problem{Hosts: packing.Identical(1), Jobs: []packing.Job{{ID: "j", Tasks: 1}}, Price: prices}
		if err := p.Check(); !fault.Is(err, fault.Invalid) || fault.Of(err).Field != "price" {
			t.Errorf("%v: %v", prices, err)
		}
	}
}
