// SPDX-License-Identifier: Apache-2.0

// Package labtest provides tests with the real services of a cloud: MariaDB, RabbitMQ, Keystone, an
// OpenStack with fake hosts, and a Galera cluster.
//
// The shared ones are those of the lab that tests/openstack/lab starts; ALMANAC_LAB names its
// folder, as `lab env` prints it. A test gets its own database or virtual host there. Private ones,
// which a test may kill, are started from the same Debian packages and end with the test, also when
// the test process dies.
//
// With -short, tests that request a service are skipped.
package labtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// folder returns the folder of the running lab.
func folder(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("make check leaves out what needs real services")
	}
	lab := os.Getenv("ALMANAC_LAB")
	if lab == "" {
		t.Fatal("this test needs real services: run `make test`, or `make lab` and export what it prints")
	}
	return lab
}

// port returns the port of a shared service.
func port(t testing.TB, part string) int {
	t.Helper()
	lab := folder(t)
	text, err := os.ReadFile(filepath.Join(lab, "ports", part))
	if err != nil {
		t.Fatalf("the lab in %s has no %s: start it with `tests/openstack/lab up %s`", lab, part, part)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatalf("port of %s: %v", part, err)
	}
	return number
}

// unique returns a name that nobody else has.
func unique(prefix string) string {
	return fmt.Sprintf("%s%012x", prefix, rand.Uint64N(1<<48))
}

// private makes a folder for the files of a server that belongs to the test. It lies in the lab's
// folder: the user mysql may not enter t.TempDir.
func private(t testing.TB, lab, name string) string {
	t.Helper()
	path := filepath.Join(lab, "private", unique(name+"-"))
	if err := os.MkdirAll(path, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(path); err != nil {
			t.Errorf("remove the files of a private server: %v", err)
		}
	})
	return path
}

var given struct {
	sync.Mutex
	ports map[int]bool
}

// freePorts returns the first of n consecutive ports on loopback without a listener, each only
// once. They lie below the kernel's range for outgoing connections, so that the ports of a server
// that was stopped are free when it starts again.
func freePorts(t testing.TB, n int) int {
	t.Helper()
	given.Lock()
	defer given.Unlock()
	if given.ports == nil {
		given.ports = map[int]bool{}
	}
	for range 1000 {
		first := 24000 + rand.IntN(8000)
		if !allFree(first, n) {
			continue
		}
		for i := range n {
			given.ports[first+i] = true
		}
		return first
	}
	t.Fatal("no free ports from 24000 to 31999")
	return 0
}

func allFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		if given.ports[port] {
			return false
		}
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		listener.Close()
	}
	return true
}

// patience bounds every wait for a service: for its start, its end, and its actions.
const patience = 5 * time.Minute

// await calls try until it succeeds, for at most the limit, and returns the last error.
func await(limit time.Duration, try func() error) error {
	var err error
	if Poll(limit, 20*time.Millisecond, func() bool { err = try(); return err == nil }) {
		return nil
	}
	return fmt.Errorf("after %v: %w", limit, err)
}

// Poll calls done until it returns true, and reports whether it did within the limit. It waits
// between two calls, at least for the pause and as long as the last call took: where an answer
// takes long, the service has other work to do.
func Poll(limit, pause time.Duration, done func() bool) bool {
	for end := time.Now().Add(limit); ; {
		begun := time.Now()
		if done() {
			return true
		}
		now := time.Now()
		if now.After(end) {
			return false
		}
		time.Sleep(max(pause, now.Sub(begun)))
	}
}
