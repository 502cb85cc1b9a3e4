// SPDX-License-Identifier: Apache-2.0

package built

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Program returns the path of a program of Debian, which the lab installs.
func Program(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("make check leaves out what needs Debian's packages")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: run `make test`, or `make lab` once, which installs it", err)
	}
	return path
}

// Shell runs a command to its end and returns its output.
func Shell(t *testing.T, folder string, environment []string, name string, arguments ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, arguments...)
	c.Dir, c.Env = folder, append(os.Environ(), environment...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// UnusedPort returns a free port on loopback.
func UnusedPort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
