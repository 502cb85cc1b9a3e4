package main

import (
	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// planMove is one line of a plan: a host that is switched, or that stays on.
type planMove struct {
	Host   string `json:"host"`
	Move   string `json:"move"` // "switch off", "stay on" and so on
	Urgent bool   `json:"urgent"`
	Reason string `json:"reason"`
}

var planColumns = []column[planMove]{
	{"Host", func(m planMove) any { return m.Host }, inLists},
	{"Move", func(m planMove) any { return m.Move }, inLists},
	{"Urgent", func(m planMove) any { return m.Urgent }, inLists},
	{"Reason", func(m planMove) any { return prose(m.Reason) }, inLists},
}

var moveWords = map[string]string{"on": "switch on", "standby": "put in standby", "off": "switch off"}

// planMoves gives the switches of a plan for which wanted holds.
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
		Short: "Show which hosts should be switched, and why",
		Long: `Show the last plan: which hosts should be switched, and why; with --long also the idle
hosts that stay on. Where the mode is recommend, 'almanac energy approve ID' lets it be
carried out. What is urgent waits for no approval.`,
		Example: `  almanac energy plan --long
  almanac energy plan -f json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, planColumns, inLists)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			plan, err := almanac.EnergyPlan(c.Context())
			if err != nil {
				return err
			}
			p.describePlan(plan)
			moves := planMoves(plan, func(v1.EnergySwitch) bool { return true })
			if long {
				for _, k := range plan.Kept {
					moves = append(moves, planMove{Host: k.Host, Move: "stay on", Reason: k.Reason})
				}
			}
			return out.list(moves, plan)
		},
	}
	c.Flags().BoolVar(&long, "long", false, "list the idle hosts that stay on too")
	return c
}

// describePlan says what a plan is about.
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
		Short: "Let a plan be carried out",
		Long: `Let the plan with that id be carried out, as 'almanac energy plan' shows it. It fails where
another plan has been made since.`,
		Example:           "  almanac energy approve 0197c2a4-7f5e-7b1a-9d55-1f9a0c4b2e77",
		Args:              needsOne("ID"),
		ValidArgsFunction: cobra.NoFileCompletions, // whoever approves a plan has looked at it
		RunE: func(c *cobra.Command, args []string) error {
			out, err := newPrinter(p, planColumns, inLists)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			plan, err := almanac.ApproveEnergyPlan(c.Context(), args[0])
			if err != nil {
				return err
			}
			p.describePlan(plan)
			return out.list(planMoves(plan, func(v1.EnergySwitch) bool { return true }), plan)
		},
	}
}
