package main

import (
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

var hostColumns = []column[v1.Host]{
	{"Name", func(h v1.Host) any { return h.Name }, inLists},
	{"VCPUs", func(h v1.Host) any { return h.Resources.VCPUs }, inLists},
	{"Memory MB", func(h v1.Host) any { return h.Resources.MemoryMB }, inLists},
	{"Disk GB", func(h v1.Host) any { return h.Resources.DiskGB }, inLists},
	{"Zone", func(h v1.Host) any { return h.Zone }, inLists},
	{"Reservable", func(h v1.Host) any { return h.Reservable }, inLists},
	{"Power", func(h v1.Host) any { return h.Power }, inLists},
	{"Guests", func(h v1.Host) any { return h.Guests }, inLists},
	{"Trouble", func(h v1.Host) any { return prose(h.Trouble) }, inLongLists},
	{"Used", func(h v1.Host) any { return h.Used }, inShows},
	{"Custom", func(h v1.Host) any { return custom(h.Resources) }, inShows},
	{"Aggregates", func(h v1.Host) any { return h.Aggregates }, inLongLists},
	{"Traits", func(h v1.Host) any { return h.Traits }, inShows},
	{"Properties", func(h v1.Host) any { return h.Properties }, inLongLists},
	{"Boot Seconds", func(h v1.Host) any { return h.BootSeconds }, inShows},
	{"FLOPS Per Watt", func(h v1.Host) any { return h.FlopsPerWatt }, inLongLists},
	{"Instances", func(h v1.Host) any { return lines(each(h.Instances, instanceLine)) }, inShows},
}

func instanceLine(i v1.Instance) string {
	words := []string{i.ID, i.Name, i.Status, i.Flavor, "project " + i.ProjectID}
	if i.LaunchedAt != nil {
		words = append(words, "since "+stamp(*i.LaunchedAt))
	}
	if i.Preemptible {
		words = append(words, "preemptible")
	}
	if i.ReservationID != "" {
		words = append(words, "reservation "+i.ReservationID)
	}
	return strings.Join(words, " ")
}

func custom(r v1.Resources) map[string]any {
	amounts := make(map[string]any, len(r.Custom))
	for class, amount := range r.Custom {
		amounts[class] = amount
	}
	return amounts
}

func (p *process) hostCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "Look at hosts, and set what users can ask for",
		Example: `  almanac host list
  almanac host set node-01 --property rack=4 --not-reservable
  almanac host set 'node-[01-08]' --reservable`,
	}
	c.AddCommand(p.hostListCommand(), p.hostShowCommand(), p.hostSetCommand())
	return c
}

func (p *process) hostListCommand() *cobra.Command {
	var properties string
	var limit int
	var long bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List hosts by name",
		Example: `  almanac host list --long
  almanac host list --properties '["=", "$gpu", "a100"]' -f value -c Name`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, hostColumns, listed(long))
			if err != nil {
				return err
			}
			filter, err := p.filter(properties)
			if err != nil {
				return err
			}
			size, err := pageSize(limit)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			var answer v1.HostList
			answer.Hosts, err = collect(almanac.Hosts(c.Context(), client.HostFilter{
				HostProperties: string(filter), PageSize: size,
				Unknown: func(names []string) { answer.UnknownProperties = names },
			}), limit)
			if err != nil {
				return err
			}
			p.warnUnknown(answer.UnknownProperties)
			return out.list(answer.Hosts, answer)
		},
	}
	c.Flags().StringVar(&properties, "properties", "", "only hosts that pass this filter: JSON, or @FILE with it")
	c.Flags().IntVar(&limit, "limit", 0, "at most this many; 0 is all")
	c.Flags().BoolVar(&long, "long", false, "print more columns")
	return c
}

func (p *process) hostShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a host",
		Example:           "  almanac host show node-01",
		Args:              needsOne("NAME"),
		ValidArgsFunction: p.completeOneHost,
		RunE: func(c *cobra.Command, args []string) error {
			out, err := newPrinter(p, hostColumns, inShows)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := almanac.Host(c.Context(), args[0])
			if err != nil {
				return err
			}
			return out.one(found, found)
		},
	}
}

// warnUnknown tells of properties in a filter that no host has.
func (p *process) warnUnknown(names []string) {
	if len(names) > 0 {
		p.inform("no host has a property $%s; 'almanac properties' lists what there is to ask for", strings.Join(names, ", $"))
	}
}
