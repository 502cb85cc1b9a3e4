// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawProblem draws at most 3 hosts and 6 tasks. Needs have two digits, so that some are equal,
// some hosts are completely full, and sums are not exact.
func drawProblem(t *rapid.T) *Problem {
	p := &Problem{}
	alike := rapid.Bool().Draw(t, "identical hosts")
	for range rapid.IntRange(1, 3).Draw(t, "hosts") {
		host := Unit
		if !alike {
			host = Host{rapid.SampledFrom([]float64{.5, 1, 2}).Draw(t, "host cpu"), rapid.SampledFrom([]float64{.5, 1, 2}).Draw(t, "host memory")}
		}
		p.Hosts = append(p.Hosts, host)
	}
	for left := rapid.IntRange(1, 6).Draw(t, "tasks"); left > 0; {
		j := Job{
			ID: fmt.Sprintf("j%d", len(p.Jobs)), Tasks: rapid.IntRange(1, min(left, 3)).Draw(t, "of a job"),
			CPU: float64(rapid.IntRange(0, 50).Draw(t, "cpu")) / 100, Memory: float64(rapid.IntRange(0, 70).Draw(t, "memory")) / 100,
		}
		left -= j.Tasks
		p.Jobs = append(p.Jobs, j)
	}
	return p
}

// drawChange draws the current hosts of the tasks and the allowed changes.
func drawChange(t *rapid.T, p *Problem) {
	host := rapid.IntRange(0, len(p.Hosts)-1)
	p.Current = make(Placement, len(p.Jobs))
	for i, j := range p.Jobs {
		if rapid.IntRange(0, 3).Draw(t, "new") > 0 {
			p.Current[i] = rapid.SliceOfN(host, j.Tasks, j.Tasks).Draw(t, "current")
		}
	}
	p.Budget = float64(rapid.IntRange(0, 150).Draw(t, "budget")) / 100
	if rapid.Bool().Draw(t, "count") {
		p.Price, p.Budget = all(1, len(p.Jobs)), float64(rapid.IntRange(0, 4).Draw(t, "moves"))
	}
	if rapid.IntRange(0, 2).Draw(t, "closed") == 0 {
		closed := host.Draw(t, "closed host")
		p.May = func(job, host int) bool { return host != closed || job%2 == 0 }
	}
}

// violation returns the bound that a placement violates, computed independently.
func violation(p *Problem, at Placement) string {
	memory, moved := make([]float64, len(p.Hosts)), 0.0
	for i, hosts := range at {
		if len(hosts) != p.Jobs[i].Tasks {
			return fmt.Sprintf("job %d has %d hosts", i, len(hosts))
		}
		for k, h := range hosts {
			memory[h] += p.Jobs[i].Memory
			from := -1
			if p.Current != nil && p.Current[i] != nil {
				from = p.Current[i][k]
			}
			if from == h {
				continue
			}
			if p.May != nil && !p.May(i, h) {
				return fmt.Sprintf("job %d may not be on host %d", i, h)
			}
			if price := p.Jobs[i].Memory; from >= 0 && p.Price == nil {
				moved += price
			} else if from >= 0 {
				moved += p.Price[i]
			}
		}
	}
	for h, used := range memory {
		if used > p.Hosts[h].Memory+1e-8 {
			return fmt.Sprintf("host %d has %v of memory", h, used)
		}
	}
	if p.Current != nil && moved > p.Budget+1e-8 {
		return fmt.Sprintf("%v is moved", moved)
	}
	return ""
}

// oracle returns the largest smallest yield of a placement, by the formula.
func oracle(p *Problem, at Placement) float64 {
	yield := 1.0
	for h, host := range p.Hosts {
		need := 0.0
		for i, hosts := range at {
			for _, on := range hosts {
				if on == h {
					need += p.Jobs[i].CPU
				}
			}
		}
		if need > host.CPU {
			yield = min(yield, host.CPU/need)
		}
	}
	return yield
}

// best returns the largest smallest yield of all placements; -1 if there is none.
func best(p *Problem) float64 {
	at := make(Placement, len(p.Jobs))
	for i, j := range p.Jobs {
		at[i] = make([]int, j.Tasks)
	}
	largest := -1.0
	var try func(job, number int)
	try = func(job, number int) {
		switch {
		case job == len(p.Jobs):
			if violation(p, at) == "" {
				largest = max(largest, oracle(p, at))
			}
		case number == p.Jobs[job].Tasks:
			try(job+1, 0)
		default:
			for h := range p.Hosts {
				at[job][number] = h
				try(job, number+1)
			}
		}
	}
	try(0, 0)
	return largest
}

func close(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

func TestExactIsTheBestOfAllPlacements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		if rapid.Bool().Draw(t, "from a placement") {
			drawChange(t, p)
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		want := best(p)
		at, err := Exact{}.Place(t.Context(), p)
		switch infeasible, is := errors.AsType[*Infeasible](err); {
		case is && want < 0 && infeasible.Proven:
		case err != nil:
			t.Fatalf("%v, and the best has %v", err, want)
		case violation(p, at) != "":
			t.Fatalf("%v: %s", at, violation(p, at))
		case !close(oracle(p, at), want):
			t.Fatalf("%v has %v, and the best %v", at, oracle(p, at), want)
		}
	})
}

func TestNoHeuristicIsBetterThanExactOrBreaksABound(t *testing.T) {
	names := slices.DeleteFunc(deterministic(), func(name string) bool { return name == "exact" })
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		largest := best(p)
		for _, name := range names {
			algorithm, err := Tools{}.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			at, err := algorithm(t.Context(), p)
			if infeasible, is := errors.AsType[*Infeasible](err); is {
				if infeasible.Proven && largest >= 0 || infeasible.Reason == "" {
					t.Fatalf("%s: %+v, and there is one with %v", name, infeasible, largest)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if broken := violation(p, at); broken != "" || !p.Fits(at) {
				t.Fatalf("%s: got %v: %s", name, at, broken)
			}
			got := p.MinYield(at)
			if !close(got, oracle(p, at)) || got > largest+1e-6 || got > p.Bound()+1e-9 {
				t.Fatalf("%s: got %v with %v; the oracle has %v, the best is %v, the bound %v", name, at, got, oracle(p, at), largest, p.Bound())
			}
		}
	})
}

func TestBacktrackingFindsAPlacementWhereThereIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		for _, g := range Greedies {
			if _, err := g.Place(t.Context(), p); g.Backtrack && (err == nil) != (best(p) >= 0) {
				t.Fatalf("%s: %v, and the best is %v", g.Name, err, best(p))
			}
		}
	})
}

func TestSharesAreWithinTheHostsAndNobodyHasLessThanTheSmallestYield(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		o, err := Tools{}.Solve(t.Context(), p, MCBs[7].Place)
		if err != nil {
			t.Skip(err)
		}
		for h, host := range p.Hosts {
			given := 0.0
			for i, hosts := range o.Placement {
				for _, on := range hosts {
					if on == h {
						given += o.Yields[i] * p.Jobs[i].CPU
					}
				}
			}
			if given > host.CPU+1e-8 {
				t.Fatalf("host %d provides %v", h, given)
			}
		}
		for i, y := range o.Yields {
			if y < o.MinYield-1e-9 || y > 1 || p.Jobs[i].CPU == 0 && y != 1 {
				t.Fatalf("job %d has %v, and the smallest is %v", i, y, o.MinYield)
			}
		}
		if !close(o.Average, Mean(o.Yields)) {
			t.Fatalf("the average of %v is %v", o.Yields, o.Average)
		}
	})
}

func TestAdaptKeepsItsBudgetAndIsNeverWorseThanStaying(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		drawChange(t, p)
		at, err := Adapt{}.Place(t.Context(), p)
		stays := !slices.ContainsFunc(p.Current, func(hosts []int) bool { return hosts == nil }) && p.Fits(p.Current)
		if err != nil {
			if !isInfeasible(err) || stays {
				t.Fatal(err)
			}
			return
		}
		if broken := violation(p, at); broken != "" {
			t.Fatalf("%v: %s", at, broken)
		}
		if got := oracle(p, at); got > best(p)+1e-6 || stays && got < oracle(p, p.Current)-1e-9 {
			t.Fatalf("%v has %v, %v has %v, and the best %v", at, got, p.Current, oracle(p, p.Current), best(p))
		}
	})
}

func TestHostsTwiceAsLargeHoldWhatIsTwiceAsLarge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		double := &Problem{Jobs: slices.Clone(p.Jobs)}
		for _, h := range p.Hosts {
			double.Hosts = append(double.Hosts, Host{2 * h.CPU, 2 * h.Memory})
		}
		for i := range double.Jobs {
			double.Jobs[i].CPU *= 2
			double.Jobs[i].Memory *= 2
		}
		for _, name := range deterministic() {
			algorithm, err := Tools{}.Named(name)
			if err != nil {
				t.Fatal(err)
			}
			one, oneErr := algorithm(t.Context(), p)
			two, twoErr := algorithm(t.Context(), double)
			if diff := cmp.Diff(one, two); diff != "" || (oneErr == nil) != (twoErr == nil) {
				t.Fatalf("%s: %v and %v\n%s", name, oneErr, twoErr, diff)
			}
		}
	})
}

// crowd returns a problem of 4 hosts and 14 tasks, too many for an even spread.
func crowd() *Problem {
	var cpu, memory []float64
	for i := range 14 {
		cpu, memory = append(cpu, .31+.013*float64(i*i%23)), append(memory, .1+.005*float64(i*i%17))
	}
	return sequential(4, cpu, memory)
}

func TestASearchThatIsEndedGivesTheBestSoFarAndSaysSo(t *testing.T) {
	p := crowd()
	at, err := Exact{Work: 50}.Place(t.Context(), p)
	if _, is := errors.AsType[*Unproven](err); !is || !strings.Contains(err.Error(), "tried 50 hosts") {
		t.Fatalf("got %v, %v", at, err)
	}
	if broken := violation(p, at); broken != "" || p.MinYield(at) < p.MinYield(place(t, p, "mcb8")) {
		t.Errorf("%v: %s", at, broken)
	}
	o, err := Tools{Work: 50}.Solve(t.Context(), p, Tools{Work: 50}.exact)
	if err != nil || o.Unproven == "" || !p.Fits(o.Placement) {
		t.Errorf("got %+v, %v", o, err)
	}
	tight := sequential(6, all(.5, 23), all(0, 23))
	for i := range tight.Jobs {
		tight.Jobs[i].Memory = .174 * (1 + .01*float64(i*i%29))
	}
	tight.Hosts = tight.Hosts[:5]
	_, err = Exact{Work: 10}.Place(t.Context(), tight)
	if infeasible, is := errors.AsType[*Infeasible](err); is && infeasible.Proven {
		t.Errorf("after 10 hosts the result is proven: %v", err)
	}
}

// large returns a problem that no search completes.
func large() *Problem {
	p := sequential(64, all(0, 500), all(0, 500))
	for i := range p.Jobs {
		p.Jobs[i].CPU, p.Jobs[i].Memory = .2+.0011*float64(i*i%541), .05+.0003*float64(i*i%233)
	}
	return p
}

func TestTheWorkOfASearchIsTheHostsThatItLooksAt(t *testing.T) {
	p := large()
	looks := 0
	p.May = func(int, int) bool { looks++; return true }
	if _, err := (Adapt{}).Place(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	seed := looks
	looks = 0
	const most = 100_000
	_, err := Exact{Work: most}.Place(t.Context(), p)
	if _, is := errors.AsType[*Unproven](err); !is {
		t.Fatalf("got %v", err)
	}
	if looks -= seed; looks < most/2 || looks > most+len(p.Hosts) {
		t.Errorf("the search looked at %d hosts; want %d", looks, most)
	}
}

// The limit is over before the search begins, as on a slow computer.
func TestASearchThatTakesTooLongGivesTheBestSoFar(t *testing.T) {
	began := time.Now()
	tools := Tools{Work: math.MaxInt, Limit: time.Nanosecond}
	o, err := tools.Solve(t.Context(), large(), tools.exact)
	if err != nil || !strings.Contains(o.Unproven, "the time limit of the search was reached") {
		t.Errorf("got %q, %v", o.Unproven, err)
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("it took %v", took)
	}
}

func TestMCBSolvesWhatHasLessYieldThanItsSearchTries(t *testing.T) {
	p := &Problem{Hosts: []Host{{1000, .1}, {.1, 10}}, Jobs: []Job{{ID: "j1", CPU: 1000, Memory: 1, Tasks: 1}}}
	for _, m := range MCBs {
		near(t, m.Name, 1e4*p.MinYield(place(t, p, m.Name)), 1)
	}
}

func TestHostsAreFilledToTheLast(t *testing.T) { // check E002-10: ten times 0.1 is not 1
	p := sequential(3, all(.1, 30), all(.1, 30))
	for _, name := range deterministic() {
		near(t, name, p.MinYield(place(t, p, name)), 1)
	}
}

func TestThousandsOnAHostHaveALittleEach(t *testing.T) {
	p := sequential(2, all(1, 3001), all(.0005, 3001))
	for _, name := range []string{"mcb8", "gr"} {
		if got := p.MinYield(place(t, p, name)); got < .9*p.Bound() {
			t.Errorf("%s: %v, and the bound is %v", name, got, p.Bound())
		}
	}
}

func TestAJobThatNeedsNoCPUHasAllThatItNeeds(t *testing.T) { // check E002-8
	p := sequential(1, []float64{0, 1, 1}, []float64{.1, 0, 0})
	for _, name := range deterministic() {
		at := place(t, p, name)
		near(t, name, p.MinYield(at), .5)
		if diff := cmp.Diff([]float64{1, .5, .5}, p.Raise(at, .5)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	idle := sequential(2, all(0, 3), all(.5, 3))
	near(t, "the bound where nobody needs anything", idle.Bound(), 1)
	for _, name := range deterministic() {
		near(t, name, idle.MinYield(place(t, idle, name)), 1)
	}
}

func TestWhatIsNoProblemIsRefusedWithItsField(t *testing.T) {
	for want, change := range map[string]func(p *Problem){
		"hosts":            func(p *Problem) { p.Hosts = nil },
		"hosts[1].cpu":     func(p *Problem) { p.Hosts[1].CPU = 0 },
		"hosts[1].memory":  func(p *Problem) { p.Hosts[1].Memory = math.Inf(1) },
		"jobs":             func(p *Problem) { p.Jobs = nil },
		"jobs[0].id":       func(p *Problem) { p.Jobs[0].ID = "" },
		"jobs[1].id":       func(p *Problem) { p.Jobs[1].ID = "j1" },
		"jobs[1].cpu":      func(p *Problem) { p.Jobs[1].CPU = math.NaN() },
		"jobs[0].cpu":      func(p *Problem) { p.Jobs[0].CPU = 1.01 },
		"jobs[0].memory":   func(p *Problem) { p.Jobs[0].Memory = -.1 },
		"jobs[0].tasks":    func(p *Problem) { p.Jobs[0].Tasks = 0 },
		"current":          func(p *Problem) { p.Current = Placement{{0}} },
		"current.j1":       func(p *Problem) { p.Current = Placement{{0, 1}, nil} },
		"current.j2[0]":    func(p *Problem) { p.Current = Placement{nil, {2}} },
		"migration_budget": func(p *Problem) { p.Budget = math.NaN() },
		"price":            func(p *Problem) { p.Price = all(1, 1) },
	} {
		p := sequential(2, all(.5, 2), all(.5, 2))
		change(p)
		if err := p.Check(); err == nil || !strings.HasPrefix(err.Error(), want+":") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestATaskLargerThanAnyHostIsNamed(t *testing.T) {
	p := sequential(2, all(.5, 2), []float64{.5, 1.5})
	for _, name := range deterministic() {
		algorithm, err := Tools{}.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := algorithm(t.Context(), p); !isInfeasible(err) || !strings.Contains(err.Error(), "j2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnUnknownAlgorithmIsNamedWithTheNearest(t *testing.T) {
	if _, err := (Tools{}).Named("mbc8"); err == nil || !strings.Contains(err.Error(), "mcb8") {
		t.Errorf("got %v", err)
	}
}
