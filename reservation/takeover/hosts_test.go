// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

func TestAHostIsCalledLikeItsServiceUnlessSeveralShareIt(t *testing.T) {
	hosts := []takeover.Host{
		{ID: "1", Service: "cmp-1", Hypervisor: "cmp-1.example"}, {ID: "2", Service: "ironic", Hypervisor: "node-2"},
		{ID: "3", Service: "ironic", Hypervisor: "node-3"}, {ID: "4", Service: "gone", Hypervisor: "gone.example"},
	}
	known := []string{"cmp-1", "node-2", "node-3", "ironic"}
	got := takeover.NameHosts(hosts, func(name string) bool { return slices.Contains(known, name) })
	if d := cmp.Diff(map[string]string{"1": "cmp-1", "2": "node-2", "3": "node-3", "4": ""}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestThePoolHasBlazarsHostsWithTheirNumbersAndTexts(t *testing.T) {
	b := newBlazar()
	b.Hosts = append(b.Hosts, takeover.Host{ID: "9", Service: "gone"})
	b.Hosts[1].MemoryMB = 9000
	b.Capabilities = []takeover.Capability{
		{HostID: "1", Property: "gpu", Value: "True"}, {HostID: "1", Property: "rack", Value: "12", Private: true}, {HostID: "2", Property: "rack", Value: "13", Private: true},
	}
	pool := takeover.NewPool(b.Database, map[string]string{"1": "a", "2": "b", "3": "c", "9": ""}, cloud(t))
	want := []takeover.Enrolled{
		{Name: "a", Number: 1, Capabilities: map[string]string{"gpu": "True", "rack": "12"}},
		{Name: "b", Number: 2, Capabilities: map[string]string{"rack": "13"}},
		{Name: "c", Number: 3},
	}
	if d := cmp.Diff(want, pool.Hosts); d != "" || !slices.Equal(pool.Hidden, []string{"rack"}) {
		t.Errorf("hidden %v, (-want +got):\n%s", pool.Hidden, d)
	}
	if kinds := said(takeover.Plan{Findings: pool.Findings}); !slices.Equal(kinds, []string{"host", "size"}) {
		t.Errorf("%v", pool.Findings)
	}
}

func TestAHostOfThePoolKeepsWhatAlmanacHasOfIt(t *testing.T) {
	pool := takeover.Pool{Hosts: []takeover.Enrolled{
		{Name: "a", Number: 1, Capabilities: map[string]string{"gpu": "True", "rack": "12"}, Created: 5}, {Name: "b", Number: 2}, {Name: "c", Number: 3},
	}}
	rack, no := inventory.NumberValue(7), false
	got := pool.Overrides(map[string]inventory.Override{
		"a": {Properties: map[string]*inventory.Value{"rack": &rack}},
		"b": {Reservable: &no},
		"c": {Capabilities: &inventory.Capabilities{Created: 3}},
		"d": {Reservable: &no},
	}, now)
	yes := true
	want := map[string]inventory.Override{
		"a": {Properties: map[string]*inventory.Value{"rack": &rack}, Reservable: &yes, Capabilities: &inventory.Capabilities{Texts: map[string]string{"gpu": "True"}, Created: 5}},
		"b": {Reservable: &no, Capabilities: &inventory.Capabilities{Created: now}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestHostsKeepBlazarsNumbers(t *testing.T) {
	pool := takeover.Pool{Hosts: []takeover.Enrolled{{Name: "a", Number: 4}, {Name: "b", Number: 1}}}
	got := pool.Numbers(map[string]int64{"a": 1, "b": 2, "c": 4, "d": 9})
	if d := cmp.Diff(map[string]int64{"a": 4, "b": 1, "c": 10, "d": 9}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if again := pool.Numbers(got); !maps.Equal(again, got) {
		t.Errorf("again: %v", again)
	}
}
