// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// decided returns two decisions about instance i-1. The first found no host.
func decided() v1.Decisions {
	return v1.Decisions{Decisions: []v1.Decision{
		{
			RequestID: "req-2", ProjectID: "demo", Instances: []string{"i-1"}, HandledBy: "passed on", At: morning, TookMS: 20, Reason: "no host is left",
			Placements: []v1.Placement{}, Considered: 14, Filters: []v1.FilterCount{{Filter: "ComputeFilter", Left: 1}, {Filter: "ReservationFilter"}},
			Refused: downHosts(10, v1.RefusedHost{Host: "gpu-1", Filter: "ReservationFilter", Reason: "it is reserved"}), Ranked: []v1.RankedHost{},
		},
		{
			RequestID: "req-1", ProjectID: "demo", Instances: []string{"i-1", "i-2"}, ReservationID: "r-1", HandledBy: "replaced", At: morning, TookMS: 1.5,
			Placements: []v1.Placement{{Instance: "i-1", Host: "a", Node: "a", Alternates: []string{"c", "d"}}, {Instance: "i-2", Host: "b", Node: "b.example", Victims: evicted()}},
			Considered: 2, Filters: []v1.FilterCount{},
			Ranked: []v1.RankedHost{{Host: "a", Weight: 1.5, Parts: map[string]float64{"CPUWeigher": 0.5, "RAMWeigher": 1}}, {Host: "b", Weight: 1. / 3}},
		},
	}}
}

// evicted returns instances that were evicted for another one.
func evicted() []v1.Victim {
	return []v1.Victim{{ID: "v-1", Name: "batch", ProjectID: "science", Cost: 660, Unit: "s"}, {ID: "v-2", ProjectID: "science"}}
}

// downHosts returns n hosts that are down, and more.
func downHosts(n int, more ...v1.RefusedHost) (list []v1.RefusedHost) {
	for i := range n {
		list = append(list, v1.RefusedHost{Host: fmt.Sprint("node-", i), Filter: "ComputeFilter", Reason: "it is down"})
	}
	return append(more, list...)
}

func TestADecisionIsExplained(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/decisions/i-1", http.StatusOK, decided())
	got := almanac(t, a, "decision", "show", "i-1")
	got.wantDone(t)
	want := `
+---------------+------------------------------------------------------------------------------------------------------------+
| Field         | Value                                                                                                      |
+---------------+------------------------------------------------------------------------------------------------------------+
| Verdict       | not placed: no host is left                                                                                |
| Time          | 2026-12-01T09:00:00Z                                                                                       |
| Request       | req-2                                                                                                      |
| Project       | demo                                                                                                       |
| Reservation   |                                                                                                            |
| Handled By    | passed on                                                                                                  |
| Milliseconds  | 20                                                                                                         |
| Instances     | i-1                                                                                                        |
| Evicted       |                                                                                                            |
| Filters       | 14 hosts                                                                                                   |
|               | 1 after ComputeFilter                                                                                      |
|               | 0 after ReservationFilter                                                                                  |
| Best Hosts    |                                                                                                            |
| Refused Hosts | 10 by ComputeFilter: it is down: node-0, node-1, node-2, node-3, node-4, node-5, node-6, node-7 and 2 more |
|               | 1 by ReservationFilter: it is reserved: gpu-1                                                              |
|               | 3 more                                                                                                     |
+---------------+------------------------------------------------------------------------------------------------------------+
+---------------+---------------------------------------+
| Field         | Value                                 |
+---------------+---------------------------------------+
| Verdict       | placed on a, b                        |
| Time          | 2026-12-01T09:00:00Z                  |
| Request       | req-1                                 |
| Project       | demo                                  |
| Reservation   | r-1                                   |
| Handled By    | replaced                              |
| Milliseconds  | 1.5                                   |
| Instances     | i-1 on a, else c, d                   |
|               | i-2 on b (b.example)                  |
| Evicted       | batch (v-1) of project science: 660 s |
|               | v-2 of project science: 0             |
| Filters       | 2 hosts                               |
| Best Hosts    | 1.5 a: RAMWeigher 1, CPUWeigher 0.5   |
|               | 0.3333 b                              |
| Refused Hosts |                                       |
+---------------+---------------------------------------+
`
	if diff := cmp.Diff(want[1:], got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestDecisionsInEveryOtherFormat(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/decisions/i-1", http.StatusOK, decided())
	columns := []string{"-c", "Verdict", "-c", "Request"}
	for format, want := range map[string]string{
		"value": "not placed: no host is left req-2\nplaced on a, b req-1\n",
		"csv":   "Verdict,Request\nnot placed: no host is left,req-2\n\"placed on a, b\",req-1\n",
		"yaml":  "- Request: req-2\n  Verdict: \"not placed: no host is left\"\n- Request: req-1\n  Verdict: placed on a, b\n",
	} {
		got := almanac(t, a, append([]string{"decision", "show", "i-1", "-f", format}, columns...)...)
		got.wantDone(t)
		if diff := cmp.Diff(want, got.stdout); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	got := almanac(t, a, "decision", "show", "i-1", "-f", "api")
	got.wantDone(t)
	var answer v1.Decisions
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decided(), answer); diff != "" {
		t.Errorf("api (-API +printed):\n%s", diff)
	}
}

func TestWithoutHostsADecisionSaysWhatItMay(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/decisions/req-1", http.StatusOK, v1.Decisions{Decisions: []v1.Decision{{
		Instances: []string{"i-1"}, Placements: []v1.Placement{{Instance: "i-1"}}, Considered: 3, Filters: []v1.FilterCount{{Filter: "ComputeFilter", Left: 2}},
	}}})
	got := almanac(t, a, "decision", "show", "req-1", "-f", "csv", "-c", "Verdict", "-c", "Instances", "-c", "Filters", "-c", "Best Hosts", "-c", "Refused Hosts")
	got.wantDone(t)
	if want := "Verdict,Instances,Filters,Best Hosts,Refused Hosts\nplaced,i-1,3 hosts; 2 after ComputeFilter,,\n"; got.stdout != want {
		t.Errorf("got\n%swant\n%s", got.stdout, want)
	}
}

func TestTheOwnerOfAVictimIsToldThatItHadToLeave(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/decisions/v-1", http.StatusOK, v1.Decisions{Decisions: []v1.Decision{{Instances: []string{"v-1", "v-2"}, Evicted: evicted()}}})
	got := almanac(t, a, "decision", "show", "v-1", "-f", "csv", "-c", "Verdict", "-c", "Instances", "-c", "Evicted")
	got.wantDone(t)
	want := "Verdict,Instances,Evicted\n\"evicted, to make room for others\",v-1; v-2,batch (v-1) of project science: 660 s; v-2 of project science: 0\n"
	if got.stdout != want {
		t.Errorf("got\n%swant\n%s", got.stdout, want)
	}
}

func TestOfManyReasonsTheMostFrequentAreShown(t *testing.T) {
	d := v1.Decision{Refused: downHosts(2)}
	for i := range 30 {
		d.Refused = append(d.Refused, v1.RefusedHost{Host: "h", Filter: "Capacity", Reason: fmt.Sprintf("%02d is full", i)})
	}
	got := refusedHosts(d)
	if len(got) != reasonsShown+1 || !strings.HasPrefix(got[0], "2 by ComputeFilter") || got[reasonsShown] != "11 more" {
		t.Errorf("the output is %q", got)
	}
}

func TestAnUnknownDecisionIsNotFound(t *testing.T) {
	a := newAPI(t)
	a.mux.HandleFunc("GET /v1/decisions/i-9", fail(http.StatusNotFound, "not_found", "no decision is stored"))
	almanac(t, a, "decision", "show", "i-9").wantFailure(t, exitNotFound, "no decision is stored")
	almanac(t, a, "decision", "show").wantFailure(t, exitUsage, "needs one ID")
	almanac(t, a, "decision", "show", "i-1", "-c", "Wy").wantFailure(t, exitUsage, `no column "Wy"`)
}
