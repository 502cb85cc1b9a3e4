// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// drawGroup draws a server group with members among the instances of the hosts, and returns it with the
// number of members by host.
func drawGroup(t *rapid.T, hosts map[string][]inventory.Instance) (*placing.Group, map[string]int) {
	g, on := &placing.Group{ID: "group", Policy: rapid.SampledFrom([]string{"affinity", "anti-affinity"}).Draw(t, "policy")}, map[string]int{}
	g.MaxPerHost = rapid.IntRange(0, 2).Draw(t, "most")
	for h := range len(hosts) {
		name := fmt.Sprint("h", h)
		for _, i := range hosts[name] {
			if rapid.IntRange(0, 5).Draw(t, "member") == 0 {
				g.Members = append(g.Members, i.ID)
				if on[name]++; !slices.Contains(g.Hosts, name) {
					g.Hosts = append(g.Hosts, name)
				}
			}
		}
	}
	return g, on
}

// room returns how many more members the policy of a group allows on a host, at most n.
func room(g *placing.Group, on map[string]int, host string, n int) int {
	switch {
	case g.Policy == "anti-affinity":
		return max(0, min(n, max(g.MaxPerHost, 1)-on[host]))
	case len(on) > 0 && on[host] == 0:
		return 0
	}
	return n
}

func TestVictimsAreTheCheapestOfTheHostsThatAServerGroupAllows(t *testing.T) {
	p := evicting("PreemptionCostWeigher")
	p.Filters = append(p.Filters, filters.ServerGroupAffinity{}, filters.ServerGroupAntiAffinity{})
	rapid.Check(t, func(t *rapid.T) {
		hosts, normal := drawFilled(t)
		group, on := drawGroup(t, hosts)
		vcpus, memory := rapid.Int64Range(1, 5).Draw(t, "vcpus asked for"), rapid.Int64Range(0, 6).Draw(t, "memory asked for")
		allowed, places, n := map[string][]inventory.Instance{}, 0, rapid.IntRange(2, 3).Draw(t, "several")
		for name, instances := range hosts {
			if room(group, on, name, 1) > 0 {
				allowed[name] = instances
			}
			k := 0
			for k < room(group, on, name, n) && cheapest(map[string][]inventory.Instance{name: instances}, normal, int64(k+1)*vcpus, int64(k+1)*memory) != nil {
				k++
			}
			places += k
		}
		one, s := wants(vcpus, memory, "new"), filled(t, 8, 18, hosts, normal)
		one.Group = group
		plan, want := p.Plan(s, one, 0, nil), cheapest(allowed, normal, vcpus, memory)
		if (want != nil) != (len(plan.Picks) == 1) {
			t.Fatalf("it goes to %q, want %+v", placedAs(plan), want)
		}
		if want != nil && (plan.Decision.Placements[0].Host != want.host || !slices.Equal(plan.Picks[0].Take.Victims, want.victims)) {
			t.Fatalf("it goes to %q, want %+v", placedAs(plan), *want)
		}
		several := wants(vcpus, memory, []string{"n1", "n2", "n3"}[:n]...)
		several.Group = group
		plan = p.Plan(s, several, 0, nil)
		if group.Policy == "anti-affinity" && places >= n && plan.Picks == nil {
			t.Fatalf("%d places, and no room for %d: %s", places, n, plan.Decision.Reason)
		}
		news, gone := map[string]int{}, map[string]bool{}
		for _, pick := range plan.Picks {
			news[s.Host(pick.Take.Host).Name]++
			for _, v := range pick.Take.Victims {
				gone[v] = true
			}
		}
		for name, k := range news {
			free, memoryFree, members := 8-normal[name]-int64(k)*vcpus, 18-int64(k)*memory, k
			for _, i := range hosts[name] {
				if gone[i.ID] && i.Locked {
					t.Fatalf("%s is locked and leaves", i.ID)
				}
				if gone[i.ID] {
					continue
				}
				free, memoryFree = free-i.Holds["VCPU"], memoryFree-i.Holds["MEMORY_MB"]
				if slices.Contains(group.Members, i.ID) {
					members++
				}
			}
			switch {
			case free < 0 || memoryFree < 0:
				t.Fatalf("%s has too much on it: %q", name, placedAs(plan))
			case group.Policy == "anti-affinity" && members > max(group.MaxPerHost, 1):
				t.Fatalf("%s has %d members of the group: %q", name, members, placedAs(plan))
			case group.Policy == "affinity" && (len(news) > 1 && len(on) < 2 || room(group, on, name, 1) == 0):
				t.Fatalf("the group is not together: %q", placedAs(plan))
			}
		}
	})
}
