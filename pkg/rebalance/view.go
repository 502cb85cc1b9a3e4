// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// view is a situation in the form of package packing, which identifies hosts and jobs by index.
type view struct {
	*Situation
	hosts []node
	at    map[int]int // number of a host by its index
	jobs  []cpuUser
	// stay are the instances that cannot be moved; excluded are the hosts that are not part of the
	// problem.
	stay     []Stay
	excluded []Excluded
	all      int // instances on hosts that are up
}

// node is a host. CPU is in cores and memory in MB.
type node struct {
	place       int // index in States
	cpu, memory float64
	// other is the memory on the host that is used by anything except jobs.
	other    float64
	anybody  bool // has instances, whether jobs or not
	rooted   int  // number of its instances that cannot be moved
	promised bool
	rank     int // rank of its efficiency; the largest is the least efficient
}

// cpuUser is an instance that uses CPU, and so a job of the problem.
type cpuUser struct {
	one         inventory.Instance
	host        int // number of its host
	cpu, memory float64
	stays       string
	request     *placing.Request
	open        hostset.Set // hosts by index in States that may take it if there is room; nil if it stays
}

// Stay is an instance that cannot be moved.
type Stay struct {
	Instance string `json:"instance,omitempty"`
	Host     string `json:"host"`
	Reason   string `json:"reason"`
}

// Excluded is a host whose yield no move can change.
type Excluded struct {
	Host   string  `json:"host"`
	Yield  float64 `json:"yield"`
	Reason string  `json:"reason"`
}

// view returns the hosts and instances that a plan may use, and what it leaves out, with reasons.
func (s *Situation) view() *view {
	v := &view{Situation: s, at: map[int]int{}}
	promised := s.promised()
	for i := range s.States.Len() {
		h := s.States.Host(i)
		switch {
		case !h.Up || !h.Enabled:
			continue
		case h.Unsupported != "":
			v.excluded = append(v.excluded, Excluded{Host: h.Name, Reason: h.Unsupported})
			continue
		case cores(h) <= 0 || memory(h) <= 0:
			v.excluded = append(v.excluded, Excluded{Host: h.Name, Reason: "its CPUs and memory are unknown"})
			continue
		}
		n := node{place: i, cpu: cores(h), memory: memory(h), anybody: len(h.Instances) > 0, promised: promised.Has(i)}
		if place, known := s.Hosts.Index(h.Name); known {
			n.rank = s.Hosts.EfficiencyRank(place)
		}
		v.at[i] = len(v.hosts)
		v.hosts = append(v.hosts, n)
	}
	v.gather()
	v.leaveOut()
	return v
}

// gather enters the instances of the hosts: those that may move and those that stay.
func (v *view) gather() {
	most := 0.0
	for _, n := range v.hosts {
		most = max(most, n.cpu)
	}
	same := map[string]hostset.Set{}
	for number := range v.hosts {
		n := &v.hosts[number]
		h := v.States.Host(n.place)
		n.other = float64(h.Stocks["MEMORY_MB"].Used)
		for _, one := range h.Instances {
			v.all++
			j := cpuUser{one: one, host: number, cpu: v.need(&one, most), memory: float64(one.Flavor.Resources.MemoryMB), stays: v.stays(&one)}
			if j.stays != "" {
				n.rooted++
				v.stay = append(v.stay, Stay{Instance: one.ID, Host: h.Name, Reason: j.stays})
				if j.cpu == 0 {
					continue
				}
			} else {
				j.request = v.request(&one, h)
				j.open = v.openTo(&j, same)
			}
			n.other -= j.memory
			v.jobs = append(v.jobs, j)
		}
	}
	for i := range v.hosts { // an instance that is on its way here has no allocation in Placement yet
		v.hosts[i].other = max(0, v.hosts[i].other)
	}
}

// openTo returns the hosts of the problem that Situation.open returns for a job. same caches the
// sets for instances with equal requests.
func (v *view) openTo(j *cpuUser, same map[string]hostset.Set) hostset.Set {
	r := j.request
	key := ""
	if r.Group == nil && len(r.Hints) == 0 {
		key = fmt.Sprintf("%s %s %s %s %v %v", r.ProjectID, r.Zone, r.Cell, r.FlavorName, r.Preemptible, r.ExtraSpecs)
		if set, known := same[key]; known {
			return set
		}
	}
	set := v.open(r)
	for i := range set.All() {
		if _, known := v.at[i]; !known || v.shut(i) != "" {
			set.Remove(i)
		}
	}
	if key != "" {
		same[key] = set
	}
	return set
}

// leaveOut removes from the problem the hosts that have too few CPUs for their instances and no
// instance that can be moved: they would determine the smallest yield, whatever is moved.
func (v *view) leaveOut() {
	movable := make([]bool, len(v.hosts))
	for i := range v.jobs {
		if v.jobs[i].stays == "" {
			movable[v.jobs[i].host] = true
		}
	}
	loads := v.loads(v.now())
	number := make([]int, len(v.hosts))
	var kept []node
	for i, n := range v.hosts {
		if number[i] = len(kept); movable[i] || loads[i] <= 1 {
			v.at[n.place] = len(kept)
			kept = append(kept, n)
			continue
		}
		number[i] = -1
		delete(v.at, n.place)
		v.excluded = append(v.excluded, Excluded{
			Host: v.States.Host(n.place).Name, Yield: yieldOf(loads[i]), Reason: "none of its instances can be moved, and it has too few CPUs for them",
		})
	}
	if len(kept) == len(v.hosts) {
		return
	}
	v.jobs = slices.DeleteFunc(v.jobs, func(j cpuUser) bool { return number[j.host] < 0 })
	for i := range v.jobs {
		v.jobs[i].host = number[v.jobs[i].host]
	}
	v.hosts = kept
}

// now returns the index of the current host of each job.
func (v *view) now() []int {
	at := make([]int, len(v.jobs))
	for i := range v.jobs {
		at[i] = v.jobs[i].host
	}
	return at
}

// loads returns, for each host, the CPU needs of its jobs as a fraction of its CPU. at contains the
// host of each job.
func (v *view) loads(at []int) []float64 {
	loads := make([]float64, len(v.hosts))
	for i, h := range at {
		loads[h] += v.jobs[i].cpu
	}
	for h := range loads {
		loads[h] /= v.hosts[h].cpu
	}
	return loads
}

// yield returns the smallest yield of a placement.
func (v *view) yield(at []int) float64 {
	if len(v.hosts) == 0 {
		return 1
	}
	return yieldOf(slices.Max(v.loads(at)))
}

// fits reports whether the memory of all jobs fits on their hosts.
func (v *view) fits(at []int) bool {
	used := make([]float64, len(v.hosts))
	for i, h := range at {
		used[h] += v.jobs[i].memory
	}
	for h := range used {
		if used[h]+v.hosts[h].other > v.hosts[h].memory+slack {
			return false
		}
	}
	return true
}

// may reports whether job j may be on a host, regardless of the room there.
func (v *view) may(j, host int) bool {
	return v.jobs[j].host == host || v.jobs[j].open != nil && v.jobs[j].open.Has(v.hosts[host].place)
}

// problem returns the problem for package packing; nil if there is nothing to pack.
func (v *view) problem() *packing.Problem {
	if len(v.jobs) == 0 || len(v.hosts) == 0 {
		return nil
	}
	p := &packing.Problem{May: v.may}
	for _, n := range v.hosts {
		// Package packing requires more than 0, also for a host without memory left for
		// jobs.
		p.Hosts = append(p.Hosts, packing.Host{CPU: n.cpu, Memory: max(n.memory-n.other, slack)})
	}
	for i := range v.jobs {
		j := &v.jobs[i]
		p.Jobs = append(p.Jobs, packing.Job{ID: j.one.ID, CPU: j.cpu, Memory: j.memory, Tasks: 1})
		p.Current = append(p.Current, []int{j.host})
	}
	return p
}

// index returns the index of the job of an instance; -1 if there is none.
func (v *view) index(instance string) int {
	return slices.IndexFunc(v.jobs, func(j cpuUser) bool { return j.one.ID == instance })
}
