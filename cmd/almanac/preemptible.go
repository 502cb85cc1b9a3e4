package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

var preemptibleColumns = []column[v1.PreemptibleInstance]{
	{"ID", func(i v1.PreemptibleInstance) any { return i.ID }, inLists},
	{"Name", func(i v1.PreemptibleInstance) any { return i.Name }, inLists},
	{"Project", func(i v1.PreemptibleInstance) any { return i.ProjectID }, inLists},
	{"Host", func(i v1.PreemptibleInstance) any { return i.Host }, inLists},
	{"Status", func(i v1.PreemptibleInstance) any { return i.Status }, inLists},
	{"Flavor", func(i v1.PreemptibleInstance) any { return i.Flavor }, inLongLists},
	{"Holds", func(i v1.PreemptibleInstance) any { return lines(held(i.Holds)) }, inLongLists},
	{"Running Since", func(i v1.PreemptibleInstance) any { return i.LaunchedAt }, inLists},
	{"Cost", func(i v1.PreemptibleInstance) any { return i.Cost }, inLists},
	{"Unit", func(i v1.PreemptibleInstance) any { return i.Unit }, inLists},
	{"Stays Because", func(i v1.PreemptibleInstance) any { return prose(i.Reason) }, inLists},
}

// held writes amounts of resource classes.
func held(amounts map[string]int64) []string {
	return each(slices.Sorted(maps.Keys(amounts)), func(class string) string { return fmt.Sprintf("%d %s", amounts[class], class) })
}

var preemptionColumns = []column[v1.PreemptionCost]{
	{"Host", func(h v1.PreemptionCost) any { return h.Host }, inLists},
	{"Room", func(h v1.PreemptionCost) any { return h.Room }, inLists},
	{"Cost", func(h v1.PreemptionCost) any { return costOf(h) }, inLists},
	{"Unit", func(h v1.PreemptionCost) any { return h.Unit }, inLists},
	{"Victims", func(h v1.PreemptionCost) any { return lines(each(h.Victims, victim)) }, inLists},
	{"Refused Because", func(h v1.PreemptionCost) any { return prose(h.Reason) }, inLists},
}

// costOf is nothing on a host that is refused.
func costOf(h v1.PreemptionCost) any {
	if h.Reason != "" {
		return ""
	}
	return h.Cost
}

// victim writes an instance that leaves.
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
		Short: "See which instances leave when others need their place, and at what cost",
		Example: `  almanac preemptible list
  almanac preemptible cost --vcpus 2 --memory-mb 4096 --disk-gb 40`,
	}
	c.AddCommand(p.preemptibleListCommand(), p.preemptibleCostCommand())
	return c
}

func (p *process) preemptibleListCommand() *cobra.Command {
	var filter client.PreemptibleFilter
	var long bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List preemptible instances, the cheapest first",
		Long: `List preemptible instances: those that can be evicted first, the cheapest first, then
the others with what keeps them. What an instance costs is settled by [preemptible]
cost of the service; with its default it is the time that the instance has run since
its last full hour.

Which of them leave for an instance depends on its size: 'almanac preemptible cost'
tells. They are shown to admins and readers of the system.`,
		Example: `  almanac preemptible list --long
  almanac preemptible list --host node-01 -f value -c ID -c Cost`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, preemptibleColumns, listed(long))
			if err != nil {
				return err
			}
			if filter.Limit < 0 {
				return fault.Field("--limit", "must not be negative; 0 is all")
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := almanac.Preemptible(c.Context(), filter)
			if err != nil {
				return err
			}
			return out.list(found.Instances, found)
		},
	}
	c.Flags().StringVar(&filter.Host, "host", "", "only those on this host")
	c.Flags().StringVar(&filter.ProjectID, "project", "", "only those of the project with this id")
	c.Flags().IntVar(&filter.Limit, "limit", 0, "at most this many; 0 is all")
	c.Flags().BoolVar(&long, "long", false, "print more columns")
	completeFlag(c, "host", p.completeHosts)
	return c
}

func (p *process) preemptibleCostCommand() *cobra.Command {
	var size client.Size
	var project string
	var limit int
	c := &cobra.Command{
		Use:   "cost",
		Short: "Show which instances would leave for one of some size, on each host",
		Long: `Show what it would cost each host now to have an instance that is not preemptible: a
host with room costs nothing; on one without, the cheapest of its preemptible instances
that are enough would leave; and a host that is refused says why. They come in the
order in which they would be chosen for an instance without hints and without a server
group. Nothing is changed.`,
		Example: `  almanac preemptible cost --vcpus 2 --memory-mb 4096 --disk-gb 40
  almanac preemptible cost --flavor m1.large --limit 1 -f json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, preemptionColumns, inLists)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := almanac.PreemptionCosts(c.Context(), size, project, limit)
			if err != nil {
				return err
			}
			if found.Reason != "" {
				p.inform("%s", found.Reason)
			}
			if more := found.Considered - len(found.Hosts); more > 0 {
				p.inform("%d more hosts come after these; --limit shows up to %d", more, largestPage)
			}
			return out.list(found.Hosts, found)
		},
	}
	c.Flags().IntVar(&size.VCPUs, "vcpus", 0, "virtual CPUs of the instance")
	c.Flags().IntVar(&size.MemoryMB, "memory-mb", 0, "its memory (also --memory)")
	c.Flags().IntVar(&size.DiskGB, "disk-gb", 0, "its disk (also --disk)")
	c.Flags().StringVar(&size.Flavor, "flavor", "", "name or id of a flavor of the cloud, instead of these")
	c.Flags().StringVar(&project, "project", "", "id of the project that the instance would belong to")
	c.Flags().IntVar(&limit, "limit", 0, "at most this many hosts; 0 is 100")
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(cmp.Or(map[string]string{"memory": "memory-mb", "disk": "disk-gb"}[name], name))
	})
	return c
}
