package preemption

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// The verdicts on what was expected.
const (
	held      = "held"
	undecided = "not decided" // the interval of a difference has 0 in it
	broken    = "did not hold"
)

// ordering is something that was expected, and whether it came so.
type ordering struct {
	expected, verdict, numbers string
}

// judge says whether all differences, which are expected to be above 0, are. Less than two
// runs decide nothing, and neither does what is equal in all, but where it cannot differ.
func judge(expected string, digits int, differences ...named) ordering {
	verdict := held
	if !slices.ContainsFunc(differences, func(d named) bool { return !d.identity }) {
		verdict = undecided
	}
	var numbers []string
	for _, d := range differences {
		switch clear := d.Runs > 1; {
		case clear && d.Mean-d.Half > 0:
		case clear && d.identity && d.Mean == 0 && d.Half == 0:
		case clear && d.Mean+d.Half < 0:
			verdict = broken
		case verdict == held:
			verdict = undecided
		}
		number := "–"
		if d.Runs > 0 {
			number = d.Format(digits)
		}
		numbers = append(numbers, d.name+" "+number)
	}
	return ordering{expected, verdict, strings.Join(numbers, ", ")}
}

// named is an estimate of the difference to a setting.
type named struct {
	name string
	sim.Estimate
	// identity says that both settings choose alike, so that there cannot be a difference.
	identity bool
}

// alike says that two costs choose alike here: instances are never shelved, so that their age
// is how long they have run.
func alike(a, b string) bool {
	same := []string{"age", "running_time"}
	return slices.Contains(same, a) && slices.Contains(same, b)
}

// orderings are what was expected of the weeks.
func (o Options) orderings(c compared) (list []ordering) {
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
		judge("With preemptible instances more of the VCPUs are used than without.", by[utilisation].digits,
			over(utilisation, func(one outcome) sim.Estimate { return o.difference(by[utilisation], base, one) })...),
		judge("More of them are used even if all is left out that victims had run.", by[useful].digits,
			over(useful, func(one outcome) sim.Estimate { return o.difference(by[useful], base, one) })...),
		judge("No more normal requests are refused than without preemptible instances.", by[refusedShare].digits,
			over(refusedShare, func(one outcome) sim.Estimate { return o.difference(by[refusedShare], one, base) })...))
	if never, ok := c.named(stay); ok {
		list = append(list, judge("More are refused where preemptible instances stay than where they make room.", by[refusedShare].digits,
			over(refusedShare, func(one outcome) sim.Estimate { return o.difference(by[refusedShare], one, never) })...))
	}
	for _, cost := range config.Costs {
		list = o.leastBy(list, c, cost, by[costMeasure(cost)], fmt.Sprintf("What the victims cost by %s is least where %s chooses them.", cost, cost))
	}
	list = o.leastBy(list, c, "partial_hour", by[unpaidWork], "So are the VCPU-hours that are not paid for, where partial_hour chooses.")
	return o.leastBy(list, c, "running_time", by[lostWork], "The VCPU-hours that victims had run are least where running_time chooses.")
}

// leastBy adds that a measure is least with a cost, where that is compared.
func (o Options) leastBy(list []ordering, c compared, cost string, m measure, expected string) []ordering {
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
