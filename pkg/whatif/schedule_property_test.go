// SPDX-License-Identifier: Apache-2.0

package whatif_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/whatif"
)

// drawSize draws a small amount of each resource, often none.
func drawSize(t *rapid.T, least int64, label string) v1.Resources {
	amount := rapid.Int64Range(0, 3)
	return v1.Resources{
		VCPUs: max(least, amount.Draw(t, label+" vcpus")), MemoryMB: 1000 * amount.Draw(t, label+" memory"),
		Custom: map[string]int64{"CUSTOM_GPU": amount.Draw(t, label+" gpus")},
	}
}

func drawQuestion(t *rapid.T) (q whatif.ScheduleQuestion) {
	for i := range rapid.IntRange(1, 4).Draw(t, "hosts") {
		h := whatif.ScheduleHost{Name: fmt.Sprint("h", i), Capacity: &v1.Resources{}}
		for n := range rapid.IntRange(0, 6).Draw(t, "instances") {
			one := whatif.ScheduleInstance{
				ID: fmt.Sprintf("%s-%d", h.Name, n), Resources: drawSize(t, 0, "instance"), Preemptible: rapid.IntRange(0, 3).Draw(t, "kind") > 0,
				RunningMinutes: rapid.Int64Range(0, 12).Draw(t, "minutes"),
			}
			h.Instances = append(h.Instances, one)
		}
		free := drawSize(t, 0, "free")
		if rapid.Bool().Draw(t, "full") {
			free = v1.Resources{}
		}
		*h.Capacity = sum(append(sizes(h.Instances), free)...)
		q.Hosts = append(q.Hosts, h)
	}
	size := drawSize(t, 1, "request")
	q.Request.Resources, q.Request.Count = &size, new(rapid.IntRange(1, 3).Draw(t, "count"))
	q.PeriodMinutes = new(rapid.Int64Range(1, 8).Draw(t, "period"))
	return q
}

func sizes(list []whatif.ScheduleInstance) (all []v1.Resources) {
	for _, i := range list {
		all = append(all, i.Resources)
	}
	return all
}

func sum(list ...v1.Resources) v1.Resources {
	total := v1.Resources{Custom: map[string]int64{}}
	for _, r := range list {
		total.VCPUs, total.MemoryMB, total.DiskGB = total.VCPUs+r.VCPUs, total.MemoryMB+r.MemoryMB, total.DiskGB+r.DiskGB
		for class, amount := range r.Custom {
			total.Custom[class] += amount
		}
	}
	return total
}

// holds reports whether a host of this capacity has room for all of these.
func holds(capacity v1.Resources, list ...v1.Resources) bool {
	t := sum(list...)
	return t.VCPUs <= capacity.VCPUs && t.MemoryMB <= capacity.MemoryMB && t.DiskGB <= capacity.DiskGB &&
		t.Custom["CUSTOM_GPU"] <= capacity.Custom["CUSTOM_GPU"]
}

// victims is one choice of the instances that leave a host.
type victims struct {
	cost int64
	ids  []string
	stay []whatif.ScheduleInstance
}

// cheapest searches all subsets of the preemptible instances of h (paper 001, Algorithm 5).
func cheapest(h whatif.ScheduleHost, size v1.Resources, period int64) (best victims, ok bool) {
	for subset := range 1 << len(h.Instances) {
		v, allowed := victims{}, true
		for n, one := range h.Instances {
			if subset>>n&1 == 0 {
				v.stay = append(v.stay, one)
				continue
			}
			allowed = allowed && one.Preemptible
			v.cost, v.ids = v.cost+one.RunningMinutes%period, append(v.ids, one.ID)
		}
		slices.Sort(v.ids)
		if allowed && holds(*h.Capacity, append(sizes(v.stay), size)...) && (!ok || v.before(best)) {
			best, ok = v, true
		}
	}
	return best, ok
}

func (v victims) before(o victims) bool {
	return cmp.Or(cmp.Compare(v.cost, o.cost), cmp.Compare(len(v.ids), len(o.ids)), slices.Compare(v.ids, o.ids)) < 0
}

// choice chooses a host, and the victims there.
type choice func(hosts []whatif.ScheduleHost, size v1.Resources, period int64) (host int, v victims, ok bool)

// leastCost compares all subsets of the instances of all hosts.
func leastCost(hosts []whatif.ScheduleHost, size v1.Resources, period int64) (host int, best victims, ok bool) {
	for i, h := range hosts {
		if v, can := cheapest(h, size, period); can && (!ok || v.cost < best.cost) {
			host, best, ok = i, v, true
		}
	}
	return host, best, ok
}

// retried is the retry scheduler of the paper: pass 1 with the full states and, if that fails,
// pass 2 with the normal ones and a selection.
func retried(hosts []whatif.ScheduleHost, size v1.Resources, period int64) (host int, v victims, ok bool) {
	for i, h := range hosts {
		if holds(*h.Capacity, append(sizes(h.Instances), size)...) {
			return i, victims{stay: h.Instances}, true
		}
	}
	return leastCost(hosts, size, period)
}

// place places the instances of q one after the other; if one fails, it places none.
func place(q whatif.ScheduleQuestion, choose choice) []whatif.SchedulePlacement {
	hosts, placed := slices.Clone(q.Hosts), []whatif.SchedulePlacement{}
	for n := range *q.Request.Count {
		i, v, ok := choose(hosts, *q.Request.Resources, *q.PeriodMinutes)
		if !ok {
			return []whatif.SchedulePlacement{}
		}
		newcomer := whatif.ScheduleInstance{ID: fmt.Sprint("new-", n), Resources: *q.Request.Resources}
		hosts[i].Instances = append(slices.Clone(v.stay), newcomer)
		placed = append(placed, placement(hosts[i].Name, v.cost, v.ids...))
	}
	return placed
}

func TestHostVictimsAndCostEqualBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		q.Weighers = map[string]float64{"preemption_cost": 1}
		if diff := gocmp.Diff(place(q, leastCost), schedule(t, q).Placements); diff != "" {
			t.Fatalf("(-brute force +answer):\n%s", diff)
		}
	})
}

func TestRetryAndOnePassChooseTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		if diff := gocmp.Diff(place(q, retried), schedule(t, q).Placements); diff != "" {
			t.Fatalf("(-retry +one pass):\n%s", diff)
		}
	})
}

func TestAPreemptibleRequestTerminatesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := drawQuestion(t)
		q.Request.Preemptible, q.Request.Count = true, new(1)
		want := []whatif.SchedulePlacement{}
		for _, h := range q.Hosts {
			if len(want) == 0 && holds(*h.Capacity, append(sizes(h.Instances), *q.Request.Resources)...) {
				want = append(want, placement(h.Name, 0))
			}
		}
		if diff := gocmp.Diff(want, schedule(t, q).Placements); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
