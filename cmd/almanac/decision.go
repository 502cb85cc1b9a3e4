package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

const (
	// reasonsShown is how many reasons of refused hosts a decision shows, and
	// hostsShown how many hosts of each.
	reasonsShown = 20
	hostsShown   = 8
)

var decisionColumns = []column[v1.Decision]{
	{"Verdict", func(d v1.Decision) any { return prose(verdictOf(d)) }, inLists},
	{"Time", func(d v1.Decision) any { return d.At }, inLists},
	{"Request", func(d v1.Decision) any { return d.RequestID }, inLists},
	{"Project", func(d v1.Decision) any { return d.ProjectID }, inLists},
	{"Reservation", func(d v1.Decision) any { return d.ReservationID }, inLists},
	{"Way", func(d v1.Decision) any { return d.Way }, inLists},
	{"Milliseconds", func(d v1.Decision) any { return d.TookMS }, inLists},
	{"Instances", func(d v1.Decision) any { return lines(instancesOf(d)) }, inLists},
	{"Evicted", func(d v1.Decision) any { return lines(each(evictedBy(d), victim)) }, inLists},
	{"Filters", func(d v1.Decision) any { return lines(filtersOf(d)) }, inLists},
	{"Best Hosts", func(d v1.Decision) any { return lines(each(d.Ranked, ranked)) }, inLists},
	{"Refused Hosts", func(d v1.Decision) any { return lines(refusedHosts(d)) }, inLists},
}

func (p *process) decisionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "decision",
		Short:   "See why instances were placed where they are, or nowhere",
		Example: "  almanac decision show 0d5cbe0f-98c7-4a91-9d63-2d56c1b6f00a",
	}
	c.AddCommand(p.decisionShowCommand())
	return c
}

func (p *process) decisionShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show what was decided about an instance, or in a request",
		Long: `Show what was decided about an instance, or in the request (req-…) that asked Nova
for instances; the newest first. Of an instance that had to leave for others, what was
decided about these is shown, and to its owner that it had to leave. How many hosts
each filter left, which were best and why the others were refused is told of the first
instance of a request, and the names of hosts only to those who may see them.`,
		Example: `  almanac decision show 0d5cbe0f-98c7-4a91-9d63-2d56c1b6f00a
  almanac decision show req-6f1f0f1c-58a2-4a5b-93b9-0b0ce0f3a1d2 -f value -c Verdict`,
		Args:              needsOne("ID"),
		ValidArgsFunction: cobra.NoFileCompletions, // nothing lists what there are decisions about
		RunE: func(c *cobra.Command, args []string) error {
			out, err := newPrinter(p, decisionColumns, inShows)
			if err != nil {
				return err
			}
			almanac, err := p.connect(c.Context())
			if err != nil {
				return err
			}
			found, err := almanac.Decisions(c.Context(), args[0])
			if err != nil {
				return err
			}
			if p.format != "table" {
				return out.list(found.Decisions, found)
			}
			for _, d := range found.Decisions {
				if err := out.one(d, d); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// verdictOf says in a sentence what was decided.
func verdictOf(d v1.Decision) string {
	if len(d.Evicted) > 0 {
		return "evicted, to make room for others"
	}
	if len(d.Placements) == 0 {
		return "not placed: " + cmp.Or(d.Reason, "no reason is known")
	}
	var hosts []string
	for _, p := range d.Placements {
		if p.Host != "" && !slices.Contains(hosts, p.Host) {
			hosts = append(hosts, p.Host)
		}
	}
	if len(hosts) == 0 {
		return "placed"
	}
	return "placed on " + few(hosts)
}

// evictedBy gives the instances that had to leave.
func evictedBy(d v1.Decision) []v1.Victim {
	list := slices.Clone(d.Evicted)
	for _, p := range d.Placements {
		list = append(list, p.Victims...)
	}
	return list
}

func instancesOf(d v1.Decision) []string {
	if len(d.Placements) == 0 {
		return d.Instances
	}
	return each(d.Placements, func(p v1.Placement) string {
		text := p.Instance
		if p.Host != "" {
			text += " on " + p.Host
		}
		if p.Node != p.Host {
			text += " (" + p.Node + ")"
		}
		if len(p.Alternates) > 0 {
			text += ", else " + strings.Join(p.Alternates, ", ")
		}
		return text
	})
}

func filtersOf(d v1.Decision) []string {
	return append([]string{fmt.Sprintf("%d hosts", d.Considered)}, each(d.Filters, func(f v1.FilterCount) string {
		return fmt.Sprintf("%d after %s", f.Left, f.Filter)
	})...)
}

func ranked(r v1.RankedHost) string { return weighed(r.Host, r.Weight, r.Parts) }

// weighed writes a host with its weight and, the heaviest first, what makes it up.
func weighed(host string, weight float64, parts map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int {
		return cmp.Or(cmp.Compare(parts[b], parts[a]), strings.Compare(a, b))
	})
	text := fmt.Sprintf("%.4g %s", weight, host)
	if len(names) > 0 {
		text += ": " + strings.Join(each(names, func(name string) string { return fmt.Sprintf("%s %.4g", name, parts[name]) }), ", ")
	}
	return text
}

// refusedHosts writes the reasons of refused hosts, the most frequent first, each with its
// hosts.
func refusedHosts(d v1.Decision) []string {
	hosts := make(map[string][]string) // by reason
	for _, r := range d.Refused {
		why := r.Filter + ": " + r.Reason
		hosts[why] = append(hosts[why], r.Host)
	}
	reasons := slices.SortedFunc(maps.Keys(hosts), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(hosts[b]), len(hosts[a])), strings.Compare(a, b))
	})
	reasons = reasons[:min(len(reasons), reasonsShown)]
	shown := 0
	texts := each(reasons, func(why string) string {
		shown += len(hosts[why])
		return fmt.Sprintf("%d by %s: %s", len(hosts[why]), why, few(hosts[why]))
	})
	// Of many only some are kept.
	all := len(d.Refused)
	if last := len(d.Filters) - 1; all > 0 && last >= 0 {
		all = max(all, d.Considered-d.Filters[last].Left)
	}
	if all > shown {
		texts = append(texts, fmt.Sprintf("%d more", all-shown))
	}
	return texts
}

// few writes the first names of a list.
func few(names []string) string {
	if more := len(names) - hostsShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:hostsShown], ", "), more)
	}
	return strings.Join(names, ", ")
}
