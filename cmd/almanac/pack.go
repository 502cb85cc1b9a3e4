// SPDX-License-Identifier: Apache-2.0

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
		Short: "Migrate servers for a fair share of CPU, or to empty hosts",
		Long: `Migrate servers so that all receive a fair share of CPU, or so that hosts become empty.

The yield of a server is the fraction of its CPU need that it receives when all servers
on its host receive the same fraction. A plan maximizes the smallest yield within a
budget of migrations, or empties the least efficient hosts so that they can be switched
off. A run carries out a plan by live migration, one server at a time.`,
		Example: `  almanac pack plan --migrations 5
  almanac pack apply --migrations 5 --wait
  almanac pack plan --consolidate 2 --floor 0.8
  almanac pack status
  almanac pack stop`,
	}
	c.AddCommand(p.packPlanCommand(), p.packApplyCommand(), p.packStatusCommand(), p.packListCommand(), p.packStopCommand())
	return c
}

// packFlags are the flags that select a plan.
type packFlags struct {
	migrations, consolidate int
	memory                  int64
	floor                   float64
	algorithm               string
	empty                   bool
}

func (k *packFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.IntVar(&k.migrations, "migrations", 0, "maximum number of migrations; 0 is unlimited (default: as configured)")
	flags.Int64Var(&k.memory, "memory", 0, "maximum memory to migrate in MB; 0 is unlimited (default: as configured)")
	flags.StringVar(&k.algorithm, "algorithm", "", "adapt or exact (default: exact where it is fast)")
	flags.IntVar(&k.consolidate, "consolidate", 0, "number of hosts to empty, the least efficient first")
	flags.BoolVar(&k.empty, "empty", false, "empty as many hosts as possible")
	flags.Float64Var(&k.floor, "floor", 0, "smallest yield to keep while hosts are emptied (default: the present one)")
	c.MarkFlagsMutuallyExclusive("consolidate", "empty")
	completeFlag(c, "algorithm", oneOf([]string{"adapt", "exact"}))
}

// request returns the request of the flags that are set.
func (k *packFlags) request(c *cobra.Command) v1.PackingRequest {
	return v1.PackingRequest{
		Algorithm: k.algorithm, Empty: k.empty,
		Migrations: given(c, "migrations", &k.migrations), MemoryMB: given(c, "memory", &k.memory),
		Consolidate: given(c, "consolidate", &k.consolidate), Floor: given(c, "floor", &k.floor),
	}
}

func moveFields(m v1.PackingMove) []field {
	return []field{
		{"Server", m.Instance, inLists}, {"Name", m.Name, inLists}, {"From", m.From, inLists}, {"To", m.To, inLists},
		{"Memory MB", m.MemoryMB, inLists}, {"CPU Need", rounded(m.Need), inLists}, {"Min Yield", yieldText(m.MinYield), inLists},
		{"State", m.State, inShows}, {"Reason", prose(m.Reason), inShows}, {"Between", m.Between, inLongLists},
		{"Project", m.ProjectID, inLongLists}, {"vCPUs", m.VCPUs, inLongLists},
	}
}

func yieldText(yield float64) string { return fmt.Sprintf("%.4f", yield) }

func (p *process) packPlanCommand() *cobra.Command {
	var k packFlags
	var long bool
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show which servers would be moved and the resulting yields. Nothing is moved.",
		Long: `Show which servers would be moved and the resulting yields. Nothing is moved. The moves
are in a possible order, each with the smallest yield after it.`,
		Example: `  almanac pack plan --migrations 5
  almanac pack plan --memory 65536 --algorithm exact -f json
  almanac pack plan --consolidate 2`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.showPacking(c, &k, long) },
	}
	k.add(c)
	c.Flags().BoolVar(&long, "long", false, "print more columns, and the hosts and servers that stay with the reason")
	return c
}

// showPacking prints the plan that the flags select.
func (p *process) showPacking(c *cobra.Command, k *packFlags, long bool) error {
	in := inLists
	if long {
		in = inLongLists
	}
	return list(p, c, moveFields, in, func(ctx context.Context, almanac *client.Client) ([]v1.PackingMove, v1.PackingPlan, error) {
		plan, err := almanac.PlanPacking(ctx, k.request(c))
		if err == nil {
			p.describePacking(plan, long)
		}
		return plan.Moves, plan, err
	})
}

// describePacking prints the summary of a plan.
func (p *process) describePacking(plan v1.PackingPlan, long bool) {
	p.inform("plan %s: the smallest yield of %d servers on %d hosts is %s now and %s after %d moves of %d MB; no placement has more than %s",
		plan.ID, plan.Instances, plan.Hosts, yieldText(plan.MinYield), yieldText(plan.PlannedYield), len(plan.Moves), plan.MemoryMB, yieldText(plan.UpperBound))
	if plan.Measured > 0 {
		p.inform("the CPU need of %d servers is measured; the need of the others comes from their flavors", plan.Measured)
	}
	for _, host := range plan.Emptied {
		p.inform("%s becomes empty", plain(host))
	}
	for _, b := range plan.Excluded {
		p.inform("%s is excluded: %s", plain(b.Host), plain(b.Reason))
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
	var dryRun bool
	w := newWaiting()
	c := &cobra.Command{
		Use:   "apply",
		Short: "Plan and carry out migrations",
		Long: `Plan as 'almanac pack plan' does, and carry out the plan by live migration, one server
after the other. Almanac checks each server again before it moves it. It leaves out a
server if the server or its target has changed, and ends the run when the remaining
moves no longer help. 'almanac pack stop' ends the run after the move in progress. With
--wait the exit code is 1 if the run has failed or was stopped.`,
		Example: `  almanac pack apply --migrations 5 --wait
  almanac pack apply --migrations 5 --plan 4be5a83c0d7f
  almanac pack apply --consolidate 2 --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if dryRun {
				return p.showPacking(c, &k, false)
			}
			return p.showRun(c, w, func(ctx context.Context, almanac *client.Client) (v1.PackingRun, error) {
				r := k.request(c)
				r.Plan = plan
				return almanac.ApplyPacking(ctx, r)
			})
		},
	}
	k.add(c)
	flags := c.Flags()
	flags.StringVar(&plan, "plan", "", "apply only if the plan still has this id")
	flags.BoolVar(&dryRun, "dry-run", false, "only show the plan")
	w.add(c)
	c.MarkFlagsMutuallyExclusive("dry-run", "wait")
	return c
}

func (p *process) packStatusCommand() *cobra.Command {
	return p.runCommand(&cobra.Command{
		Use:   "status [ID]",
		Short: "Show the progress of a run (default: the latest)",
		Example: `  almanac pack status
  almanac pack status -f json
  almanac pack status --wait`,
	}, func(ctx context.Context, almanac *client.Client, r v1.PackingRun) (v1.PackingRun, error) {
		if r.Status != "" { // the latest, with all its values
			return r, nil
		}
		return almanac.PackingRun(ctx, r.ID)
	})
}

func (p *process) packStopCommand() *cobra.Command {
	return p.runCommand(&cobra.Command{
		Use:   "stop [ID]",
		Short: "Stop a run (default: the latest)",
		Long: `Stop a run. Almanac finishes the move in progress; the servers that it has moved stay
where they are.`,
		Example: `  almanac pack stop
  almanac pack stop --wait`,
	}, func(ctx context.Context, almanac *client.Client, r v1.PackingRun) (v1.PackingRun, error) {
		return almanac.StopPacking(ctx, r.ID)
	})
}

// runCommand completes c: it calls ask for the run with an id, by default for the latest, and
// shows the result. Of a run with an id, ask receives only the id.
func (p *process) runCommand(c *cobra.Command, ask func(context.Context, *client.Client, v1.PackingRun) (v1.PackingRun, error)) *cobra.Command {
	w := newWaiting()
	w.add(c)
	c.Args, c.ValidArgsFunction = cobra.MaximumNArgs(1), cobra.NoFileCompletions
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.showRun(c, w, func(ctx context.Context, almanac *client.Client) (v1.PackingRun, error) {
			if len(args) == 1 {
				return ask(ctx, almanac, v1.PackingRun{ID: args[0]})
			}
			runs, err := almanac.PackingRuns(ctx, 1)
			switch {
			case err != nil:
				return v1.PackingRun{}, err
			case len(runs.Runs) == 0:
				return v1.PackingRun{}, fault.New(fault.NotFound, "there is no run yet; 'almanac pack apply' starts one")
			}
			return ask(ctx, almanac, runs.Runs[0])
		})
	}
	return c
}
