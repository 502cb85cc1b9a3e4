// SPDX-License-Identifier: Apache-2.0

package whatif_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/packing/glpk"
	"github.com/almanac-cloud/almanac/pkg/whatif"
)

// pack answers without a solver.
func pack(t *testing.T, question string) whatif.PackAnswer {
	t.Helper()
	answer, err := packWith(t, packing.Tools{}, question)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func packWith(t *testing.T, tools packing.Tools, question string) (whatif.PackAnswer, error) {
	t.Helper()
	return whatif.Pack(t.Context(), strings.NewReader(question), tools, func(seed int64) packing.Chance {
		return rand.New(rand.NewPCG(uint64(seed), 0))
	})
}

// packQuestion writes a question about jobs j0, j1 … of one task; more is appended to it.
func packQuestion(hosts int, cpu, memory []float64, algorithm, more string) string {
	var jobs []string
	for i := range cpu {
		jobs = append(jobs, fmt.Sprintf(`{"id": "j%d", "cpu": %v, "memory": %v}`, i, cpu[i], memory[i]))
	}
	return fmt.Sprintf(`{"hosts": %d, "jobs": [%s], "algorithm": %q%s}`, hosts, strings.Join(jobs, ", "), algorithm, more)
}

func all(value float64, n int) []float64 { return slices.Repeat([]float64{value}, n) }

// alone are the algorithms that need neither random numbers nor a solver.
var alone = slices.DeleteFunc(packing.Names(), func(name string) bool { return name == "rrnd" || name == "rrnz" })

func TestPackAnswersThePapersQuestions(t *testing.T) {
	three := []any{2, all(.6, 3), all(.1, 3)}
	six := []any{3, []float64{.8, .7, .6, .5, .4, .3}, []float64{.5, .2, .6, .3, .7, .4}}
	four := []any{2, []float64{1, 1, .5, .5}, all(.5, 4)}
	partition := []any{3, []float64{.26, .27, .47, .30, .31, .39, .33, .33, .34}, all(0, 9)}
	change := []any{2, []float64{.9, .9}, []float64{.4, .3}}
	newcomer := []any{2, []float64{.9, .9, .6}, []float64{.4, .3, .2}}
	const now = `, "current": {"j0": [0], "j1": [0]}, "migration_budget": `
	for name, tc := range map[string]struct {
		of             []any
		algorithms     string
		more           string
		yield, average float64
		bound          float64
		hosts          []int // by job; nil means any
	}{
		"A002-1":                {three, "exact mcb8 adapt", "", .83333, .88889, 1, nil},
		"A002-1 greedy":         {three, "gr", "", .83333, .88889, 1, []int{0, 1, 0}},
		"A002-3":                {six, "exact mcb8", "", .90909, 0, .90909, nil},
		"A002-3 greedy":         {six, "gr", "", .90909, 0, .90909, []int{0, 1, 2, 2, 1, 0}},
		"A002-3 sorted":         {six, "sg", "", .66667, 0, .90909, []int{2, 2, 1, 0, 0, 1}},
		"A002-5":                {four, "exact mcb1 mcb2 mcb3 mcb4 mcb5 mcb6 mcb7 mcb8 gr", "", .66667, 0, .66667, nil},
		"A002-6":                {partition, "exact", "", 1, 1, 1, nil},
		"A002-6 mcb8":           {partition, "mcb8", "", .893, 0, 1, nil},
		"A002-7 too little":     {change, "exact adapt", now + "0.29", .55556, 0, 1, []int{0, 0}},
		"A002-7 enough":         {change, "exact adapt", now + "0.30", 1, 1, 1, []int{0, 1}},
		"A002-7 one migration":  {change, "exact adapt", strings.Replace(now, "migration_budget", "migrations", 1) + "1", 1, 1, 1, nil},
		"A002-7 no budget":      {change, "exact adapt", `, "current": {"j0": [0], "j1": [0]}`, .55556, 0, 1, []int{0, 0}},
		"A002-7 a job is new":   {newcomer, "exact adapt", now + "0", .55556, 0, .83333, []int{0, 0, 1}},
		"nowhere yet":           {change, "exact adapt", "", 1, 1, 1, nil},
		"a budget that is kept": {change, "gr", `, "current": {"j0": [0], "j1": [1]}, "migration_budget": 0`, 1, 1, 1, []int{0, 1}},
	} {
		for _, algorithm := range strings.Fields(tc.algorithms) {
			t.Run(name+" "+algorithm, func(t *testing.T) {
				cpu := tc.of[1].([]float64)
				got := pack(t, packQuestion(tc.of[0].(int), cpu, tc.of[2].([]float64), algorithm, tc.more))
				if !got.Feasible || got.Reason != "" {
					t.Fatalf("got %+v", got)
				}
				near := cmpopts.EquateApprox(0, 5e-4)
				if tc.average == 0 {
					tc.average = *got.AverageYield
				}
				if diff := cmp.Diff([]float64{tc.yield, tc.average, tc.bound}, []float64{*got.MinYield, *got.AverageYield, got.UpperBound}, near); diff != "" {
					t.Errorf("yield, average, bound (-want +got):\n%s", diff)
				}
				smallest := 1.0
				for i := range cpu {
					id := fmt.Sprint("j", i)
					smallest = min(smallest, got.Yields[id])
					if tc.hosts != nil && !slices.Equal(got.Placement[id], tc.hosts[i:i+1]) {
						t.Errorf("%s is on %v, want %d", id, got.Placement[id], tc.hosts[i])
					}
				}
				if math.Abs(smallest-*got.MinYield) > 1e-9 {
					t.Errorf("min_yield is %v, and the smallest yield %v", *got.MinYield, smallest)
				}
			})
		}
	}
}

func TestPackSaysNoWhereTheMemoryDoesNotFit(t *testing.T) { // checks A002-4 and A002-3
	for name, tc := range map[string]struct {
		question   string
		algorithms []string
		bound      float64
	}{
		"A002-4 in sum only":         {packQuestion(2, all(.5, 4), []float64{.6, .6, .6, .1}, "ALGORITHM", ""), alone, 1},
		"A002-4 not even in sum":     {packQuestion(2, all(.5, 3), all(.9, 3), "ALGORITHM", ""), alone, 1},
		"A002-3":                     {packQuestion(3, []float64{.8, .7, .6, .5, .4, .3}, []float64{.5, .2, .6, .3, .7, .4}, "ALGORITHM", ""), []string{"mcb1", "mcb4"}, 1 / 1.1},
		"more is moved than may be":  {packQuestion(2, []float64{.9, .9}, []float64{.4, .3}, "ALGORITHM", `, "current": {"j0": [0], "j1": [0]}, "migration_budget": 0`), []string{"mcb8", "gr"}, 1},
		"what is there does not fit": {packQuestion(2, []float64{.9, .9}, []float64{.6, .6}, "ALGORITHM", `, "current": {"j0": [0], "j1": [0]}`), []string{"exact", "adapt"}, 1},
		"no host has both":           {`{"hosts": [{"cpu": 2, "memory": 1}, {"cpu": 1, "memory": 2}], "jobs": [{"id": "j0", "cpu": 0.5, "memory": 1.5}, {"id": "j1", "cpu": 0.5, "memory": 1.5}], "algorithm": "ALGORITHM"}`, alone, 1},
	} {
		for _, algorithm := range tc.algorithms {
			got := pack(t, strings.Replace(tc.question, "ALGORITHM", algorithm, 1))
			if got.Reason == "" {
				t.Errorf("%s, %s: got %+v", name, algorithm, got)
			}
			if diff := cmp.Diff(whatif.PackAnswer{Reason: got.Reason, UpperBound: tc.bound}, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, algorithm, diff)
			}
		}
	}
}

func TestTheAnswerOfPackIsWritten(t *testing.T) {
	for question, want := range map[string]string{
		`{"hosts": 2, "jobs": [{"id": "j1", "cpu": 0.6, "memory": 0.1, "tasks": 1}], "algorithm": "mcb8", "current": {"j1": [0]}, "migration_budget": 0.3, "seed": 1}`: `{"feasible":true,"min_yield":1,"average_yield":1,"upper_bound":1,"placement":{"j1":[0]},"yields":{"j1":1},"moved":0}`,
		`{"hosts": 1, "jobs": [{"id": "j1", "cpu": 0.6, "memory": 0.1, "tasks": 2}]}`:                                                                                  `{"feasible":true,"min_yield":0.8333333333333334,"average_yield":0.8333333333333334,"upper_bound":0.8333333333333334,"placement":{"j1":[0,0]},"yields":{"j1":0.8333333333333334},"average_by":"greedy"}`,
		`{"hosts": 1, "jobs": [{"id": "j1", "cpu": 1, "memory": 1}, {"id": "j2", "cpu": 1, "memory": 0.5}]}`:                                                           `{"feasible":false,"reason":"the tasks need 1.5 of memory, and the hosts have 1","upper_bound":0.5}`,
	} {
		raw, err := json.Marshal(pack(t, question))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(raw)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestExamplesOfPackAreAnswered(t *testing.T) {
	for name, want := range map[string]float64{"pack": .90909, "pack-adapt": 1, "pack-parallel": .76923} {
		got := pack(t, exampleWith(t, name))
		if got.MinYield == nil || math.Abs(*got.MinYield-want) > 5e-5 {
			t.Errorf("%s: got %+v, want a yield of %v", name, got, want)
		}
	}
}

func TestRoundingNeedsGLPKAndFollowsFromTheSeed(t *testing.T) {
	solver := glpk.Solver{}
	question := exampleWith(t, "pack", `"mcb8"`, `"rrnz", "seed": 7`)
	missing := glpk.Solver{Program: "no-such-glpsol"}.Find()
	if _, err := packWith(t, packing.Tools{Missing: missing}, question); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "glpk-utils") {
		t.Errorf("without GLPK: %v", err)
	}
	if err := solver.Find(); err != nil {
		t.Skip(err)
	}
	var before whatif.PackAnswer
	for i := range 2 {
		got, err := packWith(t, packing.Tools{Solver: solver}, question)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, got); i > 0 && diff != "" {
			t.Errorf("the second time (-first +second):\n%s", diff)
		}
		before = got
	}
}

func TestTheAverageOfParallelJobsIsThatOfTheLinearProgramWhereGLPKIs(t *testing.T) {
	solver := glpk.Solver{}
	if err := solver.Find(); err != nil {
		t.Skip(err)
	}
	got, err := packWith(t, packing.Tools{Solver: solver}, exampleWith(t, "pack-parallel"))
	if err != nil {
		t.Fatal(err)
	}
	greedy := pack(t, exampleWith(t, "pack-parallel"))
	if got.AverageBy != "linear program" || greedy.AverageBy != "greedy" || *got.AverageYield < *greedy.AverageYield-1e-6 {
		t.Errorf("got %+v and %+v", got, greedy)
	}
}

func TestAPackQuestionThatMakesNoSenseNamesItsField(t *testing.T) {
	for name, tc := range map[string]struct{ field, question string }{
		"no hosts":                {"hosts", exampleWith(t, "pack", `"hosts": 3`, `"hosts": 0`)},
		"negative hosts":          {"hosts", exampleWith(t, "pack", `"hosts": 3`, `"hosts": -1`)},
		"hosts are missing":       {"hosts", exampleWith(t, "pack", `"hosts": 3,`, ``)},
		"hosts of another type":   {"hosts", exampleWith(t, "pack", `"hosts": 3`, `"hosts": "3"`)},
		"half a host":             {"hosts", exampleWith(t, "pack", `"hosts": 3`, `"hosts": 2.5`)},
		"an empty list of hosts":  {"hosts", exampleWith(t, "pack", `"hosts": 3`, `"hosts": []`)},
		"a host without memory":   {"hosts[0].memory", exampleWith(t, "pack", `"hosts": 3`, `"hosts": [{"cpu": 1}]`)},
		"a host without CPU":      {"hosts[0].cpu", exampleWith(t, "pack", `"hosts": 3`, `"hosts": [{"cpu": 0, "memory": 1}]`)},
		"a host's unknown field":  {"hosts[0].ram", exampleWith(t, "pack", `"hosts": 3`, `"hosts": [{"cpu": 1, "ram": 1}]`)},
		"no jobs":                 {"jobs", `{"hosts": 1, "jobs": []}`},
		"no CPU":                  {"jobs[0].cpu", exampleWith(t, "pack", `"cpu": 0.8`, `"cpu": 0`)},
		"CPU is missing":          {"jobs[0].cpu", exampleWith(t, "pack", `"cpu": 0.8,`, ``)},
		"too much CPU":            {"jobs[0].cpu", exampleWith(t, "pack", `"cpu": 0.8`, `"cpu": 1.01`)},
		"negative memory":         {"jobs[1].memory", exampleWith(t, "pack", `"memory": 0.2`, `"memory": -0.2`)},
		"too much memory":         {"jobs[1].memory", exampleWith(t, "pack", `"memory": 0.2`, `"memory": 1.2`)},
		"no tasks":                {"jobs[0].tasks", exampleWith(t, "pack-parallel", `"tasks": 4`, `"tasks": 0`)},
		"too many tasks":          {"jobs[0].tasks", exampleWith(t, "pack-parallel", `"tasks": 4`, `"tasks": 1000000`)},
		"two of an id":            {"jobs[1].id", exampleWith(t, "pack", `"j2"`, `"j1"`)},
		"an empty id":             {"jobs[0].id", exampleWith(t, "pack", `"j1"`, `""`)},
		"an unknown algorithm":    {"algorithm", exampleWith(t, "pack", `"mcb8"`, `"mcb9"`)},
		"an unknown field":        {"job", exampleWith(t, "pack", `"jobs"`, `"job"`)},
		"a host that is not":      {"current.j1[0]", exampleWith(t, "pack-adapt", `"j1": [0]`, `"j1": [2]`)},
		"a host that is null":     {"current.j1[0]", exampleWith(t, "pack-adapt", `"j1": [0]`, `"j1": [null]`)},
		"a job that is null":      {"jobs[0]", `{"hosts": 1, "jobs": [null]}`},
		"null among hosts":        {"hosts[1]", exampleWith(t, "pack", `"hosts": 3`, `"hosts": [{"cpu": 1, "memory": 1}, null]`)},
		"hosts for other tasks":   {"current.j1", exampleWith(t, "pack-adapt", `"j1": [0]`, `"j1": [0, 1]`)},
		"a job that is not":       {"current.j9", exampleWith(t, "pack-adapt", `"j1": [0]`, `"j9": [0]`)},
		"a negative budget":       {"migration_budget", exampleWith(t, "pack-adapt", `0.3`+"\n", `-0.3`+"\n")},
		"a negative number":       {"migrations", exampleWith(t, "pack-adapt", `"migration_budget": 0.3`, `"migrations": -1`)},
		"two budgets":             {"migrations", exampleWith(t, "pack-adapt", `"migration_budget": 0.3`, `"migration_budget": 0.3, "migrations": 1`)},
		"what is no JSON":         {"input", "{"},
		"what is not an object":   {"input", "[]"},
		"a job of another type":   {"jobs[0]", `{"hosts": 1, "jobs": [1]}`},
		"a seed that is no whole": {"seed", exampleWith(t, "pack", `"mcb8"`, `"mcb8", "seed": 1.5`)},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := packWith(t, packing.Tools{}, tc.question)
			if f := fault.Of(err); err == nil || f.Kind != fault.Invalid || f.Field != tc.field {
				t.Errorf("error %v, want one about %s", err, tc.field)
			}
		})
	}
}

func TestExactSaysWhereItsTimeWasUp(t *testing.T) {
	cpu, memory := make([]float64, 500), make([]float64, 500)
	for i := range cpu {
		cpu[i], memory[i] = .2+.0011*float64(i*i%541), .05+.0003*float64(i*i%233)
	}
	began := time.Now()
	got, err := packWith(t, packing.Tools{Limit: time.Nanosecond}, packQuestion(64, cpu, memory, "exact", ""))
	if err != nil || !got.Feasible || !strings.Contains(got.Unproven, "the time limit of the search was reached") {
		t.Errorf("got %q, %v", got.Unproven, err)
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("it took %v", took)
	}
}

func TestAFieldThatIsNullIsAbsent(t *testing.T) {
	with := pack(t, `{"hosts": 2, "jobs": [{"id": "j1", "cpu": 0.6, "memory": 0.1, "tasks": null}], "algorithm": null, "current": {"j1": null}, "migrations": null, "seed": null}`)
	without := pack(t, `{"hosts": 2, "jobs": [{"id": "j1", "cpu": 0.6, "memory": 0.1}], "current": {}}`)
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("(-without +with):\n%s", diff)
	}
}

func FuzzPack(f *testing.F) {
	for _, name := range []string{"pack", "pack-adapt", "pack-parallel"} {
		raw, err := os.ReadFile("../../docs/examples/whatif/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Fuzz(func(t *testing.T, question string) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		answer, err := whatif.Pack(ctx, strings.NewReader(question), packing.Tools{Work: 1000}, func(int64) packing.Chance { return nil })
		switch {
		case ctx.Err() != nil:
		case err != nil && !fault.Is(err, fault.Invalid) && !strings.Contains(err.Error(), "there is no solver"):
			t.Errorf("%v", err)
		case err == nil && answer.Feasible != (answer.Reason == ""):
			t.Errorf("got %+v", answer)
		case err == nil && answer.Feasible && (*answer.MinYield <= 0 || *answer.MinYield > answer.UpperBound+1e-6 || *answer.AverageYield < *answer.MinYield-1e-6):
			t.Errorf("got %+v", answer)
		}
	})
}
