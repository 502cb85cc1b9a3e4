// SPDX-License-Identifier: Apache-2.0

package glpk

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
)

// installed returns a solver, or skips the test.
func installed(t *testing.T) Solver {
	t.Helper()
	s := Solver{Limit: 10 * time.Minute}
	if err := s.Find(); err != nil {
		if os.Getenv("ALMANAC_LAB") != "" { // the lab installs it
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return s
}

// two maximizes 2a + 3b where a + b <= 4 and a - b = at.
func two(at float64) *packing.Linear {
	return &packing.Linear{
		Variables: 2, Objective: []packing.Term{{Variable: 0, Factor: 2}, {Variable: 1, Factor: 3}},
		Rows: []packing.Row{
			{Terms: []packing.Term{{Variable: 0, Factor: 1}, {Variable: 1, Factor: 1}}, Is: 4},
			{Terms: []packing.Term{{Variable: 0, Factor: 1}, {Variable: 1, Factor: -1}}, Exact: true, Is: at},
		},
	}
}

func TestALinearProgramIsSolved(t *testing.T) {
	found, err := installed(t).Solve(t.Context(), two(1))
	if err != nil {
		t.Fatal(err)
	}
	want := packing.Optimum{Value: 9.5, Values: []float64{2.5, 1.5}, Proven: true}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVariablesAreTheSameWhateverTheOrderInWhichTheyAreNamed(t *testing.T) {
	l := &packing.Linear{
		Variables: 4, Objective: []packing.Term{{Variable: 3, Factor: 1}, {Variable: 1, Factor: 1}},
		Rows: []packing.Row{
			{Terms: []packing.Term{{Variable: 2, Factor: 1}, {Variable: 0, Factor: 1}}, Exact: true, Is: 3},
			{Terms: []packing.Term{{Variable: 0, Factor: 1}}, Is: 1}, {Terms: []packing.Term{{Variable: 2, Factor: 1}}, Is: 2},
		},
		Most: []float64{0, 0.25, 0, 0.75},
	}
	for _, whole := range [][]bool{nil, {true, false, false, false}} {
		l.Whole = whole
		found, err := installed(t).Solve(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]float64{1, .25, 2, .75}, found.Values); diff != "" {
			t.Errorf("whole %v (-want +got):\n%s", whole, diff)
		}
	}
}

func TestWhatHasNoSolutionIsInfeasible(t *testing.T) {
	half := two(0) // a = b, both 0 or 1, and 2a + 2b = 3
	half.Rows[0] = packing.Row{Terms: []packing.Term{{Variable: 0, Factor: 2}, {Variable: 1, Factor: 2}}, Exact: true, Is: 3}
	half.Whole = []bool{true, true}
	for name, l := range map[string]*packing.Linear{"linear": two(5), "whole": half} {
		_, err := installed(t).Solve(t.Context(), l)
		infeasible, is := errors.AsType[*packing.Infeasible](err)
		if !is || !infeasible.Proven {
			t.Errorf("%s: %v, want a proof that there is no solution", name, err)
		}
	}
}

func TestWhatHasNoLargestSolutionIsAnError(t *testing.T) {
	l := two(0)
	l.Rows = l.Rows[1:]
	_, err := installed(t).Solve(t.Context(), l)
	if _, is := errors.AsType[*packing.Infeasible](err); is || err == nil || !strings.Contains(err.Error(), "no largest") {
		t.Errorf("got %v", err)
	}
}

func TestWholeVariablesAreWhole(t *testing.T) {
	l := &packing.Linear{
		Variables: 2, Objective: []packing.Term{{Variable: 0, Factor: 5}, {Variable: 1, Factor: 4}}, Whole: []bool{true, true},
		Rows: []packing.Row{{Terms: []packing.Term{{Variable: 0, Factor: 3}, {Variable: 1, Factor: 2}}, Is: 4}},
	}
	found, err := installed(t).Solve(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(packing.Optimum{Value: 5, Values: []float64{1, 0}, Proven: true}, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// hard is a program that glpsol does not prove within seconds: 30 tasks of about the same size on
// 6 hosts. It finds placements soon, unless the memory must fit exactly.
func hard(memory float64) *packing.Problem {
	p := &packing.Problem{Hosts: packing.Identical(6)}
	for i := range 30 {
		p.Jobs = append(p.Jobs, packing.Job{ID: string(rune('a' + i)), Tasks: 1, CPU: 0.31 + 0.007*float64(i*i%31), Memory: memory * (1 + 0.01*float64(i*i%29))})
	}
	return p
}

func TestWhatWasFoundWhenTheTimeIsUpIsGiven(t *testing.T) {
	s := installed(t)
	s.Limit = time.Second
	p := hard(0.1)
	at, err := packing.Program{Solver: s}.Place(t.Context(), p)
	if _, is := errors.AsType[*packing.Unproven](err); !is {
		t.Fatalf("got %v, %v", at, err)
	}
	if !p.Fits(at) || p.MinYield(at) > p.Bound()+1e-9 {
		t.Errorf("%v does not fit", at)
	}
}

func TestThatNothingWasFoundInTimeIsSaid(t *testing.T) {
	s := installed(t)
	s.Limit = time.Second
	p := hard(0.174)
	at, err := packing.Program{Solver: s}.Place(t.Context(), p)
	infeasible, is := errors.AsType[*packing.Infeasible](err)
	if !is || infeasible.Proven || !strings.Contains(infeasible.Reason, "one may exist") {
		t.Errorf("got %v, %v", at, err)
	}
}

func TestTheEndOfAContextEndsGLPSOLAndLeavesNothing(t *testing.T) {
	installed(t)
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	_, err := packing.Program{Solver: Solver{}}.Place(ctx, hard(0.1))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	runs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range runs {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), folder) {
			t.Errorf("%s still runs: %q", file, line)
		}
	}
}

func TestWithoutGLPSOLThePackageIsNamed(t *testing.T) {
	_, err := Solver{Program: "no-such-glpsol"}.Solve(t.Context(), two(1))
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "glpk-utils") {
		t.Errorf("got %v", err)
	}
}

func TestWhatGLPSOLSaysWhenItFailsIsInTheError(t *testing.T) {
	installed(t)
	bad := two(1)
	bad.Rows[0].Is = math.NaN()
	if _, err := (Solver{}).Solve(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "glpsol") {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerThatCannotBeReadIsAnError(t *testing.T) {
	for _, answer := range []string{
		"", "c no status\n", "s bas 2\n", "s bas 2 2 f f many\n", "s mip 2 2 o 1\nj 9 1\n", "s mip 2 2 o 1\nj one 1\n", "s mip 2 2 o 1\nj 1\n", "s bas 2 2 f f 1\nj 1 b x 0\n",
	} {
		if found, err := read([]byte(answer), two(1)); err == nil {
			t.Errorf("%q: got %v", answer, found)
		}
	}
}
