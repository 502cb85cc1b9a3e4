// SPDX-License-Identifier: Apache-2.0

// Package packing repeats the evaluation of Stillwell et al., "Resource allocation using virtual
// clusters" (paper 002): it compares the heuristics of package packing with each other, the exact
// solution and the bound, on generated instances. Beyond the paper, it evaluates how to adapt a
// placement within a budget.
package packing

import (
	"fmt"
	"math/rand/v2"

	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// Spec is a kind of generated problem, which the paper calls an instance (section 4.1).
type Spec struct {
	Hosts, Tasks int
	// Slack is the share of all memory that stays free.
	Slack float64
	// CPUSpread and MemorySpread are coefficients of variation: standard deviation by mean.
	CPUSpread, MemorySpread float64
	// Scaled scales the memory of the tasks so that each problem has exactly the slack, as the
	// authors' later generator does (genprob.py of flexsched). Otherwise only the mean over the
	// problems is the slack, as in the paper.
	Scaled bool
	// Parallel draws jobs of 1 to 64 tasks (section 5.2); otherwise each job has one task.
	Parallel bool
}

const (
	// meanCPU is the mean need of CPU of a task, as a share of a host; with Scaled it is also the
	// mean need of memory before scaling.
	meanCPU = 0.5
	// least is the lower bound of needs in scaled instances, as in the authors' generator.
	least = 0.01
	// largestJob is the largest number of tasks of a parallel job.
	largestJob = 64
)

// Instance draws a problem of the kind.
func (s Spec) Instance(chance *rand.Rand) *packing.Problem {
	p := &packing.Problem{Hosts: packing.Identical(s.Hosts)}
	sizes := workload.Typeless().Sizes.On(largestJob)
	for left := s.Tasks; left > 0; {
		tasks := 1
		if s.Parallel {
			tasks = min(left, sizes.Draw(chance))
		}
		left -= tasks
		p.Jobs = append(p.Jobs, packing.Job{ID: fmt.Sprintf("j%d", len(p.Jobs)+1), Tasks: tasks})
	}
	mean := float64(s.Hosts) * (1 - s.Slack) / float64(s.Tasks)
	total := 0.0
	for i := range p.Jobs {
		j := &p.Jobs[i]
		j.CPU = s.draw(chance, meanCPU, s.CPUSpread)
		if s.Scaled {
			j.Memory = s.draw(chance, meanCPU, s.MemorySpread)
		} else {
			j.Memory = s.draw(chance, mean, s.MemorySpread)
		}
		total += j.Memory * float64(j.Tasks)
	}
	if s.Scaled {
		for i := range p.Jobs {
			p.Jobs[i].Memory *= float64(s.Hosts) * (1 - s.Slack) / total
		}
	}
	return p
}

// draw returns a normally distributed number with the mean, and with spread × mean as its standard
// deviation. It repeats the draw until the number is at most 1 and greater than 0, or greater than
// least if the memory is Scaled.
func (s Spec) draw(chance *rand.Rand, mean, spread float64) float64 {
	low := 0.0
	if s.Scaled {
		low = least
	}
	for {
		if x := mean + mean*spread*chance.NormFloat64(); x > low && x <= 1 {
			return x
		}
	}
}

// small returns the specifications of the small set; like has the fields that do not vary.
func small(like Spec) []Spec {
	like.Hosts = 4
	return specs(like, 6, 8, 10, 12)
}

// large returns the specifications of the large set; like has the fields that do not vary.
func large(like Spec) []Spec {
	like.Hosts = 64
	return specs(like, 100, 250, 500)
}

// specs returns one specification for each combination of the numbers of tasks with the slacks and
// spreads of the paper.
func specs(like Spec, tasks ...int) (list []Spec) {
	for _, like.Tasks = range tasks {
		for tenth := 1; tenth <= 9; tenth++ {
			like.Slack = float64(tenth) / 10
			for _, like.MemorySpread = range []float64{0.25, 0.75} {
				for _, like.CPUSpread = range []float64{0.25, 0.75} {
					list = append(list, like)
				}
			}
		}
	}
	return list
}
