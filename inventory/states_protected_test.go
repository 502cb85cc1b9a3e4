// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
)

// Sparing instances that do not exist or are not evictable changes nothing.
func TestInstancesThatAreSparedYieldNothing(t *testing.T) {
	guest := func(id string, vcpus int64) inventory.Instance {
		return inventory.Instance{ID: id, Status: "ACTIVE", Preemptible: true, Holds: map[string]int64{"VCPU": vcpus}}
	}
	locked := guest("locked", 8)
	locked.Locked = true
	row := func(name string, guests ...inventory.Instance) inventory.HostState {
		return inventory.HostState{
			Name: name, Node: name, Stocks: map[string]inventory.Stock{"VCPU": {Total: 32, Ratio: 1, Used: 20}}, Instances: guests,
		}
	}
	s, err := inventory.NewStates([]inventory.HostState{row("h", guest("a", 1), guest("b", 2), guest("c", 4), locked), row("k", guest("d", 3))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	yields := func(s *inventory.States) []int64 { return s.Column("VCPU").Evictable }
	spared := s.WithProtected(map[string]string{"a": "h", "c": "h", "locked": "h", "d": "h", "gone": "h", "b": "elsewhere"})
	if got := yields(spared); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("with a and c spared the hosts have %v evictable, want [2 3]", got)
	}
	for _, one := range spared.InstancesOn(0) {
		if want := one.ID == "b"; one.Evictable() != want {
			t.Errorf("%s can be evicted: %v", one.ID, !want)
		}
	}
	if got := yields(s); !slices.Equal(got, []int64{7, 3}) {
		t.Errorf("before that they had %v evictable, want [7 3]", got)
	}
	if used := spared.Column("VCPU").Used; !slices.Equal(used, []int64{20, 20}) {
		t.Errorf("%v are used, want the earlier amounts", used)
	}
	if s.WithProtected(nil) != s {
		t.Error("without spared instances the states differ")
	}
}
