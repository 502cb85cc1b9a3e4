// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
)

// The index of instances agrees with a search through all hosts, after takes and after
// further takes.
func TestAnInstanceIsFoundOnEachOfItsHosts(t *testing.T) {
	id := rapid.Map(rapid.IntRange(0, 5), func(n int) string { return fmt.Sprint("i", n) })
	rapid.Check(t, func(t *rapid.T) {
		rows := make([]inventory.HostState, 200) // on two pages
		for i := range rows {
			rows[i].Name = fmt.Sprintf("h%03d", i)
		}
		for range rapid.IntRange(0, 8).Draw(t, "instances") {
			h := &rows[rapid.IntRange(0, len(rows)-1).Draw(t, "on")]
			h.Instances = append(h.Instances, inventory.Instance{ID: id.Draw(t, "instance")})
		}
		s, err := inventory.NewStates(rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		all := []*inventory.States{s}
		for range rapid.IntRange(0, 4).Draw(t, "steps") {
			from := rapid.SampledFrom(all).Draw(t, "from")
			take := inventory.Take{Host: rapid.IntRange(0, len(rows)-1).Draw(t, "host"), Instance: id.Draw(t, "taken")}
			victim := id.Draw(t, "victim")
			if hosts := from.HostsOf(victim); len(hosts) > 0 && rapid.Bool().Draw(t, "is evicted") {
				take.Host, take.Victims = hosts[0], []string{victim}
			}
			all = append(all, from.WithTaken([]inventory.Take{take}))
		}
		for _, s := range all {
			for n := range 7 {
				instance := fmt.Sprint("i", n)
				var want []int
				for i := range s.Len() {
					if slices.ContainsFunc(s.InstancesOn(i), func(o inventory.Instance) bool { return o.ID == instance }) {
						want = append(want, i)
					}
				}
				if got := s.HostsOf(instance); !slices.Equal(got, want) {
					t.Fatalf("%s is on %v, want %v", instance, got, want)
				}
			}
		}
	})
}
