package weighers_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/weighers"
)

func TestWeighersAreChosenAsInWeightClasses(t *testing.T) {
	all := []string{"CPUWeigher", "RAMWeigher", "DiskWeigher", "IoOpsWeigher", "BuildFailureWeigher", "FreeTimeWeigher", "KWRankingWeigher"}
	for name, tc := range map[string]struct {
		names, want []string
	}{
		"all":                  {[]string{"nova.scheduler.weights.all_weighers"}, all},
		"all, and one again":   {[]string{"RAMWeigher", "nova.scheduler.weights.all_weighers"}, all},
		"none":                 {nil, nil},
		"Nova's by path":       {[]string{"nova.scheduler.weights.ram.RAMWeigher"}, []string{"RAMWeigher"}},
		"by class":             {[]string{"RAMWeigher", "FreeTimeWeigher"}, []string{"RAMWeigher", "FreeTimeWeigher"}},
		"in the order of ours": {[]string{"KWRankingWeigher", "CPUWeigher", "CPUWeigher"}, []string{"CPUWeigher", "KWRankingWeigher"}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := weighers.Choose(tc.names, nil, weighers.Ports{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range list {
				got = append(got, w.Name())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMultipliersAreTheDefaultUnlessSet(t *testing.T) {
	list, err := weighers.Choose([]string{weighers.AllWeighers}, map[string]float64{"ram_weight_multiplier": -2, "kw_ranking_weight_multiplier": 0}, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, w := range list {
		got[w.Option] = w.Multiplier
	}
	want := weighers.Multipliers()
	want["ram_weight_multiplier"], want["kw_ranking_weight_multiplier"] = -2, 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestChoosingWeighersFailsWithASentence(t *testing.T) {
	for name, tc := range map[string]struct {
		names       []string
		multipliers map[string]float64
		want        string
	}{
		"a slip":            {[]string{"RAMWeiger"}, nil, `weight_classes: there is no weigher "RAMWeiger"; did you mean "RAMWeigher"?`},
		"a slip in a path":  {[]string{"nova.scheduler.weights.ram.RamWeighers"}, nil, `did you mean "nova.scheduler.weights.ram.RAMWeigher"?`},
		"a slip in all":     {[]string{"nova.scheduler.weights.all_weigher"}, nil, `did you mean "nova.scheduler.weights.all_weighers"?`},
		"nothing like it":   {[]string{"x"}, nil, `there is no weigher "x"`},
		"no finite number":  {nil, map[string]float64{"ram_weight_multiplier": math.Inf(1)}, "ram_weight_multiplier: is not a finite number"},
		"no number at all":  {nil, map[string]float64{"cpu_weight_multiplier": math.NaN()}, "cpu_weight_multiplier: is not a finite number"},
		"an unknown option": {nil, map[string]float64{"rom_weight_multiplier": 1}, `did you mean "ram_weight_multiplier"?`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := weighers.Choose(tc.names, tc.multipliers, weighers.Ports{})
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an invalid %q", err, tc.want)
			}
		})
	}
}
