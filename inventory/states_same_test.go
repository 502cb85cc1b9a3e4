// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
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
	after := before.WithTaken([]inventory.Take{{Host: 1, Instance: "one"}, {Host: 1, Instance: "two"}, {Host: 1, Instance: "two"}})
	for name, tc := range map[string]struct {
		s    *inventory.States
		want []int64
	}{"before": {before, []int64{0, 2}}, "after": {after, []int64{0, 4}}} {
		if got := tc.s.IOOps(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v operations, want %v", name, got, tc.want)
		}
	}
	if !after.SameHosts(before) || !before.SameHosts(after) || before.SameHosts(nil) {
		t.Error("want the same hosts after the takes, and other hosts than those of no states")
	}
	if again, _ := inventory.NewStates(rows, nil); again.SameHosts(before) {
		t.Error("new states must not count as states of the same hosts")
	}
}

func TestChangedNamesTheHostsThatSomethingHasHappenedTo(t *testing.T) {
	rows := make([]inventory.HostState, 300)
	for i := range rows {
		rows[i].Name = fmt.Sprintf("h%03d", i)
	}
	before, err := inventory.NewStates(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	after := before.WithTaken([]inventory.Take{{Host: 299, Instance: "one"}, {Host: 3, Instance: "two"}, {Host: 1, Instance: "three"}})
	want := []int{1, 3, 299}
	if got := slices.Collect(after.Changed(before)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := slices.Collect(before.Changed(after)); !slices.Equal(got, want) {
		t.Errorf("the other way round: got %v, want %v", got, want)
	}
	if got := slices.Collect(after.Changed(after)); len(got) > 0 {
		t.Errorf("%v differ from themselves", got)
	}
}
