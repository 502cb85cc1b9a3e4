// SPDX-License-Identifier: Apache-2.0

// Package packing shares hosts among jobs as fairly as possible (paper 002, Stillwell et al.,
// "Resource allocation using virtual clusters"). Every job gets all of its memory, and a fraction
// of the CPU that it could use, its yield. The goal is to maximize the smallest yield.
package packing

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Host is the capacity that jobs share, in the units in which jobs state their needs. The hosts of
// the paper are all Unit.
type Host struct {
	CPU, Memory float64
}

// Unit is a host of the paper: CPU needs and memory are fractions of it.
var Unit = Host{CPU: 1, Memory: 1}

// Job is a job with the needs of each of its tasks: CPU is what a task uses at full speed, Memory
// what it requires to run at all. All tasks of a job get the same amount of CPU.
type Job struct {
	ID          string
	CPU, Memory float64
	Tasks       int
}

// Problem is the input of the algorithms.
type Problem struct {
	Hosts []Host
	Jobs  []Job
	// Current is the current placement of the tasks. It is nil, or nil for a job, if the tasks have
	// no host yet. Only Exact, Adapt and Program use it.
	Current Placement
	// Budget is how much memory of tasks with a current host may be moved or, with Price, the
	// largest sum of their prices.
	Budget float64
	// Price is the cost of moving a task, for each job; nil means the task's memory. With 1 for
	// each job, Budget is the number of migrations.
	Price []float64
	// May reports whether the tasks of a job may be on a host other than their current one;
	// nil allows every host. Only Exact and Adapt use it.
	May func(job, host int) bool
}

// Placement contains the host of each task: Placement[job][task] is the index of a host.
type Placement [][]int

// Identical returns n hosts with the capacity Unit.
func Identical(n int) []Host {
	hosts := make([]Host, n)
	for i := range hosts {
		hosts[i] = Unit
	}
	return hosts
}

// slack is how much a host may be filled beyond its capacity, so that rounded fractions with the
// sum 1 fit (erratum E002-10).
const slack = 1e-9

// Check returns an Invalid fault with the field if the problem is malformed.
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
			return fault.Field(path+".id", "is required")
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

// checkCurrent returns an Invalid fault if budget, prices or present hosts are wrong.
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

// task is a task of a job. Lists of tasks are in the order of the jobs.
type task struct {
	job, number int
	cpu, memory float64
	price       float64 // cost of moving it
	at          int     // its current host; -1 is none
}

// price returns the cost of moving a task of the job with an index.
func (p *Problem) price(job int) float64 {
	if p.Price != nil {
		return p.Price[job]
	}
	return p.Jobs[job].Memory
}

// may reports whether a task may be on a host.
func (p *Problem) may(t *task, host int) bool {
	return p.May == nil || t.at == host || p.May(t.job, host)
}

// tasks returns the tasks of all jobs, with the host on which each runs now; -1 for none.
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

// placement returns hosts, where hosts[i] is the host of tasks[i], in the form of a Placement: the
// host of each task by its job and number. It returns nil if hosts is nil.
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

// Infeasible is the error of an algorithm that finds no placement.
type Infeasible struct {
	Reason string
	// Proven is true if it is proven that no placement exists.
	Proven bool
}

func (e *Infeasible) Error() string { return e.Reason }

// crowded returns an error if a task needs more memory than the largest host has, or all tasks
// together need more than all hosts have; otherwise nil.
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

// Algorithm returns a placement. If it finds none, the error is an *Infeasible; an *Unproven
// accompanies a placement; any other error means that it could not search.
type Algorithm func(ctx context.Context, p *Problem) (Placement, error)
