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

// advice says for each driver what to look at where a machine cannot be read.
var advice = map[string]string{
	"command": "run the status program by hand as the user of almanac-power; it has to print on, off or standby",
	"ipmi":    "look whether the BMC's address answers from here (UDP), IPMI over LAN is enabled, and the user may operate the power",
	"redfish": "open url/redfish/v1/ from here, and look whether the certificate is signed by cafile and the user is an operator",
	"ironic":  "look at `openstack baremetal node show`: its power state, maintenance and last error",
}

func (s *service) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check HOST", Args: cobra.ExactArgs(1),
		Short: "Ask a host's machine how it is, and say what is wrong; nothing is switched",
		Long: "Asks the machine now, with the driver of the machines file, and prints its power state, its watts and the states\n" +
			"that it can be brought to. The exit status is 0 where it may be switched, 1 where it cannot be read, 3 where the\n" +
			"machines file does not have it, 4 where nobody may switch it now.",
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

// of gives the machine of a host.
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
			fmt.Fprintf(c.ErrOrStderr(), "almanac-power: Ironic does not say whether it owns the host, which is not switched off meanwhile: %v\n", err)
		}
	}
	r, err := m.Machine.Read(ctx)
	if err != nil {
		if hint := advice[m.Driver]; hint != "" {
			fmt.Fprintf(c.ErrOrStderr(), "What to do: %s.\n", hint)
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
		return fault.New(fault.Denied, "nobody may switch host %s now: %s", host, r.Untouchable)
	case r.State == "":
		return fault.New(fault.Unavailable, "the machine of host %s does not tell its power state", host)
	}
	return nil
}
