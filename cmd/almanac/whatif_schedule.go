package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/whatif"
)

func scheduleFields(a whatif.ScheduleAnswer) []field {
	return []field{
		{"Placements", lines(each(a.Placements, schedulePlacement)), inLists}, {"Reason", prose(a.Reason), inLists},
		{"Hosts", lines(each(a.Hosts, scheduleVerdict)), inLists},
	}
}

func schedulePlacement(p whatif.SchedulePlacement) string {
	if len(p.Victims) == 0 {
		return p.Host
	}
	return fmt.Sprintf("%s, without %s: costs %d min", p.Host, strings.Join(p.Victims, ", "), p.CostMinutes)
}

func scheduleVerdict(v whatif.ScheduleVerdict) string {
	if !v.Passed {
		return fmt.Sprintf("%s: refused by %s", v.Name, v.RefusedBy)
	}
	return weighed(v.Name, v.Weight, v.Weights)
}

func (p *process) whatIfScheduleCommand() *cobra.Command {
	return whatIf(p, &cobra.Command{
		Use:   "schedule",
		Short: "Place instances, and choose which preemptible instances to evict (paper 001)",
		Long: `Place instances, and choose which preemptible instances to evict for them. An instance
that is not preemptible may replace preemptible ones: on the best host the cheapest
victims are evicted, and no more than necessary. A victim costs the time that it has run
since its last full period (period_minutes, by default 60).

weighers rank the hosts, each with its multiplier: preemption_cost (cost of the victims
on the host), overcommit (whether there are victims), period (cost of all preemptible
instances of the host), count (their number), cpu, ram and disk (free amounts). The
default is overcommit and preemption_cost with 1 each. Of equal hosts the first by name
is chosen, or with a seed a random one.

Several instances (count) are placed one after the other, all or none of them.`,
		Example: `  almanac whatif schedule --input docs/examples/whatif/schedule.json -f json
  almanac whatif schedule --input question.json -f value -c Placements`,
	}, scheduleFields, func(question io.Reader) (whatif.ScheduleAnswer, bool, error) {
		answer, err := whatif.Schedule(question, seeded)
		return answer, len(answer.Placements) > 0, err
	})
}

// seeded returns draws of 0 … n-1 that depend only on the seed.
func seeded(seed int64) func(n int) int { return rand.New(rand.NewPCG(uint64(seed), 0)).IntN }
