// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func energyHostFields(h v1.EnergyHost) []field {
	var watts any = h.Watts
	if h.Watts == 0 { // not known
		watts = ""
	}
	boots := each(h.Boots, func(s int64) string { return v1.Duration(s).String() })
	return []field{
		{"Name", h.Name, inLists}, {"Phase", h.Phase, inLists}, {"Since", h.Since, inLists}, {"Power", h.State, inLists},
		{"Watts", watts, inLists}, {"Mode", h.EffectiveMode, inLists}, {"Manual Hold", holdLine(h.Hold), inLists},
		{"Problem", prose(problemOf(h)), inLists}, {"Reason", prose(h.Reason), inLongLists}, {"Agent", h.Agent, inLongLists},
		{"Driver", h.Driver, inLongLists}, {"Idle", h.Idle, inLongLists}, {"Reserved From", h.ReservedFrom, inLongLists},
		{"Boot Seconds", h.BootSeconds, inLongLists}, {"Wake Test", prose(wakeTestLine(h.LastWakeTest)), inLongLists},
		{"Mode Override", string(h.Mode), inShows}, {"Target", h.Target, inShows}, {"Operation", h.Operation, inShows},
		{"States", h.States, inShows}, {"Busy", h.Busy, inShows}, {"Read At", h.ReadAt, inShows}, {"Last On", h.LastOn, inShows},
		{"Last Off", h.LastOff, inShows}, {"Boots", boots, inShows}, {"Explanation", lines(h.Explanation), inShows},
		{"History", lines(each(h.History, entryLine)), inShows},
	}
}

// problemOf returns the most important problem of a host; empty means none.
func problemOf(h v1.EnergyHost) string {
	for _, why := range []struct{ prefix, text string }{
		{"in quarantine: ", h.Quarantine}, {"", h.Problem}, {"not to be touched: ", h.Untouchable},
	} {
		if why.text != "" {
			return why.prefix + why.text
		}
	}
	return ""
}

func holdLine(h *v1.EnergyHold) string {
	if h == nil {
		return ""
	}
	text := h.Action
	if h.Until != nil {
		text += " until " + stamp(*h.Until)
	}
	text += " by " + h.By
	if h.Reason != "" {
		text += ": " + h.Reason
	}
	return text
}

func wakeTestLine(proof *v1.EnergyWakeTest) string {
	switch {
	case proof == nil:
		return ""
	case proof.Woke:
		return fmt.Sprintf("woke in %s at %s", v1.Duration(proof.Seconds), stamp(proof.At))
	}
	return fmt.Sprintf("did not wake at %s: %s", stamp(proof.At), proof.Reason)
}

func entryLine(e v1.EnergyEntry) string {
	return fmt.Sprintf("%s %s %s: %s", stamp(e.At), e.By, e.Kind, e.Text)
}

func (p *process) energyHostCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "Show the power of hosts, and switch them manually",
		Example: `  almanac energy host list --phase asleep
  almanac energy host test node-01 --wait
  almanac energy host off 'node-[01-04]' --reason 'the rack moves'
  almanac energy host release 'node-[01-04]'`,
	}
	c.AddCommand(p.energyHostListCommand(), p.energyHostShowCommand())
	for _, o := range orders {
		c.AddCommand(p.orderCommand(o))
	}
	return c
}

func (p *process) energyHostListCommand() *cobra.Command {
	var phases []string
	var most limit
	c := &cobra.Command{
		Use:   "list",
		Short: "List hosts with their power, by name",
		Example: `  almanac energy host list --long
  almanac energy host list --phase asleep --phase waking -f value -c Name`,
	}
	listCommand(p, c, energyHostFields, func(ctx context.Context, almanac *client.Client) ([]v1.EnergyHost, v1.EnergyHosts, error) {
		for _, phase := range phases {
			if !slices.Contains(energy.PhaseWords, phase) {
				return nil, v1.EnergyHosts{}, fault.Field("--phase", "%s", unknown("phase", phase, energy.PhaseWords))
			}
		}
		found, err := collect(almanac.EnergyHosts(ctx, client.EnergyFilter{Phases: phases, PageSize: most.page()}), most)
		return found, v1.EnergyHosts{Hosts: found}, err
	})
	c.Flags().StringSliceVar(&phases, "phase", nil, "only hosts in this phase: "+strings.Join(energy.PhaseWords, ", ")+" (repeatable)")
	most.add(c)
	completeFlag(c, "phase", oneOf(energy.PhaseWords))
	return c
}

func (p *process) energyHostShowCommand() *cobra.Command {
	return showCommand(p, &cobra.Command{
		Use:               "show NAME",
		Short:             "Show the power of a host, and its history",
		Example:           "  almanac energy host show node-01",
		ValidArgsFunction: onlyOne(p.completeHosts()),
	}, energyHostFields, func(ctx context.Context, almanac *client.Client, name string) (v1.EnergyHost, error) {
		return almanac.EnergyHost(ctx, name)
	})
}
