// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// demoPage matches the address that almanacd demo prints.
var demoPage = regexp.MustCompile(`page: +(http://\S+)/dashboard/`)

// startDemo starts almanacd demo and returns its address.
func startDemo(t *testing.T, settings ...string) (url string) {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(commands, "almanacd"), "demo", "--port", "0")
	c.Env = append(os.Environ(), settings...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // it may have ended
		if err := c.Wait(); err != nil {
			t.Errorf("the demo ends with %v", err)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := demoPage.FindStringSubmatch(lines.Text()); m != nil {
			return m[1]
		}
	}
	t.Fatal("the demo does not print its address")
	return ""
}

// The tour takes as long as its machines boot and its images move.
func TestTheTourOfTheDemoWorksAsPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("the tour takes minutes")
	}
	runSteps(t, "../docs/demo.md", t.TempDir(), startDemo(t), 5*time.Minute)
}
