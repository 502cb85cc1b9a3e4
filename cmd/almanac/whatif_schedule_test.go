// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/whatif"
)

const examples = "../../docs/examples/whatif/"

// edited returns an example with parts of it replaced, old and new in turn.
func edited(t *testing.T, name string, parts ...string) string {
	t.Helper()
	raw, err := os.ReadFile(examples + name)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(parts...).Replace(string(raw))
	if len(parts) > 0 && text == string(raw) {
		t.Fatalf("%s contains none of %q", name, parts)
	}
	return text
}

func TestScheduleAnswersThePapersQuestions(t *testing.T) {
	const (
		hostE  = `"hosts": [{"name": "host-E", "capacity": {"vcpus": 8, "memory_mb": 16000, "disk_gb": 160}},`
		twoDim = `{"hosts": [{"name": "a", "capacity": {"vcpus": 8, "memory_mb": 16000}, "instances": [
			{"id": "N", "resources": {"vcpus": 1, "memory_mb": 8000}}, {"id": "| host-A, without AP2, AP3, AP4: costs 55 min         |", "resources": {"vcpus": 1, "memory_mb": 4000}, "preemptible": true, "running_minutes": 40},
			{"id": "Y", "resources": {"vcpus": 2, "memory_mb": 2000}, "preemptible": true, "running_minutes": 5},
			{"id": "Z", "resources": {"vcpus": 1, "memory_mb": 2000}, "preemptible": true, "running_minutes": 10}]}],
			"request": {"resources": {"vcpus": 2, "memory_mb": 4000}, "preemptible": false, "count": 1}, "period_minutes": 60, "weighers": {"preemption_cost": 1.0}, "seed": 1}`
		fullHour = `{"hosts": [{"name": "a", "capacity": {"vcpus": 3}, "instances": [
			{"id": "119", "resources": {"vcpus": 1}, "preemptible": true, "running_minutes": 119}, {"id": "120", "resources": {"vcpus": 1}, "preemptible": true, "running_minutes": 120},
			{"id": "61", "resources": {"vcpus": 1}, "preemptible": true, "running_minutes": 61}]}], "request": {"resources": {"vcpus": 1}}}`
	)
	for name, tc := range map[string]struct {
		question, host string // an empty host: none is chosen
		victims        []string
		minutes        int64
	}{
		"A001-1":             {edited(t, "schedule.json"), "host-B", []string{"BP1"}, 11},
		"A001-2":             {edited(t, "schedule-age.json"), "host-C", []string{"CP1"}, 1},
		"A001-3":             {edited(t, "schedule-sizes.json"), "host-A", []string{"AP2", "AP3", "AP4"}, 55},
		"A001-4":             {edited(t, "schedule-free.json"), "host-B", []string{"BP3"}, 20},
		"A001-5":             {edited(t, "schedule-sizes.json", `{"overcommit": 1, "preemption_cost": 1}`, `{"period": 1}`), "host-B", []string{"BP1"}, 58},
		"A001-7 preemptible": {edited(t, "schedule.json", `"preemptible": false, "count"`, `"preemptible": true, "count"`), "", nil, 0},
		"A001-7 too large":   {edited(t, "schedule.json", `{"resources": {"vcpus": 2, "memory_mb": 4000, "disk_gb": 40}, "preemptible": false, "count"`, `{"resources": {"vcpus": 8}, "count"`), "", nil, 0},
		"A001-8":             {edited(t, "schedule.json", `"hosts": [`, hostE), "host-E", []string{}, 0},
		"A001-9":             {fullHour, "a", []string{"120"}, 0},
		"A001-10":            {twoDim, "a", []string{"Y", "Z"}, 15},
	} {
		t.Run(name, func(t *testing.T) {
			got := almanacWith(t, newAPI(t), tc.question, "whatif", "schedule", "--input", "-", "-f", "json")
			var answer whatif.ScheduleAnswer
			if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil {
				t.Fatalf("%v: %+v", err, got)
			}
			want, code := []whatif.SchedulePlacement{{Host: tc.host, Victims: tc.victims, CostMinutes: tc.minutes}}, exitDone
			if tc.host == "" {
				want, code = []whatif.SchedulePlacement{}, exitNoRoom
			}
			if diff := cmp.Diff(want, answer.Placements); diff != "" || got.code != code || got.stderr != "" || (answer.Reason == "") != (code == exitDone) {
				t.Errorf("code %d, stderr %q, reason %q, placements (-want +got):\n%s", got.code, got.stderr, answer.Reason, diff)
			}
		})
	}
}

func TestScheduleInATable(t *testing.T) {
	got := almanac(t, newAPI(t), "whatif", "schedule", "--input", examples+"schedule-sizes.json")
	got.wantDone(t)
	const want = `
+------------+-----------------------------------------------------+
| Field      | Value                                               |
+------------+-----------------------------------------------------+
| Placements | host-A, without AP2, AP3, AP4: costs 55 min         |
| Reason     |                                                     |
| Hosts      | 1 host-A: preemption_cost 1, overcommit 0           |
|            | 0 host-B: overcommit 0, preemption_cost 0           |
|            | 0.3333 host-C: preemption_cost 0.3333, overcommit 0 |
|            | host-D: refused by CapacityFilter                   |
+------------+-----------------------------------------------------+
`
	if diff := cmp.Diff(want[1:], got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestABadScheduleQuestionIsOneLine(t *testing.T) {
	for field, question := range map[string]string{
		"hosts[0].instances[1].running_minutes": edited(t, "schedule.json", `"running_minutes": 172`, `"running_minutes": -172`),
		"weighers.overcomit":                    edited(t, "schedule.json", `"overcommit"`, `"overcomit"`),
		"request.count":                         edited(t, "schedule.json", `"count": 1`, `"count": 0`),
		"hosts[3].name":                         edited(t, "schedule.json", `"host-D"`, `"host-A"`),
		"input":                                 "{",
	} {
		got := almanacWith(t, newAPI(t), question, "whatif", "schedule", "--input", "-", "-f", "json")
		got.wantFailure(t, exitUsage, field+": ")
		if strings.Count(got.stderr, "\n") != 1 || got.stdout != "" {
			t.Errorf("stdout %q, stderr %q", got.stdout, got.stderr)
		}
	}
	almanac(t, newAPI(t), "whatif", "schedule").wantFailure(t, exitUsage, "--input")
	almanac(t, newAPI(t), "whatif", "schedule", "--input", "nowhere.json").wantFailure(t, exitUsage, "--input")
}
