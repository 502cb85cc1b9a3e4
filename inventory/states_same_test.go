package inventory_test

import (
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
)

func TestTakesKeepTheHostsAndCountAsOperations(t *testing.T) {
	rows := []inventory.HostState{{Name: "b", IOOps: 2}, {Name: "a"}}
	before, err := inventory.NewStates(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	after := before.With([]inventory.Take{{Host: 1, Instance: "one"}, {Host: 1, Instance: "two"}, {Host: 1, Instance: "two"}})
	for name, tc := range map[string]struct {
		s    *inventory.States
		want []int64
	}{"before": {before, []int64{0, 2}}, "after": {after, []int64{0, 4}}} {
		if got := tc.s.IOOps(); !slices.Equal(got, tc.want) {
			t.Errorf("%s there are %v operations, want %v", name, got, tc.want)
		}
	}
	if !after.SameHosts(before) || !before.SameHosts(after) || before.SameHosts(nil) {
		t.Error("the states after the takes have the same hosts, and no states have none")
	}
	if again, _ := inventory.NewStates(rows, nil); again.SameHosts(before) {
		t.Error("states made anew may have other hosts")
	}
}
