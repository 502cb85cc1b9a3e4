// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPowerAnswersAQuestionFromAFile(t *testing.T) {
	table := almanac(t, newAPI(t), "whatif", "power", "--input", examples+"power.json")
	table.wantDone(t)
	const want = `
+---------+--------------------------------------------------------------------------------+
| Field   | Value                                                                          |
+---------+--------------------------------------------------------------------------------+
| On      |                                                                                |
| Off     | r4                                                                             |
|         | r6                                                                             |
| Reasons | r1: it is reserved now or within the horizon                                   |
|         | r4: it has been idle for 5 measurements, and 6 hosts are on where 3 are enough |
|         | r5: it has been idle for 4 measurements, and must be for 5                     |
|         | r6: it has been idle for 9 measurements, and 5 hosts are on where 3 are enough |
+---------+--------------------------------------------------------------------------------+
`
	if diff := cmp.Diff(want[1:], table.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	wrong := edited(t, "power.json", `"r3"]`, `"r9"]`)
	almanacWith(t, newAPI(t), wrong, "whatif", "power", "--input", "-").wantFailure(t, exitUsage, "reserved[2]: ")
}
