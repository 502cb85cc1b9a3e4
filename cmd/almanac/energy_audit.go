package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
)

var entryColumns = []column[v1.EnergyEntry]{
	{"Time", func(e v1.EnergyEntry) any { return e.At }, inLists},
	{"Host", func(e v1.EnergyEntry) any { return e.Host }, inLists},
	{"Kind", func(e v1.EnergyEntry) any { return e.Kind }, inLists},
	{"By", func(e v1.EnergyEntry) any { return e.By }, inLists},
	{"What", func(e v1.EnergyEntry) any { return prose(e.Text) }, inLists},
	{"Operation", func(e v1.EnergyEntry) any { return e.Operation }, inLongLists},
	{"ID", func(e v1.EnergyEntry) any { return e.ID }, inLongLists},
}

func (p *process) energyAuditCommand() *cobra.Command {
	var host string
	var limit int
	var long bool
	c := &cobra.Command{
		Use:   "audit",
		Short: "List who did what to which host's power, why, and what came of it",
		Long:  "List who did what to which host's power, why, and what came of it; the latest first.",
		Example: `  almanac energy audit --limit 20
  almanac energy audit --host node-01 --long`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			out, err := newPrinter(p, entryColumns, listed(long))
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
			found, err := collect(almanac.EnergyAudit(c.Context(), host, size), limit)
			if err != nil {
				return err
			}
			return out.list(found, v1.EnergyAudit{Entries: found})
		},
	}
	c.Flags().StringVar(&host, "host", "", "only what is about this host")
	c.Flags().IntVar(&limit, "limit", 100, "at most this many; 0 is all")
	c.Flags().BoolVar(&long, "long", false, "print more columns")
	completeFlag(c, "host", p.completeHosts)
	return c
}

// storyLength is how many entries are looked through for the last operation of a host.
const storyLength = 100

func (p *process) energyExplainCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why a host is on or off, what would change it, and how it came to that",
		Long: `Say why a host is on or off, what would change it, and how it came to that: what the audit
has of the last time that it went to sleep or woke, in the order of time.`,
		Example: `  almanac energy explain node-01
  almanac energy explain node-01 -f json`,
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
			h, err := almanac.EnergyHost(c.Context(), args[0])
			if err != nil {
				return err
			}
			entries, err := collect(almanac.EnergyAudit(c.Context(), h.Name, storyLength), storyLength)
			if err != nil {
				return err
			}
			if h.History = story(entries); p.format != "table" || out.chosen {
				return out.one(h, h)
			}
			return out.print(strings.Join(told(h), "\n"))
		},
	}
}

// story gives the entries of the last operation, in the order of time, with the manual
// order that led to it and what has happened since; the last few where there was none.
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

// told gives the lines of an explanation.
func told(h v1.EnergyHost) []string {
	text := []string{plain(h.Name) + " is " + h.Phase}
	if h.Since != nil {
		text[0] += " since " + stamp(*h.Since)
	}
	if h.Reason != "" {
		text[0] += ": " + plain(h.Reason)
	}
	add := func(format string, args ...any) { text = append(text, "  "+fmt.Sprintf(format, args...)) }
	if h.State != "" && h.Watts > 0 {
		add("its machine says %s, and takes %g W", h.State, h.Watts)
	} else if h.State != "" {
		add("its machine says %s", h.State)
	}
	if why := troubleOf(h); why != "" {
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
		text = append(text, "How it came to that:")
		for _, e := range h.History {
			add("%s", plain(entryLine(e)))
		}
	}
	return text
}
