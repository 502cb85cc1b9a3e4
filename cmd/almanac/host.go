// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

func hostFields(h v1.Host) []field {
	return []field{
		{"Name", h.Name, inLists}, {"VCPUs", h.Resources.VCPUs, inLists}, {"Memory MB", h.Resources.MemoryMB, inLists},
		{"Disk GB", h.Resources.DiskGB, inLists}, {"Zone", h.Zone, inLists}, {"Reservable", h.Reservable, inLists},
		{"Power", h.Power, inLists}, {"Instances", h.InstanceCount, inLists}, {"Problem", prose(h.Problem), inLongLists},
		{"Used", h.Used, inShows}, {"Custom", custom(h.Resources), inShows}, {"Aggregates", h.Aggregates, inLongLists},
		{"Traits", h.Traits, inShows}, {"Properties", h.Properties, inLongLists}, {"Boot Seconds", h.BootSeconds, inShows},
		{"FLOPS Per Watt", h.FlopsPerWatt, inLongLists}, {"Instance Details", lines(each(h.Instances, instanceLine)), inShows},
	}
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
		Short: "List and show hosts, set their properties, and plan maintenance",
		Example: `  almanac host list
  almanac host set node-01 --property rack=4 --not-reservable
  almanac host set 'node-[01-08]' --reservable
  almanac host maintenance node-07 --start +1d --duration 4h --reason 'new memory'`,
	}
	c.AddCommand(p.hostListCommand(), p.hostShowCommand(), p.hostSetCommand(), p.hostMaintenanceCommand())
	return c
}

func (p *process) hostListCommand() *cobra.Command {
	var properties string
	var most limit
	c := &cobra.Command{
		Use:   "list",
		Short: "List hosts by name",
		Example: `  almanac host list --long
  almanac host list --properties '["=", "$gpu", "a100"]' -f value -c Name`,
	}
	listCommand(p, c, hostFields, func(ctx context.Context, almanac *client.Client) (hosts []v1.Host, answer v1.HostList, err error) {
		filter, err := p.filter(properties)
		if err != nil {
			return nil, answer, err
		}
		answer.Hosts, err = collect(almanac.Hosts(ctx, client.HostFilter{
			HostProperties: string(filter), PageSize: most.page(),
			Unknown: func(names []string) { answer.UnknownProperties = names },
		}), most)
		p.warnUnknown(answer.UnknownProperties)
		return answer.Hosts, answer, err
	})
	c.Flags().StringVar(&properties, "properties", "", "only hosts that pass this filter: JSON, or @FILE that contains it")
	most.add(c)
	return c
}

func (p *process) hostShowCommand() *cobra.Command {
	return showCommand(p, &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a host",
		Example:           "  almanac host show node-01",
		ValidArgsFunction: onlyOne(p.completeHosts()),
	}, hostFields, func(ctx context.Context, almanac *client.Client, name string) (v1.Host, error) {
		return almanac.Host(ctx, name)
	})
}

// warnUnknown names the properties of a filter that no host has.
func (p *process) warnUnknown(names []string) {
	if len(names) > 0 {
		p.inform("no host has a property $%s; 'almanac properties' lists the properties that exist", strings.Join(names, ", $"))
	}
}
