// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"cmp"
	"slices"
)

// Bound returns a yield that the smallest yield of no placement exceeds: the CPU of all hosts
// divided by the needs of all tasks, at most 1. If hosts are identical, the memory fits in sum, and
// tasks may be divided among hosts at will, this yield is reached (section 3.1).
func (p *Problem) Bound() float64 {
	need, has := 0.0, 0.0
	for _, j := range p.Jobs {
		need += j.CPU * float64(j.Tasks)
	}
	for _, h := range p.Hosts {
		has += h.CPU
	}
	if need <= has {
		return 1
	}
	return has / need
}

// loads returns, for each host, the CPU needs of its tasks as a fraction of its CPU.
func (p *Problem) loads(at Placement) []float64 {
	loads := make([]float64, len(p.Hosts))
	for i, hosts := range at {
		for _, h := range hosts {
			loads[h] += p.Jobs[i].CPU
		}
	}
	for h := range loads {
		loads[h] /= p.Hosts[h].CPU
	}
	return loads
}

// MinYield returns the largest smallest yield that a placement allows: that of the fullest host if
// every job there gets the same fraction of what it needs.
func (p *Problem) MinYield(at Placement) float64 {
	return min(1, 1/slices.Max(p.loads(at)))
}

// Fits reports whether the memory of the tasks fits on every host.
func (p *Problem) Fits(at Placement) bool {
	memory := make([]float64, len(p.Hosts))
	for i, hosts := range at {
		for _, h := range hosts {
			memory[h] += p.Jobs[i].Memory
		}
	}
	for h, used := range memory {
		if used > p.Hosts[h].Memory+slack {
			return false
		}
	}
	return true
}

// Moved returns the cost of moving the tasks from their current hosts: their memory or, with Price,
// the sum of their prices.
func (p *Problem) Moved(at Placement) float64 {
	moved := 0.0
	for i, hosts := range at {
		if p.Current == nil || p.Current[i] == nil {
			continue
		}
		for k, h := range hosts {
			if h != p.Current[i][k] {
				moved += p.price(i)
			}
		}
	}
	return moved
}

// Raise is the second phase (section 3.5). Every job gets the smallest yield, and the rest of the
// CPU goes to jobs in the order of their needs, the smallest first, so that as many jobs as
// possible get all that they need. It returns the yield of each job. For jobs with one task the
// average yield is the largest possible. For parallel jobs, whose tasks all get the same amount,
// Raise is a heuristic, and RaiseExactly finds the largest average.
func (p *Problem) Raise(at Placement, smallest float64) []float64 {
	left := make([]float64, len(p.Hosts))
	for h := range left {
		left[h] = p.Hosts[h].CPU
	}
	yields := make([]float64, len(p.Jobs))
	for i, j := range p.Jobs {
		yields[i] = smallest
		if j.CPU == 0 { // erratum E002-8
			yields[i] = 1
		}
		for _, h := range at[i] {
			left[h] -= smallest * j.CPU
		}
	}
	order := make([]int, len(p.Jobs))
	for i := range order {
		order[i] = i
	}
	need := func(i int) float64 { return p.Jobs[i].CPU * float64(p.Jobs[i].Tasks) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(need(a), need(b)) })
	on := make([]float64, len(p.Hosts)) // what an increase of a job's yield by 1 takes of each host
	for _, i := range order {
		if p.Jobs[i].CPU == 0 {
			continue
		}
		for _, h := range at[i] {
			on[h] += p.Jobs[i].CPU
		}
		more := 1 - yields[i]
		for _, h := range at[i] {
			more = min(more, max(0, left[h])/on[h])
		}
		for _, h := range at[i] {
			left[h] -= more * p.Jobs[i].CPU
			on[h] = 0
		}
		yields[i] = min(1, yields[i]+more)
	}
	return yields
}

// Mean returns the average of the yields.
func Mean(yields []float64) float64 {
	sum := 0.0
	for _, y := range yields {
		sum += y
	}
	return sum / float64(len(yields))
}

// sequential reports whether every job has one task.
func (p *Problem) sequential() bool {
	return !slices.ContainsFunc(p.Jobs, func(j Job) bool { return j.Tasks > 1 })
}
