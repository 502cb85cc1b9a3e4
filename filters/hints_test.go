// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

func hinted(pairs ...string) placing.Request {
	r := placing.Request{Hints: map[string][]string{}}
	for n := 0; n < len(pairs); n += 2 {
		r.Hints[pairs[n]] = append(r.Hints[pairs[n]], pairs[n+1])
	}
	return r
}

func TestHintsThatNameInstancesOrANetwork(t *testing.T) {
	on := func(ids ...string) (list []inventory.Instance) {
		for _, id := range ids {
			list = append(list, inventory.Instance{ID: id})
		}
		return list
	}
	s := states(t, []inventory.HostState{
		{Name: "a", IP: "10.0.0.7", Instances: on("1", "2")}, {Name: "b", IP: "10.0.1.7", Instances: on("3")},
		{Name: "c", IP: "fe80::7", Instances: on("2")}, {Name: "d"},
	})
	checkRules(t, s, map[string]rule{
		"beside one":                 {filters.SameHost{}, hinted("same_host", "1"), "a", map[string]string{"b": "none of the instances that the hint same_host names"}},
		"beside one that moves":      {filters.SameHost{}, hinted("same_host", "2"), "a,c", nil},
		"beside one of several":      {filters.SameHost{}, hinted("same_host", "1", "same_host", "3"), "a,b", nil},
		"beside nobody":              {filters.SameHost{}, hinted("same_host", ""), "a,b,c,d", nil},
		"beside one that is gone":    {filters.SameHost{}, hinted("same_host", "9"), "", nil},
		"away from several":          {filters.DifferentHost{}, hinted("different_host", "2", "different_host", "3"), "d", map[string]string{"a": "an instance that the hint different_host names"}},
		"away from one that is gone": {filters.DifferentHost{}, hinted("different_host", "9"), "a,b,c,d", nil},
		"near":                       {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "10.0.0.5"), "a", map[string]string{"b": "10.0.1.7 of the host is not in 10.0.0.0/24", "d": "unknown"}},
		"near, in a larger network":  {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "10.0.0.5", "cidr", "/16"), "a,b", nil},
		"near, of IPv6":              {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "fe80::1", "cidr", "/64"), "c", nil},
		"near nothing":               {&filters.SimpleCIDRAffinity{}, hinted("cidr", "/16"), "a,b,c,d", nil},
		"near two":                   {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "10.0.0.5", "build_near_host_ip", "10.0.0.6"), "", map[string]string{"a": "one value each"}},
		"no address":                 {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "node-1"), "", map[string]string{"a": `"node-1" is not an address`}},
		"without the last parts":     {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "10", "cidr", "/8"), "a,b", nil},
		"with a zero in front":       {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "010.0.0.5"), "a", nil},
		"no size":                    {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "10.0.0.5", "cidr", "/33"), "", map[string]string{"d": `"33" is not a network size for 10.0.0.5`}},
	})
}

// netaddr 1, which these releases use, takes neither for an address.
func TestReleasesSinceDalmatianTakeWholeAddressesOnly(t *testing.T) {
	s := states(t, []inventory.HostState{{Name: "a", IP: "10.0.0.7"}, {Name: "b", IP: "fe80::7"}}).WithNova(release.Dalmatian)
	checkRules(t, s, map[string]rule{
		"a whole address":        {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "10.0.0.5"), "a", nil},
		"one of IPv6":            {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "fe80::1", "cidr", "/64"), "b", nil},
		"without the last parts": {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "10", "cidr", "/8"), "", map[string]string{"a": `"10" is not an address`}},
		"with a zero in front":   {&filters.SimpleCIDRAffinity{}, hinted("build_near_host_ip", "010.0.0.5"), "", map[string]string{"a": "is not an address"}},
	})
}

func TestMetricsAreNotTold(t *testing.T) {
	s, r := states(t, []inventory.HostState{{Name: "a"}}), placing.Request{}
	checkRules(t, s, map[string]rule{
		"none":     {filters.Metrics{}, r, "a", nil},
		"one":      {filters.Metrics{Setting: []string{"x", "cpu.percent=0.5"}}, r, "", map[string]string{"a": "the metric cpu.percent"}},
		"no ratio": {filters.Metrics{Setting: []string{"x", "cpu.percent=many"}}, r, "a", nil},
		"forced":   {filters.Metrics{Setting: []string{"cpu.percent=1"}}, placing.Request{ForceHosts: []string{"a"}}, "a", nil},
	})
	checkBeyond(t, filters.Metrics{Setting: []string{"cpu.percent=1"}}, s, r, "the metric cpu.percent")
	checkBeyond(t, filters.Metrics{Setting: []string{"cpu.percent=1"}}, s, placing.Request{Rebuild: true}, "")
	checkBeyond(t, filters.Metrics{}, s, r, "")
}

// In Nova the host manager keeps this rule, not the filters
// (nova/scheduler/host_manager.py, get_filtered_hosts).
func TestFiltersOfNovaSkipForcedHosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, judging, 3)
		s, err := inventory.NewStates(w.rows, w.aggregates)
		if err != nil {
			t.Fatal(err)
		}
		list, err := filters.New(judging, w.options)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list[len(list)-len(judging):] {
			for _, r := range w.requests {
				r.Rebuild, r.ForceHosts = false, []string{"h0"}
				delete(r.Hints, "_nova_check_type")
				hosts := s.All().Clone()
				if test := f.For(s, &r, 0); test != nil {
					test.Keep(hosts)
				}
				if hosts.Count() != s.Len() || filters.Unsupported([]filters.Filter{f}, s, &r) != "" {
					t.Fatalf("%s judges hosts although the request forces a host: %+v", f.Name(), r)
				}
			}
		}
	})
}

func TestATakeCountsAsAnInstanceAndAnOperation(t *testing.T) {
	s := states(t, []inventory.HostState{{Name: "a"}, {Name: "b", IOOps: 1, Instances: []inventory.Instance{{ID: "1"}}}})
	for _, f := range []filters.Filter{
		filters.IOOps(2), filters.NumInstances(2), filters.AggregateIOOps(2), filters.AggregateNumInstances(2),
	} {
		var got []string
		for after, take := s, 0; take < 3; take++ {
			names, _ := left(t, f, after, placing.Request{}, 0)
			got = append(got, names)
			after = after.WithTaken([]inventory.Take{{Host: take % 2, Instance: string(rune('x' + take))}})
		}
		if want := []string{"a,b", "a,b", "a"}; !slices.Equal(got, want) {
			t.Errorf("%s leaves %q, want %q", f.Name(), got, want)
		}
	}
}
