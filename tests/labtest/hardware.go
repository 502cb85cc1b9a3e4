// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Hardware simulates the machines of the lab's hosts: a nova-compute stops when its machine is
// switched off, and starts when the machine has booted. A BMC's hook or a command that switches a
// machine must call Switched. FollowIronic does so for Ironic.
//
// It covers the hosts whose nova-compute is a process of its own: the last one, and with
// COMPUTES_PER_PROCESS=1 all.
type Hardware struct {
	t     testing.TB
	rest  *REST
	alone map[string]string // service of the lab by host
	ended chan struct{}
	all   sync.WaitGroup

	mu    sync.Mutex
	boots map[string]time.Duration
	turns map[string]int // how often a host was switched
	runs  map[string]bool
	work  map[string]*sync.Mutex // one goroutine at a time starts or stops a host's nova-compute
}

// NeverBoots is the time to boot of a machine that hangs.
const NeverBoots time.Duration = -1

// NewHardware returns machines that are on, boot within the time, and stop at once. At the end of
// the test all are on again, with their nodes in Ironic, and all hosts are enabled and up. Until
// then this test process has the cloud to itself.
func NewHardware(t testing.TB, boot time.Duration) *Hardware {
	t.Helper()
	cloud := OpenStack(t)
	h := &Hardware{
		t: t, rest: cloud.REST(t, Admin), alone: map[string]string{}, ended: make(chan struct{}),
		boots: map[string]time.Duration{}, turns: map[string]int{}, runs: map[string]bool{}, work: map[string]*sync.Mutex{},
	}
	for _, process := range computeProcesses(t) {
		if len(process.hosts) == 1 {
			host := process.hosts[0]
			h.alone[host], h.boots[host], h.runs[host], h.work[host] = process.service, boot, true, &sync.Mutex{}
		}
	}
	t.Cleanup(func() {
		close(h.ended)
		h.all.Wait()
		h.restore(cloud)
	})
	return h
}

// Hosts returns the hosts that it covers, in the order of their names.
func (h *Hardware) Hosts() []string {
	var hosts []string
	for _, process := range computeProcesses(h.t) {
		if len(process.hosts) == 1 {
			hosts = append(hosts, process.hosts[0])
		}
	}
	return hosts
}

// Boots changes the time from when a machine is switched on until its nova-compute starts, which
// then takes some seconds more. NeverBoots is forever.
func (h *Hardware) Boots(host string, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.boots[host] = after
}

// Switched reports that a machine has been switched on or off, or was ordered into the state that
// it has already.
func (h *Hardware) Switched(host string, on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.ended:
		return
	default:
	}
	if h.alone[host] == "" || h.runs[host] == on {
		return
	}
	h.runs[host] = on
	h.turns[host]++
	turn := h.turns[host]
	h.all.Go(func() { h.turn(host, on, turn) })
}

// turn starts or stops a nova-compute, unless its host has been switched again in the meantime.
func (h *Hardware) turn(host string, on bool, turn int) {
	verb := "kill"
	if on {
		verb = "start"
		h.mu.Lock()
		after := h.boots[host]
		h.mu.Unlock()
		if after == NeverBoots {
			return
		}
		select {
		case <-time.After(after):
		case <-h.ended:
			return
		}
	}
	h.work[host].Lock()
	defer h.work[host].Unlock()
	h.mu.Lock()
	late := h.turns[host] != turn
	h.mu.Unlock()
	if late {
		return
	}
	command := exec.Command(filepath.Join(folder(h.t), "lab"), verb, h.alone[host])
	command.Env = ownEnvironment()
	if said, err := command.CombinedOutput(); err != nil {
		h.t.Errorf("lab %s %s: %v\n%s", verb, h.alone[host], err, said)
	}
}

// FollowIronic switches each host's machine as Ironic reports the power of the node with the host's
// name.
func (h *Hardware) FollowIronic() {
	h.t.Helper()
	h.look()
	h.all.Go(func() {
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-h.ended:
				return
			case <-tick.C:
				h.look()
			}
		}
	})
}

type powered struct {
	Name  string
	Power string `json:"power_state"`
}

// nodes returns Ironic's nodes; none if it does not answer.
func (h *Hardware) nodes() []powered {
	request, err := http.NewRequest(http.MethodGet, h.rest.Endpoint("baremetal")+"/v1/nodes?fields=name,power_state", nil)
	if err != nil {
		return nil
	}
	request.Header.Set("X-Auth-Token", h.rest.token)
	request.Header.Set("X-OpenStack-Ironic-API-Version", ironicVersion)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	var list struct{ Nodes []powered }
	if json.NewDecoder(answer.Body).Decode(&list) != nil {
		return nil
	}
	return list.Nodes
}

func (h *Hardware) look() {
	for _, node := range h.nodes() {
		if strings.HasPrefix(node.Power, "power ") {
			h.Switched(node.Name, node.Power == "power on")
		}
	}
}

// restore brings the lab back to its initial state.
func (h *Hardware) restore(cloud LabCloud) {
	h.t.Helper()
	for _, node := range h.nodes() {
		if h.alone[node.Name] != "" && node.Power != "power on" {
			h.rest.Do("PUT", "baremetal", "/v1/nodes/"+node.Name+"/states/power", map[string]string{"target": "power on"}, nil)
		}
	}
	makeWhole(h.t)
	var list struct {
		Services []struct{ ID, Host, Status string }
	}
	h.rest.Must("GET", "compute", "/os-services?binary=nova-compute", nil, &list)
	for _, s := range list.Services {
		if s.Status != "enabled" {
			h.rest.Must("PUT", "compute", "/os-services/"+s.ID, map[string]string{"status": "enabled"}, nil)
		}
	}
	for host := range h.alone {
		cloud.awaitCompute(h.t, host, "up")
	}
}

// AwaitService waits until Nova reports the wanted state (up, down) and status (enabled, disabled)
// of the nova-compute of a host, and a reason with the wanted prefix; empty means any.
func (c LabCloud) AwaitService(t testing.TB, host, state, status, reason string, limit time.Duration) {
	t.Helper()
	admin := c.REST(t, Admin)
	err := await(limit, func() error {
		var list struct {
			Services []struct {
				State, Status string
				Reason        string `json:"disabled_reason"`
			}
		}
		admin.Must("GET", "compute", "/os-services?binary=nova-compute&host="+host, nil, &list)
		if len(list.Services) != 1 {
			return fmt.Errorf("nova has %d nova-computes on it", len(list.Services))
		}
		s := list.Services[0]
		if state != "" && s.State != state || status != "" && s.Status != status || !strings.HasPrefix(s.Reason, reason) {
			return fmt.Errorf("it is %+v", s)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("wait until the nova-compute of %s is %s %s %q: %v", host, state, status, reason, err)
	}
}
