package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/packing"
	"github.com/almanac-cloud/almanac/pkg/packing/glpk"
	"github.com/almanac-cloud/almanac/pkg/whatif"
)

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
	limit := 30 * time.Second
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
		if limit < time.Second {
			return whatif.PackAnswer{}, false, fault.Field("--solver-timeout", "must be at least 1s")
		}
		tools := packingTools(limit)
		tools.Limit = limit
		answer, err := whatif.Pack(c.Context(), question, tools, func(seed int64) packing.Chance {
			return rand.New(rand.NewPCG(uint64(seed), 0))
		})
		return answer, answer.Feasible, err
	})
	c.Flags().DurationVar(&limit, "solver-timeout", limit, "maximum time for each search of exact and of glpsol")
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
