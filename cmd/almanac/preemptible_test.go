// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func preemptibles() v1.PreemptibleInstances {
	return v1.PreemptibleInstances{Instances: []v1.PreemptibleInstance{
		{
			ID: "v-1", Name: "batch", ProjectID: "science", Host: "node-01", Status: "ACTIVE", Flavor: "m1.spot", Holds: map[string]int64{"VCPU": 2, "MEMORY_MB": 4096},
			LaunchedAt: &morning, Cost: new(int64(660)), Unit: "s", Evictable: true,
		},
		{ID: "v-2", Name: "kept", ProjectID: "science", Host: "node-02", Status: "ACTIVE", Holds: map[string]int64{}, Reason: "it is locked"},
	}}
}

func TestPreemptibleInstancesAreListed(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/preemptible", http.StatusOK, preemptibles())
	got := almanac(t, a, "preemptible", "list", "--host", "node-01", "--project", "science", "--limit", "2")
	got.wantDone(t)
	const want = `
+-----+-------+---------+---------+--------+----------------------+------+------+---------------+
| ID  | Name  | Project | Host    | Status | Running Since        | Cost | Unit | Stays Because |
+-----+-------+---------+---------+--------+----------------------+------+------+---------------+
| v-1 | batch | science | node-01 | ACTIVE | 2026-12-01T09:00:00Z | 660  | s    |               |
| v-2 | kept  | science | node-02 | ACTIVE |                      |      |      | it is locked  |
+-----+-------+---------+---------+--------+----------------------+------+------+---------------+
`
	if diff := cmp.Diff(want[1:], got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"GET /v1/preemptible?host=node-01&limit=2&project_id=science"}, a.lines()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	got = almanac(t, a, "preemptible", "list", "-f", "value", "-c", "ID", "-c", "Holds")
	if got.wantDone(t); got.stdout != "v-1 4096 MEMORY_MB; 2 VCPU\nv-2 \n" {
		t.Errorf("got %q", got.stdout)
	}
	got = almanac(t, a, "preemptible", "list", "-f", "api")
	got.wantDone(t)
	var answer v1.PreemptibleInstances
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(preemptibles(), answer); diff != "" {
		t.Errorf("api (-API +printed):\n%s", diff)
	}
	almanac(t, a, "preemptible", "list", "--limit", "-1").wantFailure(t, exitUsage, "--limit")
}

func TestWhoWouldLeaveIsShownForEachHost(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/preemptible/cost", http.StatusOK, v1.PreemptionCosts{Considered: 5, Hosts: []v1.PreemptionCost{
		{Host: "node-01", Room: true, Victims: []v1.Victim{}},
		{Host: "node-02", Victims: evicted(), Cost: 660, Unit: "s"},
		{Host: "node-03", Victims: []v1.Victim{}, Reason: "ReservationFilter: the host is reserved"},
	}})
	got := almanac(t, a, "preemptible", "cost", "--vcpus", "2", "--memory", "4096", "--disk-gb", "40", "--project", "demo", "--limit", "3")
	got.wantDone(t)
	const want = `
+---------+-------+------+------+---------------------------------------+-----------------------------------------+
| Host    | Room  | Cost | Unit | Victims                               | Refused Because                         |
+---------+-------+------+------+---------------------------------------+-----------------------------------------+
| node-01 | true  | 0    |      |                                       |                                         |
| node-02 | false | 660  | s    | batch (v-1) of project science: 660 s |                                         |
|         |       |      |      | v-2 of project science: 0             |                                         |
| node-03 | false |      |      |                                       | ReservationFilter: the host is reserved |
+---------+-------+------+------+---------------------------------------+-----------------------------------------+
`
	if diff := cmp.Diff(want[1:], got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if want := "2 more hosts come after these; --limit shows up to 1000\n"; got.stderr != want {
		t.Errorf("stderr %q, want %q", got.stderr, want)
	}
	almanac(t, a, "preemptible", "cost", "--flavor", "m1.large").wantDone(t)
	if diff := cmp.Diff([]string{
		"GET /v1/preemptible/cost?disk_gb=40&limit=3&memory_mb=4096&project_id=demo&vcpus=2", "GET /v1/preemptible/cost?flavor=m1.large",
	}, a.lines()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestWhyNobodyMakesRoomIsSaid(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/preemptible/cost", http.StatusOK, v1.PreemptionCosts{Hosts: []v1.PreemptionCost{}, Reason: "Almanac places no instances here"})
	got := almanac(t, a, "preemptible", "cost", "--vcpus", "2", "-f", "csv")
	got.wantDone(t)
	if got.stdout != "Host,Room,Cost,Unit,Victims,Refused Because\n" || got.stderr != "Almanac places no instances here\n" {
		t.Errorf("stdout %q, stderr %q", got.stdout, got.stderr)
	}
}
