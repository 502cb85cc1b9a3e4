package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

var energyHostColumns = []column[v1.EnergyHost]{
	{"Name", func(h v1.EnergyHost) any { return h.Name }, inLists},
	{"Phase", func(h v1.EnergyHost) any { return h.Phase }, inLists},
	{"Since", func(h v1.EnergyHost) any { return h.Since }, inLists},
	{"Power", func(h v1.EnergyHost) any { return h.State }, inLists},
	{"Watts", func(h v1.EnergyHost) any { return known(h.Watts) }, inLists},
	{"Mode", func(h v1.EnergyHost) any { return h.EffectiveMode }, inLists},
	{"Held", func(h v1.EnergyHost) any { return holdLine(h.Hold) }, inLists},
	{"Problem", func(h v1.EnergyHost) any { return prose(troubleOf(h)) }, inLists},
	{"Reason", func(h v1.EnergyHost) any { return prose(h.Reason) }, inLongLists},
	{"Agent", func(h v1.EnergyHost) any { return h.Agent }, inLongLists},
	{"Driver", func(h v1.EnergyHost) any { return h.Driver }, inLongLists},
	{"Idle", func(h v1.EnergyHost) any { return h.Idle }, inLongLists},
	{"Reserved From", func(h v1.EnergyHost) any { return h.ReservedFrom }, inLongLists},
	{"Boot Seconds", func(h v1.EnergyHost) any { return h.BootSeconds }, inLongLists},
	{"Wake Test", func(h v1.EnergyHost) any { return prose(wakeTestLine(h.LastWakeTest)) }, inLongLists},
	{"Own Mode", func(h v1.EnergyHost) any { return string(h.Mode) }, inShows},
	{"Target", func(h v1.EnergyHost) any { return h.Target }, inShows},
	{"Operation", func(h v1.EnergyHost) any { return h.Operation }, inShows},
	{"States", func(h v1.EnergyHost) any { return h.States }, inShows},
	{"Busy", func(h v1.EnergyHost) any { return h.Busy }, inShows},
	{"Read", func(h v1.EnergyHost) any { return h.ReadAt }, inShows},
	{"Last On", func(h v1.EnergyHost) any { return h.LastOn }, inShows},
	{"Last Off", func(h v1.EnergyHost) any { return h.LastOff }, inShows},
	{"Boots", func(h v1.EnergyHost) any {
		return each(h.Boots, func(s int64) string { return v1.Duration(s).String() })
	}, inShows},
	{"Explanation", func(h v1.EnergyHost) any { return lines(h.Explanation) }, inShows},
	{"History", func(h v1.EnergyHost) any { return lines(each(h.History, entryLine)) }, inShows},
}

// known is nothing for a number that is not known.
func known(x float64) any {
	if x == 0 {
		return ""
	}
	return x
}

// troubleOf says what an operator should know of a host before all else.
func troubleOf(h v1.EnergyHost) string {
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

func wakeTestLine(test *v1.EnergyWakeTest) string {
	switch {
	case test == nil:
		return ""
	case test.Woke:
		return fmt.Sprintf("woke in %s at %s", v1.Duration(test.Seconds), stamp(test.At))
	}
	return fmt.Sprintf("did not wake at %s: %s", stamp(test.At), test.Reason)
}

func entryLine(e v1.EnergyEntry) string {
	return fmt.Sprintf("%s %s %s: %s", stamp(e.At), e.By, e.Kind, e.Text)
}

func (p *process) energyHostCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "See the power of hosts, and switch them by hand",
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

var phaseWords = []string{"awake", "draining", "stopping", "asleep", "waking", "failed"}

func (p *process) energyHostListCommand() *cobra.Command {
	var phases []string
	var limit int
	var long bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List hosts with their power, by name",
		Example: `  almanac energy host list --long
  almanac energy host list --phase asleep --phase waking -f value -c Name`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, energyHostColumns, listed(long))
			if err != nil {
				return err
			}
			for _, phase := range phases {
				if !slices.Contains(phaseWords, phase) {
					return fault.Field("--phase", "%s", unknown("phase", phase, phaseWords))
				}
			}
			size, err := pageSize(limit)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := collect(almanac.EnergyHosts(c.Context(), client.EnergyFilter{Phases: phases, PageSize: size}), limit)
			if err != nil {
				return err
			}
			return out.list(found, v1.EnergyHosts{Hosts: found})
		},
	}
	c.Flags().StringSliceVar(&phases, "phase", nil, "only hosts in this phase: awake, draining, stopping, asleep, waking or failed (repeatable)")
	c.Flags().IntVar(&limit, "limit", 0, "at most this many; 0 is all")
	c.Flags().BoolVar(&long, "long", false, "print more columns")
	completeFlag(c, "phase", oneOf(phaseWords))
	return c
}

func (p *process) energyHostShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show the power of a host, and what was done with it",
		Example:           "  almanac energy host show node-01",
		Args:              needsOne("NAME"),
		ValidArgsFunction: p.completeOneHost,
		RunE: func(c *cobra.Command, args []string) error {
			out, err := newPrinter(p, energyHostColumns, inShows)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := almanac.EnergyHost(c.Context(), args[0])
			if err != nil {
				return err
			}
			return out.one(found, found)
		},
	}
}
