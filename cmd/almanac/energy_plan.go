// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

// planMove is one line of a plan: a host that Almanac switches, or that stays on.
type planMove struct {
	Host   string `json:"host"`
	Move   string `json:"move"` // "switch off", "stay on" and so on
	Urgent bool   `json:"urgent"`
	Reason string `json:"reason"`
}

func planFields(m planMove) []field {
	return []field{{"Host", m.Host, inLists}, {"Move", m.Move, inLists}, {"Urgent", m.Urgent, inLists}, {"Reason", prose(m.Reason), inLists}}
}

var moveWords = map[string]string{"on": "switch on", "standby": "put in standby", "off": "switch off"}

// planMoves returns the wanted switches of a plan.
func planMoves(plan v1.EnergyPlan, wanted func(v1.EnergySwitch) bool) []planMove {
	moves := []planMove{}
	for _, s := range plan.Switches {
		if wanted(s) {
			moves = append(moves, planMove{s.Host, moveWords[s.To], s.Urgent, s.Reason})
		}
	}
	return moves
}

func (p *process) energyPlanCommand() *cobra.Command {
	var long bool
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show which hosts the last plan switches, and why",
		Long: `Show which hosts the last plan switches, and why; with --long also the idle hosts that
stay on. In the mode recommend, 'almanac energy approve ID' lets Almanac carry the
plan out. Urgent switches need no approval.`,
		Example: `  almanac energy plan --long
  almanac energy plan -f json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.showPlan(c, long, func(ctx context.Context, almanac *client.Client) (v1.EnergyPlan, error) {
				return almanac.EnergyPlan(ctx)
			})
		},
	}
	c.Flags().BoolVar(&long, "long", false, "list the idle hosts that stay on too")
	return c
}

// showPlan prints the plan that ask returns.
func (p *process) showPlan(c *cobra.Command, long bool, ask func(context.Context, *client.Client) (v1.EnergyPlan, error)) error {
	return list(p, c, planFields, inLists, func(ctx context.Context, almanac *client.Client) ([]planMove, v1.EnergyPlan, error) {
		plan, err := ask(ctx, almanac)
		if err != nil {
			return nil, plan, err
		}
		p.describePlan(plan)
		moves := planMoves(plan, func(v1.EnergySwitch) bool { return true })
		if long {
			for _, k := range plan.Kept {
				moves = append(moves, planMove{Host: k.Host, Move: "stay on", Reason: k.Reason})
			}
		}
		return moves, plan, nil
	})
}

// describePlan prints the summary of a plan.
func (p *process) describePlan(plan v1.EnergyPlan) {
	p.inform("plan %s of %s: %d hosts are required (%d forecast, %d reserved), %d more stay as spare, and %d are on",
		plan.ID, stamp(plan.At), plan.Required, plan.Forecast, plan.Reserved, plan.Spare, plan.On)
	if plan.Short != "" {
		p.inform("%s", plain(plan.Short))
	}
	if plan.Approved != nil {
		p.inform("approved by %s at %s", plain(plan.Approved.By), stamp(plan.Approved.At))
	}
}

func (p *process) energyApproveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "approve ID",
		Short: "Approve a plan",
		Long: `Approve the plan with an id, which 'almanac energy plan' shows, so that Almanac carries
it out. The command fails if Almanac has made another plan since.`,
		Example:           "  almanac energy approve 0197c2a4-7f5e-7b1a-9d55-1f9a0c4b2e77",
		Args:              needsOne("ID"),
		ValidArgsFunction: cobra.NoFileCompletions, // a user should read a plan before the approval
		RunE: func(c *cobra.Command, args []string) error {
			return p.showPlan(c, false, func(ctx context.Context, almanac *client.Client) (v1.EnergyPlan, error) {
				return almanac.ApproveEnergyPlan(ctx, args[0])
			})
		},
	}
}
