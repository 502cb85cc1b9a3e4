// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// testCommand returns `test`, the wake test of hosts.
func (s *service) testCommand() *cobra.Command {
	timeout := timeSpan(time.Hour)
	test := &cobra.Command{
		Use: "test HOST", Args: cobra.ExactArgs(1),
		Short: "Run the wake test of a host: almanacd switches it off and on once",
		Long: "The wake test: almanacd closes the host to new instances, checks that it has none, switches it off and on again, and\n" +
			"opens it. This command requests the test and shows its progress; it switches nothing itself, without Nova's knowledge.\n" +
			"If the command is interrupted, almanacd continues the test. The exit status is 0 if the host woke, 1 if it did not,\n" +
			"6 if the test is not over after --timeout.",
		Example: "  almanac-power test cmp-017",
		RunE: func(c *cobra.Command, arguments []string) error {
			cfg, err := s.load()
			if err != nil {
				return err
			}
			bus, err := openBus(cfg, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			defer bus.close()
			ctx, cancel := context.WithTimeout(c.Context(), time.Duration(timeout))
			defer cancel()
			if err := served(ctx, bus); err != nil {
				return err
			}
			t := &trial{Trials: power.NewTrials(bus.client, exchange), host: arguments[0], out: c.OutOrStdout(), every: time.Second}
			return t.run(ctx, who(cfg))
		},
	}
	test.Flags().Var(&timeout, "timeout", "maximum time to wait")
	return test
}

// served returns an error if no almanacd answers on the topic.
func served(ctx context.Context, bus *bus) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	queue, err := bus.Inspect(ctx, power.TrialsTopic)
	if err != nil {
		return fmt.Errorf("look for almanacd on the message broker: %w", err)
	}
	if queue.Consumers == 0 {
		return fault.New(fault.Unavailable, "no almanacd with the role energy runs on this message broker: only it can close a host to "+
			"new instances before it is switched off. Start it, with [energy] mode other than off")
	}
	return nil
}

// who returns the name of the user: the account on this machine.
func who(cfg config.PowerAgent) string {
	account := "unknown"
	if u, err := user.Current(); err == nil {
		account = u.Username
	}
	return account + "@" + cfg.Default.Host
}

// trial is a wake test that the command watches.
type trial struct {
	power.Trials
	host  string
	out   io.Writer
	every time.Duration
}

// run orders the wake test of a host, prints its steps, and returns when it is over. by is who orders
// it.
func (t *trial) run(ctx context.Context, by string) error {
	before, err := t.HostRecord(ctx, t.host)
	if err != nil {
		return err
	}
	if err := t.Test(ctx, t.host, by); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "host %s will be tested\n", t.host)
	shown, begun := "", false
	for {
		if err := job.Pause(ctx, t.every); err != nil {
			return fmt.Errorf("the test of host %s goes on in almanacd: %w", t.host, err)
		}
		now, err := t.HostRecord(ctx, t.host)
		switch {
		case fault.Is(err, fault.Unavailable):
			continue // another almanacd becomes active, or the timeout ends the loop
		case err != nil:
			return err
		}
		if line := fmt.Sprintf("%s  %s", now.Phase.Word(), now.Reason); line != shown {
			fmt.Fprintf(t.out, "%v  %s\n", now.Since, line)
			shown = line
		}
		if p := now.LastWakeTest; p != nil && (before.LastWakeTest == nil || *p != *before.LastWakeTest) {
			return t.verdict(*p)
		}
		held := now.Hold != nil && now.Hold.Action == energy.Test
		if begun && !held && now.Phase == energy.Awake || now.Phase == energy.Failed {
			return fault.New(fault.Unavailable, "host %s was not tested: %s", t.host, cmp.Or(now.Reason, "the order was withdrawn"))
		}
		begun = begun || held
	}
}

// verdict prints the result of the wake test; an error if the host did not wake up.
func (t *trial) verdict(p energy.WakeTest) error {
	if !p.Woke {
		return fault.New(fault.Unavailable, "host %s did not wake: %s", t.host, p.Reason)
	}
	_, err := fmt.Fprintf(t.out, "host %s woke within %v\n", t.host, time.Duration(p.Seconds)*time.Second)
	return err
}
