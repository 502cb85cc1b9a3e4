// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// order is a command that sends a manual order to hosts.
type order struct {
	action      energy.ManualAction
	short, long string
	down        bool // switches the host off
	held        bool // holds until a time
	example     string
}

var orders = []order{
	{energy.HoldOn, "Switch hosts on and keep them on", "", false, true,
		"  almanac energy host on node-01 --reason 'the vendor comes' --until +4h"},
	{energy.HoldOff, "Switch empty hosts off and keep them off", `Almanac refuses a host that has instances, that is reserved now, that would not be up
again before its next reservation, or whose property forbids it. A host that is held
off without an end counts as failed: its reservations move to another host.`, true, true,
		"  almanac energy host off 'node-[01-04]' --reason 'the rack moves' --dry-run\n  almanac energy host off 'node-[01-04]' --reason 'the rack moves' --until +4h"},
	{energy.HoldStandby, "Put empty hosts in standby and keep them there", `As 'almanac energy host off', for machines that have a standby state.`, true, true,
		"  almanac energy host standby node-01"},
	{energy.Release, "Release manual holds and end the quarantine of hosts", `Almanac forgets a host that has left the inventory.`, false, false,
		"  almanac energy host release 'node-[01-04]'"},
	{energy.Test, "Switch empty hosts off and on once, to test whether they wake", `Unless it is configured otherwise, Almanac switches off only hosts that have passed
this test. It only switches on a host that is asleep. With --wait the exit code is 1
if a host did not wake.`, true, false,
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
	long := o.short + `.

An argument is a name, a list such as 'node-[01-16,18]', or a pattern with * and ?. If one
host fails, the command continues with the others. Almanac starts to carry out the order
within seconds; the order takes precedence over every plan.`
	if o.long != "" {
		long += "\n\n" + o.long
	}
	c := &cobra.Command{
		Use: string(o.action) + " NAME...", Short: o.short, Long: long, Example: o.example,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: p.completeHosts(),
		RunE: func(c *cobra.Command, args []string) error {
			if run.dryRun {
				return p.foresee(c, args, run)
			}
			return p.order(c, args, run)
		},
	}
	flags := c.Flags()
	flags.StringVar(&run.reason, "reason", "", "reason, for the status of the host and the audit")
	if o.held {
		flags.Var(&run.until, "until", "when the order ends (default: at its release)")
	}
	if o.down {
		flags.BoolVar(&run.dryRun, "dry-run", false, "only show what would happen")
	}
	if o.action == energy.Test {
		flags.BoolVar(&run.wait, "wait", false, "wait until the test is over")
		flags.Var(&run.waitTime, "wait-timeout", "maximum time to wait")
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

// order sends an order to all hosts that args select, and shows those that accept it.
func (p *process) order(c *cobra.Command, args []string, run *ordering) error {
	return with(p, c, energyHostFields, inLists, func(ctx context.Context, almanac *client.Client, out printer[v1.EnergyHost]) error {
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
			if ordered, waited = p.awaitTests(ctx, almanac, ordered, run.waitTime); waited != nil {
				failure = waited
			}
		} else {
			p.inform("ordered; 'almanac energy explain %s' shows the progress", ordered[0].Name)
		}
		return errors.Join(failure, out.list(ordered, v1.EnergyHosts{Hosts: ordered}))
	})
}

func foreseenFields(f v1.EnergyForeseen) []field {
	return []field{{"Name", f.Name, inLists}, {"Phase", f.Phase, inLists}, {"Outcome", prose(f.Outcome), inLists}}
}

// foresee shows what an order would do now to all hosts that args select.
func (p *process) foresee(c *cobra.Command, args []string, run *ordering) error {
	return with(p, c, foreseenFields, inLists, func(_ context.Context, almanac *client.Client, out printer[v1.EnergyForeseen]) error {
		foreseen, failure := eachHost(p, c, almanac, args, func(ctx context.Context, name string) (v1.EnergyForeseen, error) {
			f, err := almanac.ForeseePower(ctx, name, run.body())
			if refused, is := errors.AsType[*client.Error](err); is && refused.Kind == fault.Conflict {
				return v1.EnergyForeseen{Name: name, Outcome: "refused: " + refused.Message}, nil
			}
			return f, err
		})
		p.inform("dry run: nothing is ordered")
		if len(foreseen) == 0 {
			return failure
		}
		return errors.Join(failure, out.list(foreseen, foreseen))
	})
}

// awaitTests waits until the wake test of each host is over, and prints each change of phase.
func (p *process) awaitTests(ctx context.Context, almanac *client.Client, hosts []v1.EnergyHost, most period) ([]v1.EnergyHost, error) {
	phases, ended, ordered := map[string]string{}, map[string]bool{}, map[string]time.Time{}
	for _, h := range hosts {
		if ordered[h.Name] = p.now(); h.Hold != nil {
			ordered[h.Name] = h.Hold.At
		}
	}
	var failure error
	over := func(hosts []v1.EnergyHost) (bool, error) {
		for _, h := range hosts {
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
			if !p.reportTest(h, ordered[h.Name]) {
				failure = &outcome{exitFailed, "not every host has woken"}
			}
		}
		return len(ended) == len(hosts), nil
	}
	again := func(ctx context.Context, hosts []v1.EnergyHost) ([]v1.EnergyHost, error) {
		for i, h := range hosts {
			if ended[h.Name] {
				continue
			}
			var err error
			if hosts[i], err = almanac.EnergyHost(ctx, h.Name); err != nil {
				return hosts, err
			}
		}
		return hosts, nil
	}
	hosts, err := await(ctx, p, hosts, most, over, again, func([]v1.EnergyHost) string {
		return "the test continues; 'almanac energy host list' shows its progress"
	})
	return hosts, cmp.Or(err, failure)
}

// reportTest prints the result of a wake test that was ordered at the time ordered, and reports
// whether the host has passed it.
func (p *process) reportTest(h v1.EnergyHost, ordered time.Time) bool {
	if h.LastWakeTest == nil || h.LastWakeTest.At.Before(ordered) {
		p.inform("%s: the test was abandoned; 'almanac energy explain %s' shows why", h.Name, h.Name)
		return false
	}
	p.inform("%s: %s", h.Name, plain(wakeTestLine(h.LastWakeTest)))
	return h.LastWakeTest.Woke
}

func phaseLine(h v1.EnergyHost) string {
	if h.Reason == "" {
		return h.Phase
	}
	return h.Phase + ": " + h.Reason
}
