// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func server(id, host string, updated span.Instant) nova.Server {
	return nova.Server{Instance: inventory.Instance{ID: id, Host: host, Status: "ACTIVE"}, Updated: updated}
}

func gone(id string, updated span.Instant) nova.Server {
	s := server(id, "", updated)
	s.Status = "DELETED"
	return s
}

func TestAListOfChangesBeginsBeforeTheLastOneByNovasClock(t *testing.T) {
	for name, tc := range map[string]struct{ updated, now, want span.Instant }{
		"clocks that agree":                    {9_990, 10_000, 9_930},
		"Nova's clock behind":                  {9_000, 10_000, 8_940},
		"Nova's clock ahead":                   {12_000, 10_000, 9_940},
		"nothing has happened for a long time": {100, 10_000, 40},
	} {
		if got := (&cloud{updated: tc.updated}).since(tc.now); got != tc.want {
			t.Errorf("%s: since %d, want %d", name, got, tc.want)
		}
	}
}

func TestChangesAreLaidOverTheServersKnown(t *testing.T) {
	last := &cloud{updated: 50, servers: map[string]nova.Server{
		"stays": server("stays", "a", 10), "moves": server("moves", "a", 20), "goes": server("goes", "b", 50),
	}}
	next := &cloud{}
	next.applyChanges(last, []nova.Server{server("moves", "b", 60), gone("goes", 70), gone("never seen", 71), server("comes", "c", 65)})
	if got := slices.Sorted(maps.Keys(next.servers)); !slices.Equal(got, []string{"comes", "moves", "stays"}) || next.servers["moves"].Host != "b" || next.updated != 71 {
		t.Errorf("%v, the one that moved on %s, updated %d", got, next.servers["moves"].Host, next.updated)
	}
	if len(last.servers) != 3 || last.servers["moves"].Host != "a" {
		t.Errorf("the last reading has changed: %v", last.servers)
	}
}

func TestAHostIsTouchedWhileItsServersChangeAndABitLonger(t *testing.T) {
	read := func(last *cloud, at span.Instant, servers ...nova.Server) *cloud {
		next := &cloud{at: at}
		next.replaceServers(servers)
		next.touch(last, at)
		return next
	}
	hosts := func(c *cloud) []string { return slices.Sorted(maps.Keys(c.touched)) }
	first := read(&cloud{}, 100, server("1", "a", 1), server("2", "b", 1))
	if first.touched != nil {
		t.Errorf("at first: %v", first.touched)
	}
	moved := read(first, 110, server("1", "c", 109), server("2", "b", 1))
	if got := hosts(moved); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("after a move from a to c: %v", got)
	}
	left := read(moved, 120, server("1", "c", 109))
	if got := hosts(left); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("after one left b: %v", got)
	}
	settled := read(left, 145, server("1", "c", 109))
	if got := hosts(settled); !slices.Equal(got, []string{"b"}) {
		t.Errorf("half a minute after the move: %v", got)
	}
	late := read(left, 100_000, server("1", "c", 109))
	if got := hosts(late); !slices.Equal(got, []string{"b"}) {
		t.Errorf("in the first reading after one left, however late: %v", got)
	}
}

func TestAHostIsTouchedWhenAnAllocationAppears(t *testing.T) {
	last := &cloud{
		at: 100, servers: map[string]nova.Server{},
		holdings: map[string]holding{"pa": {generation: 5}, "gpu": {generation: 2}, "pb": {generation: 5}},
	}
	next := &cloud{
		hypervisors: []nova.Hypervisor{{ID: "pa", Host: "a"}, {ID: "pb", Host: "b"}, {ID: "pc", Host: "c"}},
		providers: []placement.Provider{
			{ID: "pa", Root: "pa", Generation: 5}, {ID: "gpu", Root: "pa", Parent: "pa", Generation: 3},
			{ID: "pb", Root: "pb", Generation: 5}, {ID: "pc", Root: "pc", Generation: 1},
		},
	}
	next.touch(last, 110)
	next.touchAllocated(last, 110)
	if diff := cmp.Diff(map[string]span.Instant{"a": 110}, next.touched); diff != "" {
		t.Errorf("touched (-want +got):\n%s", diff)
	}
}

func TestAReadingIsDoubtfulIfNoServerExplainsWhatIsInUse(t *testing.T) {
	inUse := map[string]holding{"pa": {used: map[string]int64{"VCPU": 0, "MEMORY_MB": 512}}}
	for name, tc := range map[string]struct {
		cloud cloud
		want  bool
	}{
		"nothing is read":         {cloud{}, false},
		"nothing is in use":       {cloud{servers: map[string]nova.Server{}, holdings: map[string]holding{"pa": {used: map[string]int64{"VCPU": 0}}}}, false},
		"a server may explain it": {cloud{servers: map[string]nova.Server{"1": {}}, holdings: inUse}, false},
		"there is no server":      {cloud{servers: map[string]nova.Server{}, holdings: inUse}, true},
	} {
		if got := tc.cloud.doubtful(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestOnlyWhatMayHaveChangedIsReadAgain(t *testing.T) {
	next := &cloud{
		hypervisors: []nova.Hypervisor{{ID: "pa", Host: "a"}, {ID: "pb", Host: "b"}, {ID: "pc", Host: "c"}, {ID: "pd", Host: "d"}},
		providers: []placement.Provider{
			{ID: "pa", Root: "pa", Generation: 5}, {ID: "pb", Root: "pb", Generation: 6}, {ID: "pc", Root: "pc", Generation: 1},
			{ID: "gpu", Root: "pc", Parent: "pc", Generation: 2}, {ID: "pd", Root: "pd", Generation: 0},
		},
		touched: map[string]span.Instant{"c": 100},
	}
	known := map[string]holding{"pa": {generation: 5}, "pb": {generation: 5}, "pc": {generation: 1}, "gpu": {generation: 2}}
	names := func(list []staleness) map[string]bool {
		got := map[string]bool{}
		for _, one := range list {
			got[one.provider.ID] = one.all
		}
		return got
	}
	if diff := cmp.Diff(map[string]bool{"pb": true, "pc": false, "gpu": false, "pd": true}, names(stale(next, known, false))); diff != "" {
		t.Errorf("in between (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"pa": false, "pb": true, "pc": false, "gpu": false, "pd": true}, names(stale(next, known, true))); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
}

func TestProvidersOfNoHostAreNotRead(t *testing.T) {
	providers := []placement.Provider{
		{ID: "pa", Name: "a", Root: "pa"}, {ID: "gpu", Name: "gpu", Parent: "pa", Root: "pa"},
		{ID: "ours", Name: "almanac_a", Parent: "pa", Root: "pa"}, {ID: "pb", Name: "almanac_b", Root: "pb"},
		{ID: "network", Name: "agent", Root: "network"}, {ID: "node", Name: "node", Root: "node"},
	}
	var got []string
	for _, p := range ofHosts(providers, []nova.Hypervisor{
		{ID: "pa", Host: "a"}, {ID: "pb", Host: "b"}, {ID: "node", Host: "bare", Type: "ironic"},
	}) {
		got = append(got, p.ID)
	}
	if want := []string{"pa", "gpu", "ours", "pb"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestInventoriesAgreeWithWhatPlacementSellsOfEachClass(t *testing.T) {
	known := map[string]placement.Inventory{"VCPU": {Total: 10, Reserved: 2, Ratio: 4}, "MEMORY_MB": {Total: 100, Ratio: 1}}
	for name, tc := range map[string]struct {
		sold map[string]int64
		want bool
	}{
		"the same":     {map[string]int64{"VCPU": 32, "MEMORY_MB": 100}, true},
		"less":         {map[string]int64{"VCPU": 28, "MEMORY_MB": 100}, false},
		"a class less": {map[string]int64{"VCPU": 32}, false},
		"a class more": {map[string]int64{"VCPU": 32, "MEMORY_MB": 100, "CUSTOM_X": 1}, false},
		"another one":  {map[string]int64{"VCPU": 32, "DISK_GB": 100}, false},
	} {
		if got := agree(known, tc.sold); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
