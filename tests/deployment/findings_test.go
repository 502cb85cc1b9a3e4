// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/repository"
)

func TestTheFindingsAreCleanShellAndInTheirTable(t *testing.T) {
	program := built.Program(t, "shellcheck")
	scripts, err := filepath.Glob("../../findings/*.sh")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no findings: %v", err)
	}
	table := repository.Read(t, "../../findings/README.md")
	for _, script := range scripts {
		if !strings.Contains(table, "("+filepath.Base(script)+")") {
			t.Errorf("findings/README.md has no row for %s", filepath.Base(script))
		}
	}
	// what the scripts call has no row
	called, err := filepath.Glob("../../findings/*/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	scripts = append(scripts, called...)
	if out, err := exec.CommandContext(t.Context(), program, scripts...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
