// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// nobody is a session for a Placement that checks no token.
type nobody struct{}

func (nobody) Token(context.Context, string) (string, error) { return "token", nil }
func (nobody) Endpoint(context.Context, string, string, []string) (string, error) {
	return "", nil
}

// asked is a Placement with one host, on which the instance spot and another consumer hold
// resources. It records the requests about that host.
type asked struct {
	mu    sync.Mutex
	calls []string
	spot  string // what spot holds, as JSON
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := path.Base(r.URL.Path)
	if call != "/" {
		a.mu.Lock()
		a.calls = append(a.calls, call)
		a.mu.Unlock()
	}
	_, _ = io.WriteString(w, map[string]string{
		"/":                     `{"versions": [{"max_version": "1.39", "min_version": "1.0"}]}`,
		"traits":                `{"traits": ["T"]}`,
		"usages":                `{"usages": {"VCPU": 7}}`,
		"inventories":           `{"inventories": {"VCPU": {"total": 8, "reserved": 0, "allocation_ratio": 1}}}`,
		"allocations":           `{"allocations": {"spot": {"resources": {"VCPU": ` + a.spot + `}}, "other": {"resources": {"VCPU": 4}}}}`,
		"allocation_candidates": `{"provider_summaries": {"pa": {"resources": {"VCPU": {"capacity": 8, "used": 7}, "DISK_GB": {"capacity": 8, "used": 0}}, "traits": ["T"]}}}`,
	}[call])
}

// Each case lists the calls that a reading makes for one provider of 100. Lists of all
// providers are not worth their cost there, except in the cases that set list.
func TestWhatConsumersHoldIsReadOnlyOfHostsWithPreemptibleInstances(t *testing.T) {
	inventories := map[string]placement.Inventory{"VCPU": {Total: 8, Ratio: 1}, "DISK_GB": {Total: 8, Ratio: 1}}
	sum := holding{generation: 3, counted: 3, inventories: inventories, used: map[string]int64{"VCPU": 6}}
	each := sum
	each.consumers = map[string]map[string]int64{"spot": {"VCPU": 6}}
	gone := each
	gone.used, gone.consumers = map[string]int64{"VCPU": 7}, map[string]map[string]int64{"spot": {"VCPU": 7}}
	for name, tc := range map[string]struct {
		known                            holding
		generation                       int64
		preemptible, touched, full, list bool
		want                             []string
		spot                             int64 // what spot is known to hold after the reading
	}{
		"nothing has changed":                               {sum, 3, false, false, false, false, nil, 0},
		"nothing has changed, with a preemptible one":       {each, 3, true, false, false, false, nil, 6},
		"a preemptible one has come to be known":            {sum, 3, true, false, false, false, []string{"allocations"}, 3},
		"a server has changed":                              {sum, 3, false, true, false, false, []string{"usages"}, 0},
		"a server has changed beside a preemptible one":     {each, 3, true, true, false, false, []string{"allocations"}, 3},
		"the last preemptible one has left":                 {each, 3, false, true, false, false, []string{"usages"}, 0},
		"the generation is another":                         {sum, 4, false, false, false, false, []string{"inventories", "traits", "usages"}, 0},
		"the generation is another, with a preemptible":     {each, 4, true, false, false, false, []string{"allocations", "inventories", "traits"}, 3},
		"the first reading":                                 {holding{}, 4, true, false, true, true, []string{"allocation_candidates", "allocations", "inventories"}, 3},
		"a full one in which all is the same":               {gone, 3, true, false, true, true, []string{"allocation_candidates"}, 7},
		"a full one in which less is used":                  {each, 3, true, false, true, true, []string{"allocation_candidates", "allocations"}, 3},
		"a full one without preemptible ones":               {each, 3, false, false, true, true, []string{"allocation_candidates"}, 0},
		"a full one after which a preemptible one is known": {sum, 3, true, false, true, true, []string{"allocation_candidates", "allocations"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			a := &asked{spot: "3"}
			server := httptest.NewServer(a)
			t.Cleanup(server.Close)
			client, err := placement.New(nobody{}, openstack.Options{Override: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			next := &cloud{hypervisors: []nova.Hypervisor{{ID: "pa", Host: "a"}}, preemptible: map[string]bool{"pa": tc.preemptible}}
			next.providers = []placement.Provider{{ID: "pa", Root: "pa", Generation: tc.generation}}
			last := &cloud{holdings: map[string]holding{}}
			if tc.known.generation > 0 {
				last.holdings["pa"] = tc.known
			}
			if tc.touched {
				next.touched = map[string]span.Instant{"a": 1}
			}
			for n := 0; !tc.list && n < 99; n++ {
				id := string(rune('A' + n))
				next.providers = append(next.providers, placement.Provider{ID: id, Root: id})
				last.holdings[id] = holding{inventories: inventories}
			}
			got, err := (&Source{placement: client}).readHoldings(t.Context(), next, last, tc.full)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(a.calls)
			if diff := cmp.Diff(tc.want, a.calls); diff != "" {
				t.Errorf("the reading asks for (-want +got):\n%s", diff)
			}
			if h := got["pa"]; h.consumers["spot"]["VCPU"] != tc.spot || h.generation != tc.generation || h.consumers != nil && !sameAmounts(h.used, placement.Sum(h.consumers)) {
				t.Errorf("got %+v", h)
			}
		})
	}
}

func TestAnInstanceHoldsWhatItHasOfTheStocksOfItsHost(t *testing.T) {
	c := small(func(c *cloud) {
		c.providers = append(c.providers, placement.Provider{ID: "gpu", Root: "pa", Parent: "pa"}, placement.Provider{ID: "gpu2", Root: "pa", Parent: "pa"})
		some := map[string]placement.Inventory{"CUSTOM_GPU": {Total: 4, Ratio: 1}, "VGPU": {Total: 9, Ratio: 1}}
		c.holdings["gpu"] = holding{inventories: some, consumers: map[string]map[string]int64{"1": {"CUSTOM_GPU": 1, "VGPU": 2}}}
		c.holdings["gpu2"] = holding{
			inventories: map[string]placement.Inventory{"VGPU": {Total: 9, Ratio: 1}}, consumers: map[string]map[string]int64{"1": {"VGPU": 3}},
		}
		h := c.holdings["pa"]
		h.used = map[string]int64{"VCPU": 4, "MEMORY_MB": 1024, "DISK_GB": 10}
		h.consumers = map[string]map[string]int64{
			"1": {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 10}, "3": {"VCPU": 1}, "4": {"VCPU": 1}, "elsewhere": {"VCPU": 1},
		}
		c.holdings["pa"] = h
		c.shared = map[string][]string{"pa": {"DISK_GB"}}
		c.records = map[string]inventory.InstanceRecord{"1": {Preemptible: true, Reservation: "r"}, "5": {Preemptible: true}}
		c.preemptible = map[string]bool{"pa": true}
		run(c, "1", "a", nil)
		run(c, "2", "a", func(i *inventory.Instance) { i.Metadata = map[string]string{"almanac:protected": "true"} })
		run(c, "3", "a", func(i *inventory.Instance) {
			i.ProjectID, i.Metadata = "spots", map[string]string{"almanac:protected": "Yes"}
		})
		run(c, "4", "a", nil)
		run(c, "5", "a", nil)
	})
	hosts, _ := assemble(c, inventory.PreemptibleRule{Projects: []string{"spots"}, Protect: "almanac:protected"})
	want := map[string]inventory.Instance{
		"1": {Preemptible: true, Reservation: "r", Holds: map[string]int64{"VCPU": 2, "MEMORY_MB": 1024, "CUSTOM_GPU": 1}},
		"2": {Protected: true},
		"3": {Preemptible: true, Protected: true, Holds: map[string]int64{"VCPU": 1}},
		"4": {},
		"5": {Preemptible: true},
	}
	got := map[string]inventory.Instance{}
	for _, i := range host(t, hosts, "a").Instances {
		got[i.ID] = inventory.Instance{Preemptible: i.Preemptible, Protected: i.Protected, Reservation: i.Reservation, Holds: i.Holds}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	states, err := inventory.NewStates(hostStates(c, hosts, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	yields := map[string]int64{}
	for _, class := range []string{"VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_GPU", "VGPU"} {
		yields[class] = states.Column(class).Evictable[0]
	}
	if diff := cmp.Diff(map[string]int64{"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 0, "CUSTOM_GPU": 1, "VGPU": 0}, yields); diff != "" {
		t.Errorf("evictable (-want +got):\n%s", diff)
	}
}
