// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// avoidAfter is the number of different VMs that must fail on a host, while none runs there, before
// the host is avoided.
const avoidAfter = 3

// Planner makes plans; besteffort.Rules implements it.
type Planner interface {
	Plan(s besteffort.Situation) besteffort.Plan
}

// Hosts contains, by the name of the host, the failures since a VM last ran there.
type Hosts map[string]*failures

// failures are the VMs that failed on a host, and the instant until which it is avoided.
type failures struct {
	vms   []string
	times int
	until span.Instant
}

// Learn records whether a VM began to run or failed on its host. The parameter before is the
// previous state of the VM.
func (h Hosts) Learn(before, v *VM, now span.Instant, l Limits) {
	switch {
	case before.Phase != besteffort.Starting:
	case v.Phase == besteffort.Running:
		delete(h, v.Node)
	case before.Node != "" && (v.Failures > before.Failures || len(v.Avoids) > len(before.Avoids)):
		f := h[before.Node]
		if f == nil {
			f = &failures{}
			h[before.Node] = f
		}
		if !slices.Contains(f.vms, v.ID) {
			f.vms = append(f.vms, v.ID)
		}
		if len(f.vms) >= avoidAfter && now >= f.until {
			f.until = now.Add(l.hostBackoff(f.times))
			f.times++
		}
	}
}

// Plan makes a plan without the hosts on which one VM after another fails, and which starts no VM
// on a host where it failed before. A VM that failed on every host may try all of them again.
func (h Hosts) Plan(p Planner, s besteffort.Situation, requests []Request) besteffort.Plan {
	bad := map[string]bool{}
	for _, n := range s.Nodes {
		if f := h[n.Name]; f != nil && s.Now < f.until {
			bad[n.Name] = true
		}
	}
	if len(bad) < len(s.Nodes) { // else no host is to blame
		s.Nodes = closed(s, bad)
	}
	for i := range requests {
		for j := range requests[i].VMs {
			forgive(&requests[i].VMs[j], s.Nodes)
		}
	}
	first := p.Plan(s)
	vms, hosts := shunned(first, requests)
	if len(vms) == 0 {
		return first
	}
	elsewhere := s
	elsewhere.Nodes = closed(s, hosts)
	second := p.Plan(elsewhere)
	if slices.ContainsFunc(second.Acts, func(a besteffort.Act) bool { return vms[a.VM] && a.Action == besteffort.Start }) {
		return second
	}
	// No other host has capacity for these VMs: plan without them, so that no VM waits behind them.
	s.Requests = slices.Clone(s.Requests)
	return p.Plan(without(s, vms))
}

// Ready returns the situation without the VMs that must wait before they are tried again, so that
// no other VM waits behind them. It changes s.Requests.
func Ready(s besteffort.Situation, requests []Request) besteffort.Situation {
	waits := map[string]bool{}
	for i := range requests {
		later := slices.ContainsFunc(requests[i].VMs, func(v VM) bool {
			return v.Phase == besteffort.Waiting && v.RetryAt > s.Now || v.Phase == besteffort.Stopping && v.Then == besteffort.Waiting
		})
		for _, v := range requests[i].VMs {
			waits[v.ID] = v.Phase == besteffort.Waiting && (v.RetryAt > s.Now || requests[i].Parallel && later)
		}
	}
	return without(s, waits)
}

// without returns the situation without some VMs. It changes s.Requests.
func without(s besteffort.Situation, vms map[string]bool) besteffort.Situation {
	for i := range s.Requests {
		s.Requests[i].VMs = slices.DeleteFunc(slices.Clone(s.Requests[i].VMs), func(v besteffort.VM) bool { return vms[v.ID] })
	}
	s.Requests = slices.DeleteFunc(s.Requests, func(r besteffort.Request) bool { return len(r.VMs) == 0 })
	return s
}

// forgive allows a VM that has failed on every host to try them again.
func forgive(v *VM, nodes []besteffort.Node) {
	if len(v.Avoids) == 0 || v.Phase != besteffort.Waiting {
		return
	}
	if !slices.ContainsFunc(nodes, func(n besteffort.Node) bool { return !slices.Contains(v.Avoids, n.Name) }) {
		v.Avoids, v.Failures = nil, max(v.Failures, 1)
	}
}

// shunned returns the VMs that a plan starts on hosts that they avoid, and all hosts that these VMs
// avoid. If a VM of a parallel request is among them, all VMs of the request are.
func shunned(plan besteffort.Plan, requests []Request) (vms, hosts map[string]bool) {
	vms, hosts = map[string]bool{}, map[string]bool{}
	for _, act := range plan.Acts {
		if act.Action != besteffort.Start {
			continue
		}
		v, r := Find(requests, act.Request, act.VM)
		if v == nil || !slices.Contains(v.Avoids, act.Node) {
			continue
		}
		for i := range r.VMs {
			one := &r.VMs[i]
			if !r.Parallel && one != v {
				continue
			}
			vms[one.ID] = true
			for _, host := range one.Avoids {
				hosts[host] = true
			}
		}
	}
	return vms, hosts
}

// closed returns the nodes of a situation. Those in some have no free capacity beyond what the
// requests use there already.
func closed(s besteffort.Situation, some map[string]bool) []besteffort.Node {
	if len(some) == 0 {
		return s.Nodes
	}
	used := map[string]resource.Vector{}
	for i := range s.Requests {
		for _, v := range s.Requests[i].VMs {
			if some[v.Node] {
				used[v.Node] = used[v.Node].Add(s.Requests[i].Shape)
			}
		}
	}
	nodes := slices.Clone(s.Nodes)
	for i := range nodes {
		if n := &nodes[i]; some[n.Name] {
			n.Free = used[n.Name]
		}
	}
	return nodes
}
