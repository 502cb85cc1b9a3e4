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

// folder is where the commands are; "" until they are built.
var folder string

// Commands returns the folder of the commands. The first call builds them as `make build` does, or copies them
// from the folder that ALMANAC_COMMANDS names: make test builds them there once for all packages. It ends the
// process if that fails, as no test can go on.
var Commands = sync.OnceValue(func() string {
	made, err := os.MkdirTemp("", "almanac-tests-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if fresh := os.Getenv("ALMANAC_COMMANDS"); fresh != "" {
		if err := os.CopyFS(made, os.DirFS(fresh)); err != nil {
			os.RemoveAll(made)
			fmt.Fprintf(os.Stderr, "copy the commands: %v\n", err)
			os.Exit(1)
		}
		folder = made
		return folder
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
