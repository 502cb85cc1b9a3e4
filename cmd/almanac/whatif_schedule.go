package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/whatif"
)

var scheduleColumns = []column[whatif.ScheduleAnswer]{
	{"Placements", func(a whatif.ScheduleAnswer) any { return lines(each(a.Placements, schedulePlacement)) }, inLists},
	{"Reason", func(a whatif.ScheduleAnswer) any { return prose(a.Reason) }, inLists},
	{"Hosts", func(a whatif.ScheduleAnswer) any { return lines(each(a.Hosts, scheduleVerdict)) }, inLists},
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
		Short: "Where instances go, and which preemptible ones leave for them (paper 001)",
		Long: `Where instances go, and which preemptible ones leave for them. An instance that is not
preemptible has the place of preemptible ones too: on the best host those leave
whose loss costs least, and no more of them than have to. A victim costs the time
that it has run since its last full period (period_minutes, 60 where it is not
given).

weighers are all that rank the hosts, each with its multiplier: preemption_cost
(what leaves on the host), overcommit (whether anything has to leave), period (what
all that may leave would cost), count (how many there are of these), cpu, ram and
disk (what is free). Where they are not given, overcommit and preemption_cost count
1 each. Of equal hosts the first by name is taken, or with a seed one by chance.

Several instances (count) are placed one after the other, all or none of them.`,
		Example: `  almanac whatif schedule --input docs/examples/whatif/schedule.json -f json
  almanac whatif schedule --input question.json -f value -c Placements`,
	}, scheduleColumns, func(question io.Reader) (whatif.ScheduleAnswer, bool, error) {
		answer, err := whatif.Schedule(question, seeded)
		return answer, len(answer.Placements) > 0, err
	})
}

// seeded gives draws of 0 … n-1 that are the same for the same seed.
func seeded(seed int64) func(n int) int { return rand.New(rand.NewPCG(uint64(seed), 0)).IntN }
