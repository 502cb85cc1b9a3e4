// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// checkCommand returns `check`, which asks machines for their state now.
func (s *service) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check HOST", Args: cobra.ExactArgs(1),
		Short: "Read the power state of a host's machine; nothing is switched",
		Long: "Reads the machine with the driver of the machines file, and prints its power state, its watts and the states that\n" +
			"it supports. The exit status is 0 if it may be switched, 1 if it cannot be read, 3 if the machines file does not\n" +
			"have it, 4 if it must not be switched now.",
		Example: "  almanac-power check cmp-017",
		RunE: func(c *cobra.Command, arguments []string) error {
			cfg, machines, err := s.machines()
			if err != nil {
				return err
			}
			defer machines.close()
			m, err := machines.of(cfg, arguments[0])
			if err != nil {
				return err
			}
			return check(c, cfg, arguments[0], m)
		},
	}
}

// of returns the machine of a host.
func (m *machines) of(cfg config.PowerAgent, host string) (power.Driven, error) {
	d, ok := m.driven[host]
	if !ok {
		return d, fault.New(fault.NotFound, "%s has no machine of host %s", cfg.Agent.MachinesFile, host)
	}
	return d, nil
}

func check(c *cobra.Command, cfg config.PowerAgent, host string, m power.Driven) error {
	ctx, cancel := context.WithTimeout(c.Context(), cfg.Agent.ReadTimeout)
	defer cancel()
	if g, ok := m.Machine.(*guarded); ok {
		if known, err := g.owns(ctx); known {
			return owned(host)
		} else if err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "almanac-power: could not find out whether Ironic owns the host; until then the host is not switched off: %v\n", err)
		}
	}
	r, err := m.Machine.Read(ctx)
	if err != nil {
		if d, _ := driverNamed(m.Driver); d.advice != "" {
			fmt.Fprintf(c.ErrOrStderr(), "To fix this, %s.\n", d.advice)
		}
		return err
	}
	out := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	state, watts := string(r.State), "not known"
	if r.State == "" {
		state = "not known"
	}
	if r.Watts > 0 {
		watts = fmt.Sprintf("%.0f", r.Watts)
	}
	fmt.Fprintf(out, "host\t%s\ndriver\t%s\nstate\t%s\nwatts\t%s\ncan be\t%v\n", host, m.Driver, state, watts, m.Machine.States())
	if err := out.Flush(); err != nil {
		return err
	}
	switch {
	case r.Untouchable != "":
		return fault.New(fault.Denied, "host %s must not be switched now: %s", host, r.Untouchable)
	case r.State == "":
		return fault.New(fault.Unavailable, "the machine of host %s does not report its power state", host)
	}
	return nil
}
