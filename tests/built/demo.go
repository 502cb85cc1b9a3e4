// SPDX-License-Identifier: Apache-2.0

package built

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// demoPage matches the address that almanacd demo prints.
var demoPage = regexp.MustCompile(`page: +(http://\S+)/dashboard/`)

// StartDemo starts almanacd demo with arguments and settings, and returns its address.
func StartDemo(t *testing.T, args []string, settings ...string) (url string) {
	t.Helper()
	c := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(Commands(), "almanacd"), append([]string{"demo", "--port", "0"}, args...)...)
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
