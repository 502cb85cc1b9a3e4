// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// StopService stops a service of the lab by its name in `lab status`: keystone, placement, glance,
// neutron, nova-api, nova-scheduler, nova-conductor. The end of the test starts stopped services
// and waits until all hosts are up. Until then this test process has the cloud to itself.
func StopService(t testing.TB, name string) {
	t.Helper()
	occupy(t)
	t.Cleanup(func() { makeWhole(t) })
	lab(t, "stop", name)
}

// StartService starts a service that was stopped. It returns when the service answers;
// nova-scheduler and nova-conductor, which have no address, take some seconds more to load.
func StartService(t testing.TB, name string) {
	t.Helper()
	lab(t, "start", name)
}

// Killable returns functions for a test that kills services of the lab with kill -9, by their names
// in `lab status`, and starts them, again and again. The end of the test starts what is missing, and
// until then this test process has the cloud to itself.
func Killable(t testing.TB) (kill, start func(service string)) {
	t.Helper()
	occupy(t)
	t.Cleanup(func() { makeWhole(t) })
	return func(service string) { t.Helper(); lab(t, "kill", service) }, func(service string) { t.Helper(); lab(t, "start", service) }
}

// LastCompute returns the service of the last host, the only one with a nova-compute of its own.
func (c LabCloud) LastCompute(t testing.TB) (service string) {
	t.Helper()
	hosts := c.Hosts(t)
	return computeService(t, hosts[len(hosts)-1])
}

// KillCompute is kill -9 of the nova-compute of the last host, the only one with a process of its
// own, and returns when Nova reports it down. The end of the test revives it.
func KillCompute(t testing.TB, host string) {
	t.Helper()
	cloud := OpenStack(t)
	t.Cleanup(func() { makeWhole(t) })
	lab(t, "kill", computeService(t, host))
	cloud.awaitCompute(t, host, "down")
}

// ReviveCompute starts a nova-compute that was killed, and returns when Nova reports it up. Its
// servers continue to run, as on a real hypervisor.
func ReviveCompute(t testing.TB, host string) {
	t.Helper()
	lab(t, "start", computeService(t, host))
	OpenStack(t).awaitCompute(t, host, "up")
}

// RestartComputes kills and starts every nova-compute, for use when Placement has lost their hosts:
// a restarted nova-compute has no cached providers. It returns when all are up and have providers
// again.
func RestartComputes(t testing.TB) {
	t.Helper()
	OpenStack(t)
	for _, process := range computeProcesses(t) {
		lab(t, "kill", process.service)
	}
	makeWhole(t)
}

// ForgetIdentity removes the UUID of a host's node, so that its next nova-compute is that of a host
// which Nova does not know.
func ForgetIdentity(t testing.TB, host string) {
	t.Helper()
	if err := os.Remove(filepath.Join(folder(t), "nova", host+".compute_id")); err != nil {
		t.Fatal(err)
	}
}

func computeService(t testing.TB, host string) string {
	t.Helper()
	for _, process := range computeProcesses(t) {
		if len(process.hosts) == 1 && process.hosts[0] == host {
			return process.service
		}
		if slices.Contains(process.hosts, host) {
			t.Fatalf("%s shares its nova-compute with other hosts; only the last host may be killed", host)
		}
	}
	t.Fatalf("the lab has no host %s", host)
	return ""
}

// makeWhole starts stopped services and waits until all hosts are up. It needs no context, since
// that of a test that ends may be over. After a failure, requireWhole fails every test of the cloud;
// each would wait again for what is missing.
func makeWhole(t testing.TB) {
	t.Helper()
	mark := brokenMark(t)
	err := runLab(t, nil, "up")
	if err == nil {
		err = os.RemoveAll(mark)
	} else if marking := os.WriteFile(mark, []byte(t.Name()), 0o644); marking != nil {
		t.Error(marking)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// requireWhole fails the test at once if an earlier one has left the cloud broken.
func requireWhole(t testing.TB) {
	t.Helper()
	culprit, err := os.ReadFile(brokenMark(t))
	if err == nil {
		t.Fatalf("the cloud has been broken since %s; `lab up` may repair it", culprit)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

func brokenMark(t testing.TB) string { return filepath.Join(folder(t), "run", "broken") }

// lab runs a command of the lab.
func lab(t testing.TB, args ...string) {
	t.Helper()
	labWith(t, nil, args...)
}

// labWith runs a command of the lab with further environment variables.
func labWith(t testing.TB, variables []string, args ...string) {
	t.Helper()
	if err := runLab(t, variables, args...); err != nil {
		t.Fatal(err)
	}
}

func runLab(t testing.TB, variables []string, args ...string) error {
	command := exec.Command(filepath.Join(folder(t), "lab"), args...)
	command.Env = append(ownEnvironment(), variables...)
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("lab %v: %w\n%s", args, err, said)
	}
	return nil
}
