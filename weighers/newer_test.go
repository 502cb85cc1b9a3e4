// SPDX-License-Identifier: Apache-2.0

package weighers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/weighers"
)

// weightsOf returns the weights of all hosts of s, by index, from one weigher, beside Nova 31
// (epoxy).
func weightsOf(t *testing.T, name string, multipliers map[string]float64, s *inventory.States, r *placing.Request) []float64 {
	t.Helper()
	w, err := weighers.Choose([]string{name}, multipliers, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	var ranking weighers.Ranking
	ranking.Rank(w, s.WithNova(release.Epoxy), r, 0, everyPlace(s))
	weights := make([]float64, s.Len())
	for i := range weights {
		weights[i] = ranking.Weight(i)
	}
	return weights
}

// The numbers are those of Nova's test_weights_hypervisor_version.
func TestNewHypervisorsArePreferred(t *testing.T) {
	var rows []inventory.HostState
	for i, version := range []int64{1, 200, 100, 1000} {
		rows = append(rows, inventory.HostState{Name: fmt.Sprint("host", i+1), HypervisorVersion: version})
	}
	const option = "hypervisor_version_weight_multiplier"
	for name, tc := range map[string]struct {
		multipliers map[string]float64
		want        []float64
	}{
		"by default": {nil, []float64{0, 199.0 / 999, 99.0 / 999, 1}},
		"off":        {map[string]float64{option: 0}, []float64{0, 0, 0, 0}},
		"twice":      {map[string]float64{option: 2}, []float64{0, 2 * (199.0 / 999), 2 * (99.0 / 999), 2}},
		"reversed":   {map[string]float64{option: -1}, []float64{0, -199.0 / 999, -99.0 / 999, -1}},
	} {
		if diff := cmp.Diff(tc.want, weightsOf(t, "HypervisorVersionWeigher", tc.multipliers, states(t, rows, nil), &placing.Request{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	aggregate := inventory.Aggregate{UUID: "a", Metadata: map[string]string{option: "4"}, Hosts: []string{"host2"}}
	if got := weightsOf(t, "HypervisorVersionWeigher", nil, states(t, rows, []inventory.Aggregate{aggregate}), &placing.Request{})[1]; got != 4*(199.0/999) {
		t.Errorf("in an aggregate with its own multiplier, the weight is %v", got)
	}
	for i := range rows {
		rows[i].HypervisorVersion = 7002000
	}
	if got := weightsOf(t, "HypervisorVersionWeigher", nil, states(t, rows, nil), &placing.Request{}); slices.Max(got) != 0 {
		t.Errorf("hosts of equal version weigh %v", got)
	}
}

// The numbers are those of Nova's test_weights_num_instances.
func TestInstancesAreCountedWhereTheMultiplierSaysSo(t *testing.T) {
	var rows []inventory.HostState
	for i, count := range []int{2, 5, 4, 10} {
		h := inventory.HostState{Name: fmt.Sprint("host", i+1)}
		for n := range count {
			h.Instances = append(h.Instances, inventory.Instance{ID: fmt.Sprint(i, "-", n)})
		}
		rows = append(rows, h)
	}
	s := states(t, rows, nil)
	for multiplier, want := range map[float64][]float64{0: {0, 0, 0, 0}, 2: {0, 0.75, 0.5, 2}, -2: {0, -0.75, -0.5, -2}} {
		got := weightsOf(t, "NumInstancesWeigher", map[string]float64{"num_instances_weight_multiplier": multiplier}, s, &placing.Request{})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with multiplier %v: %s", multiplier, diff)
		}
	}
	if got := weightsOf(t, "NumInstancesWeigher", nil, s, &placing.Request{}); slices.Max(got) != 0 {
		t.Errorf("with the default multiplier the hosts weigh %v", got)
	}
	after := s.WithTaken([]inventory.Take{{Host: 0, Instance: "new"}})
	if got := weightsOf(t, "NumInstancesWeigher", map[string]float64{"num_instances_weight_multiplier": 7}, after, &placing.Request{}); got[0] != 0 || got[1] != 2 {
		t.Errorf("with one more instance the hosts weigh %v, want 3 of 10 as the least", got)
	}
}

// The images are those of Nova's test_weights_image_props, with the properties that
// count there.
func TestWhereImagesCountTheRequestIsPassedOn(t *testing.T) {
	s := named(t, 2, inventory.Aggregate{Metadata: map[string]string{"image_props_weight_multiplier": "1"}, Hosts: []string{"h001"}})
	linux, plain := map[string]string{"os_distro": "linux", "hw_machine_type": "pc"}, map[string]string(nil)
	for name, tc := range map[string]struct {
		multiplier float64
		setting    []string
		image      map[string]string
		rebuild    bool
		want       string
	}{
		"off, whatever aggregates say":     {0, nil, linux, false, ""},
		"all properties":                   {1, nil, linux, false, "property hw_machine_type counts"},
		"all properties, spread":           {-1, nil, linux, false, "property hw_machine_type counts"},
		"no image":                         {1, nil, plain, false, ""},
		"one of them":                      {1, []string{"os_distro=1", "hw_machine_type=0"}, linux, false, "property os_distro counts"},
		"the last of two settings of one":  {1, []string{"os_distro=1", "os_distro=0"}, linux, false, ""},
		"a property that it has not got":   {1, []string{"os_type=1"}, linux, false, ""},
		"a rebuild, which keeps its host ": {1, nil, linux, true, ""},
	} {
		ports := weighers.Ports{Nova: weighers.Nova{ImageProperties: tc.setting}}
		w, err := weighers.Choose([]string{"ImagePropertiesWeigher"}, map[string]float64{"image_props_weight_multiplier": tc.multiplier}, ports)
		if err != nil {
			t.Fatal(err)
		}
		s := s.WithNova(release.Epoxy)
		got := weighers.Unsupported(w, s, &placing.Request{ImageProperties: tc.image, Rebuild: tc.rebuild})
		if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		var ranking weighers.Ranking
		if ranking.Rank(w, s, &placing.Request{ImageProperties: tc.image}, 0, everyPlace(s)); ranking.Weight(0) != 0 || ranking.Weight(1) != 0 {
			t.Errorf("%s: hosts weigh %v and %v", name, ranking.Weight(0), ranking.Weight(1))
		}
	}
}

func TestWhereMetricsCountEveryRequestIsPassedOn(t *testing.T) {
	inAggregate := inventory.Aggregate{Metadata: map[string]string{"metrics_weight_multiplier": "1"}, Hosts: []string{"h001"}}
	for name, tc := range map[string]struct {
		multiplier float64
		setting    []string
		aggregates []inventory.Aggregate
		passed     bool
	}{
		"no metrics":         {1, nil, nil, false},
		"some":               {1, []string{"cpu.percent=-1.5", "numa.membw.current=0"}, nil, true},
		"off":                {0, []string{"cpu.percent=1"}, nil, false},
		"on in an aggregate": {0, []string{"cpu.percent=1"}, []inventory.Aggregate{inAggregate}, true},
	} {
		w, err := weighers.Choose([]string{weighers.AllWeighers}, map[string]float64{"metrics_weight_multiplier": tc.multiplier}, weighers.Ports{Nova: weighers.Nova{Metrics: tc.setting}})
		if err != nil {
			t.Fatal(err)
		}
		if got := weighers.Unsupported(w, named(t, 2, tc.aggregates...), &placing.Request{}); (got != "") != tc.passed {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestMembersOnTheirWayCountInSoftGroups(t *testing.T) {
	s := states(t, []inventory.HostState{{Name: "a", Instances: []inventory.Instance{{ID: "m1"}, {ID: "other"}}}, {Name: "b"}, {Name: "c"}}, nil)
	s = s.WithTaken([]inventory.Take{{Host: 1, Instance: "m2", Group: "g"}}).WithTaken([]inventory.Take{{Host: 1, Instance: "m3", Group: "g"}})
	r := placing.Request{Instances: []string{"m4"}, Group: &placing.Group{ID: "g", Members: []string{"m1", "m2", "m3", "m3", "m4"}}}
	for policy, tc := range map[string]struct {
		weigher string
		want    []float64
	}{
		"soft-affinity":      {"ServerGroupSoftAffinityWeigher", []float64{0.5, 1, 0}},
		"soft-anti-affinity": {"ServerGroupSoftAntiAffinityWeigher", []float64{0.5, 0, 1}},
		"affinity":           {"ServerGroupSoftAffinityWeigher", []float64{0, 0, 0}},
		"anti-affinity":      {"ServerGroupSoftAntiAffinityWeigher", []float64{0, 0, 0}},
	} {
		r.Group.Policy = policy
		if diff := cmp.Diff(tc.want, weightsOf(t, tc.weigher, nil, s, &r)); diff != "" {
			t.Errorf("%s: %s", policy, diff)
		}
	}
}

func TestDiskThatIsMissingOnTheHostIsNotFree(t *testing.T) {
	host := func(name string, used, missing int64) inventory.HostState {
		return inventory.HostState{Name: name, DiskMissing: missing, Stocks: map[string]inventory.Stock{"DISK_GB": {Total: 100, Ratio: 1, Used: used}}}
	}
	for name, tc := range map[string]struct {
		rows []inventory.HostState
		want []float64
	}{
		"on none":  {[]inventory.HostState{host("a", 0, 0), host("b", 50, 0)}, []float64{1, 0.5}},
		"on one":   {[]inventory.HostState{host("a", 0, 60), host("b", 50, 0)}, []float64{0.8, 1}},
		"on all":   {[]inventory.HostState{host("a", 0, 20), host("b", 60, 20)}, []float64{1, 0.25}},
		"too much": {[]inventory.HostState{host("a", 0, 0), host("b", 60, 70)}, []float64{1, 0}},
	} {
		if diff := cmp.Diff(tc.want, weightsOf(t, "DiskWeigher", nil, states(t, tc.rows, nil), &placing.Request{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAWeigherCountsBesideTheReleasesThatHaveIt(t *testing.T) {
	w, err := weighers.Choose([]string{"HypervisorVersionWeigher", "ImagePropertiesWeigher"}, map[string]float64{"image_props_weight_multiplier": 1}, weighers.Ports{})
	if err != nil {
		t.Fatal(err)
	}
	rows := []inventory.HostState{{Name: "a", HypervisorVersion: 1}, {Name: "b", HypervisorVersion: 2}}
	r := &placing.Request{ImageProperties: map[string]string{"os_distro": "debian"}}
	for nova, want := range map[release.Release]struct {
		weight float64 // of the host with the newer hypervisor
		beyond bool    // the images of other instances count
	}{
		release.Unknown: {}, release.Zed: {}, release.Antelope: {},
		release.Bobcat: {weight: 1}, release.Dalmatian: {weight: 1},
		release.Epoxy: {weight: 1, beyond: true}, release.Hibiscus: {weight: 1, beyond: true}, release.Newer: {weight: 1, beyond: true},
	} {
		s := states(t, rows, nil).WithNova(nova)
		var ranking weighers.Ranking
		if ranking.Rank(w, s, r, 0, everyPlace(s)); ranking.Weight(1)-ranking.Weight(0) != want.weight {
			t.Errorf("%v: the newer hypervisor weighs %v more", nova, ranking.Weight(1)-ranking.Weight(0))
		}
		if what := weighers.Unsupported(w, s, r); (what != "") != want.beyond {
			t.Errorf("%v: %q", nova, what)
		}
	}
}
