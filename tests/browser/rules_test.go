// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"os/exec"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// The rules of the page need no browser: Node runs their tests, ten thousand drawn sequences among them.
func TestTheRulesOfThePageHold(t *testing.T) {
	if testing.Short() {
		t.Skip("make check leaves out what needs Node")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("this test needs Node: run `make test`, or install nodejs: %v", err)
	}
	tests := exec.CommandContext(t.Context(), node, "--test", "pkg/dashboard/tests/")
	tests.Dir = repository.Root
	if out, err := tests.CombinedOutput(); err != nil {
		t.Errorf("node --test pkg/dashboard/tests/: %v\n%s", err, out)
	}
}
