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
)

func entryFields(e v1.EnergyEntry) []field {
	return []field{
		{"Time", e.At, inLists}, {"Host", e.Host, inLists}, {"Kind", e.Kind, inLists}, {"By", e.By, inLists},
		{"Message", prose(e.Text), inLists}, {"Operation", e.Operation, inLongLists}, {"ID", e.ID, inLongLists},
	}
}

func (p *process) energyAuditCommand() *cobra.Command {
	var host string
	most := limit(100)
	c := &cobra.Command{
		Use:   "audit",
		Short: "List the changes of the power of hosts: who, why and with what result",
		Long:  "List the changes of the power of hosts: who, why and with what result; the latest first.",
		Example: `  almanac energy audit --limit 20
  almanac energy audit --host node-01 --long`,
	}
	listCommand(p, c, entryFields, func(ctx context.Context, almanac *client.Client) ([]v1.EnergyEntry, v1.EnergyAudit, error) {
		found, err := collect(almanac.EnergyAudit(ctx, host, most.page()), most)
		return found, v1.EnergyAudit{Entries: found}, err
	})
	c.Flags().StringVar(&host, "host", "", "only changes of this host")
	most.add(c)
	completeFlag(c, "host", p.completeHosts())
	return c
}

// storyLength is how many entries story searches for the last operation of a host.
const storyLength = 100

func (p *process) energyExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain NAME",
		Short: "Explain why a host is on or off, and what would change it",
		Long: `Explain why a host is on or off, what would change it, and what led to it: the audit
entries of the last time that the host was put to sleep or woken, in the order of time.`,
		Example: `  almanac energy explain node-01
  almanac energy explain node-01 -f json`,
		Args:              needsOne("NAME"),
		ValidArgsFunction: onlyOne(p.completeHosts()),
		RunE: func(c *cobra.Command, args []string) error {
			return with(p, c, energyHostFields, inShows, func(ctx context.Context, almanac *client.Client, out printer[v1.EnergyHost]) error {
				h, err := almanac.EnergyHost(ctx, args[0])
				if err != nil {
					return err
				}
				entries, err := collect(almanac.EnergyAudit(ctx, h.Name, storyLength), storyLength)
				if err != nil {
					return err
				}
				if h.History = story(entries); p.format != "table" || out.chosen {
					return out.one(h, h)
				}
				return out.print(strings.Join(explanation(h), "\n"))
			})
		},
	}
}

// story returns the entries of the last operation in the order of time, with the manual order
// that led to it and the entries since then. Without an operation it returns the last few.
func story(entries []v1.EnergyEntry) []v1.EnergyEntry {
	const few = 5
	first := min(few, len(entries)) - 1
	if last := slices.IndexFunc(entries, func(e v1.EnergyEntry) bool { return e.Operation != "" }); last >= 0 {
		for i, e := range entries {
			if e.Operation == entries[last].Operation {
				first = i
			}
		}
		if next := first + 1; next < len(entries) && entries[next].Operation == "" && entries[next].Kind == string(energy.EntryManual) {
			first = next
		}
	}
	entries = slices.Clone(entries[:first+1])
	slices.Reverse(entries)
	return entries
}

// explanation returns the lines that explain the power of a host.
func explanation(h v1.EnergyHost) []string {
	text := []string{plain(h.Name) + " is " + h.Phase}
	if h.Since != nil {
		text[0] += " since " + stamp(*h.Since)
	}
	if h.Reason != "" {
		text[0] += ": " + plain(h.Reason)
	}
	add := func(format string, args ...any) { text = append(text, "  "+fmt.Sprintf(format, args...)) }
	if h.State != "" && h.Watts > 0 {
		add("its machine reports %s and draws %g W", h.State, h.Watts)
	} else if h.State != "" {
		add("its machine reports %s", h.State)
	}
	if why := problemOf(h); why != "" {
		add("%s", plain(why))
	}
	if h.Hold != nil {
		add("held %s", plain(holdLine(h.Hold)))
	}
	if h.LastWakeTest != nil {
		add("%s", plain(wakeTestLine(h.LastWakeTest)))
	}
	if len(h.Explanation) > 0 {
		text = append(text, "Why:")
		for _, line := range h.Explanation {
			add("%s", plain(line))
		}
	}
	if len(h.History) > 0 {
		text = append(text, "History:")
		for _, e := range h.History {
			add("%s", plain(entryLine(e)))
		}
	}
	return text
}
