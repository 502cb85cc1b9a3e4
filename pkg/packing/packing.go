// Package packing shares hosts among jobs as fairly as can be (paper 002, Stillwell et
// al., "Resource allocation using virtual clusters"): every job gets its memory, and of
// the CPU that it could use a fraction, its yield; the smallest yield shall be as large as
// possible.
package packing

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Host is what jobs share. The paper's hosts are all Unit.
type Host struct {
	CPU, Memory float64
}

// Unit is a host of the paper: CPU needs and memory are fractions of it.
var Unit = Host{CPU: 1, Memory: 1}

// Job needs so much of a host's CPU to run at full speed, and so much memory to run at
// all, for each of its Tasks. All tasks of a job get the same share of CPU.
type Job struct {
	ID          string
	CPU, Memory float64
	Tasks       int
}

// Problem is what is to be packed.
type Problem struct {
	Hosts []Host
	Jobs  []Job
	// Current is where the tasks are now, by job; nil, or nil for a job, is nowhere. It is
	// for Exact and Adapt.
	Current Placement
	// Budget is how much memory of the tasks that are somewhere may be moved, or how much
	// by Price.
	Budget float64
	// Price is what it costs to move a task of each job instead of its memory; nil is that.
	// With 1 for each job Budget is the number of migrations.
	Price []float64
	// May says where the tasks of a job may be, beside where they are now; nil is everywhere.
	// It is for Exact and Adapt.
	May func(job, host int) bool
}

// Placement gives for each job the host of each of its tasks.
type Placement [][]int

// Identical gives n hosts of the paper.
func Identical(n int) []Host {
	hosts := make([]Host, n)
	for i := range hosts {
		hosts[i] = Unit
	}
	return hosts
}

// slack is how much more than its whole a host may be filled, so that sums of fractions
// that make one fit (E002-10).
const slack = 1e-9

// Check refuses what is no problem, with the field.
func (p *Problem) Check() error {
	if len(p.Hosts) == 0 {
		return fault.Field("hosts", "must be at least 1")
	}
	largest := Host{}
	for i, h := range p.Hosts {
		switch {
		case !(h.CPU > 0) || math.IsInf(h.CPU, 0):
			return fault.Field(fmt.Sprintf("hosts[%d].cpu", i), "must be more than 0")
		case !(h.Memory > 0) || math.IsInf(h.Memory, 0):
			return fault.Field(fmt.Sprintf("hosts[%d].memory", i), "must be more than 0")
		}
		largest = Host{max(largest.CPU, h.CPU), max(largest.Memory, h.Memory)}
	}
	if len(p.Jobs) == 0 {
		return fault.Field("jobs", "must be at least 1")
	}
	seen := make(map[string]bool, len(p.Jobs))
	for i, j := range p.Jobs {
		path := fmt.Sprintf("jobs[%d]", i)
		switch {
		case j.ID == "":
			return fault.Field(path+".id", "is needed")
		case seen[j.ID]:
			return fault.Field(path+".id", "%q is the id of two jobs", j.ID)
		case !(j.CPU >= 0 && j.CPU <= largest.CPU):
			return fault.Field(path+".cpu", "must be from 0 to the CPU of the largest host, %v", largest.CPU)
		case !(j.Memory >= 0) || math.IsInf(j.Memory, 0):
			return fault.Field(path+".memory", "must be 0 or more")
		case j.Tasks < 1:
			return fault.Field(path+".tasks", "must be at least 1")
		}
		seen[j.ID] = true
	}
	return p.checkCurrent()
}

func (p *Problem) checkCurrent() error {
	if !(p.Budget >= 0) {
		return fault.Field("migration_budget", "must be 0 or more")
	}
	if p.Price != nil && (len(p.Price) != len(p.Jobs) || slices.ContainsFunc(p.Price, func(price float64) bool { return !(price >= 0) })) {
		return fault.Field("price", "must have a price that is 0 or more for each job")
	}
	if p.Current != nil && len(p.Current) != len(p.Jobs) {
		return fault.Field("current", "has %d jobs, and there are %d", len(p.Current), len(p.Jobs))
	}
	for i, hosts := range p.Current {
		if hosts == nil {
			continue
		}
		path := "current." + p.Jobs[i].ID
		if len(hosts) != p.Jobs[i].Tasks {
			return fault.Field(path, "has %d hosts for %d tasks", len(hosts), p.Jobs[i].Tasks)
		}
		for k, h := range hosts {
			if h < 0 || h >= len(p.Hosts) {
				return fault.Field(fmt.Sprintf("%s[%d]", path, k), "there is no host %d", h)
			}
		}
	}
	return nil
}

// task is one of a job's. Tasks are in the order of the jobs.
type task struct {
	job, number int
	cpu, memory float64
	price       float64 // of moving it
	at          int     // its host now; -1 is none
}

// price is what it costs to move a task of a job.
func (p *Problem) price(job int) float64 {
	if p.Price != nil {
		return p.Price[job]
	}
	return p.Jobs[job].Memory
}

// may says that a task may be on a host.
func (p *Problem) may(t *task, host int) bool {
	return p.May == nil || t.at == host || p.May(t.job, host)
}

func (p *Problem) tasks() []task {
	n := 0
	for _, j := range p.Jobs {
		n += j.Tasks
	}
	tasks := make([]task, 0, n)
	for i, j := range p.Jobs {
		for k := range j.Tasks {
			at := -1
			if p.Current != nil && p.Current[i] != nil {
				at = p.Current[i][k]
			}
			tasks = append(tasks, task{job: i, number: k, cpu: j.CPU, memory: j.Memory, price: p.price(i), at: at})
		}
	}
	return tasks
}

// placement gives where tasks are by the host of each; nil where one has none.
func (p *Problem) placement(tasks []task, hosts []int) Placement {
	if hosts == nil {
		return nil
	}
	placed := make(Placement, len(p.Jobs))
	for i, j := range p.Jobs {
		placed[i] = make([]int, j.Tasks)
	}
	for t, h := range hosts {
		placed[tasks[t].job][tasks[t].number] = h
	}
	return placed
}

// Infeasible says that there is no placement, or that none was found; it is an error.
type Infeasible struct {
	Reason string
	// Proven says that there is none.
	Proven bool
}

func (e *Infeasible) Error() string { return e.Reason }

// crowded says that a task needs more memory than any host has, or all tasks more than
// all have.
func (p *Problem) crowded() *Infeasible {
	need, has, largest := 0.0, 0.0, 0.0
	for _, h := range p.Hosts {
		has += h.Memory
		largest = max(largest, h.Memory)
	}
	for _, j := range p.Jobs {
		need += j.Memory * float64(j.Tasks)
		if j.Memory > largest+slack {
			return &Infeasible{Reason: fmt.Sprintf("a task of job %s needs %.6g of memory, and no host has more than %.6g", j.ID, j.Memory, largest), Proven: true}
		}
	}
	if need > has+slack*float64(len(p.Hosts)) {
		return &Infeasible{Reason: fmt.Sprintf("the tasks need %.6g of memory, and the hosts have %.6g", need, has), Proven: true}
	}
	return nil
}

// Algorithm finds a placement; an error that is no *Infeasible says why it could not even
// look.
type Algorithm func(ctx context.Context, p *Problem) (Placement, error)
