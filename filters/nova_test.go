package filters_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// judging are the filters of Nova that look at what a request or a host has.
var judging = []string{
	"ComputeCapabilitiesFilter", "ImagePropertiesFilter", "ServerGroupAffinityFilter", "ServerGroupAntiAffinityFilter", "AvailabilityZoneFilter",
	"AggregateMultiTenancyIsolation", "SameHostFilter", "DifferentHostFilter", "SimpleCIDRAffinityFilter", "JsonFilter", "IsolatedHostsFilter",
	"IoOpsFilter", "AggregateIoOpsFilter", "NumInstancesFilter", "AggregateNumInstancesFilter", "AggregateInstanceExtraSpecsFilter",
	"AggregateImagePropertiesIsolation", "AggregateTypeAffinityFilter",
}

// passive are those that refuse no host for what can be asked here.
var passive = []string{"AllHostsFilter", "MetricsFilter", "PciPassthroughFilter"}

// answered is what Nova's filters say.
type answered struct {
	Filters []string `json:"filters"`
	Worlds  []struct {
		Answers []map[string]string `json:"answers"`
		Chains  []any               `json:"chains"`
	} `json:"worlds"`
}

// TestFiltersAnswerAsNovas asks Nova's own filters the same. Where Nova fails the request
// these refuse all hosts, and they refuse what Nova lets pass only where they say that
// they cannot tell.
func TestFiltersAnswerAsNovas(t *testing.T) {
	enabled, count := slices.Concat(judging, passive), map[string]map[string]int{}
	for _, name := range enabled {
		count[name] = map[string]int{}
	}
	var worlds []*world
	for seed := range 10 {
		worlds = append(worlds, rapid.Custom(func(t *rapid.T) *world { return newWorld(t, enabled, 500) }).Example(seed))
	}
	var said answered
	labtest.AskPython(t, "testdata/oracle.py", map[string]any{"worlds": worlds}, &said)
	if _, err := filters.New(enabled, filters.Options{Available: said.Filters}); err != nil || len(said.Filters) != 23 {
		t.Errorf("Nova has the filters %q: %v", said.Filters, err)
	}
	chains := 0
	for seed, w := range worlds {
		s := states(t, w.rows, w.aggregates...)
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
	for name, of := range count {
		t.Logf("%s: %v", name, of)
		if slices.Contains(judging, name) && (of["yes"] < 1000 || of["no"] < 1000) {
			t.Errorf("%s was hardly asked: %v", name, of)
		}
	}
	t.Logf("%d requests for several instances", chains)
	if chains < 500 {
		t.Errorf("only %d requests for several instances were compared", chains)
	}
}

// compareOne fails unless a filter does with each host as Nova's does; of has a letter
// for each host in the order of w.rows. Where Nova fails at one host, or may, by chance,
// all are to be refused.
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
			t.Fatalf("%s is refused since %q, and nothing is said to be beyond: %+v", name, why[name], r)
		case unsure, fails && beyond != "":
			count["unsure"]++
		case fails && !refused:
			t.Fatalf("%s leaves %q, and Nova fails: %+v", f.Name(), names, r)
		case fails:
			count["error"]++
		case refused == (of[n] == 'y'):
			t.Fatalf("%s leaves %q of %s: %q; Nova says %c: %+v", f.Name(), names, name, why[name], of[n], r)
		case refused:
			count["no"]++
		default:
			count["yes"]++
		}
	}
}

// compareChains places several instances one after the other, each on the first host by
// name, as the walk of pkg/scheduler does.
// It gives how many were compared.
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
				t.Errorf("%v place %v, and Nova fails: %+v", c.Filters, picks, r)
			}
			continue
		}
		if diff := cmp.Diff(wants[n], got); diff != "" {
			t.Errorf("%v place instances otherwise than Nova's (-want +got):\n%s%+v", c.Filters, diff, r)
		}
	}
	return compared
}

// placed gives the hosts of the instances, nil for the first that has none.
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
