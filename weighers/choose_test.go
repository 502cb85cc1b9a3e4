// SPDX-License-Identifier: Apache-2.0

package weighers_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/weighers"
)

// ours lists the weighers that Nova does not have.
var ours = []string{
	"FreeTimeWeigher", "KWRankingWeigher", "OvercommitWeigher", "PreemptionCostWeigher", "PeriodWeigher", "PreemptibleCountWeigher",
}

func TestWeighersAreChosenAsInWeightClasses(t *testing.T) {
	zed := []string{
		"CPUWeigher", "RAMWeigher", "DiskWeigher", "IoOpsWeigher", "BuildFailureWeigher", "PCIWeigher", "ServerGroupSoftAffinityWeigher",
		"ServerGroupSoftAntiAffinityWeigher", "CrossCellWeigher", "MetricsWeigher",
	}
	newer := []string{"HypervisorVersionWeigher", "NumInstancesWeigher", "ImagePropertiesWeigher"}
	for name, tc := range map[string]struct {
		names []string
		want  []string
	}{
		"all":                   {[]string{"nova.scheduler.weights.all_weighers"}, slices.Concat(zed, newer, ours)},
		"all, and one again":    {[]string{"RAMWeigher", "nova.scheduler.weights.all_weighers"}, slices.Concat([]string{"RAMWeigher"}, zed, newer, ours)},
		"none":                  {nil, nil},
		"Nova's by path":        {[]string{"nova.scheduler.weights.ram.RAMWeigher"}, []string{"RAMWeigher"}},
		"two of one file":       {[]string{"nova.scheduler.weights.affinity.ServerGroupSoftAntiAffinityWeigher"}, []string{"ServerGroupSoftAntiAffinityWeigher"}},
		"by class":              {[]string{"RAMWeigher", "FreeTimeWeigher"}, []string{"RAMWeigher", "FreeTimeWeigher"}},
		"in the order of names": {[]string{"KWRankingWeigher", "CPUWeigher"}, []string{"KWRankingWeigher", "CPUWeigher"}},
		"twice":                 {[]string{"CPUWeigher", "nova.scheduler.weights.cpu.CPUWeigher"}, []string{"CPUWeigher", "CPUWeigher"}},
		"a new one":             {[]string{"NumInstancesWeigher"}, []string{"NumInstancesWeigher"}},
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

func TestOursAreThoseThatNovaDoesNotHave(t *testing.T) {
	if diff := cmp.Diff(ours, weighers.Own()); diff != "" {
		t.Errorf("(-test +code):\n%s", diff)
	}
}

func TestMultipliersAreTheDefaultUnlessSet(t *testing.T) {
	list, err := weighers.Choose([]string{weighers.AllWeighers}, map[string]float64{"ram_weight_multiplier": -2, "kw_ranking_weight_multiplier": 0},
		weighers.Ports{})
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
		nova        weighers.Nova
		want        string
	}{
		"a slip":            {[]string{"RAMWeiger"}, nil, weighers.Nova{}, `weight_classes: there is no weigher "RAMWeiger"; did you mean "RAMWeigher"?`},
		"a slip in a path":  {[]string{"nova.scheduler.weights.ram.RamWeighers"}, nil, weighers.Nova{}, `did you mean "nova.scheduler.weights.ram.RAMWeigher"?`},
		"a slip in all":     {[]string{"nova.scheduler.weights.all_weigher"}, nil, weighers.Nova{}, `did you mean "nova.scheduler.weights.all_weighers"?`},
		"nothing like it":   {[]string{"x"}, nil, weighers.Nova{}, `there is no weigher "x"`},
		"no finite number":  {nil, map[string]float64{"ram_weight_multiplier": math.Inf(1)}, weighers.Nova{}, "ram_weight_multiplier: is not a finite number"},
		"no number at all":  {nil, map[string]float64{"cpu_weight_multiplier": math.NaN()}, weighers.Nova{}, "cpu_weight_multiplier: is not a finite number"},
		"an unknown option": {nil, map[string]float64{"rom_weight_multiplier": 1}, weighers.Nova{}, `did you mean "ram_weight_multiplier"?`},
		"one of Nova's own": {[]string{"nova.scheduler.weights.affinity._SoftAffinityWeigherBase"}, nil, weighers.Nova{}, "there is no weigher"},
		"one of a third":    {[]string{"company.weights.CoffeeWeigher"}, nil, weighers.Nova{}, `there is no weigher "company.weights.CoffeeWeigher"`},
		"metrics without a number": {
			[]string{weighers.AllWeighers}, nil, weighers.Nova{Metrics: []string{"a=1", "b"}}, `weight_setting of [metrics]: has "b", which must be name=number`,
		},
		"metrics with a blank":       {[]string{weighers.AllWeighers}, nil, weighers.Nova{Metrics: []string{"a =1"}}, `has "a =1"`},
		"a property without a name":  {[]string{weighers.AllWeighers}, nil, weighers.Nova{ImageProperties: []string{"=1"}}, `image_props_weight_setting: has "=1"`},
		"metrics nobody else weighs": {[]string{"MetricsWeigher"}, nil, weighers.Nova{Metrics: []string{"a=1"}, Alone: true}, "which Nova's API does not return"},
		"images nobody else weighs": {
			[]string{weighers.AllWeighers}, map[string]float64{"image_props_weight_multiplier": -1}, weighers.Nova{Alone: true},
			"image_props_weight_multiplier: makes ImagePropertiesWeigher count what Nova's API does not return",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := weighers.Choose(tc.names, tc.multipliers, weighers.Ports{Nova: tc.nova})
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an invalid %q", err, tc.want)
			}
		})
	}
}

// known is what the ports of the weighers tell in these tests.
type known struct{}

func (known) Promised(span.Instant) []reservation.Claim { return nil }
func (known) Snapshot() *inventory.Snapshot             { return nil }

// steady are the ports whose answers do not change, and why. An option, which is a value, stays as it is too.
var steady = map[string]string{"Period": "the cost of an instance follows from it and the instant"}

// A port that reaches no weigher is an option that does nothing. What a port answers changes, and that a weigher asks it is
// why it needs a Basis.
func TestEachPortReachesAWeigher(t *testing.T) {
	full := weighers.Ports{
		Promises: known{}, Efficiencies: known{}, Evictor: &preemption.Evictor{}, Period: struct{ preemption.Cost }{},
		Nova: weighers.Nova{ImageProperties: []string{"os_distro=2"}, Metrics: []string{"cpu.percent=1"}},
	}
	made := func(p weighers.Ports) any {
		list, err := weighers.Choose([]string{weighers.AllWeighers}, nil, p)
		return []any{list, err}
	}
	all := func(p weighers.Ports) []weighers.Weighted {
		list, err := weighers.Choose([]string{weighers.AllWeighers}, nil, p)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	var each func(of reflect.Type, path []int, name string)
	each = func(of reflect.Type, path []int, name string) {
		for field := range of.Fields() {
			at := append(slices.Clone(path), field.Index...)
			if field.Type.Kind() == reflect.Struct {
				each(field.Type, at, name+field.Name+".")
				continue
			}
			other := full
			v := reflect.ValueOf(&other).Elem().FieldByIndex(at)
			if v.IsZero() {
				if v.Kind() != reflect.Bool {
					t.Errorf("set %s in this test", name+field.Name)
					continue
				}
				v.SetBool(true)
			} else {
				v.SetZero()
			}
			if reflect.DeepEqual(made(full), made(other)) {
				t.Errorf("another %s makes no other weigher", name+field.Name)
			}
			if v.Kind() != reflect.Interface && v.Kind() != reflect.Pointer || steady[field.Name] != "" {
				continue
			}
			for i, w := range all(full) {
				_, based := w.Weigher.(interface {
					Basis(*inventory.States, *placing.Request, span.Instant) any
				})
				if !based && !reflect.DeepEqual(w, all(other)[i]) {
					t.Errorf("%s asks its port %s and has no Basis: a plan would be repaired with weights of old answers", w.Name(), name+field.Name)
				}
			}
		}
	}
	each(reflect.TypeFor[weighers.Ports](), nil, "")
}
