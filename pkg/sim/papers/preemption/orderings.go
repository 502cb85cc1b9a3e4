// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// judge returns the finding that all differences are greater than 0, which expected states in
// words. It is undecided with fewer than two runs, or if a difference is 0 in all runs, unless it
// must be 0.
func judge(expected string, digits int, differences ...named) sim.Finding {
	verdict := sim.Held
	if !slices.ContainsFunc(differences, func(d named) bool { return !d.identity }) {
		verdict = sim.Undecided
	}
	var numbers []string
	for _, d := range differences {
		verdict = sim.Worst(verdict, d.verdict())
		number := "–"
		if d.Runs > 0 {
			number = d.Format(digits)
		}
		numbers = append(numbers, d.name+" "+number)
	}
	return sim.Finding{Claim: expected, Verdict: verdict, Seen: strings.Join(numbers, ", ")}
}

// named is an estimate of the difference to a setting, with the setting's name.
type named struct {
	name string
	sim.Estimate
	// identity is true if both settings choose the same victims, so that the difference must be 0.
	identity bool
}

func (d named) verdict() sim.Verdict {
	switch {
	case d.Runs < 2:
		return sim.Undecided
	case d.identity && d.Mean == 0 && d.Half == 0:
		return sim.Held
	}
	return sim.Positive(d.Estimate)
}

// alike reports whether two costs choose the same victims in this simulation. Instances are never
// shelved here, so their age equals their running time.
func alike(a, b string) bool {
	same := []string{"age", "running_time"}
	return slices.Contains(same, a) && slices.Contains(same, b)
}

// orderings returns the findings on what is expected of the simulated weeks.
func (o Options) orderings(c compared) (list []sim.Finding) {
	by := map[string]measure{}
	for _, m := range measures() {
		by[m.name] = m
	}
	base, _ := c.named(without)
	over := func(m string, from func(outcome) sim.Estimate) (all []named) {
		for _, one := range c.main {
			if one.cost != "" {
				all = append(all, named{name: one.name, Estimate: from(one)})
			}
		}
		return all
	}
	list = append(list,
		judge("With preemptible instances more of the VCPUs are used than without.", by[utilization].digits,
			over(utilization, func(one outcome) sim.Estimate { return o.difference(by[utilization], base, one) })...),
		judge("More of them are used even if all is left out that victims had run.", by[useful].digits,
			over(useful, func(one outcome) sim.Estimate { return o.difference(by[useful], base, one) })...),
		judge("No more normal requests are refused than without preemptible instances.", by[refusedShare].digits,
			over(refusedShare, func(one outcome) sim.Estimate { return o.difference(by[refusedShare], one, base) })...))
	if never, ok := c.named(stay); ok {
		list = append(list, judge("More are refused where preemptible instances stay than where they make room.", by[refusedShare].digits,
			over(refusedShare, func(one outcome) sim.Estimate { return o.difference(by[refusedShare], one, never) })...))
	}
	for _, cost := range preemption.Costs {
		list = o.leastBy(list, c, cost, by[costMeasure(cost)], fmt.Sprintf("The cost of the victims by %s is least where %s chooses them.", cost, cost))
	}
	list = o.leastBy(list, c, "partial_hour", by[unpaidWork], "So are the VCPU-hours that are not paid for, where partial_hour chooses.")
	return o.leastBy(list, c, "running_time", by[lostWork], "The VCPU-hours that victims had run are least where running_time chooses.")
}

// leastBy adds the finding that a measure is least if victims are chosen by a cost, unless that
// cost is not compared.
func (o Options) leastBy(list []sim.Finding, c compared, cost string, m measure, expected string) []sim.Finding {
	own, ok := c.named(cost)
	if !ok {
		return list
	}
	var all []named
	for _, one := range c.main {
		if one.cost != "" && one.name != cost {
			all = append(all, named{one.name, o.difference(m, own, one), alike(one.name, cost)})
		}
	}
	if all == nil {
		return list
	}
	return append(list, judge(expected, m.digits, all...))
}
