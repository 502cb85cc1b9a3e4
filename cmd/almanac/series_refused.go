// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// occurrencesShown is the maximum number of occurrences to print in a message.
const occurrencesShown = 10

// nameSkipped prints which occurrences have no reservation, and why.
func (p *process) nameSkipped(refused []v1.RefusedOccurrence, fate string) {
	if len(refused) == 0 {
		return
	}
	p.inform("%s %s:", fault.Counted(len(refused), "occurrence"), fate)
	for _, line := range refusedLines(refused) {
		p.inform("  %s", line)
	}
}

// refusedLines returns a line for each of the first occurrences, and one for the others.
func refusedLines(refused []v1.RefusedOccurrence) []string {
	shown := each(refused[:min(len(refused), occurrencesShown)], func(o v1.RefusedOccurrence) string {
		return o.Local + ": " + plain(o.Message)
	})
	switch more := len(refused) - len(shown); {
	case len(refused) == reservation.MaxRefused: // a refusal has no more
		shown = append(shown, fmt.Sprintf("and at least %d more", more))
	case more > 0:
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return shown
}

// explainOccurrences prints which occurrences of a series have no room, and what would fit. Other suggestions of
// a refusal are about one reservation, and not about a series.
func (p *process) explainOccurrences(command *cobra.Command, r *v1.Refusal) {
	p.inform("  constraint:       %s", r.Constraint)
	for i, line := range refusedLines(r.Occurrences) {
		label := ""
		if i == 0 {
			label = "refused:"
		}
		p.inform("  %-16s  %s", label, line)
	}
	if r.LargestQuantity > 0 {
		p.inform("  largest quantity: %d", r.LargestQuantity)
	}
	if advice := adviseSeries(command, r); advice != "" {
		p.inform("  hint: try %s", advice)
	}
}

// adviseSeries returns flags of the command with which more occurrences would fit.
func adviseSeries(command *cobra.Command, r *v1.Refusal) string {
	has := func(flag string) bool { return command.Flags().Lookup(flag) != nil }
	var ways []string
	switch reservation.Constraint(r.Constraint) {
	case reservation.HostsInPool: // is as small at each occurrence
	case reservation.HostsMatching:
		if has("properties") {
			ways = append(ways, "other --properties ('almanac properties' lists the properties that exist)")
		}
	case reservation.MaxDuration:
		ways = append(ways, "a shorter --duration")
	case reservation.MaxStartAhead:
		if has("rule") {
			ways = append(ways, "a --rule that ends earlier")
		}
		fallthrough
	default:
		if has("skip-refused") && !command.Flags().Changed("skip-refused") {
			ways = append(ways, "--skip-refused")
		}
	}
	if r.LargestQuantity > 0 && has("quantity") {
		ways = append(ways, "--quantity "+strconv.Itoa(r.LargestQuantity))
	}
	return strings.Join(ways, ", or ")
}
