// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func energyFields(e v1.Energy) []field {
	return []field{
		{"Mode", e.EffectiveMode, inLists}, {"Set Mode", string(e.Mode), inLists}, {"Configured Mode", e.ConfiguredMode, inLists},
		{"Aggregates", modes(e.Aggregates), inLists}, {"Hosts", modes(e.Hosts), inLists},
		{"Stopped", prose(stopped(e.Stopped)), inLists}, {"Breaker", prose(stopped(e.Breaker)), inLists},
		{"Failed Boots", e.FailedBoots, inLists}, {"Halt Reason", prose(e.Halt), inLists},
		{"Stale Reason", prose(e.Stale), inLists}, {"Measured", e.MeasuredAt, inLists}, {"Controller", e.Controller, inLists},
		{"Phases", e.Phases, inLists}, {"Agents", lines(each(e.Agents, agentLine)), inLists},
		{"Alarms", lines(each(e.Alarms, alarmLine)), inLists}, {"Saved kWh", rounded(e.Savings.KWh), inLists},
		{"Host Hours Off", rounded(e.Savings.HostHours), inLists}, {"Unknown Draw Hours", rounded(e.Savings.UnknownHostHours), inLists},
		{"Boots", e.Savings.Boots, inLists}, {"Core Hours Off", rounded(e.Savings.ESavings), inLists},
		{"Core Hours Idle", rounded(e.Savings.ResIdle), inLists}, {"Delay", rounded(e.Savings.DelayReq), inLists},
		{"Saved Since", e.Savings.Since, inLists}, {"Saved Against", prose(e.Savings.Baseline), inLists},
	}
}

// modes formats the modes of aggregates or hosts.
func modes(own map[string]string) lines {
	return each(slices.Sorted(maps.Keys(own)), func(name string) string { return name + ": " + own[name] })
}

func stopped(s *v1.EnergyStop) string {
	if s == nil {
		return ""
	}
	text := fmt.Sprintf("by %s at %s", s.By, stamp(s.At))
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

func agentLine(a v1.EnergyAgent) string {
	text := fmt.Sprintf("%s: %d hosts", a.Name, a.Hosts)
	switch {
	case a.Lost && a.Seen != nil:
		text += ", lost since " + stamp(*a.Seen)
	case a.Lost:
		text += ", lost"
	}
	return text
}

func alarmLine(a v1.EnergyAlarm) string {
	return fmt.Sprintf("%s %s: %s", stamp(a.Since), cmp.Or(a.Host, a.Kind), a.Text)
}

func (p *process) energyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "energy",
		Short: "Show and control which hosts are on",
		Example: `  almanac energy status
  almanac energy mode observe
  almanac energy explain node-01
  almanac energy host off 'node-[01-04]' --reason 'the rack moves' --until +2h`,
	}
	c.AddCommand(
		p.energyStatusCommand(), p.energyPlanCommand(), p.energyApproveCommand(), p.energyHostCommand(), p.energyExplainCommand(),
		p.energyModeCommand(), p.energyAuditCommand(), p.energyBacktestCommand(),
		p.energyChangeCommand(&cobra.Command{
			Use:   "stop",
			Short: "Stop switching hosts off, in every mode",
			Long: `Stop switching hosts off, in every mode and whatever the plans contain. Almanac still
wakes hosts when they are needed. Manual orders to switch off wait for 'energy resume'
too; manual orders to switch on do not.`,
			Example: "  almanac energy stop --reason 'the air conditioning is being repaired'",
		}, v1.EnergyChange{Stop: new(true)}),
		p.energyChangeCommand(&cobra.Command{
			Use:     "resume",
			Short:   "Allow switching hosts off again after 'energy stop'",
			Example: "  almanac energy resume",
		}, v1.EnergyChange{Stop: new(false)}),
		p.energyChangeCommand(&cobra.Command{
			Use:   "reset-breaker",
			Short: "Allow switching hosts off again after too many failed boots",
			Long: `Allow switching hosts off again after too many boots in a row have failed. First find
out why: 'almanac energy host list --phase failed', 'almanac energy audit'.`,
			Example: "  almanac energy reset-breaker --reason 'the firmware is repaired'",
		}, v1.EnergyChange{ResetBreaker: true}),
	)
	return c
}

func (p *process) energyStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the state of the energy controller",
		Long: `Show the state of the energy controller, its alarms and its savings. Core Hours Off,
Core Hours Idle and Delay are e_savings, res_idle and delay_req of the paper.`,
		Example: `  almanac energy status
  almanac energy status -f value -c Alarms`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return show(p, c, energyFields, func(ctx context.Context, almanac *client.Client) (v1.Energy, error) { return almanac.Energy(ctx) })
		},
	}
}

// energyChangeCommand completes c: it makes a change of the controller, with a reason, and
// shows the result.
func (p *process) energyChangeCommand(c *cobra.Command, change v1.EnergyChange) *cobra.Command {
	c.Args = cobra.NoArgs
	c.RunE = func(c *cobra.Command, _ []string) error {
		return show(p, c, energyFields, func(ctx context.Context, almanac *client.Client) (v1.Energy, error) {
			return almanac.ChangeEnergy(ctx, change)
		})
	}
	c.Flags().StringVar(&change.Reason, "reason", "", "reason, for the status and the audit")
	return c
}

// general is the word for the more general mode.
const general = "default"

var modeWords = append(fault.Texts(energy.Modes), general)

func (p *process) energyModeCommand() *cobra.Command {
	var hosts, aggregates []string
	var reason string
	var dryRun bool
	c := &cobra.Command{
		Use:   "mode off|observe|recommend|auto|default",
		Short: "Set what Almanac may do with hosts",
		Long: `Set what Almanac may do with all hosts, or with those of --host and --aggregate:
  off        Almanac measures nothing
  observe    Almanac counts hosts and forecasts the demand
  recommend  Almanac makes plans, and carries them out after approval
  auto       Almanac carries out its plans
  default    the more general mode: for a host the mode of its aggregates, for an
             aggregate the mode of all hosts, and for all hosts the configured mode
In every mode Almanac wakes a host that it has switched off when a reservation needs
the host.`,
		Example: `  almanac energy mode auto --dry-run
  almanac energy mode auto --aggregate batch --reason 'two weeks of recommend went well'
  almanac energy mode off --host 'gpu-*'
  almanac energy mode default --host gpu-01`,
		Args:              needsOne("mode"),
		ValidArgsFunction: oneOf(modeWords),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(modeWords, args[0]) {
				return fault.New(fault.Invalid, "%s", unknown("mode", args[0], modeWords))
			}
			mode := v1.EnergyMode(args[0])
			if mode == general {
				mode = ""
			}
			if dryRun {
				return p.foreseeMode(c, mode)
			}
			return show(p, c, energyFields, func(ctx context.Context, almanac *client.Client) (v1.Energy, error) {
				names, err := hostNames(ctx, almanac, hosts)
				if err != nil {
					return v1.Energy{}, err
				}
				change := v1.EnergyChange{Reason: reason, Aggregates: modeOf(mode, aggregates), Hosts: modeOf(mode, names)}
				if len(hosts) == 0 && len(aggregates) == 0 {
					change.Mode = &mode
				}
				return almanac.ChangeEnergy(ctx, change)
			})
		},
	}
	c.Flags().StringArrayVar(&hosts, "host", nil, "only these hosts: a name, a list or a pattern (repeatable)")
	c.Flags().StringArrayVar(&aggregates, "aggregate", nil, "only the hosts of this aggregate (repeatable)")
	c.Flags().StringVar(&reason, "reason", "", "reason, for the audit")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what the last plan would switch")
	completeFlag(c, "host", p.completeHosts())
	completeFlag(c, "aggregate", cobra.NoFileCompletions)
	return c
}

// modeOf returns a mode for each of the names.
func modeOf(mode v1.EnergyMode, names []string) map[string]v1.EnergyMode {
	all := make(map[string]v1.EnergyMode, len(names))
	for _, name := range names {
		all[name] = mode
	}
	return all
}

// foreseeMode shows what Almanac would carry out of the last plan if all hosts had a mode.
func (p *process) foreseeMode(c *cobra.Command, mode v1.EnergyMode) error {
	return list(p, c, planFields, inLists, func(ctx context.Context, almanac *client.Client) (moves, answer []planMove, err error) {
		status, err := almanac.Energy(ctx)
		if err != nil {
			return nil, nil, err
		}
		p.inform("dry run: the mode stays %s", status.EffectiveMode)
		for _, why := range []string{stopped(status.Stopped), stopped(status.Breaker), status.Halt, status.Stale} {
			if why != "" {
				p.inform("nothing would be switched off now: %s", why)
			}
		}
		plan, err := almanac.EnergyPlan(ctx)
		if err != nil {
			return nil, nil, err
		}
		all := energy.Mode(cmp.Or(string(mode), status.ConfiguredMode)) == energy.ModeAuto
		moves = planMoves(plan, func(s v1.EnergySwitch) bool { return all || s.Urgent })
		p.inform("Almanac would carry out this part of the plan of %s at once, unless a host or its aggregate has another mode:", stamp(plan.At))
		return moves, moves, nil
	})
}

func rounded(x float64) float64 { return math.Round(x*100) / 100 }
