package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func (p *process) packCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "pack",
		Short: "Move servers so that all get a fair share of CPU, or so that hosts become empty",
		Long: `Move servers so that all get a fair share of CPU, or so that hosts become empty.

The yield of a server is the part of the CPU that it could use which it can have where
all on its host get the same part. A plan makes the smallest yield as large as it can
within a budget of migrations, or empties the least efficient hosts so that they can be
switched off. A run carries a plan out by live migration, one server at a time.`,
		Example: `  almanac pack plan --migrations 5
  almanac pack apply --migrations 5 --wait
  almanac pack plan --consolidate 2 --floor 0.8
  almanac pack status
  almanac pack stop`,
	}
	c.AddCommand(p.packPlanCommand(), p.packApplyCommand(), p.packStatusCommand(), p.packListCommand(), p.packStopCommand())
	return c
}

// packFlags say what is wanted of a plan.
type packFlags struct {
	migrations, consolidate int
	memory                  int64
	floor                   float64
	algorithm               string
	empty                   bool
}

func (k *packFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.IntVar(&k.migrations, "migrations", 0, "at most so many migrations; 0 is any number (default: as configured)")
	flags.Int64Var(&k.memory, "memory", 0, "move at most so many MB of memory; 0 is any (default: as configured)")
	flags.StringVar(&k.algorithm, "algorithm", "", "adapt or exact (default: exact where that is quick)")
	flags.IntVar(&k.consolidate, "consolidate", 0, "empty so many hosts, the least efficient first")
	flags.BoolVar(&k.empty, "empty", false, "empty as many hosts as can be")
	flags.Float64Var(&k.floor, "floor", 0, "the smallest yield that is kept while hosts are emptied (default: the one that is now)")
	c.MarkFlagsMutuallyExclusive("consolidate", "empty")
	completeFlag(c, "algorithm", cobra.FixedCompletions([]string{"adapt", "exact"}, cobra.ShellCompDirectiveNoFileComp))
}

// request is what the flags say, where they were given.
func (k *packFlags) request(c *cobra.Command) v1.PackingRequest {
	r := v1.PackingRequest{Algorithm: k.algorithm, Empty: k.empty}
	given := c.Flags().Changed
	if given("migrations") {
		r.Migrations = &k.migrations
	}
	if given("memory") {
		r.MemoryMB = &k.memory
	}
	if given("consolidate") {
		r.Consolidate = &k.consolidate
	}
	if given("floor") {
		r.Floor = &k.floor
	}
	return r
}

var moveColumns = []column[v1.PackingMove]{
	{"Server", func(m v1.PackingMove) any { return m.Instance }, inLists},
	{"Name", func(m v1.PackingMove) any { return m.Name }, inLists},
	{"From", func(m v1.PackingMove) any { return m.From }, inLists},
	{"To", func(m v1.PackingMove) any { return m.To }, inLists},
	{"Memory MB", func(m v1.PackingMove) any { return m.MemoryMB }, inLists},
	{"CPU Need", func(m v1.PackingMove) any { return rounded(m.Need) }, inLists},
	{"Min Yield", func(m v1.PackingMove) any { return yieldText(m.MinYield) }, inLists},
	{"State", func(m v1.PackingMove) any { return m.State }, inShows},
	{"Reason", func(m v1.PackingMove) any { return prose(m.Reason) }, inShows},
	{"Between", func(m v1.PackingMove) any { return m.Between }, inLongLists},
	{"Project", func(m v1.PackingMove) any { return m.ProjectID }, inLongLists},
	{"vCPUs", func(m v1.PackingMove) any { return m.VCPUs }, inLongLists},
}

func yieldText(yield float64) string { return fmt.Sprintf("%.4f", yield) }

func (p *process) packPlanCommand() *cobra.Command {
	var k packFlags
	var long bool
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show which servers would be moved, and what comes of it; nothing is",
		Long: `Show which servers would be moved, and what comes of it; nothing is. The moves are in the
order in which they can be made, each with the smallest yield after it.`,
		Example: `  almanac pack plan --migrations 5
  almanac pack plan --memory 65536 --algorithm exact -f json
  almanac pack plan --consolidate 2`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.showPacking(c, &k, long) },
	}
	k.add(c)
	c.Flags().BoolVar(&long, "long", false, "print more columns, and what stays where it is and why")
	return c
}

// showPacking prints the plan that the flags ask for.
func (p *process) showPacking(c *cobra.Command, k *packFlags, long bool) error {
	out, err := newPrinter(p, moveColumns, listed(long))
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	plan, err := almanac.PlanPacking(c.Context(), k.request(c))
	if err != nil {
		return err
	}
	p.describePacking(plan, long)
	return out.list(plan.Moves, plan)
}

// describePacking says what a plan is about.
func (p *process) describePacking(plan v1.PackingPlan, long bool) {
	p.inform("plan %s: the smallest yield of %d servers on %d hosts is %s now and %s after %d moves of %d MB; no placement has more than %s",
		plan.ID, plan.Instances, plan.Hosts, yieldText(plan.MinYield), yieldText(plan.PlannedYield), len(plan.Moves), plan.MemoryMB, yieldText(plan.UpperBound))
	if plan.Measured > 0 {
		p.inform("of %d servers the CPU need was measured, of the others it is that of their flavors", plan.Measured)
	}
	for _, host := range plan.Emptied {
		p.inform("%s becomes empty", plain(host))
	}
	for _, b := range plan.Beyond {
		p.inform("%s is left out: %s", plain(b.Host), plain(b.Reason))
	}
	for _, reason := range plan.Reasons {
		p.inform("%s", plain(reason))
	}
	if !long {
		return
	}
	for _, k := range plan.Kept {
		p.inform("%s does not become empty: %s", plain(k.Host), plain(k.Reason))
	}
	for _, s := range plan.Stays {
		p.inform("server %s stays on %s: %s", plain(s.Instance), plain(s.Host), plain(s.Reason))
	}
}

func (p *process) packApplyCommand() *cobra.Command {
	var k packFlags
	var plan string
	var wait, dryRun bool
	waitTime := period(3600)
	c := &cobra.Command{
		Use:   "apply",
		Short: "Plan, and have the servers moved",
		Long: `Plan as 'almanac pack plan' does, and have the servers moved by live migration, one after
the other. Each is looked at again before it is moved: one that has changed, or whose
target has, is left out, and where the rest no longer helps the run ends. 'almanac pack
stop' ends it after the move that is under way. With --wait the exit code is 1 where the
run has failed or was stopped.`,
		Example: `  almanac pack apply --migrations 5 --wait
  almanac pack apply --migrations 5 --plan 4be5a83c0d7f
  almanac pack apply --consolidate 2 --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if dryRun {
				return p.showPacking(c, &k, false)
			}
			return p.showRun(c, wait, waitTime, func(ctx context.Context, almanac *client.Client) (v1.PackingRun, error) {
				r := k.request(c)
				r.Plan = plan
				return almanac.ApplyPacking(ctx, r)
			})
		},
	}
	k.add(c)
	flags := c.Flags()
	flags.StringVar(&plan, "plan", "", "only where the plan is still this one, by its id")
	flags.BoolVar(&dryRun, "dry-run", false, "only show the plan")
	addWait(c, &wait, &waitTime)
	c.MarkFlagsMutuallyExclusive("dry-run", "wait")
	return c
}

func addWait(c *cobra.Command, wait *bool, most *period) {
	c.Flags().BoolVar(wait, "wait", false, "wait until the run is over")
	c.Flags().Var(most, "wait-timeout", "how long to wait at most")
}

func (p *process) packStatusCommand() *cobra.Command {
	var wait bool
	waitTime := period(3600)
	c := &cobra.Command{
		Use:   "status [ID]",
		Short: "Show how far a run is (default: the latest)",
		Example: `  almanac pack status
  almanac pack status -f json
  almanac pack status --wait`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.showRun(c, wait, waitTime, func(ctx context.Context, almanac *client.Client) (v1.PackingRun, error) {
				if len(args) == 1 {
					return almanac.PackingRun(ctx, args[0])
				}
				return latestRun(ctx, almanac)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	addWait(c, &wait, &waitTime)
	return c
}

func (p *process) packStopCommand() *cobra.Command {
	var wait bool
	waitTime := period(3600)
	c := &cobra.Command{
		Use:   "stop [ID]",
		Short: "Have no more servers moved (default: in the latest run)",
		Long: `Have no more servers moved. The move that is under way is finished first; what was moved
stays where it is.`,
		Example: `  almanac pack stop
  almanac pack stop --wait`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.showRun(c, wait, waitTime, func(ctx context.Context, almanac *client.Client) (v1.PackingRun, error) {
				if len(args) == 1 {
					return almanac.StopPacking(ctx, args[0])
				}
				last, err := latestRun(ctx, almanac)
				if err != nil {
					return last, err
				}
				return almanac.StopPacking(ctx, last.ID)
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	addWait(c, &wait, &waitTime)
	return c
}

func latestRun(ctx context.Context, almanac *client.Client) (v1.PackingRun, error) {
	list, err := almanac.PackingRuns(ctx, 1)
	if err != nil {
		return v1.PackingRun{}, err
	}
	if len(list.Runs) == 0 {
		return v1.PackingRun{}, fault.New(fault.NotFound, "no plan was ever carried out")
	}
	return list.Runs[0], nil
}
