// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/packing/glpk"
	"github.com/almanac-cloud/almanac/pkg/whatif"
)

func (p *process) whatIfCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "whatif",
		Short: "Answer a question from a file, without a server",
		Long: `Answer a question from a file with the code that serves the cloud.

Exit codes: 0 yes; 5 no (the answer is printed too); 2 the input makes no sense (one
line on standard error names the field).`,
	}
	group.AddCommand(p.whatIfFitCommand(), p.whatIfScheduleCommand(), p.whatIfStageCommand(), p.whatIfPowerCommand(), p.whatIfPackCommand())
	return group
}

func fitFields(a whatif.FitAnswer) []field {
	candidates := each(a.Candidates, func(c whatif.FitCandidate) string {
		return fmt.Sprintf("%d: %d free in [%d, %d)", c.Start, c.Free, c.Begin, c.End)
	})
	slots := each(a.Slots, func(s whatif.FitSlot) string { return fmt.Sprintf("%d: busy %s", s.Time, numbers(s.Busy)) })
	return []field{
		{"Accepted", a.Accepted, inLists}, {"Reason", a.Reason, inLists}, {"Start", a.Start, inLists}, {"End", a.End, inLists},
		{"Hosts", numbers(a.Hosts), inLists}, {"Candidates", strings.Join(candidates, "; "), inLists},
		{"Slots", strings.Join(slots, "; "), inLists},
	}
}

func numbers(list []int) string { return strings.Trim(fmt.Sprint(list), "[]") }

func (p *process) whatIfFitCommand() *cobra.Command {
	return whatIf(p, &cobra.Command{
		Use:   "fit",
		Short: "Find out when and where a number of hosts is free (paper 003)",
		Long: `Find out when and where a number of hosts is free for a duration before a deadline,
next to existing claims. Times are whole numbers of any unit. The answer has every
feasible start with its availability rectangle, and the slots after booking.`,
		Example: "  almanac whatif fit --input docs/examples/whatif/fit.json -f json",
	}, fitFields, func(question io.Reader) (whatif.FitAnswer, bool, error) {
		answer, err := whatif.Fit(question)
		return answer, answer.Accepted, err
	})
}

// whatIf completes c: it answers the question in a file. answer also reports whether the
// answer is yes.
func whatIf[T any](p *process, c *cobra.Command, all columns[T], answer func(question io.Reader) (T, bool, error)) *cobra.Command {
	input := ""
	c.Args = cobra.NoArgs
	c.RunE = func(*cobra.Command, []string) error {
		out, err := newPrinter(p, all, inShows)
		if err != nil {
			return err
		}
		question, err := p.open(input)
		if err != nil {
			return err
		}
		defer question.Close()
		found, yes, err := answer(question)
		if err != nil {
			return err
		}
		if err := out.one(found, found); err != nil {
			return err
		}
		if !yes {
			return &outcome{code: exitNoRoom}
		}
		return nil
	}
	c.Flags().StringVar(&input, "input", "", "file with the question as JSON; - is standard input")
	return c
}

// open opens the input of a question.
func (p *process) open(path string) (io.ReadCloser, error) {
	switch path {
	case "":
		return nil, fault.Field("--input", "is required: the file with the question")
	case "-":
		return io.NopCloser(p.stdin), nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "--input", Message: "cannot be read", Err: err}
	}
	return file, nil
}

func packFields(a whatif.PackAnswer) []field {
	placement := each(slices.Sorted(maps.Keys(a.Placement)), func(id string) string {
		return fmt.Sprintf("%s: host %s, yield %.4g", id, numbers(a.Placement[id]), a.Yields[id])
	})
	return []field{
		{"Feasible", a.Feasible, inLists}, {"Reason", prose(a.Reason), inLists}, {"Min Yield", a.MinYield, inLists},
		{"Average Yield", a.AverageYield, inLists}, {"Average By", a.AverageBy, inLists}, {"Upper Bound", a.UpperBound, inLists},
		{"Placement", lines(placement), inLists}, {"Moved", a.Moved, inLists}, {"Unproven", prose(a.Unproven), inLists},
	}
}

func (p *process) whatIfPackCommand() *cobra.Command {
	limit := period(30)
	var c *cobra.Command
	c = whatIf(p, &cobra.Command{
		Use:   "pack",
		Short: "Place jobs on hosts with fair shares of CPU (paper 002)",
		Long: `Place jobs on hosts with fair shares of CPU. Each job receives its memory on a host, and
a fraction of the CPU that it could use, its yield. The placement maximizes the smallest
yield, and then the average. The answer has the host of each task by its index.

hosts is the number of hosts, each with 1 of CPU and of memory, or a list with the
capacity of each. A job may have several tasks, which all receive the same; its cpu and
memory are those of each task. algorithm is one of
` + strings.Join(packing.Names(), ", ") + `;
the default is mcb8.

If current has the present hosts of the tasks, exact and adapt start there, and move no
more memory than migration_budget, or no more tasks than migrations; without both they
move nothing. The other algorithms know no budget: a placement that moves more is
refused. A job that is not in current is new, and costs nothing. exact reports a placement
that may not be optimal (unproven); adapt is close to the optimum, and fast.

rrnd and rrnz require glpsol, which on Debian is in the package glpk-utils: without it
there is no answer, and the exit code is 1. exact uses glpsol if its own search does not
end within a few seconds. Each of the two runs for at most --solver-timeout, and then the
best placement so far is the answer, with unproven. For jobs of several tasks glpsol finds
the largest average; without it a heuristic does, and average_by names it.`,
		Example: `  almanac whatif pack --input docs/examples/whatif/pack.json -f json
  almanac whatif pack --input docs/examples/whatif/pack-adapt.json -f value -c Placement`,
	}, packFields, func(question io.Reader) (whatif.PackAnswer, bool, error) {
		if limit < 1 {
			return whatif.PackAnswer{}, false, fault.Field("--solver-timeout", "must be at least 1s")
		}
		tools := packingTools(limit.time())
		tools.Limit = limit.time()
		answer, err := whatif.Pack(c.Context(), question, tools, func(seed int64) packing.Chance {
			return rand.New(rand.NewPCG(uint64(seed), 0))
		})
		return answer, answer.Feasible, err
	})
	c.Flags().Var(&limit, "solver-timeout", "maximum time for each search of exact and of glpsol")
	return c
}

// packingTools returns the installed tools that algorithms need.
func packingTools(limit time.Duration) packing.Tools {
	solver := glpk.Solver{Limit: limit}
	if err := solver.Find(); err != nil {
		return packing.Tools{Missing: err}
	}
	return packing.Tools{Solver: solver}
}

func powerFields(a whatif.PowerAnswer) []field {
	reasons := each(slices.Sorted(maps.Keys(a.Reasons)), func(host string) string { return host + ": " + a.Reasons[host] })
	return []field{{"On", lines(a.On), inLists}, {"Off", lines(a.Off), inLists}, {"Reasons", lines(reasons), inLists}}
}

func (p *process) whatIfPowerCommand() *cobra.Command {
	return whatIf(p, &cobra.Command{
		Use:   "power",
		Short: "Plan which hosts to switch on and off (paper 004)",
		Long: `Plan which hosts to switch on and off, by the rules of the paper alone, without the
safety limits of a cloud.

The number of hosts that stay on is the forecast of the hosts in use, or the number of
reserved hosts if that is larger. reserved names the hosts with a reservation that runs
or starts within the horizon: the plan switches them on first, and never off. Then it
switches on the most efficient hosts while too few are on, or switches off the least
efficient hosts that have been idle for idle_needed measurements while too many are on.
A host that is on and has been idle for 0 measurements is busy. The default horizon is
900 seconds, the default idle_needed 5.`,
		Example: `  almanac whatif power --input docs/examples/whatif/power.json -f json
  almanac whatif power --input question.json -f value -c Off`,
	}, powerFields, func(question io.Reader) (whatif.PowerAnswer, bool, error) {
		answer, err := whatif.Power(question)
		return answer, true, err
	})
}

func scheduleFields(a whatif.ScheduleAnswer) []field {
	return []field{
		{"Placements", lines(each(a.Placements, schedulePlacement)), inLists}, {"Reason", prose(a.Reason), inLists},
		{"Hosts", lines(each(a.Hosts, scheduleVerdict)), inLists},
	}
}

func schedulePlacement(p whatif.SchedulePlacement) string {
	if len(p.Victims) == 0 {
		return p.Host
	}
	return fmt.Sprintf("%s, without %s: costs %d min", p.Host, strings.Join(p.Victims, ", "), p.CostMinutes)
}

func scheduleVerdict(v whatif.ScheduleVerdict) string {
	if !v.Passed {
		return fmt.Sprintf("%s: refused by %s", v.Name, v.RefusedBy)
	}
	return weighed(v.Name, v.Weight, v.Weights)
}

func (p *process) whatIfScheduleCommand() *cobra.Command {
	return whatIf(p, &cobra.Command{
		Use:   "schedule",
		Short: "Place instances, and choose which preemptible instances to evict (paper 001)",
		Long: `Place instances, and choose which preemptible instances to evict for them. An instance
that is not preemptible may replace preemptible ones: on the best host the cheapest
victims are evicted, and no more than necessary. A victim costs the time that it has run
since its last full period (period_minutes, by default 60).

weighers rank the hosts, each with its multiplier: preemption_cost (cost of the victims
on the host), overcommit (whether there are victims), period (cost of all preemptible
instances of the host), count (their number), cpu, ram and disk (free amounts). The
default is overcommit and preemption_cost with 1 each. Of equal hosts the first by name
is chosen, or with a seed a random one.

Several instances (count) are placed one after the other, all or none of them.`,
		Example: `  almanac whatif schedule --input docs/examples/whatif/schedule.json -f json
  almanac whatif schedule --input question.json -f value -c Placements`,
	}, scheduleFields, func(question io.Reader) (whatif.ScheduleAnswer, bool, error) {
		answer, err := whatif.Schedule(question, seeded)
		return answer, len(answer.Placements) > 0, err
	})
}

// seeded returns draws of 0 … n-1 that depend only on the seed.
func seeded(seed int64) func(n int) int { return rand.New(rand.NewPCG(uint64(seed), 0)).IntN }

func stageFields(a whatif.StageAnswer) []field {
	placement := each(slices.Sorted(maps.Keys(a.Placement)), func(node string) string { return fmt.Sprintf("%s: %d", node, a.Placement[node]) })
	pool := each(slices.Sorted(maps.Keys(a.Pool)), func(node string) string { return stagePool(node, a.Pool[node]) })
	return []field{
		{"Accepted", a.Accepted, inLists}, {"Reason", a.Reason, inLists}, {"Placement", lines(placement), inLists},
		{"Transfers", lines(each(a.Transfers, stageTransfer)), inLists}, {"Pool", lines(pool), inLists},
	}
}

func stageTransfer(t whatif.StageTransfer) string {
	return fmt.Sprintf("%s: %s to %s in [%d, %d), by %d", t.ID, t.Image, t.Node, t.Start, t.End, t.Deadline)
}

func stagePool(node string, images []whatif.StagePooled) string {
	if len(images) == 0 {
		return node + ": empty"
	}
	return node + ": " + strings.Join(each(images, func(i whatif.StagePooled) string {
		return fmt.Sprintf("%s until %d", i.Image, i.Expire)
	}), ", ")
}

func (p *process) whatIfStageCommand() *cobra.Command {
	return whatIf(p, &cobra.Command{
		Use:   "stage",
		Short: "Plan VM placement and image transfers (paper 000)",
		Long: `Plan the placement of VMs, which run together from start to end, and the transfers of
their image to the nodes. Each transfer ends before its deadline, and one channel carries
one transfer at a time. The plan prefers nodes that will have the image, then nodes that
can hold more VMs. Times are whole numbers of any unit; bandwidth is in units of size per
unit of time.

strategy chooses transfers as early as possible (edf) or as late as possible (jit); both
accept the same requests. pool_limit bounds the images that a node keeps, each from the
start of its transfer until its expiry; 0 is no limit.

pending is the list of existing transfers, each with a duration. A transfer with a start
has been running since then and is not interrupted. Its image stays in the pool until
expire, by default until the deadline. Without a request, the question is whether all
pending transfers can meet their deadlines.

capacity and resources have vcpus, memory_mb and disk_gb (also cpu and memory). The
default size of the image of a pending transfer is what the bandwidth carries in its
duration. The default size of an image in a pool is its size elsewhere in the question,
or else the size of the image of the request: in the paper all images have one size.

A refusal has a reason: resources (no capacity for the VMs), pool (no capacity for their
image) or transfer (the image cannot arrive in time).`,
		Example: `  almanac whatif stage --input docs/examples/whatif/stage.json -f json
  almanac whatif stage --input question.json -f value -c Transfers`,
	}, stageFields, func(question io.Reader) (whatif.StageAnswer, bool, error) {
		answer, err := whatif.Stage(question)
		return answer, answer.Accepted, err
	})
}
