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

func TestPackAnswersAQuestionFromAFile(t *testing.T) {
	table := almanac(t, newAPI(t), "whatif", "pack", "--input", examples+"pack-adapt.json")
	table.wantDone(t)
	const want = `
+---------------+---------------------+
| Field         | Value               |
+---------------+---------------------+
| Feasible      | true                |
| Reason        |                     |
| Min Yield     | 1                   |
| Average Yield | 1                   |
| Average By    |                     |
| Upper Bound   | 1                   |
| Placement     | j1: host 0, yield 1 |
|               | j2: host 1, yield 1 |
| Moved         | 0.3                 |
| Unproven      |                     |
+---------------+---------------------+
`
	if diff := cmp.Diff(want[1:], table.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	wrong := edited(t, "pack.json", `"mcb8"`, `"mcb9"`)
	almanacWith(t, newAPI(t), wrong, "whatif", "pack", "--input", "-").wantFailure(t, exitUsage, "algorithm: ")
	almanac(t, newAPI(t), "whatif", "pack", "--input", examples+"pack.json", "--solver-timeout", "1ms").wantFailure(t, exitUsage, "--solver-timeout")
}

func TestAPlacementThatIsNotIsAnAnswerAndTheExitCode(t *testing.T) { // A002-4
	question := edited(t, "pack.json", `"hosts": 3`, `"hosts": 2`)
	got := almanacWith(t, newAPI(t), question, "whatif", "pack", "--input", "-", "-f", "json")
	var answer whatif.PackAnswer
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if got.code != exitNoRoom || got.stderr != "" || answer.Feasible || answer.Reason == "" || strings.Contains(got.stdout, "placement\"") {
		t.Errorf("got %+v", got)
	}
}

func TestPackWithoutGLPKNamesThePackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	question := edited(t, "pack.json", `"mcb8"`, `"rrnd"`)
	got := almanacWith(t, newAPI(t), question, "whatif", "pack", "--input", "-", "-f", "json")
	got.wantFailure(t, exitFailed, "glpk-utils")
	if strings.Count(got.stderr, "\n") != 1 || got.stdout != "" {
		t.Errorf("got %+v", got)
	}
}

func TestEveryExampleOfPackIsAnswered(t *testing.T) {
	files, err := os.ReadDir(examples)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), "pack") {
			almanac(t, newAPI(t), "whatif", "pack", "--input", examples+file.Name(), "-f", "json").wantDone(t)
		}
	}
}
