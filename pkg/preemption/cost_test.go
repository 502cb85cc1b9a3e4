// SPDX-License-Identifier: Apache-2.0

package preemption_test

import (
	"math"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestWhatInstancesCost(t *testing.T) {
	ran := func(seconds int64) inventory.Instance {
		return inventory.Instance{Launched: now - span.Instant(seconds)}
	}
	made := func(seconds int64) inventory.Instance {
		return inventory.Instance{Launched: now - 1, Created: now - span.Instant(seconds)}
	}
	flavor := func(key, value string) inventory.Instance {
		return inventory.Instance{Flavor: inventory.Flavor{ExtraSpecs: map[string]string{key: value}}}
	}
	for name, tc := range map[string]struct {
		cost string
		of   inventory.Instance
		want int64
	}{
		"the hour that has begun":                        {"partial_hour", ran(2*3600 + 59), 59},
		"none at a full hour":                            {"partial_hour", ran(7200), 0},
		"none for what has not run":                      {"partial_hour", inventory.Instance{Created: now - 99}, 0},
		"none for what runs by a clock that is ahead":    {"partial_hour", ran(-5), 0},
		"all the time":                                   {"running_time", ran(7259), 7259},
		"no time, of what has not run":                   {"running_time", inventory.Instance{}, 0},
		"no time, by a clock that is ahead":              {"running_time", ran(-5), 0},
		"since it was asked for":                         {"age", made(99), 99},
		"no age, by a clock that is ahead":               {"age", made(-99), 0},
		"no age, of what nobody knows when it was":       {"age", ran(99), 0},
		"before 1970":                                    {"running_time", inventory.Instance{Launched: -5}, int64(now) + 5},
		"before all times":                               {"running_time", inventory.Instance{Launched: math.MinInt64}, math.MaxInt64},
		"a price":                                        {"price", flavor("price", "12.5"), 12_500_000},
		"a whole price":                                  {"price", flavor("price", " 3 "), 3_000_000},
		"a price below one":                              {"price", flavor("price", ".000001"), 1},
		"what is less than a millionth":                  {"price", flavor("price", "0.0000019"), 1},
		"no price":                                       {"price", flavor("priority", "3"), 0},
		"an empty price":                                 {"price", flavor("price", ""), 0},
		"only a point":                                   {"price", flavor("price", "."), 0},
		"a price below 0":                                {"price", flavor("price", "-3"), 0},
		"two points":                                     {"price", flavor("price", "1.2.3"), 0},
		"a price in words":                               {"price", flavor("price", "12 EUR"), 0},
		"a price that is no decimal number":              {"price", flavor("price", "1e3"), 0},
		"the greatest price that is counted to the last": {"price", flavor("price", "9223372036853.999999"), 9223372036853999999},
		"a price beyond counting":                        {"price", flavor("price", "99999999999999999999.5"), math.MaxInt64},
		"a priority":                                     {"priority", flavor("priority", "7"), 7},
		"no priority":                                    {"priority", flavor("price", "7"), 0},
		"a priority below 0":                             {"priority", flavor("priority", "-7"), 0},
		"a priority that is not whole":                   {"priority", flavor("priority", "7.5"), 0},
		"a priority beyond counting":                     {"priority", flavor("priority", "99999999999999999999"), math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			cost := costNamed(t, tc.cost)
			if got := cost.Of(&tc.of, now); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
			if cost.Name() != tc.cost {
				t.Errorf("the name is %q", cost.Name())
			}
		})
	}
}

func TestThePeriodIsThatOfTheOptions(t *testing.T) {
	cost, err := preemption.NewCost("partial_hour", preemption.CostOptions{Period: 60})
	if err != nil {
		t.Fatal(err)
	}
	if got := cost.Of(&inventory.Instance{Launched: now - 3599}, now); got != 59 {
		t.Errorf("got %d", got)
	}
}

func TestCostsThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		cost        string
		options     preemption.CostOptions
		field, says string
	}{
		"a slip of the pen":    {"partial-hour", options, "cost", `did you mean "partial_hour"?`},
		"nothing like it":      {"xyzzy", options, "cost", `there is no cost "xyzzy"`},
		"no name":              {"", options, "cost", `there is no cost ""`},
		"no period":            {"partial_hour", preemption.CostOptions{}, "cost_period", "at least a second"},
		"a period below 0":     {"partial_hour", preemption.CostOptions{Period: -1}, "cost_period", "at least a second"},
		"a price of nothing":   {"price", preemption.CostOptions{PrioritySpec: "x"}, "price_extra_spec", "cost = price"},
		"a priority of nobody": {"priority", preemption.CostOptions{PriceSpec: "x"}, "priority_extra_spec", "cost = priority"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := preemption.NewCost(tc.cost, tc.options)
			if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || f.Field != tc.field || !strings.Contains(f.Message, tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCostsBeyondCountingAreTheGreatest(t *testing.T) {
	guests := []inventory.Instance{medium("a", 0), medium("b", 0)}
	for i := range guests {
		guests[i].Flavor.ExtraSpecs = map[string]string{"priority": "9223372036854775807"}
	}
	e := &preemption.Evictor{Cost: costNamed(t, "priority")}
	v, ok := e.Victims(statesOf(t, paperHost("h", append(guests, normal(large("n", 0)))...)), 0, large("", 0).Holds, now)
	if !ok || ids(v) != "a b" || v.Cost != math.MaxInt64 {
		t.Errorf("got %s for %d", ids(v), v.Cost)
	}
}
