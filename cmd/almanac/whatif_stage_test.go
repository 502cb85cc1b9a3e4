// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/whatif"
)

func TestStageAnswersAQuestionFromAFile(t *testing.T) {
	table := almanac(t, newAPI(t), "whatif", "stage", "--input", examples+"stage.json")
	table.wantDone(t)
	const want = `
+-----------+----------------------------------------+
| Field     | Value                                  |
+-----------+----------------------------------------+
| Accepted  | true                                   |
| Reason    |                                        |
| Placement | N2: 2                                  |
|           | N3: 2                                  |
| Transfers | request/N2: A to N2 in [0, 48), by 150 |
| Pool      | N1: empty                              |
|           | N2: A until 250                        |
|           | N3: A until 300                        |
+-----------+----------------------------------------+
`
	if diff := cmp.Diff(want[1:], table.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	wrong := edited(t, "stage.json", `"N2"`, `"N1"`)
	almanacWith(t, newAPI(t), wrong, "whatif", "stage", "--input", "-").wantFailure(t, exitUsage, "nodes[1].name: ")
}

func TestStageSaysNoWithAReason(t *testing.T) {
	for name, tc := range map[string]struct{ question, reason string }{
		"no room for the VMs":   {edited(t, "stage-resources.json"), "resources"},
		"no room in the pool":   {edited(t, "stage-pool.json"), "pool"},
		"no time, A000-3":       {edited(t, "stage-transfer.json"), "transfer"},
		"time enough, A000-3":   {edited(t, "stage-transfer.json", `"start": 150`, `"start": 240`), ""},
		"five VMs, A000-1":      {edited(t, "stage.json", `"vms": 4`, `"vms": 5`), ""},
		"six VMs, A000-1":       {edited(t, "stage.json", `"vms": 4`, `"vms": 6`), "resources"},
		"no time, A000-9":       {edited(t, "stage.json", `"start": 150`, `"start": 40`, `"expire": 300`, `"expire": 30`), "transfer"},
		"in the pools, A000-9":  {edited(t, "stage.json", `"start": 150`, `"start": 40`, `"vms": 4`, `"vms": 2`), ""},
		"two tasks, not one":    {edited(t, "stage.json", `"start": 150`, `"start": 50`, `"vms": 4`, `"vms": 5`), "transfer"},
		"later there is room":   {edited(t, "stage-pool.json", `"start": 150`, `"start": 300`, `"end": 250`, `"end": 400`), "pool"},
		"when it has been made": {edited(t, "stage-pool.json", `"start": 150`, `"start": 348`, `"end": 250`, `"end": 400`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := almanacWith(t, newAPI(t), tc.question, "whatif", "stage", "--input", "-", "-f", "json")
			var answer whatif.StageAnswer
			if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil {
				t.Fatalf("%v: %+v", err, got)
			}
			code := exitDone
			if tc.reason != "" {
				code = exitNoRoom
			}
			if got.code != code || answer.Reason != tc.reason || answer.Accepted != (tc.reason == "") || got.stderr != "" {
				t.Errorf("code %d, stderr %q, %+v", got.code, got.stderr, answer)
			}
		})
	}
}
