// SPDX-License-Identifier: Apache-2.0

package weighers_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/weighers"
)

// listed is a weigher that returns the weight listed for each host.
type listed []float64

func (listed) Name() string { return "listed" }

func (l listed) Weigh(_ *inventory.States, _ *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	for k, i := range hosts {
		raw[k] = l[i]
	}
}

// named returns that many hosts, h000 first, in the aggregates.
func named(t testing.TB, hosts int, aggregates ...inventory.Aggregate) *inventory.States {
	rows := make([]inventory.HostState, hosts)
	for i := range rows {
		rows[i].Name = fmt.Sprintf("h%03d", i)
	}
	for i := range aggregates {
		aggregates[i].UUID = fmt.Sprint("aggregate", i)
	}
	return states(t, rows, aggregates)
}

func TestAnAggregateOverridesTheMultiplier(t *testing.T) {
	const option = "listed_weight_multiplier"
	set := func(texts ...string) (aggregates []inventory.Aggregate) {
		for _, text := range texts {
			aggregates = append(aggregates, inventory.Aggregate{Metadata: map[string]string{option: text}, Hosts: []string{"h001"}})
		}
		return aggregates
	}
	for name, tc := range map[string]struct {
		aggregates []inventory.Aggregate
		negated    bool
		want       float64 // of h001, whose normalized weight is 1
	}{
		"none":                              {nil, false, 3},
		"one":                               {set("2.5"), false, 2.5},
		"the least of several":              {set("2.5", "-1", "7"), false, -1},
		"zero":                              {set("0"), false, 0},
		"with blanks and an exponent":       {set(" 1e1 "), false, 10},
		"not a number":                      {set("abc"), false, 3},
		"one of several not a number":       {set("-1", "abc", "1"), false, 3},
		"not finite":                        {set("inf"), false, 3},
		"nan":                               {set("nan"), false, 3},
		"too large":                         {set("1e999"), false, 3},
		"hexadecimal, which Nova cannot":    {set("0x1p4"), false, 3},
		"empty":                             {set(""), false, 3},
		"other metadata":                    {[]inventory.Aggregate{{Metadata: map[string]string{"ram_weight_multiplier": "9"}, Hosts: []string{"h001"}}}, false, 3},
		"of another host":                   {[]inventory.Aggregate{{Metadata: map[string]string{option: "9"}, Hosts: []string{"h000"}}}, false, 3},
		"negated":                           {nil, true, -3},
		"negated, and the least of several": {set("2.5", "1"), true, -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := named(t, 2, tc.aggregates...)
			w := []weighers.Weighted{{Weigher: listed{0, 8}, Multiplier: 3, Option: option, Negated: tc.negated}}
			var ranking weighers.Ranking
			ranking.Rank(w, s, &placing.Request{}, 0, everyPlace(s))
			if got := ranking.Weight(1); got != tc.want {
				t.Errorf("h001 weighs %v, want %v", got, tc.want)
			}
			if got := ranking.Parts([]int{1, 0})[0]["listed"]; got != tc.want {
				t.Errorf("its part is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAWeigherWithoutAnOptionIsNotOverridden(t *testing.T) {
	s := named(t, 2, inventory.Aggregate{Metadata: map[string]string{"": "9"}, Hosts: []string{"h001"}})
	var ranking weighers.Ranking
	ranking.Rank([]weighers.Weighted{{Weigher: listed{0, 8}, Multiplier: 3}}, s, &placing.Request{}, 0, everyPlace(s))
	if got := ranking.Weight(1); got != 3 {
		t.Errorf("it weighs %v, want 3", got)
	}
}

func TestAWeigherThatDoesNotCountCanCountInAnAggregate(t *testing.T) {
	s := named(t, 2, inventory.Aggregate{Metadata: map[string]string{"o": "2"}, Hosts: []string{"h001"}})
	var ranking weighers.Ranking
	ranking.Rank([]weighers.Weighted{{Weigher: listed{0, 8}, Option: "o"}}, s, &placing.Request{}, 0, everyPlace(s))
	if got := ranking.Weight(1); got != 2 {
		t.Errorf("it weighs %v, want 2", got)
	}
}

// The expected ranking comes from loops that follow nova/weights.py one host at a time. The
// Ranking under test has been used before.
func TestRankingsAreThoseOfOneHostAfterTheOther(t *testing.T) {
	var ranking weighers.Ranking
	rapid.Check(t, func(t *rapid.T) {
		const all = 30
		s := named(nilTB{}, all)
		few := rapid.Float64Range(-3, 3)
		raw := rapid.Map(rapid.SliceOfN(rapid.IntRange(-3, 3), all, all), func(list []int) (floats listed) {
			for _, x := range list {
				floats = append(floats, float64(x))
			}
			return floats
		})
		var list []weighers.Weighted
		for range rapid.IntRange(0, 4).Draw(t, "weighers") {
			w := weighers.Weighted{Weigher: raw.Draw(t, "raw"), Multiplier: few.Draw(t, "multiplier"), Negated: rapid.Bool().Draw(t, "negated")}
			if rapid.Bool().Draw(t, "has min") {
				w.Min = new(float64(rapid.IntRange(-2, 0).Draw(t, "min")))
			}
			if rapid.Bool().Draw(t, "has max") {
				w.Max = new(float64(rapid.IntRange(0, 2).Draw(t, "max")))
			}
			list = append(list, w)
		}
		hosts := slices.Sorted(slices.Values(rapid.SliceOfDistinct(rapid.IntRange(0, all-1), rapid.ID).Draw(t, "hosts")))
		want := naiveWeights(list, hosts)

		ranking.Rank(list, s, &placing.Request{}, 0, hosts)
		order := slices.Clone(hosts)
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(want[b], want[a]) })
		for _, host := range hosts {
			if got := ranking.Weight(host); got != want[host] {
				t.Fatalf("host %d weighs %v, want %v", host, got, want[host])
			}
		}
		n := rapid.IntRange(0, all+2).Draw(t, "n")
		odd := func(host int) bool { return host%2 == 1 }
		if diff := gocmp.Diff(first(n, order), ranking.Best(n, nil), sameEmpty); diff != "" {
			t.Fatal(diff)
		}
		if diff := gocmp.Diff(first(n, slices.DeleteFunc(slices.Clone(order), func(h int) bool { return !odd(h) })), ranking.Best(n, odd), sameEmpty); diff != "" {
			t.Fatalf("the best of the hosts with odd numbers: %s", diff)
		}
		equal := slices.DeleteFunc(slices.Clone(order), func(h int) bool { return want[h] != want[order[0]] })
		if diff := gocmp.Diff(equal, ranking.Equals(), sameEmpty); diff != "" {
			t.Fatalf("the hosts that share the greatest weight: %s", diff)
		}
		if len(list) == 1 && len(hosts) > 1 && list[0].Multiplier != 0 {
			for i, parts := range ranking.Parts(order) {
				if got := parts["listed"]; math.Abs(got-want[order[i]]) > 1e-12 {
					t.Fatalf("the part of host %d is %v, want %v", order[i], got, want[order[i]])
				}
			}
		}
	})
}

var sameEmpty = gocmp.Transformer("empty", func(list []int) []int { return append([]int{}, list...) })

func first(n int, list []int) []int { return list[:min(n, len(list))] }

// nilTB is a testing.TB for states that cannot fail.
type nilTB struct{ testing.TB }

func (nilTB) Helper() {}

func naiveWeights(list []weighers.Weighted, hosts []int) map[int]float64 {
	sum := map[int]float64{}
	if len(hosts) <= 1 {
		return sum
	}
	for _, w := range list {
		var raw []float64
		for _, host := range hosts {
			x := w.Weigher.(listed)[host]
			if w.Min != nil {
				x = max(x, *w.Min)
			}
			if w.Max != nil {
				x = min(x, *w.Max)
			}
			raw = append(raw, x)
		}
		low, high := slices.Min(raw), slices.Max(raw)
		if w.Min != nil {
			low = *w.Min
		}
		if w.Max != nil {
			high = *w.Max
		}
		multiplier := w.Multiplier
		if w.Negated {
			multiplier = -1 * multiplier
		}
		for i, host := range hosts {
			normalised := 0.0
			if low != high {
				normalised = (raw[i] - low) / (high - low)
			}
			sum[host] += float64(multiplier * normalised)
		}
	}
	return sum
}
