// SPDX-License-Identifier: Apache-2.0

package preemption_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const now = span.Instant(1_700_000_000)

// guest returns a preemptible instance that has run for this many minutes.
func guest(id string, minutes, vcpus, memory, disk int64) inventory.Instance {
	return inventory.Instance{
		ID: id, Status: "ACTIVE", Preemptible: true, Launched: now - span.Instant(60*minutes),
		Holds: map[string]int64{"VCPU": vcpus, "MEMORY_MB": memory, "DISK_GB": disk},
	}
}

// The sizes of paper 001.
func small(id string, minutes int64) inventory.Instance  { return guest(id, minutes, 1, 2000, 20) }
func medium(id string, minutes int64) inventory.Instance { return guest(id, minutes, 2, 4000, 40) }
func large(id string, minutes int64) inventory.Instance  { return guest(id, minutes, 4, 8000, 80) }

func normal(one inventory.Instance) inventory.Instance {
	one.Preemptible = false
	return one
}

// paperHost returns a host of paper 001: 8 VCPU, 16000 MB, 160 GB.
func paperHost(name string, instances ...inventory.Instance) inventory.HostState {
	used := map[string]int64{}
	for _, one := range instances {
		for class, amount := range one.Holds {
			used[class] += amount
		}
	}
	return inventory.HostState{Name: name, Instances: instances, Stocks: map[string]inventory.Stock{
		"VCPU": {Total: 8, Ratio: 1, Used: used["VCPU"]}, "MEMORY_MB": {Total: 16000, Ratio: 1, Used: used["MEMORY_MB"]}, "DISK_GB": {Total: 160, Ratio: 1, Used: used["DISK_GB"]},
	}}
}

func statesOf(tb testing.TB, hosts ...inventory.HostState) *inventory.States {
	tb.Helper()
	s, err := inventory.NewStates(hosts, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func ids(v preemption.Victims) string {
	var all []string
	for _, one := range v.Instances {
		all = append(all, one.ID)
	}
	return strings.Join(all, " ")
}

func TestTheVictimsOfThePapersTables(t *testing.T) {
	mediumRequest := medium("", 0).Holds
	for name, tc := range map[string]struct {
		resources map[string]int64
		hosts     []inventory.HostState
		want      []string // by host: its victims, and the cost in minutes
	}{
		"table 3": {mediumRequest, []inventory.HostState{
			paperHost("A", medium("AP1", 96), medium("AP2", 27), normal(large("A1", 0))),
			paperHost("B", medium("BP1", 71), medium("BP2", 31), normal(large("B1", 0))),
			paperHost("C", medium("CP1", 30), medium("CP2", 95), normal(large("C1", 0))),
			paperHost("D", medium("DP1", 25), medium("DP2", 79), medium("DP3", 32), normal(medium("D1", 0))),
		}, []string{"AP2 27", "BP1 11", "CP1 30", "DP2 19"}},
		"table 4": {mediumRequest, []inventory.HostState{
			paperHost("A", medium("AP1", 67), medium("AP2", 43), medium("AP3", 103), medium("AP4", 50)),
			paperHost("B", medium("BP1", 44), medium("BP2", 56), normal(large("B1", 0))),
			paperHost("C", medium("CP1", 301), medium("CP2", 40), normal(large("C1", 0))),
			paperHost("D", medium("DP1", 24), medium("DP2", 48), medium("DP3", 52), normal(medium("D1", 0))),
		}, []string{"AP1 7", "BP1 44", "CP1 1", "DP1 24"}},
		"table 5": {large("", 0).Holds, []inventory.HostState{
			paperHost("A", large("AP1", 58), small("AP2", 38), medium("AP3", 70), small("AP4", 127)),
			paperHost("B", large("BP1", 58), normal(large("B1", 0))),
			paperHost("C", large("CP1", 57), small("CP2", 56), medium("CP3", 116)),
			paperHost("D", normal(large("D1", 0)), normal(large("D2", 0))),
		}, []string{"AP2 AP3 AP4 55", "BP1 58", "CP1 57", "no"}},
		"table 6": {mediumRequest, []inventory.HostState{
			paperHost("A", large("AP1", 52), normal(large("A1", 0))),
			paperHost("B", medium("BP1", 32), medium("BP2", 92), small("BP3", 140), normal(medium("B1", 0))),
			paperHost("C", medium("CP1", 50), normal(large("C1", 0)), normal(medium("C2", 0))),
			paperHost("D", medium("DP1", 52), medium("DP2", 33), medium("DP3", 84), medium("DP4", 134)),
		}, []string{"AP1 52", "BP3 20", "CP1 50", "DP4 14"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := &preemption.Evictor{Cost: costNamed(t, "partial_hour")}
			s := statesOf(t, tc.hosts...)
			var got []string
			for i := range s.Len() {
				v, ok := e.Victims(s, i, tc.resources, now)
				if !ok {
					got = append(got, "no")
					continue
				}
				got = append(got, fmt.Sprint(ids(v), " ", v.Cost/60))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVictims(t *testing.T) {
	changed := func(one inventory.Instance, change func(*inventory.Instance)) inventory.Instance {
		change(&one)
		return one
	}
	with := func(h inventory.HostState, class string, s inventory.Stock) inventory.HostState {
		h.Stocks[class] = s
		return h
	}
	split := paperHost("split", medium("a", 1))
	split.Split, split.Stocks = []string{"VCPU"}, map[string]inventory.Stock{"MEMORY_MB": {Total: 16000, Ratio: 1}}
	request := medium("", 0).Holds
	for name, tc := range map[string]struct {
		host      inventory.HostState
		resources map[string]int64
		want      string
	}{
		"full hours cost nothing": {
			paperHost("h", medium("a", 61), medium("b", 120), medium("c", 119), normal(medium("n", 0))), request, "b, 0 s",
		},
		"the cheapest in two dimensions": {
			paperHost("h", guest("X", 40, 1, 4000, 0), guest("Y", 5, 2, 2000, 0), guest("Z", 10, 1, 2000, 0), normal(guest("n", 0, 1, 8000, 0))),
			map[string]int64{"VCPU": 2, "MEMORY_MB": 4000}, "Y Z, 900 s",
		},
		"none where there is room": {paperHost("h", medium("a", 7)), request, ", 0 s"},
		"none for a request that takes nothing": {
			paperHost("h", large("a", 7), large("b", 7)), map[string]int64{"VCPU": 0}, ", 0 s",
		},
		"the fewest of those that cost the same": {
			paperHost("h", small("a", 10), small("b", 20), medium("c", 30), normal(large("n", 0))), request, "c, 1800 s",
		},
		"the smallest ids of as many": {
			paperHost("h", medium("d", 5), medium("b", 5), medium("c", 5), medium("a", 6)), large("", 0).Holds, "b c, 600 s",
		},
		"nobody for nothing, though it costs nothing": {
			paperHost("h", medium("a", 60), medium("b", 120), medium("c", 180), medium("d", 0)), request, "a, 0 s",
		},
		"none that is protected, locked or at work": {
			paperHost("h",
				changed(medium("a", 1), func(i *inventory.Instance) { i.Protected = true }), changed(medium("b", 2), func(i *inventory.Instance) { i.Locked = true }),
				changed(medium("c", 3), func(i *inventory.Instance) { i.Task = "resize_prep" }), medium("d", 50)), request, "d, 3000 s",
		},
		"not enough": {paperHost("h", medium("a", 1), normal(large("n", 0)), normal(medium("m", 0))), large("", 0).Holds, "no"},
		"what is used beyond the limit has to go first": {
			with(paperHost("h", medium("a", 1), medium("b", 2), medium("c", 3)), "VCPU", inventory.Stock{Total: 8, Ratio: 1, Used: 10}), request, "a b, 180 s",
		},
		"more than the host has": {paperHost("h", large("a", 1), large("b", 1)), map[string]int64{"VCPU": 9}, "no"},
		"less than one takes of it": {
			with(paperHost("h", large("a", 1), large("b", 1)), "VCPU", inventory.Stock{Total: 8, Ratio: 1, Used: 8, Min: 4}), request, "no",
		},
		"more than one takes of it": {
			with(paperHost("h", large("a", 1), large("b", 1)), "VCPU", inventory.Stock{Total: 8, Ratio: 1, Used: 8, Max: 1}), request, "no",
		},
		"no multiple of what one takes": {
			with(paperHost("h", large("a", 1), large("b", 1)), "VCPU", inventory.Stock{Total: 8, Ratio: 1, Used: 8, Step: 3}), request, "no",
		},
		"a class that the host has in two places": {split, request, "no"},
		"a class that nobody has":                 {paperHost("h", large("a", 1)), map[string]int64{"CUSTOM_X": 1}, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			e := &preemption.Evictor{Cost: costNamed(t, "partial_hour")}
			v, ok := e.Victims(statesOf(t, tc.host), 0, tc.resources, now)
			got := "no"
			if ok {
				got = fmt.Sprintf("%s, %d s", ids(v), v.Cost)
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestVictimsSayWhatEachCosts(t *testing.T) {
	e := &preemption.Evictor{Cost: costNamed(t, "running_time")}
	v, ok := e.Victims(statesOf(t, paperHost("h", medium("b", 3), medium("a", 2), normal(large("n", 0)))), 0, large("", 0).Holds, now)
	if !ok || ids(v) != "a b" || !slices.Equal(v.Costs, []int64{120, 180}) || v.Cost != 300 {
		t.Errorf("got %s, %v, %d", ids(v), v.Costs, v.Cost)
	}
}

// On any host, the request fits after its victims have left, and does not fit while one of them
// is still there.
func TestVictimsAreEnoughAndNoneIsNeedless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := inventory.NewStates(drawHosts(t, now), nil)
		if err != nil {
			t.Fatal(err)
		}
		e := &preemption.Evictor{Cost: costNamed(t, "partial_hour")}
		resources := drawResources(t)
		fits := func(s *inventory.States, i int) bool {
			v, ok := e.Victims(s, i, resources, now)
			return ok && len(v.Instances) == 0
		}
		for i := range s.Len() {
			v, ok := e.Victims(s, i, resources, now)
			if !ok {
				continue
			}
			leave := func(but int) *inventory.States {
				take := inventory.Take{Host: i, Instance: "new"}
				for n, one := range v.Instances {
					if n != but {
						take.Victims = append(take.Victims, one.ID)
					}
				}
				return s.WithTaken([]inventory.Take{take})
			}
			if !fits(leave(-1), i) {
				t.Fatalf("host %d has no room after %s", i, ids(v))
			}
			for n, one := range v.Instances {
				if fits(leave(n), i) {
					t.Fatalf("host %d has room with %s, which is one of %s", i, one.ID, ids(v))
				}
			}
		}
	})
}

// The victims on a host are the same in whichever order the hosts and their instances are read.
func TestVictimsDependOnNoOrderOfHostsAndInstances(tt *testing.T) {
	rapid.Check(tt, func(t *rapid.T) {
		rows := drawHosts(t, now)
		s := statesOf(tt, rows...)
		shuffled := rapid.Permutation(slices.Clone(rows)).Draw(t, "hosts")
		for i := range shuffled {
			shuffled[i].Instances = rapid.Permutation(slices.Clone(shuffled[i].Instances)).Draw(t, "instances")
		}
		other := statesOf(tt, shuffled...)
		resources, cost := drawResources(t), costNamed(t, "partial_hour")
		for i := range s.Len() {
			j, there := other.Index(s.Host(i).Name)
			want, room := (&preemption.Evictor{Cost: cost}).Victims(s, i, resources, now)
			got, same := (&preemption.Evictor{Cost: cost}).Victims(other, j, resources, now)
			if !there || same != room || ids(got) != ids(want) || got.Cost != want.Cost {
				t.Fatalf("host %d: %s, %v; in another order %s, %v", i, ids(want), room, ids(got), same)
			}
		}
	})
}

func TestAnEvictorServesManyAtOnce(t *testing.T) {
	e := &preemption.Evictor{Cost: costNamed(t, "partial_hour")}
	states := []*inventory.States{fullHosts(t, 200), fullHosts(t, 200)}
	states = append(states, states[0].WithTaken([]inventory.Take{{Host: 3, Instance: "new", Victims: []string{states[0].InstancesOn(3)[0].ID}}}))
	var hosts []int
	for i := range 200 {
		hosts = append(hosts, i)
	}
	resources := large("", 0).Holds
	want := make([][]int64, len(states))
	for n, s := range states {
		want[n] = make([]int64, len(hosts))
		(&preemption.Evictor{Cost: custom{e.Cost}}).Costs(s, hosts, resources, now, 10, want[n])
	}
	var all sync.WaitGroup
	for n := range 30 {
		all.Go(func() {
			got := make([]int64, len(hosts))
			e.Costs(states[n%len(states)], hosts, resources, now, 10, got)
			if diff := cmp.Diff(want[n%len(states)], got); diff != "" {
				t.Error(diff)
			}
			e.Victims(states[n%len(states)], n, resources, now)
		})
	}
	all.Wait()
}
