package controller

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// badAfter is after how many VMs that failed on a host, and none that ran, it is avoided.
const badAfter = 3

// record is how a host has done since a VM last ran there: which VMs failed, and until
// when it is avoided.
type record struct {
	failed []string
	times  int
	until  span.Instant
}

// learn takes note of hosts on which VMs began to run or failed in this step.
func (c *Controller) learn(w *view) {
	if c.hosts == nil {
		c.hosts = map[string]*record{}
	}
	for i := range w.requests {
		for _, v := range w.requests[i].VMs {
			before := w.stored[v.ID]
			switch {
			case before.Phase != besteffort.Starting:
			case v.Phase == besteffort.Running:
				delete(c.hosts, v.Node)
			case before.Node != "" && (v.Failures > before.Failures || len(v.Avoids) > len(before.Avoids)):
				c.hosts[before.Node] = c.hosts[before.Node].add(v.ID, w.now, c.Limits.Backoff)
			}
		}
	}
}

// add takes note of a failure.
func (r *record) add(vm string, now span.Instant, pause int64) *record {
	if r == nil {
		r = &record{}
	}
	if !slices.Contains(r.failed, vm) {
		r.failed = append(r.failed, vm)
	}
	if len(r.failed) >= badAfter && now >= r.until {
		r.until = now.Add(min(longestBackoff, 8*pause<<min(r.times, 10)))
		r.times++
	}
	return r
}

// plan asks the rules. Hosts on which one VM after the other fails are left out for a
// while, and a VM is not begun where it has failed before.
func (c *Controller) plan(s besteffort.Situation, w *view) besteffort.Plan {
	bad := map[string]bool{}
	for _, n := range s.Nodes {
		if r := c.hosts[n.Name]; r != nil && w.now < r.until {
			bad[n.Name] = true
		}
	}
	if len(bad) < len(s.Nodes) { // else it is no host's fault
		s.Nodes = closed(s, bad)
	}
	for i := range w.requests {
		for j := range w.requests[i].VMs {
			w.requests[i].VMs[j].forgive(s.Nodes)
		}
	}
	first := c.Planner.Plan(s)
	vms, hosts := shunned(first, w.requests)
	if len(vms) == 0 {
		return first
	}
	elsewhere := s
	elsewhere.Nodes = closed(s, hosts)
	second := c.Planner.Plan(elsewhere)
	if slices.ContainsFunc(second.Acts, func(a besteffort.Act) bool { return vms[a.VM] && a.Action == besteffort.Start }) {
		return second
	}
	// There is no room for them elsewhere: nobody waits for them.
	s.Requests = slices.Clone(s.Requests)
	for i := range s.Requests {
		s.Requests[i].VMs = slices.DeleteFunc(slices.Clone(s.Requests[i].VMs), func(v besteffort.VM) bool { return vms[v.ID] })
	}
	s.Requests = slices.DeleteFunc(s.Requests, func(r besteffort.Request) bool { return len(r.VMs) == 0 })
	return c.Planner.Plan(s)
}

// forgive lets a VM that has failed on every host try them again.
func (v *VM) forgive(nodes []besteffort.Node) {
	if len(v.Avoids) == 0 || v.Phase != besteffort.Waiting {
		return
	}
	if !slices.ContainsFunc(nodes, func(n besteffort.Node) bool { return !slices.Contains(v.Avoids, n.Name) }) {
		v.Avoids, v.Failures = nil, max(v.Failures, 1)
	}
}

// shunned are the VMs that a plan starts on hosts that they avoid, and all these. Of a
// parallel request all are meant where one is.
func shunned(plan besteffort.Plan, requests []Request) (vms, hosts map[string]bool) {
	vms, hosts = map[string]bool{}, map[string]bool{}
	for _, act := range plan.Acts {
		if act.Action != besteffort.Start {
			continue
		}
		v, r := find(requests, act.Request, act.VM)
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

// closed are the nodes of a situation, of some of which nothing is left but for what is
// there already.
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
