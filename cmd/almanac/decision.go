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

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
)

const (
	// reasonsShown is the maximum number of reasons for refused hosts that a decision shows,
	// and hostsShown the maximum number of hosts for each reason.
	reasonsShown = 20
	hostsShown   = 8
)

func decisionFields(d v1.Decision) []field {
	return []field{
		{"Verdict", prose(verdictOf(d)), inLists}, {"Time", d.At, inLists}, {"Request", d.RequestID, inLists},
		{"Project", d.ProjectID, inLists}, {"Reservation", d.ReservationID, inLists}, {"Handled By", d.HandledBy, inLists},
		{"Milliseconds", d.TookMS, inLists}, {"Instances", lines(instancesOf(d)), inLists},
		{"Evicted", lines(each(evictedBy(d), victim)), inLists}, {"Filters", lines(filtersOf(d)), inLists},
		{"Best Hosts", lines(each(d.Ranked, ranked)), inLists}, {"Refused Hosts", lines(refusedHosts(d)), inLists},
	}
}

func (p *process) decisionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "decision",
		Short:   "Show why instances were placed on their hosts, or refused",
		Example: "  almanac decision show 0d5cbe0f-98c7-4a91-9d63-2d56c1b6f00a",
	}
	c.AddCommand(p.decisionShowCommand())
	return c
}

func (p *process) decisionShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show the placement decisions about an instance or a request",
		Long: `Show the placement decisions about an instance, or about the request (req-…) that asked
Nova for instances; the newest first. For an evicted instance the decision about the
instances that replaced it is shown; its owner sees only the eviction. The number of
hosts that each filter left, the best hosts and the refused hosts are those of the
first instance of a request. Only users who may see hosts see their names.`,
		Example: `  almanac decision show 0d5cbe0f-98c7-4a91-9d63-2d56c1b6f00a
  almanac decision show req-6f1f0f1c-58a2-4a5b-93b9-0b0ce0f3a1d2 -f value -c Verdict`,
		Args:              needsOne("ID"),
		ValidArgsFunction: cobra.NoFileCompletions, // no call lists the ids
		RunE: func(c *cobra.Command, args []string) error {
			return with(p, c, decisionFields, inShows, func(ctx context.Context, almanac *client.Client, out printer[v1.Decision]) error {
				found, err := almanac.Decisions(ctx, args[0])
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
			})
		},
	}
}

// verdictOf summarizes a decision in a phrase.
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

// evictedBy returns the instances that the decision evicted.
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

// weighed formats a host with its weight and the weight of each weigher, the largest first.
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

// refusedHosts formats the reasons for refused hosts, the most frequent first, each with its
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
	// A decision keeps only some of many refused hosts.
	all := len(d.Refused)
	if last := len(d.Filters) - 1; all > 0 && last >= 0 {
		all = max(all, d.Considered-d.Filters[last].Left)
	}
	if all > shown {
		texts = append(texts, fmt.Sprintf("%d more", all-shown))
	}
	return texts
}

// few formats the first names of a list.
func few(names []string) string {
	if more := len(names) - hostsShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:hostsShown], ", "), more)
	}
	return strings.Join(names, ", ")
}
