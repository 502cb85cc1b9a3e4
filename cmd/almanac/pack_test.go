// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func packed() v1.PackingPlan {
	return v1.PackingPlan{
		ID: "4be5a83c0d7f", Hosts: 2, Instances: 3, MinYield: 0.25, PlannedYield: 0.5, UpperBound: 0.75, MemoryMB: 1024, Measured: 1,
		Moves:    []v1.PackingMove{{Instance: "i1", Name: "web", From: "h1", To: "h2", VCPUs: 4, MemoryMB: 1024, Need: 4, MinYield: 0.5}},
		Kept:     []v1.PackingStay{{Host: "h3", Reason: "it is reserved"}},
		Stays:    []v1.PackingStay{{Instance: "i2", Host: "h1", Reason: "it is locked"}},
		Excluded: []v1.PackingExcluded{{Host: "h4", MinYield: 0.1, Reason: "none can be moved"}}, Emptied: []string{"h5"}, Reasons: []string{"the budget is used up"},
	}
}

func packRun(status string, states ...string) v1.PackingRun {
	r := v1.PackingRun{ID: "r1", Status: status, By: "ann", Created: morning, Plan: packed(), Reason: "so it is"}
	for i, state := range states {
		r.Plan.Moves[i].State = state
	}
	return r
}

func wantSaid(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

func TestPackPlanShowsMovesAndWhatComesOfThem(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/packing", http.StatusOK, packed())
	got := almanac(t, a, "pack", "plan", "--migrations", "0", "--memory", "4096", "--algorithm", "exact", "--long", "-f", "value", "-c", "Server", "-c", "To", "-c", "Min Yield")
	got.wantDone(t)
	if got.stdout != "i1 h2 0.5000\n" {
		t.Errorf("stdout is %q", got.stdout)
	}
	wantSaid(t, got.stderr, "0.2500 now and 0.5000 after 1 moves of 1024 MB", "the CPU need of 1 servers is measured", "h5 becomes empty", "h4 is excluded", "h3 does not become empty",
		"server i2 stays on h1: it is locked", "the budget is used up")
	if asked := a.asked()[0].Body; asked != `{"migrations":0,"memory_mb":4096,"algorithm":"exact"}` {
		t.Errorf("the request is %s", asked)
	}
	almanac(t, a, "pack", "plan", "--consolidate", "2", "--floor", "0.8").wantDone(t)
	almanac(t, a, "pack", "apply", "--empty", "--dry-run").wantDone(t)
	almanac(t, a, "pack", "plan").wantDone(t)
	for i, want := range []string{`{"consolidate":2,"floor":0.8}`, `{"empty":true}`, `{}`} {
		if asked := a.asked()[i+1].Body; asked != want {
			t.Errorf("the request is %s, want %s", asked, want)
		}
	}
}

func TestPackApplyWaitsForTheEndOfTheRun(t *testing.T) {
	for status, code := range map[string]int{"done": exitDone, "failed": exitFailed, "stopped": exitFailed} {
		a := newAPI(t)
		a.on("POST /v1/packing/runs", http.StatusCreated, packRun("running", "moving"))
		a.on("GET /v1/packing/runs/r1", http.StatusOK, packRun(status, "moved"))
		got := almanac(t, a, "pack", "apply", "--migrations", "3", "--plan", "p", "--wait")
		if got.code != code {
			t.Errorf("%s: exit code %d, want %d", status, got.code, code)
		}
		wantSaid(t, got.stderr, "moving: web (i1) from h1 to h2", "moved: web")
		wantSaid(t, got.stdout, status, "0.2500", "0.5000")
		if asked := a.asked()[0].Body; asked != `{"migrations":3,"plan":"p"}` {
			t.Errorf("the request is %s", asked)
		}
	}
	a := newAPI(t)
	a.on("POST /v1/packing/runs", http.StatusConflict, v1.ErrorAnswer{Error: v1.Error{Kind: "conflict", Message: "there is nothing to move"}})
	if got := almanac(t, a, "pack", "apply"); got.code != exitNoRoom {
		t.Errorf("without moves the exit code is %d", got.code)
	}
}

func TestPackStatusAndStopTakeTheLatestRun(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/packing/runs", http.StatusOK, v1.PackingRuns{Runs: []v1.PackingRun{packRun("running", "waiting")}})
	a.on("DELETE /v1/packing/runs/r1", http.StatusOK, packRun("stopping", "waiting"))
	got := almanac(t, a, "pack", "status", "-f", "value", "-c", "Status", "-c", "Moves")
	got.wantDone(t)
	wantSaid(t, got.stdout, "running", "waiting: web")
	got = almanac(t, a, "pack", "stop", "-f", "value", "-c", "Status")
	got.wantDone(t)
	wantSaid(t, got.stdout, "stopping")
	got = almanac(t, a, "pack", "list", "-f", "value", "-c", "ID")
	got.wantDone(t)
	if got.stdout != "r1\n" {
		t.Errorf("the list is %q", got.stdout)
	}
	none := newAPI(t)
	none.on("GET /v1/packing/runs", http.StatusOK, v1.PackingRuns{})
	if got := almanac(t, none, "pack", "stop"); got.code != exitNotFound {
		t.Errorf("without a run the exit code is %d", got.code)
	}
}
