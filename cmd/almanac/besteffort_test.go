// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// render returns best-effort work as the API returns it: one server runs, the other waits.
func render() v1.BestEffort {
	return v1.BestEffort{
		ID: "b-1", Name: "render", Status: "running", Flavor: "m1.small", Image: "debian-12", Duration: 3600, Networks: v1.Networks{"none"},
		Position: new(2), ExpectedStart: new(morning.Add(time.Hour)), CreatedAt: morning,
		VMs: []v1.BestEffortVM{
			{ID: "v-1", Status: "running", ServerID: "s-1", Host: "node-01", Ran: 90},
			{ID: "v-2", Status: "waiting", ExpectedStart: new(morning.Add(time.Hour)), Reason: "All nodes are full."},
		},
	}
}

func TestBestEffortWorkIsShownWithItsPlaceAndWhenItIsExpected(t *testing.T) {
	a := newAPI(t)
	running := v1.BestEffort{ID: "b-2", Name: "probe", Status: "running", Duration: 60, CreatedAt: morning, VMs: []v1.BestEffortVM{{Status: "running"}}}
	a.on("GET /v1/besteffort", http.StatusOK, v1.BestEfforts{Requests: []v1.BestEffort{render(), running}})
	a.on("GET /v1/besteffort/b-1", http.StatusOK, render())
	list := almanac(t, a, "besteffort", "list", "-f", "csv")
	list.wantDone(t)
	if want := "ID,Name,Status,Position,Expected Start,Running,Duration\nb-1,render,running,2,2026-12-01T10:00:00Z,1/2,1h\nb-2,probe,running,,,1/1,1m\n"; list.stdout != want {
		t.Errorf("the list is\n%s\nwant\n%s", list.stdout, want)
	}
	one := almanac(t, a, "besteffort", "show", "b-1")
	one.wantDone(t)
	wantSaid(t, one.stdout, "| Position       | 2 ", "| Expected Start | 2026-12-01T10:00:00Z ", "| Ended          |  ",
		"running, server s-1 on node-01, ran 1m30s", "waiting, ran 0s, expected at 2026-12-01T10:00:00Z: All nodes are full.")
}

func TestBestEffortWorkIsSubmittedAsTheFlagsSay(t *testing.T) {
	a := newAPI(t)
	a.on("POST /v1/besteffort", http.StatusCreated, render())
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	submit := func(flags ...string) result {
		return almanac(t, a, append([]string{"besteffort", "submit", "render", "--flavor", "m1.small", "--image", "debian-12", "--duration", "1h"}, flags...)...)
	}
	submit("--vms", "2", "--parallel", "--network", "none", "--key-name", "mine", "--user-data", script, "--property", "a=b=c", "--idempotency-key", "k").wantDone(t)
	want := `{"name":"render","vms":2,"flavor":"m1.small","image":"debian-12","duration":3600,"parallel":true,"networks":"none","key_name":"mine",` +
		`"user_data":"IyEvYmluL3NoCg==","metadata":{"a":"b=c"}}`
	if asked := a.asked()[0]; asked.Body != want || asked.Key != "k" {
		t.Errorf("the request is %s with key %s, want %s", asked.Body, asked.Key, want)
	}
	submit().wantDone(t)
	submit().wantDone(t)
	if asked := a.asked(); asked[1].Key == "" || asked[1].Key == asked[2].Key {
		t.Errorf("two requests have the keys %q and %q", asked[1].Key, asked[2].Key)
	}
	submit("--property", "novalue").wantFailure(t, exitUsage, "--property", "KEY=VALUE")
	submit("--user-data", script+".gone").wantFailure(t, exitUsage, "--user-data", "cannot be read")
	almanac(t, a, "besteffort", "submit", "render", "--flavor", "m1.small").wantFailure(t, exitUsage, "image", "duration")
	if n := len(a.asked()); n != 3 {
		t.Errorf("Almanac got %d requests, want 3", n)
	}
}

func TestSubmitWaitsUntilOneOfTheServersRuns(t *testing.T) {
	waiting, failed := render(), render()
	waiting.Status, waiting.VMs = "waiting", waiting.VMs[1:]
	failed.Status, failed.VMs = "failed", []v1.BestEffortVM{{Status: "failed"}}
	for name, tc := range map[string]struct {
		then v1.BestEffort
		code int
		says string
	}{
		"it runs":  {render(), exitDone, "is queued; waiting until it runs"},
		"it fails": {failed, exitFailed, "'almanac besteffort show b-1' shows why"},
		"it waits": {waiting, exitTimedOut, "it stays in the queue"},
	} {
		a := newAPI(t)
		a.on("POST /v1/besteffort", http.StatusCreated, waiting)
		a.on("GET /v1/besteffort/b-1", http.StatusOK, tc.then)
		got := almanac(t, a, "besteffort", "submit", "render", "--flavor", "f", "--image", "i", "--duration", "1h", "--wait", "--wait-timeout", "1m")
		if got.code != tc.code || !strings.Contains(got.stderr, tc.says) {
			t.Errorf("%s: exit code %d, stderr:\n%s", name, got.code, got.stderr)
		}
	}
}

func TestBestEffortWorkIsCanceledByIdOrByANameThatOneHas(t *testing.T) {
	a := newAPI(t)
	over, other := render(), render()
	over.ID, over.Status, over.EndedAt = "b-0", "done", new(morning)
	other.ID = "b-9"
	a.on("GET /v1/besteffort", http.StatusOK, v1.BestEfforts{Requests: []v1.BestEffort{over, render()}})
	a.on("DELETE /v1/besteffort/b-1", http.StatusNoContent, nil)
	almanac(t, a, "besteffort", "cancel", "nothing", "render").wantFailure(t, exitNotFound, `"nothing"`, "b-1 render is canceled")

	a = newAPI(t)
	a.on("GET /v1/besteffort", http.StatusOK, v1.BestEfforts{Requests: []v1.BestEffort{render(), other}})
	almanac(t, a, "besteffort", "cancel", "render").wantFailure(t, exitUsage, "2 best-effort requests have the name", "b-1, b-9")
	for _, line := range a.lines() {
		if strings.HasPrefix(line, "DELETE") {
			t.Errorf("Almanac got the request %s", line)
		}
	}
}

func TestImagesOnHostsAreListedAsTheFlagsSay(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/images", http.StatusOK, v1.Images{Images: []v1.Image{
		{ID: "i-1", Name: "debian-12", Host: "node-01", Bytes: 7, State: "there", Start: new(morning)},
		{ID: "i-1", Name: "debian-12", Host: "node-02", Bytes: 7, State: "failed", Detail: "the host is down"},
	}})
	got := almanac(t, a, "image", "list", "--image", "debian-12", "--host", "node-01", "--state", "there,failed", "-f", "csv")
	got.wantDone(t)
	if want := "Image,Name,Host,State,Start,End,Detail\ni-1,debian-12,node-01,there,2026-12-01T09:00:00Z,,\ni-1,debian-12,node-02,failed,,,the host is down\n"; got.stdout != want {
		t.Errorf("the list is\n%s\nwant\n%s", got.stdout, want)
	}
	if line := a.lines()[0]; line != "GET /v1/images?host=node-01&image=debian-12&state=there%2Cfailed" {
		t.Errorf("the request is %s", line)
	}
}
