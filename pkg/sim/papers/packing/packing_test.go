// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

func TestTheSmallSetComesOutAsThePaperSays(t *testing.T) { // check A002-9
	o := Defaults()
	o.Large, o.Parallel = 0, 0
	found, err := o.run(t.Context(), o.sets(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{smallScaled, smallDrawn} {
		trials := found[set]
		if len(trials) != 1440 {
			t.Fatalf("%s has %d instances", set, len(trials))
		}
		d := degradations(trials, mcbs)
		for i, name := range descending {
			if i > 0 && d[name].mean <= d[descending[i-1]].mean {
				t.Errorf("%s: %s loses %.2f %%, and %s %.2f", set, name, d[name].mean, descending[i-1], d[descending[i-1]].mean)
			}
			if d[name].mean >= 4 {
				t.Errorf("%s: %s loses %.2f %%", set, name, d[name].mean)
			}
		}
		for _, name := range ascending {
			if d[name].mean <= 4.5 {
				t.Errorf("%s: %s loses only %.2f %%", set, name, d[name].mean)
			}
		}
		if lost := d["mcb8"].mean; lost < 0.7 || lost > 1.5 {
			t.Errorf("%s: mcb8 loses %.2f %%", set, lost)
		}
		if over := ratio(trials, minYield, exact, "mcb8"); over < 1.01 || over > 1.03 {
			t.Errorf("%s: exact is %.3f times mcb8", set, over)
		}
		for _, one := range trials {
			best := one.outcomes[exact]
			if best.unproven || !best.solved && !best.infeasible {
				t.Errorf("%s: exact has not solved %+v", set, one.Spec)
			}
			for _, name := range []string{"gb", "sgb"} {
				if one.outcomes[name].solved != best.solved {
					t.Errorf("%s: %s fails where there is a placement: %+v", set, name, one.Spec)
				}
			}
		}
	}
}

func TestInstancesAreAsTheySay(t *testing.T) {
	for _, spec := range []Spec{
		{Hosts: 64, Tasks: 500, Slack: 0.3, CPUSpread: 0.25, MemorySpread: 0.75}, {Hosts: 64, Tasks: 500, Slack: 0.3, CPUSpread: 0.25, MemorySpread: 0.25, Scaled: true},
		{Hosts: 64, Tasks: 500, Slack: 0.3, CPUSpread: 0.25, MemorySpread: 0.25, Scaled: true, Parallel: true},
	} {
		p := spec.Instance(sim.Chance(1, "test"))
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		tasks, cpu, memory, largest := 0, 0.0, 0.0, 0
		for _, j := range p.Jobs {
			tasks += j.Tasks
			largest = max(largest, j.Tasks)
			cpu += j.CPU / float64(len(p.Jobs))
			memory += j.Memory * float64(j.Tasks)
		}
		if tasks != 500 || (largest > 1) != spec.Parallel || largest > 64 {
			t.Errorf("%+v: %d tasks, %d in a job", spec, tasks, largest)
		}
		if math.Abs(cpu-0.5) > 0.05 {
			t.Errorf("%+v: the mean need of CPU is %v", spec, cpu)
		}
		within := 1e-9
		if !spec.Scaled {
			within = 10 // the cut at 0 raises the mean
		}
		if math.Abs(memory-0.7*64) > within {
			t.Errorf("%+v: the tasks need %v of memory", spec, memory)
		}
	}
}

// few returns the options of a run of a second.
func few() Options {
	o := Defaults()
	o.Small, o.Large, o.Parallel, o.Changes = 1, 1, 1, 20
	return o
}

func written(t *testing.T, o Options) map[string]string {
	t.Helper()
	report, err := sim.Perform(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := report.Write(folder); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = string(content)
	}
	return all
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	o := few()
	o.Large = 0
	one, two := written(t, o), written(t, o)
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("the second time (-first +second):\n%s", diff)
	}
	for _, name := range []string{"report.md", "results.csv", "figure-02.svg", "figure-21.svg", "adaptation.svg"} {
		if one[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	if _, is := one["figure-05.svg"]; is || !strings.Contains(one["report.md"], "RRND and RRNZ were left out") {
		t.Errorf("without timings and a solver the report is\n%s", one["report.md"])
	}
}

func TestRunTimesAreByTheClockAndInFilesOfTheirOwn(t *testing.T) {
	o := few()
	o.Large, o.Parallel, o.Changes = 0, 0, 0
	before, err := sim.Perform(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	results, err := before.Results.CSV()
	if err != nil {
		t.Fatal(err)
	}
	o.Timings, o.Clock = true, time.Now
	timed := written(t, o)
	if diff := cmp.Diff(string(results), timed["results.csv"]); diff != "" {
		t.Errorf("results.csv depends on the timings:\n%s", diff)
	}
	if !strings.Contains(timed["timings.csv"], "MCB8") || timed["figure-05.svg"] == "" || !strings.Contains(timed["report.md"], "16384") {
		t.Errorf("the timings are %q, the report is\n%s", timed["timings.csv"], timed["report.md"])
	}
}

func TestAdaptIsNearTheExactSolution(t *testing.T) {
	o := Defaults()
	changes, err := o.adaptAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, budget := range budgets {
		d := distanceOf(changes, i)
		t.Logf("budget %g: %.2f %% in the mean, at most %.1f", budget, d.mean, d.most)
		if d.mean > 2 || d.most > 25 || d.adapt > d.exact+1e-9 || d.moved > budget+1e-9 {
			t.Errorf("budget %g: %+v", budget, d)
		}
	}
	if !proven(changes) {
		t.Error("exact is not")
	}
}

func TestWhatCannotBeRunIsRefusedWithItsOption(t *testing.T) {
	for field, change := range map[string]func(o *Options){
		"small":    func(o *Options) { o.Small = 0 },
		"large":    func(o *Options) { o.Large = -1 },
		"parallel": func(o *Options) { o.Parallel = 1001 },
		"changes":  func(o *Options) { o.Changes = -1 },
		"timings":  func(o *Options) { o.Timings = true },
	} {
		o := Defaults()
		change(&o)
		_, err := sim.Perform(t.Context(), o, nil)
		if f := fault.Of(err); err == nil || f.Kind != fault.Invalid || f.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := sim.Perform(ctx, few(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestASolverThatFailsEndsTheRun(t *testing.T) {
	o := few()
	o.Solver = failing{}
	if _, err := sim.Perform(t.Context(), o, nil); err == nil || !strings.Contains(err.Error(), "no license") {
		t.Errorf("got %v", err)
	}
}

type failing struct{}

func (failing) Solve(context.Context, *packing.Linear) (packing.Optimum, error) {
	return packing.Optimum{}, errors.New("no license")
}
