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

var packColumns = []column[whatif.PackAnswer]{
	{"Feasible", func(a whatif.PackAnswer) any { return a.Feasible }, inLists},
	{"Reason", func(a whatif.PackAnswer) any { return prose(a.Reason) }, inLists},
	{"Min Yield", func(a whatif.PackAnswer) any { return a.MinYield }, inLists},
	{"Average Yield", func(a whatif.PackAnswer) any { return a.AverageYield }, inLists},
	{"Average By", func(a whatif.PackAnswer) any { return a.AverageBy }, inLists},
	{"Upper Bound", func(a whatif.PackAnswer) any { return a.UpperBound }, inLists},
	{"Placement", func(a whatif.PackAnswer) any {
		return lines(each(slices.Sorted(maps.Keys(a.Placement)), func(id string) string {
			return fmt.Sprintf("%s: host %s, yield %.4g", id, numbers(a.Placement[id]), a.Yields[id])
		}))
	}, inLists},
	{"Moved", func(a whatif.PackAnswer) any { return a.Moved }, inLists},
	{"Unproven", func(a whatif.PackAnswer) any { return prose(a.Unproven) }, inLists},
}

func (p *process) whatIfPackCommand() *cobra.Command {
	limit := 30 * time.Second
	var c *cobra.Command
	c = whatIf(p, &cobra.Command{
		Use:   "pack",
		Short: "How jobs share hosts most fairly (paper 002)",
		Long: `How jobs share hosts most fairly. Each job gets its memory on a host, and of the CPU that
it could use a fraction, its yield; the smallest yield shall be as large as possible, and
then the average. The answer has the host of each task by its index.

hosts is how many hosts there are, each with 1 of CPU and of memory, or a list of what each
has. A job may have several tasks, which all get the same; its cpu and memory are those of
each. algorithm is one of ` + strings.Join(packing.Names(), ", ") + `;
mcb8 where it is not given.

exact and adapt begin with where the tasks are (current), if that is given, and move no more
memory than migration_budget, or no more tasks than migrations: nothing where neither is
given. Of the others, which know no budget, a placement that moves more is refused. A job
that is not in current is new, and costs nothing. exact says where it may not have found the
best (unproven); adapt is near it, and fast.

rrnd and rrnz need glpsol, which on Debian is in the package glpk-utils: where it is not
there, nothing is answered, and the exit code is 1. exact asks it where its own search, of a
few seconds, does not come to an end; each of the two takes no longer than --solver-timeout,
and what was found until then is the answer, with unproven. With jobs of several tasks it finds the largest average; without it a
heuristic does its best, and average_by says so.`,
		Example: `  almanac whatif pack --input docs/examples/whatif/pack.json -f json
  almanac whatif pack --input docs/examples/whatif/pack-adapt.json -f value -c Placement`,
	}, packColumns, func(question io.Reader) (whatif.PackAnswer, bool, error) {
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
	c.Flags().DurationVar(&limit, "solver-timeout", limit, "how long exact may search, and glpsol each time that it is needed")
	return c
}

// packingTools are what algorithms need that is installed here.
func packingTools(limit time.Duration) packing.Tools {
	solver := glpk.Solver{Limit: limit}
	if err := solver.Find(); err != nil {
		return packing.Tools{Missing: err}
	}
	return packing.Tools{Solver: solver}
}
