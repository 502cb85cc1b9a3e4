package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// order is a manual order as a command.
type order struct {
	action      energy.ManualAction
	short, long string
	down        bool // it switches the host off
	held        bool // it holds until a time
	example     string
}

var orders = []order{
	{energy.HoldOn, "Switch hosts on, and keep them on", "", false, true,
		"  almanac energy host on node-01 --reason 'the vendor comes' --until +4h"},
	{energy.HoldOff, "Switch empty hosts off, and keep them off", `A host with instances is refused, and so is one that is reserved now, that would not be up
again before its next reservation, or whose property forbids it. One that is held off
without an end counts as failed, so that its reservations get another host.`, true, true,
		"  almanac energy host off 'node-[01-04]' --reason 'the rack moves' --dry-run\n  almanac energy host off 'node-[01-04]' --reason 'the rack moves' --until 2026-12-01T18:00Z"},
	{energy.HoldStandby, "Put empty hosts in standby, and keep them so", `As 'almanac energy host off', where the machine has a standby.`, true, true,
		"  almanac energy host standby node-01"},
	{energy.Release, "Leave hosts to the plan again, and end their quarantine", `A host that has left the inventory is forgotten.`, false, false,
		"  almanac energy host release 'node-[01-04]'"},
	{energy.Test, "Switch empty hosts off and on once, to see whether they wake", `Almanac switches off by itself only what was seen to wake, unless it is configured
otherwise. One that sleeps is only switched on. With --wait the exit code is 1 where a host
did not wake.`, true, false,
		"  almanac energy host test node-01 --wait\n  almanac energy host test 'node-*' --dry-run"},
}

// ordering has the flags of an order.
type ordering struct {
	order
	reason   string
	until    moment
	dryRun   bool
	wait     bool
	waitTime period
}

func (p *process) orderCommand(o order) *cobra.Command {
	run := &ordering{order: o, waitTime: 3600}
	run.until.clock = p.now
	long := o.short + `. Hosts are named one by one, in ranges such as
'node-[01-16]', or by patterns with * and ?; what fails for one does not keep the
others from it. The order is begun within seconds, and wins over every plan.`
	if o.long != "" {
		long += "\n\n" + o.long
	}
	c := &cobra.Command{
		Use: string(o.action) + " NAME...", Short: o.short, Long: long, Example: o.example,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: p.completeHosts,
		RunE: func(c *cobra.Command, args []string) error {
			if run.dryRun {
				return p.foresee(c, args, run)
			}
			return p.order(c, args, run)
		},
	}
	flags := c.Flags()
	flags.StringVar(&run.reason, "reason", "", "why, for the audit and for those who look at the host")
	if o.held {
		flags.Var(&run.until, "until", "when the order is over (default: when it is released)")
	}
	if o.down {
		flags.BoolVar(&run.dryRun, "dry-run", false, "only say what would happen")
	}
	if o.action == energy.Test {
		flags.BoolVar(&run.wait, "wait", false, "wait until the hosts have woken, or have not")
		flags.Var(&run.waitTime, "wait-timeout", "how long to wait at most")
		c.MarkFlagsMutuallyExclusive("dry-run", "wait")
	}
	return c
}

func (run *ordering) body() v1.EnergyOrder {
	body := v1.EnergyOrder{Action: string(run.action), Reason: run.reason}
	if !run.until.at.IsZero() {
		body.Until = &v1.Until{At: run.until.at}
	}
	return body
}

// order gives an order for all that args stand for, and shows the hosts that take it.
func (p *process) order(c *cobra.Command, args []string, run *ordering) error {
	out, err := newPrinter(p, energyHostColumns, inLists)
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	ordered, failure := eachHost(p, c, almanac, args, func(ctx context.Context, name string) (v1.EnergyHost, error) {
		return almanac.OrderPower(ctx, name, run.body())
	})
	if len(ordered) == 0 {
		return failure
	}
	for _, h := range ordered {
		if h.Outcome != "" {
			p.inform("%s: %s", h.Name, h.Outcome)
		}
	}
	if run.wait {
		var waited error
		if ordered, waited = p.awaitTests(c.Context(), almanac, ordered, run.waitTime.time()); waited != nil {
			failure = waited
		}
	} else {
		p.inform("ordered; 'almanac energy explain %s' says how far it is", ordered[0].Name)
	}
	return errors.Join(failure, out.list(ordered, v1.EnergyHosts{Hosts: ordered}))
}

var foreseenColumns = []column[v1.EnergyForeseen]{
	{"Name", func(f v1.EnergyForeseen) any { return f.Name }, inLists},
	{"Phase", func(f v1.EnergyForeseen) any { return f.Phase }, inLists},
	{"Outcome", func(f v1.EnergyForeseen) any { return prose(f.Outcome) }, inLists},
}

// foresee says what an order for all that args stand for would come to now.
func (p *process) foresee(c *cobra.Command, args []string, run *ordering) error {
	out, err := newPrinter(p, foreseenColumns, inLists)
	if err != nil {
		return err
	}
	almanac, err := p.connect(c.Context())
	if err != nil {
		return err
	}
	list, failure := eachHost(p, c, almanac, args, func(ctx context.Context, name string) (v1.EnergyForeseen, error) {
		f, err := almanac.ForeseePower(ctx, name, run.body())
		if refused, is := errors.AsType[*client.Error](err); is && refused.Kind == fault.Conflict {
			return v1.EnergyForeseen{Name: name, Outcome: "refused: " + refused.Message}, nil
		}
		return f, err
	})
	p.inform("dry run: nothing is ordered")
	if len(list) == 0 {
		return failure
	}
	return errors.Join(failure, out.list(list, list))
}

// awaitTests looks at hosts until the wake test of each is over, for so long at most, and
// tells whenever a phase changes.
func (p *process) awaitTests(ctx context.Context, almanac *client.Client, hosts []v1.EnergyHost, most time.Duration) ([]v1.EnergyHost, error) {
	const failed = "not every host has woken"
	last, phases, ended := p.now().Add(most), map[string]string{}, map[string]bool{}
	given := make([]time.Time, len(hosts))
	for i, h := range hosts {
		if given[i] = p.now(); h.Hold != nil {
			given[i] = h.Hold.At
		}
	}
	var failure error
	for {
		for i, h := range hosts {
			if ended[h.Name] {
				continue
			}
			if phases[h.Name] != h.Phase {
				p.inform("%s: %s", h.Name, plain(phaseLine(h)))
				phases[h.Name] = h.Phase
			}
			if h.Hold != nil && h.Hold.Action == string(energy.Test) {
				continue
			}
			ended[h.Name] = true
			if h.LastWakeTest == nil || h.LastWakeTest.At.Before(given[i]) {
				p.inform("%s: the test was given up; 'almanac energy explain %s' says why", h.Name, h.Name)
				failure = &outcome{exitFailed, failed}
			} else if p.inform("%s: %s", h.Name, plain(wakeTestLine(h.LastWakeTest))); !h.LastWakeTest.Woke {
				failure = &outcome{exitFailed, failed}
			}
		}
		if len(ended) == len(hosts) {
			return hosts, failure
		}
		left := last.Sub(p.now())
		if left <= 0 {
			return hosts, &outcome{exitTimedOut, "the test goes on; 'almanac energy host list' shows how far it is"}
		}
		if err := p.pause(ctx, min(left, pollTime)); err != nil {
			return hosts, err
		}
		for i, h := range hosts {
			if ended[h.Name] {
				continue
			}
			var err error
			if hosts[i], err = almanac.EnergyHost(ctx, h.Name); err != nil {
				return hosts, err
			}
		}
	}
}

func phaseLine(h v1.EnergyHost) string {
	if h.Reason == "" {
		return h.Phase
	}
	return h.Phase + ": " + h.Reason
}
