// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// LabCloud is the OpenStack of the lab: Keystone, Placement, Glance and Nova with fake hosts of 10
// VCPU, 8 GiB and 1028 GB each. It has no networks, so servers are created with --nic none. There
// are the flavors m1.tiny to m1.large and the image tiny.
type LabCloud struct {
	Identity
	Compute   string // with /v2.1
	Placement string
	Image     string
}

// OpenStack returns the cloud of the lab. This test process has it to itself until the test ends:
// tests of other packages wait meanwhile.
func OpenStack(t testing.TB) LabCloud {
	t.Helper()
	address := func(part string) string { return fmt.Sprintf("http://127.0.0.1:%d", port(t, part)) }
	c := LabCloud{
		Identity:  Keystone(t),
		Compute:   address("nova") + "/v2.1",
		Placement: address("placement"),
		Image:     address("glance"),
	}
	if occupy(t) {
		requireWhole(t)
		c.settle(t)
	}
	showTrouble(t, folder(t))
	return c
}

// settle waits until the nova-computes have reported again, if a test of another process has just
// restarted the services that they report through.
func (c LabCloud) settle(t testing.TB) {
	t.Helper()
	token := c.Token(t, Admin)
	err := await(patience, func() error {
		states, err := c.computeStates(token)
		if err != nil {
			return err
		}
		for _, host := range c.Hosts(t) {
			if states[host] != "up" {
				return fmt.Errorf("nova reports %s as %q", host, states[host])
			}
		}
		return nil
	})
	if err != nil {
		t.Logf("the cloud of this test is incomplete: %v", err)
	}
}

// Hosts returns the names of the compute hosts. The last has a nova-compute of its own: see
// KillCompute.
func (c LabCloud) Hosts(t testing.TB) []string {
	t.Helper()
	var names []string
	for _, process := range computeProcesses(t) {
		names = append(names, process.hosts...)
	}
	return names
}

// OpenstackJSON runs the openstack client as the user, with -f json, and decodes its output into
// the value.
func (i Identity) OpenstackJSON(t testing.TB, u User, value any, args ...string) {
	t.Helper()
	out := i.Openstack(t, u, append(slices.Clone(args), "-f", "json")...)
	if err := json.Unmarshal([]byte(out), value); err != nil {
		t.Fatalf("openstack %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// Token returns a token of the user for its project. It costs a hundredth of what the openstack
// client costs.
func (i Identity) Token(t testing.TB, u User) string {
	t.Helper()
	domain := map[string]any{"id": "default"}
	body, err := json.Marshal(map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
			"user": map[string]any{"name": u.Name, "password": u.Password, "domain": domain}}},
		"scope": map[string]any{"project": map[string]any{"name": u.Project, "domain": domain}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := http.Post(i.AuthURL+"/auth/tokens", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatalf("get a token for %s: %v", u.Name, err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusCreated {
		t.Fatalf("get a token for %s: %s", u.Name, reply.Status)
	}
	return reply.Header.Get("X-Subject-Token")
}

// computeStates returns Nova's states of the nova-computes, up or down, keyed by host.
func (c LabCloud) computeStates(token string) (map[string]string, error) {
	request, err := http.NewRequest(http.MethodGet, c.Compute+"/os-services?binary=nova-compute", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Auth-Token", token)
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	var found struct {
		Services []struct{ Host, State string }
	}
	if err := json.NewDecoder(reply.Body).Decode(&found); err != nil {
		return nil, fmt.Errorf("list the nova-computes (%s): %w", reply.Status, err)
	}
	states := map[string]string{}
	for _, s := range found.Services {
		states[s.Host] = s.State
	}
	return states, nil
}

// awaitCompute waits until Nova reports the state of a host's nova-compute.
func (c LabCloud) awaitCompute(t testing.TB, host, state string) {
	t.Helper()
	token := c.Token(t, Admin)
	err := await(patience, func() error {
		states, err := c.computeStates(token)
		if err == nil && states[host] != state {
			err = fmt.Errorf("nova reports it as %q", states[host])
		}
		return err
	})
	if err != nil {
		t.Fatalf("wait until %s is %s: %v", host, state, err)
	}
}

// computeProcess is a service of the lab with the hosts that it stands for.
type computeProcess struct {
	service, cell string
	hosts         []string
}

func computeProcesses(t testing.TB) []computeProcess {
	t.Helper()
	lab := folder(t)
	text, err := os.ReadFile(filepath.Join(lab, "computes"))
	if err != nil {
		t.Fatalf("the lab in %s has no computes: start them with `tests/openstack/lab up`", lab)
	}
	var all []computeProcess
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var one computeProcess
		var first, last int
		if _, err := fmt.Sscan(lines.Text(), &one.service, &first, &last, &one.cell); err != nil {
			t.Fatalf("computes of the lab: %q: %v", lines.Text(), err)
		}
		for number := first; number <= last; number++ {
			one.hosts = append(one.hosts, fmt.Sprintf("cmp-%03d", number))
		}
		all = append(all, one)
	}
	return all
}

// occupied records that the lab's cloud belongs to one test process at a time; that process may use
// it in several tests at once.
var occupied struct {
	sync.Mutex
	tests int
	lock  *os.File
}

// occupy takes the cloud for a test; first reports whether the process did not have it before.
func occupy(t testing.TB) (first bool) {
	t.Helper()
	lab := folder(t)
	occupied.Lock()
	defer occupied.Unlock()
	first = occupied.tests == 0
	if first {
		file, err := os.OpenFile(filepath.Join(lab, "cloud.lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatalf("take the lab's cloud: %v", err)
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatalf("take the lab's cloud: %v", err)
		}
		occupied.lock = file
		bringBackScheduler(t)
	}
	occupied.tests++
	t.Cleanup(func() {
		occupied.Lock()
		defer occupied.Unlock()
		if occupied.tests--; occupied.tests == 0 {
			occupied.lock.Close() // which unlocks it
		}
	})
	return first
}
