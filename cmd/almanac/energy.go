package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

var energyColumns = []column[v1.Energy]{
	{"Mode", func(e v1.Energy) any { return e.EffectiveMode }, inLists},
	{"Set Mode", func(e v1.Energy) any { return string(e.Mode) }, inLists},
	{"Configured Mode", func(e v1.Energy) any { return e.ConfiguredMode }, inLists},
	{"Aggregates", func(e v1.Energy) any { return modes(e.Aggregates) }, inLists},
	{"Hosts", func(e v1.Energy) any { return modes(e.Hosts) }, inLists},
	{"Stopped", func(e v1.Energy) any { return prose(stopped(e.Stopped)) }, inLists},
	{"Breaker", func(e v1.Energy) any { return prose(stopped(e.Breaker)) }, inLists},
	{"Failed Boots", func(e v1.Energy) any { return e.FailedBoots }, inLists},
	{"Nothing Off Because", func(e v1.Energy) any { return prose(e.Halt) }, inLists},
	{"Late Because", func(e v1.Energy) any { return prose(e.Late) }, inLists},
	{"Measured", func(e v1.Energy) any { return e.MeasuredAt }, inLists},
	{"Controller", func(e v1.Energy) any { return e.Controller }, inLists},
	{"Phases", func(e v1.Energy) any { return e.Phases }, inLists},
	{"Agents", func(e v1.Energy) any { return lines(each(e.Agents, agentLine)) }, inLists},
	{"Alarms", func(e v1.Energy) any { return lines(each(e.Alarms, alarmLine)) }, inLists},
	{"Saved kWh", func(e v1.Energy) any { return rounded(e.Savings.KWh) }, inLists},
	{"Host Hours Off", func(e v1.Energy) any { return rounded(e.Savings.HostHours) }, inLists},
	{"Of Unknown Draw", func(e v1.Energy) any { return rounded(e.Savings.UnknownHostHours) }, inLists},
	{"Boots", func(e v1.Energy) any { return e.Savings.Boots }, inLists},
	{"Core Hours Off", func(e v1.Energy) any { return rounded(e.Savings.ESavings) }, inLists},
	{"Core Hours Idle", func(e v1.Energy) any { return rounded(e.Savings.ResIdle) }, inLists},
	{"Delay", func(e v1.Energy) any { return rounded(e.Savings.DelayReq) }, inLists},
	{"Saved Since", func(e v1.Energy) any { return e.Savings.Since }, inLists},
	{"Saved Against", func(e v1.Energy) any { return prose(e.Savings.Baseline) }, inLists},
}

// modes writes the modes of aggregates or hosts.
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
		Short: "See why hosts are on or off, switch them, and say how much Almanac may switch",
		Example: `  almanac energy status
  almanac energy mode observe
  almanac energy explain node-01
  almanac energy host off 'node-[01-04]' --reason 'the rack moves' --until +2h`,
	}
	c.AddCommand(
		p.energyStatusCommand(), p.energyPlanCommand(), p.energyApproveCommand(), p.energyHostCommand(), p.energyExplainCommand(),
		p.energyModeCommand(), p.energyStopCommand(), p.energyResumeCommand(), p.energyRearmCommand(), p.energyAuditCommand(), p.energyBacktestCommand(),
	)
	return c
}

func (p *process) energyStatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how the energy controller is, its alarms, and what it has saved",
		Long: `Show how the energy controller is, its alarms, and what it has saved. Core Hours Off,
Core Hours Idle and Delay are e_savings, res_idle and delay_req of the paper.`,
		Example: `  almanac energy status
  almanac energy status -f value -c Alarms`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.showEnergy(c, (*client.Client).Energy)
		},
	}
}

// showEnergy prints what ask gives.
func (p *process) showEnergy(c *cobra.Command, ask func(*client.Client, context.Context) (v1.Energy, error)) error {
	out, err := newPrinter(p, energyColumns, inShows)
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	found, err := ask(almanac, c.Context())
	if err != nil {
		return err
	}
	return out.one(found, found)
}

// changeEnergy changes the controller as a whole and prints it.
func (p *process) changeEnergy(c *cobra.Command, change v1.EnergyChange) error {
	return p.showEnergy(c, func(almanac *client.Client, ctx context.Context) (v1.Energy, error) {
		return almanac.ChangeEnergy(ctx, change)
	})
}

// general is the word for the mode of what is more general.
const general = "default"

var modeWords = append(each(energy.Modes, func(m energy.Mode) string { return string(m) }), general)

func (p *process) energyModeCommand() *cobra.Command {
	var hosts, aggregates []string
	var reason string
	var dryRun bool
	c := &cobra.Command{
		Use:   "mode off|observe|recommend|auto|default",
		Short: "Say how much Almanac may do with hosts",
		Long: `Say how much Almanac may do with all hosts, or with those of --host and --aggregate:
  off        nothing is measured
  observe    hosts are counted, and what will be needed is forecast
  recommend  plans are made, and carried out once they are approved
  auto       plans are carried out
  default    what is more general: of a host that of its aggregates, of an aggregate
             that of all, and of all what the configuration says
In each of them a host that Almanac has switched off is woken when a reservation needs
it.`,
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
			change := v1.EnergyChange{Reason: reason, Aggregates: map[string]v1.EnergyMode{}, Hosts: map[string]v1.EnergyMode{}}
			for _, name := range aggregates {
				change.Aggregates[name] = mode
			}
			if len(hosts) > 0 {
				almanac, err := p.connect(c.Context())
				if err != nil {
					return err
				}
				names, err := hostNames(c.Context(), almanac, hosts)
				if err != nil {
					return err
				}
				for _, name := range names {
					change.Hosts[name] = mode
				}
			}
			if len(hosts) == 0 && len(aggregates) == 0 {
				change.Mode = &mode
			}
			return p.changeEnergy(c, change)
		},
	}
	c.Flags().StringArrayVar(&hosts, "host", nil, "only this host: a name, a range or a pattern (repeatable)")
	c.Flags().StringArrayVar(&aggregates, "aggregate", nil, "only the hosts of this aggregate (repeatable)")
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what the last plan would switch")
	completeFlag(c, "host", p.completeHosts)
	completeFlag(c, "aggregate", cobra.NoFileCompletions)
	return c
}

// foreseeMode says what would become of the last plan in a mode of all hosts.
func (p *process) foreseeMode(c *cobra.Command, mode v1.EnergyMode) error {
	out, err := newPrinter(p, planColumns, inLists)
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	status, err := almanac.Energy(c.Context())
	if err != nil {
		return err
	}
	p.inform("dry run: the mode stays %s", status.EffectiveMode)
	for _, why := range []string{stopped(status.Stopped), stopped(status.Breaker), status.Halt, status.Late} {
		if why != "" {
			p.inform("nothing would be switched off now: %s", why)
		}
	}
	plan, err := almanac.EnergyPlan(c.Context())
	if err != nil {
		return err
	}
	carriedOut := energy.Mode(cmp.Or(string(mode), status.ConfiguredMode)) == energy.ModeAuto
	moves := planMoves(plan, func(s v1.EnergySwitch) bool { return carriedOut || s.Urgent })
	p.inform("of the plan of %s this would be carried out at once, unless a host or its aggregate has another mode:", stamp(plan.At))
	return out.list(moves, moves)
}

func (p *process) energyStopCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "stop",
		Short: "Switch nothing off any more, whatever the modes",
		Long: `Switch nothing off any more, whatever the modes and the plans say. Hosts that are off are
woken as before when they are needed. Manual orders to switch off wait for 'energy
resume' too; those to switch on do not.`,
		Example: "  almanac energy stop --reason 'the air conditioning is being repaired'",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.changeEnergy(c, v1.EnergyChange{Stop: new(true), Reason: reason})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for those who look at the status")
	return c
}

func (p *process) energyResumeCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:     "resume",
		Short:   "Let hosts be switched off again after 'energy stop'",
		Example: "  almanac energy resume",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.changeEnergy(c, v1.EnergyChange{Stop: new(false), Reason: reason})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit")
	return c
}

func (p *process) energyRearmCommand() *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "rearm",
		Short: "Let hosts be switched off again after too many boots have failed",
		Long: `Let hosts be switched off again after too many boots in a row have failed. Look first at
why they did: 'almanac energy host list --phase failed', 'almanac energy audit'.`,
		Example: "  almanac energy rearm --reason 'the firmware is mended'",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return p.changeEnergy(c, v1.EnergyChange{Rearm: true, Reason: reason})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the audit")
	return c
}
