// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/sim"
)

func TestAnOrderingIsHeldOnlyByClearDifferences(t *testing.T) {
	above, below := named{Estimate: sim.Estimate{Mean: 2, Half: 1, Runs: 3}}, named{Estimate: sim.Estimate{Mean: -2, Half: 1, Runs: 3}}
	about := named{Estimate: sim.Estimate{Mean: 1, Half: 2, Runs: 3}}
	zero, same := named{Estimate: sim.Estimate{Runs: 3}}, named{Estimate: sim.Estimate{Runs: 3}, identity: true}
	once := named{Estimate: sim.Estimate{Mean: 2, Runs: 1}}
	onceBelow := named{Estimate: sim.Estimate{Mean: -2, Runs: 1}}
	for _, tc := range []struct {
		name        string
		differences []named
		want        sim.Verdict
	}{
		{"all above", []named{above, above}, sim.Held},
		{"above, and one that cannot differ", []named{same, above}, sim.Held},
		{"above, and one that is equal by chance", []named{above, zero}, sim.Undecided},
		{"all equal", []named{zero, zero}, sim.Undecided},
		{"none that can differ", []named{same}, sim.Undecided},
		{"nothing to compare", nil, sim.Undecided},
		{"an interval with 0 in it", []named{above, about}, sim.Undecided},
		{"one below", []named{above, about, below}, sim.NotHeld},
		{"one run above", []named{once}, sim.Undecided},
		{"one run below", []named{onceBelow}, sim.Undecided},
		{"no values", []named{{}}, sim.Undecided},
	} {
		if got := judge("", 1, tc.differences...).Verdict; got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestOneRunDecidesNothing(t *testing.T) {
	o := small()
	o.Days, o.Runs, o.Shares = 3, 1, nil
	from, err := o.source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := o.compare(context.Background(), from, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range o.orderings(c) {
		if one.Verdict != sim.Undecided {
			t.Errorf("%s: %s", one.Claim, one.Verdict)
		}
	}
	text := run(t, o).Markdown()
	says(t, text, "One run decides nothing.")
	if strings.Contains(text, "With it the provider loses least") {
		t.Error("the report draws a conclusion from one run")
	}
}

func TestTheLeastNamesAllThatAreAndNoneWithoutValues(t *testing.T) {
	o := small()
	r := report{o: o}
	asked := func(victims int64) []*tally {
		one, err := o.tally()
		if err != nil {
			t.Fatal(err)
		}
		one.asked[spot], one.victims = 1, victims
		return []*tally{one, one}
	}
	none, err := o.tally()
	if err != nil {
		t.Fatal(err)
	}
	of := func(cost string, tallies []*tally) outcome { return outcome{setting{name: cost, cost: cost}, tallies} }
	empty := []*tally{none, none}
	c := compared{main: []outcome{of("price", empty), of("age", asked(3)), of("priority", asked(7)), of("running_time", asked(3))}}
	if got := r.least(c, measureOf(evictions)); !slices.Equal(got, []string{"age", "running_time"}) {
		t.Errorf("%q", got)
	}
	if got := r.least(compared{main: c.main[:1]}, measureOf(evictions)); got != nil {
		t.Errorf("%q of no values", got)
	}
}
