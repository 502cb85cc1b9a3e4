// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

func preemptibleFields(i v1.PreemptibleInstance) []field {
	return []field{
		{"ID", i.ID, inLists}, {"Name", i.Name, inLists}, {"Project", i.ProjectID, inLists}, {"Host", i.Host, inLists},
		{"Status", i.Status, inLists}, {"Flavor", i.Flavor, inLongLists}, {"Holds", lines(held(i.Holds)), inLongLists},
		{"Running Since", i.LaunchedAt, inLists}, {"Cost", i.Cost, inLists}, {"Unit", i.Unit, inLists},
		{"Stays Because", prose(i.Reason), inLists},
	}
}

// held formats amounts of resource classes.
func held(amounts map[string]int64) []string {
	return each(slices.Sorted(maps.Keys(amounts)), func(class string) string { return fmt.Sprintf("%d %s", amounts[class], class) })
}

func preemptionFields(h v1.PreemptionCost) []field {
	var cost any = h.Cost
	if h.Reason != "" { // Almanac would refuse the host
		cost = ""
	}
	return []field{
		{"Host", h.Host, inLists}, {"Room", h.Room, inLists}, {"Cost", cost, inLists}, {"Unit", h.Unit, inLists},
		{"Victims", lines(each(h.Victims, victim)), inLists}, {"Refused Because", prose(h.Reason), inLists},
	}
}

// victim formats an instance that Almanac evicts.
func victim(v v1.Victim) string {
	text := cmp.Or(v.Name, v.ID)
	if v.Name != "" {
		text += " (" + v.ID + ")"
	}
	return strings.TrimSpace(fmt.Sprintf("%s of project %s: %d %s", text, v.ProjectID, v.Cost, v.Unit))
}

func (p *process) preemptibleCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "preemptible",
		Short: "Show which instances can be evicted for others, and at what cost",
		Example: `  almanac preemptible list
  almanac preemptible cost --vcpus 2 --memory-mb 4096 --disk-gb 40`,
	}
	c.AddCommand(p.preemptibleListCommand(), p.preemptibleCostCommand())
	return c
}

func (p *process) preemptibleListCommand() *cobra.Command {
	var filter client.PreemptibleFilter
	var most limit
	c := &cobra.Command{
		Use:   "list",
		Short: "List preemptible instances, the cheapest first",
		Long: `List preemptible instances: those that can be evicted, the cheapest first, then the
others with the reason why they stay. [preemptible] victim_cost of the service sets how the
cost is computed; by default it is the time that the instance has run since its last
full hour.

Which instances Almanac evicts for a new one depends on the size of the new one:
'almanac preemptible cost' shows it. Only admins and system readers can see the list.`,
		Example: `  almanac preemptible list --long
  almanac preemptible list --host node-01 -f value -c ID -c Cost`,
	}
	listCommand(p, c, preemptibleFields, func(ctx context.Context, almanac *client.Client) ([]v1.PreemptibleInstance, v1.PreemptibleInstances, error) {
		filter.Limit = int(most)
		found, err := almanac.Preemptible(ctx, filter)
		return found.Instances, found, err
	})
	c.Flags().StringVar(&filter.Host, "host", "", "only instances on this host")
	c.Flags().StringVar(&filter.ProjectID, "project", "", "only instances of the project with this id")
	most.add(c)
	completeFlag(c, "host", p.completeHosts())
	return c
}

func (p *process) preemptibleCostCommand() *cobra.Command {
	var size client.Size
	var project string
	var most int
	c := &cobra.Command{
		Use:   "cost",
		Short: "Show which instances Almanac would evict from each host for a new instance",
		Long: `Show the cost, on each host now, of an instance that is not preemptible. A host with
enough free capacity costs nothing. From another host Almanac would evict the cheapest
preemptible instances that are enough. A refused host shows the reason. The hosts are
in the order in which Almanac would choose them for an instance without scheduler
hints and without a server group. The command changes nothing.`,
		Example: `  almanac preemptible cost --vcpus 2 --memory-mb 4096 --disk-gb 40
  almanac preemptible cost --flavor m1.large --limit 1 -f json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return list(p, c, preemptionFields, inLists, func(ctx context.Context, almanac *client.Client) ([]v1.PreemptionCost, v1.PreemptionCosts, error) {
				found, err := almanac.PreemptionCosts(ctx, size, project, most)
				if found.Reason != "" {
					p.inform("%s", found.Reason)
				}
				if more := found.Considered - len(found.Hosts); more > 0 {
					p.inform("%d more hosts come after these; --limit shows up to %d", more, largestPage)
				}
				return found.Hosts, found, err
			})
		},
	}
	c.Flags().IntVar(&size.VCPUs, "vcpus", 0, "VCPUs of the instance")
	c.Flags().IntVar(&size.MemoryMB, "memory-mb", 0, "memory of the instance in MB (also --memory)")
	c.Flags().IntVar(&size.DiskGB, "disk-gb", 0, "disk of the instance in GB (also --disk)")
	c.Flags().StringVar(&size.Flavor, "flavor", "", "name or id of a flavor of the cloud, instead of these amounts")
	c.Flags().StringVar(&project, "project", "", "id of the project of the instance")
	c.Flags().IntVar(&most, "limit", 0, "maximum number of hosts; 0 is 100")
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(map[string]string{"memory": "memory-mb", "disk": "disk-gb"}[name], name))
	})
	return c
}
