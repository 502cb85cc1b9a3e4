// SPDX-License-Identifier: Apache-2.0

package weighers_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/weighers"
)

// The weights differ in magnitude. Many are equal, or differ in the last bit only.
func TestTheBestOfManyHostsAreThoseOfExactWeights(t *testing.T) {
	const all = 2000
	s := named(t, all)
	hosts := everyPlace(s)
	var ranking weighers.Ranking
	rapid.Check(t, func(t *rapid.T) {
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var list []weighers.Weighted
		for range rapid.IntRange(1, 8).Draw(t, "weighers") {
			values := rapid.SampledFrom([]int{1, 2, 50, 1 << 40}).Draw(t, "values")
			scale := math.Pow(10, float64(rapid.SampledFrom([]int{0, 0, 6, -9, 200, -200, -300}).Draw(t, "scale")))
			raw := make(listed, all)
			for i := range raw {
				raw[i] = float64(chance.IntN(values)) * scale / 3
				if chance.IntN(3) == 0 {
					raw[i] = math.Nextafter(raw[i], math.Inf(1))
				}
			}
			list = append(list, weighers.Weighted{Weigher: raw, Multiplier: rapid.SampledFrom([]float64{1, -1, 0.1, 1e6, 1e-200, 1e200}).Draw(t, "multiplier")})
		}
		want := naiveWeights(list, hosts)
		order := slices.Clone(hosts)
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(want[b], want[a]) })

		ranking.Rank(list, s, &placing.Request{}, 0, hosts)
		n := rapid.SampledFrom([]int{1, 20, all}).Draw(t, "n")
		if got := ranking.Best(n, nil); !slices.Equal(got, order[:n]) {
			t.Fatalf("the best %d are %v, want %v", n, got, order[:n])
		}
		odd := func(host int) bool { return host%2 == 1 }
		if got, want := ranking.Best(3, odd), slices.DeleteFunc(slices.Clone(order), func(host int) bool { return !odd(host) })[:3]; !slices.Equal(got, want) {
			t.Fatalf("the best of odd numbers are %v, want %v", got, want)
		}
		var equals []int
		for _, host := range hosts {
			if want[host] == want[order[0]] {
				equals = append(equals, host)
			}
			if got := ranking.Weight(host); got != want[host] {
				t.Fatalf("host %d weighs %v, want %v", host, got, want[host])
			}
		}
		if got := ranking.Equals(); !slices.Equal(got, equals) {
			t.Fatalf("equal to the best are %v, want %v", got, equals)
		}
	})
}
