// SPDX-License-Identifier: Apache-2.0

package built

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// Main runs the tests of a package that uses the commands, removes the commands, and ends the process.
func Main(m *testing.M) {
	exit := m.Run()
	if folder != "" {
		os.RemoveAll(folder)
	}
	os.Exit(exit)
}

// folder has the commands; "" until they are built.
var folder string

// Commands returns the folder of the commands. The first call builds them as `make build` does; it ends
// the process if that fails, as no test can go on.
var Commands = sync.OnceValue(func() string {
	made, err := os.MkdirTemp("", "almanac-tests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", made+"/", "./cmd/...") // as make build
	build.Dir = repository.Root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		os.RemoveAll(made)
		fmt.Fprintf(os.Stderr, "build the commands: %v\n%s", err, out)
		os.Exit(1)
	}
	folder = made
	return folder
})
