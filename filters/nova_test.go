// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// judging lists Nova's filters that look at the properties of a request or a host.
var judging = []string{
	"ComputeCapabilitiesFilter", "ImagePropertiesFilter", "ServerGroupAffinityFilter", "ServerGroupAntiAffinityFilter", "AvailabilityZoneFilter",
	"AggregateMultiTenancyIsolation", "SameHostFilter", "DifferentHostFilter", "SimpleCIDRAffinityFilter", "JsonFilter", "IsolatedHostsFilter",
	"IoOpsFilter", "AggregateIoOpsFilter", "NumInstancesFilter", "AggregateNumInstancesFilter", "AggregateInstanceExtraSpecsFilter",
	"AggregateImagePropertiesIsolation", "AggregateTypeAffinityFilter",
}

// passive lists Nova's filters that refuse no host for any request that these tests draw.
var passive = []string{"AllHostsFilter", "MetricsFilter", "PciPassthroughFilter"}

// answered holds the answers of Nova's filters.
type answered struct {
	Filters []string `json:"filters"`
	Worlds  []struct {
		Answers []map[string]string `json:"answers"`
		Chains  []any               `json:"chains"`
	} `json:"worlds"`
}

// The filters answer as Nova's own filters do. Where Nova fails the request, they refuse
// all hosts. They refuse a host that Nova admits only where they declare that they cannot
// judge the request.
func TestFiltersAnswerAsNovas(t *testing.T) {
	of, count := labtest.Release(t), map[string]map[string]int{}
	lacks := func(name string) bool { return !of.Has(release.Named(release.Filter, name)) }
	enabled := slices.DeleteFunc(slices.Concat(judging, passive), lacks)
	for _, name := range enabled {
		count[name] = map[string]int{}
	}
	var worlds []*world
	for seed := range 10 {
		worlds = append(worlds, rapid.Custom(func(t *rapid.T) *world { return newWorld(t, enabled, 500) }).Example(seed))
	}
	var said answered
	labtest.AskPython(t, "testdata/oracle.py", map[string]any{"worlds": worlds}, &said)
	if _, err := filters.New(enabled, filters.Options{Available: said.Filters}); err != nil || len(said.Filters) != len(slices.DeleteFunc(filters.Names(), lacks)) {
		t.Errorf("%v has the filters %q, want those that Almanac can enable beside it: %v", of, said.Filters, err)
	}
	chains := 0
	for seed, w := range worlds {
		s := states(t, w.rows, w.aggregates...).WithNova(of)
		list, err := filters.New(enabled, w.options)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list[len(list)-len(enabled):] {
			for n, r := range w.requests {
				compareOne(t, w, s, f, r, said.Worlds[seed].Answers[n][f.Name()], count[f.Name()])
			}
		}
		chains += compareChains(t, w, s, said.Worlds[seed].Chains)
	}
	for name, answers := range count {
		t.Logf("%s: %v", name, answers)
		if slices.Contains(judging, name) && (answers["yes"] < 1000 || answers["no"] < 1000) {
			t.Errorf("%s has too few answers to compare: %v", name, answers)
		}
	}
	t.Logf("%d requests for several instances", chains)
	if chains < 500 {
		t.Errorf("only %d requests for several instances were compared", chains)
	}
}

// compareOne fails unless a filter treats each host as Nova's filter does. The string of has
// one letter for each host, in the order of w.rows. Where Nova fails on one host, or fails
// depending on chance, the filter must refuse all hosts.
func compareOne(t *testing.T, w *world, s *inventory.States, f filters.Filter, r placing.Request, of string, count map[string]int) {
	t.Helper()
	names, why := left(t, f, s, r, 0)
	beyond := filters.Unsupported([]filters.Filter{f}, s, &r)
	fails := strings.ContainsAny(of, "e?")
	for n := range w.rows {
		name := w.rows[n].Name
		_, refused := why[name]
		unsure := strings.Contains(why[name], "API does not") || strings.Contains(why[name], "is unknown")
		switch {
		case unsure && beyond == "":
			t.Fatalf("%s is refused with %q, but the filter does not declare that it cannot judge the request: %+v", name, why[name], r)
		case unsure, fails && beyond != "":
			count["unsure"]++
		case fails && !refused:
			t.Fatalf("%s admits %q, but Nova fails: %+v", f.Name(), names, r)
		case fails:
			count["error"]++
		case refused == (of[n] == 'y'):
			t.Fatalf("%s admits %q; on host %s: reason %q, Nova answers %c: %+v", f.Name(), names, name, why[name], of[n], r)
		case refused:
			count["no"]++
		default:
			count["yes"]++
		}
	}
}

// compareChains places several instances one after the other, each on the first host by
// name, as the walk of pkg/scheduler does. It returns how many chains it compared.
func compareChains(t *testing.T, w *world, s *inventory.States, wants []any) (compared int) {
	t.Helper()
	for n, c := range w.Chains {
		list, err := filters.New(c.Filters, w.options)
		if err != nil {
			t.Fatal(err)
		}
		list = list[len(list)-len(c.Filters):]
		r := w.requests[c.Request]
		r.Instances = c.Instances
		if filters.Unsupported(list, s, &r) != "" {
			continue
		}
		compared++
		got := any(placed(list, s, r))
		if wants[n] == "error" {
			if picks := got.([]any); picks[len(picks)-1] != nil {
				t.Errorf("%v place %v, but Nova fails or depends on chance: %+v", c.Filters, picks, r)
			}
			continue
		}
		if diff := cmp.Diff(wants[n], got); diff != "" {
			t.Errorf("%v place instances on other hosts than Nova does (-want +got):\n%s%+v", c.Filters, diff, r)
		}
	}
	return compared
}

// placed returns the hosts of the instances, and nil for the first that finds no host.
func placed(list []filters.Filter, s *inventory.States, r placing.Request) (picks []any) {
	hosts, instances := s.All().Clone(), r.Instances
	for n, instance := range instances {
		r.Instances = instances[n:]
		for _, f := range list {
			if _, once := f.(filters.Once); once && n > 0 {
				continue
			}
			if test := f.For(s, &r, 0); test != nil && hosts.Count() > 0 {
				test.Keep(hosts)
			}
		}
		for i := range hosts.All() {
			picks = append(picks, s.Host(i).Name)
			take := inventory.Take{Host: i, Instance: instance, Resources: r.Resources}
			s = s.WithTaken([]inventory.Take{take})
			if r.Group != nil {
				group := *r.Group
				group.Hosts = append(slices.Clip(group.Hosts), s.Host(i).Name)
				r.Group = &group
			}
			break
		}
		if len(picks) == n {
			return append(picks, nil)
		}
	}
	return picks
}
