package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/reservation"
)

// blocksShown is the maximum number of blocking claims to print.
const blocksShown = 5

// explain prints why there is no capacity, and what would fit.
func (p *process) explain(command *cobra.Command, r *v1.Refusal) {
	p.inform("  constraint:       %s", r.Constraint)
	p.inform("  matched:          %d", r.Matched)
	p.inform("  free:             %d", r.Free)
	for i, b := range r.BlockedBy {
		if i == blocksShown {
			p.inform("                    and %d more", len(r.BlockedBy)-i)
			break
		}
		label := ""
		if i == 0 {
			label = "blocked by:"
		}
		p.inform("  %-16s  %s from %s to %s", label, b.Host, stamp(b.Start), stamp(b.End))
	}
	earliest := "none"
	if r.EarliestStart != nil {
		earliest = stamp(*r.EarliestStart)
	}
	p.inform("  earliest start:   %s", earliest)
	p.inform("  largest quantity: %d", r.LargestQuantity)
	if advice := advise(command, r); advice != "" {
		p.inform("  hint: try %s", advice)
	}
}

// advise returns flags of the command that would make the request fit.
func advise(command *cobra.Command, r *v1.Refusal) string {
	has := func(flag string) bool { return command.Flags().Lookup(flag) != nil }
	var ways []string
	if r.EarliestStart != nil && has("start") {
		way := "--start " + stamp(*r.EarliestStart)
		if command.Flags().Changed("end") {
			way += " with a later --end"
		}
		ways = append(ways, way)
	}
	if r.LargestQuantity > 0 && has("quantity") {
		ways = append(ways, "--quantity "+strconv.Itoa(r.LargestQuantity))
	}
	switch reservation.Constraint(r.Constraint) {
	case reservation.HostsMatching:
		if has("properties") {
			ways = append(ways, "other --properties ('almanac properties' lists the properties that exist)")
		}
	case reservation.MaxDuration:
		if has("duration") {
			ways = append(ways, "a shorter --duration")
		}
	case reservation.MaxStartAhead:
		if has("start") {
			ways = append(ways, "an earlier --start")
		}
	}
	return strings.Join(ways, ", or ")
}

// stamp formats a time as all commands print it: RFC 3339 in UTC.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
