// SPDX-License-Identifier: Apache-2.0

package weighers_test

import (
	"math"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/weighers"
)

// minutes is a Cost that reads an instance's cost from its Created field.
type minutes struct{}

func (minutes) Name() string                                   { return "minutes" }
func (minutes) Unit() string                                   { return "min" }
func (minutes) Of(i *inventory.Instance, _ span.Instant) int64 { return int64(i.Created) }

// fullOf returns hosts "a", "b", … with that many vCPUs each. Preemptible instances of these
// costs use all of them, in equal shares.
func fullOf(t *testing.T, vcpus int64, costs ...[]int64) *inventory.States {
	t.Helper()
	var rows []inventory.HostState
	for h, list := range costs {
		row := inventory.HostState{Name: string(rune('a' + h)), Stocks: map[string]inventory.Stock{"VCPU": {Total: vcpus, Ratio: 1, Used: vcpus}}}
		for n, cost := range list {
			row.Instances = append(row.Instances, inventory.Instance{
				ID: row.Name + string(rune('1'+n)), Status: "ACTIVE", Preemptible: true, Created: span.Instant(cost), Holds: map[string]int64{"VCPU": vcpus / int64(len(list))},
			})
		}
		rows = append(rows, row)
	}
	s, err := inventory.NewStates(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// weights returns the weights of all hosts for a request for that many vCPUs.
func weights(s *inventory.States, w weighers.Weighted, vcpus int64, preemptible bool) []float64 {
	var ranking weighers.Ranking
	ranking.Rank([]weighers.Weighted{w}, s, &placing.Request{Resources: map[string]int64{"VCPU": vcpus}, Preemptible: preemptible}, 0, everyPlace(s))
	list := make([]float64, s.Len())
	for i := range list {
		list[i] = ranking.Weight(i)
	}
	return list
}

// The sums are those of Table 3, which Algorithm 4 weighs, and the costs those of Table 5.
func TestA001_6(t *testing.T) {
	sums := fullOf(t, 2, []int64{36, 27}, []int64{11, 31}, []int64{30, 35}, []int64{25, 51})
	period := weighers.PeriodWeigher{Cost: minutes{}}
	cost := weighers.PreemptionCostWeigher{Evictor: &preemption.Evictor{Cost: minutes{}}}
	for name, tc := range map[string]struct {
		s    *inventory.States
		w    weighers.Weighted
		want []float64
	}{
		"between the least and the greatest": {sums, weighers.Weighted{Weigher: period, Multiplier: 1}, []float64{13. / 34, 1, 11. / 34, 0}},
		"with a fixed maximum of 0":          {sums, weighers.Weighted{Weigher: period, Multiplier: 1, Max: new(0.0)}, []float64{13. / 76, 34. / 76, 11. / 76, 0}},
		"all equal": {
			fullOf(t, 2, []int64{7, 1}, []int64{4, 4}), weighers.Weighted{Weigher: period, Multiplier: 1}, []float64{0, 0},
		},
		"Table 5": {
			fullOf(t, 4, []int64{55}, []int64{58}, []int64{57}), weighers.Weighted{Weigher: cost, Multiplier: 1}, []float64{1, 0, 1. / 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i, got := range weights(tc.s, tc.w, 4, false) {
				if math.Abs(got-tc.want[i]) > 1e-9 {
					t.Errorf("host %d weighs %v, want %v", i, got, tc.want[i])
				}
			}
		})
	}
}

func TestMakingRoomWeighs(t *testing.T) {
	s := fullOf(t, 4, []int64{9, 3}, []int64{20}, []int64{1, 1, 1, 1})
	free, err := inventory.NewStates([]inventory.HostState{
		*s.Host(0), *s.Host(1), *s.Host(2), {Name: "d", Stocks: map[string]inventory.Stock{"VCPU": {Total: 4, Ratio: 1, Used: 1}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	evictor := &preemption.Evictor{Cost: minutes{}}
	for name, tc := range map[string]struct {
		w           weighers.Weigher
		vcpus       int64
		preemptible bool
		want        []float64
	}{
		"a host with room, Algorithm 3":        {weighers.OvercommitWeigher{}, 3, false, []float64{0, 0, 0, 1}},
		"no host with room":                    {weighers.OvercommitWeigher{}, 4, false, []float64{0, 0, 0, 0}},
		"cost is that of the cheapest victims": {weighers.PreemptionCostWeigher{Evictor: evictor}, 2, false, []float64{17. / 20, 0, 18. / 20, 1}},
		"nobody leaves for a preemptible one":  {weighers.PreemptionCostWeigher{Evictor: evictor}, 2, true, []float64{0, 0, 0, 0}},
		"nobody makes room":                    {weighers.PreemptionCostWeigher{}, 2, false, []float64{0, 0, 0, 0}},
		"all that are there, Algorithm 4":      {weighers.PeriodWeigher{Cost: minutes{}}, 2, false, []float64{8. / 20, 0, 16. / 20, 1}},
		"how many there are":                   {weighers.PreemptibleCountWeigher{}, 2, false, []float64{2. / 4, 3. / 4, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, got := range weights(free, weighers.Weighted{Weigher: tc.w, Multiplier: 1}, tc.vcpus, tc.preemptible) {
				if math.Abs(got-tc.want[i]) > 1e-9 {
					t.Errorf("host %d weighs %v, want %v", i, got, tc.want[i])
				}
			}
		})
	}
}
