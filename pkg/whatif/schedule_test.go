// SPDX-License-Identifier: Apache-2.0

package whatif_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/whatif"
)

// The sizes of paper 001, Table 2, and a size that fills a host.
var (
	medium = v1.Resources{VCPUs: 2, MemoryMB: 4000, DiskGB: 40}
	whole  = v1.Resources{VCPUs: 8, MemoryMB: 16000, DiskGB: 160}
)

// snapshot returns a table of paper 001 from the examples: T3 is schedule, T4 schedule-age, T5
// schedule-sizes and T6 schedule-free.
func snapshot(t testing.TB, name string) (q whatif.ScheduleQuestion) {
	t.Helper()
	raw, err := os.ReadFile("../../docs/examples/whatif/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &q); err != nil {
		t.Fatal(err)
	}
	return q
}

type failing interface {
	Helper()
	Fatal(args ...any)
}

func schedule(t failing, q whatif.ScheduleQuestion) whatif.ScheduleAnswer {
	t.Helper()
	raw, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := whatif.Schedule(strings.NewReader(string(raw)), seeded)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func seeded(seed int64) func(int) int { return rand.New(rand.NewPCG(uint64(seed), 0)).IntN }

func placement(host string, minutes int64, victims ...string) whatif.SchedulePlacement {
	return whatif.SchedulePlacement{Host: host, Victims: append([]string{}, victims...), CostMinutes: minutes}
}

// wantPlaced fails the test unless the placements are these.
func wantPlaced(t *testing.T, a whatif.ScheduleAnswer, want ...whatif.SchedulePlacement) {
	t.Helper()
	if diff := cmp.Diff(want, a.Placements); diff != "" || a.Reason != "" {
		t.Errorf("reason %q, placements (-want +got):\n%s", a.Reason, diff)
	}
}

// wantNowhere fails the test unless there is a reason and nothing is placed.
func wantNowhere(t *testing.T, a whatif.ScheduleAnswer) {
	t.Helper()
	if len(a.Placements) != 0 || a.Placements == nil || a.Reason == "" {
		t.Errorf("want a reason and no placements, got %+v", a)
	}
}

func TestA001_1_to_4_TheSnapshotsHaveTheVictimsOfThePaper(t *testing.T) {
	for name, want := range map[string]struct {
		placed whatif.SchedulePlacement
		costs  map[string]float64 // of making room, by host; absent if the host is refused
	}{
		"schedule":       {placement("host-B", 11, "BP1"), map[string]float64{"host-A": 27, "host-B": 11, "host-C": 30, "host-D": 19}},
		"schedule-age":   {placement("host-C", 1, "CP1"), map[string]float64{"host-A": 7, "host-B": 44, "host-C": 1, "host-D": 24}},
		"schedule-sizes": {placement("host-A", 55, "AP2", "AP3", "AP4"), map[string]float64{"host-A": 55, "host-B": 58, "host-C": 57}},
		"schedule-free":  {placement("host-B", 20, "BP3"), map[string]float64{"host-A": 52, "host-B": 20, "host-D": 24}},
	} {
		t.Run(name, func(t *testing.T) {
			a := schedule(t, snapshot(t, name))
			wantPlaced(t, a, want.placed)
			low, high := 1e9, 0.0
			for _, cost := range want.costs {
				low, high = min(low, cost), max(high, cost)
			}
			for _, h := range a.Hosts {
				cost, passes := want.costs[h.Name]
				verdict := whatif.ScheduleVerdict{Name: h.Name, RefusedBy: "CapacityFilter", Weights: map[string]float64{}}
				if passes {
					weight := (high - cost) / (high - low) // equation (2) of -cost
					verdict = whatif.ScheduleVerdict{Name: h.Name, Passed: true, Weights: map[string]float64{"overcommit": 0, "preemption_cost": weight}, Weight: weight}
				}
				if diff := cmp.Diff(verdict, h, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", h.Name, diff)
				}
			}
		})
	}
}

func TestA001_5_ThePeriodWeigherAsPrintedChoosesAnotherHost(t *testing.T) {
	q := snapshot(t, "schedule-sizes")
	q.Weighers = map[string]float64{"period": 1}
	a := schedule(t, q)
	wantPlaced(t, a, placement("host-B", 58, "BP1"))
	for i, want := range []float64{(169. - 113) / (169 - 58), 1, 0} {
		if diff := cmp.Diff(want, a.Hosts[i].Weights["period"], cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", a.Hosts[i].Name, diff)
		}
	}
}

func TestA001_7_WhatFindsNoRoomTerminatesNobody(t *testing.T) {
	preemptible, large := snapshot(t, "schedule"), snapshot(t, "schedule")
	preemptible.Request.Preemptible = true
	large.Request.Resources = &whole
	for name, q := range map[string]whatif.ScheduleQuestion{"preemptible on full hosts": preemptible, "normal and larger than all that may leave": large} {
		t.Run(name, func(t *testing.T) {
			a := schedule(t, q)
			wantNowhere(t, a)
			for _, h := range a.Hosts {
				if h.Passed || h.RefusedBy != "CapacityFilter" || len(h.Weights) > 0 {
					t.Errorf("%+v", h)
				}
			}
		})
	}
}

func TestA001_8_AHostWithRoomIsTakenAndNobodyLeaves(t *testing.T) {
	for name, weighers := range map[string]map[string]float64{
		"preemption cost": {"preemption_cost": 1}, "overcommit": {"overcommit": 1}, "the default": nil,
	} {
		t.Run(name, func(t *testing.T) {
			q := snapshot(t, "schedule")
			q.Hosts = append(q.Hosts, whatif.ScheduleHost{Name: "host-E", Capacity: &whole})
			q.Weighers = weighers
			wantPlaced(t, schedule(t, q), placement("host-E", 0))
		})
	}
}

func preemptible(id string, size v1.Resources, minutes int64) whatif.ScheduleInstance {
	return whatif.ScheduleInstance{ID: id, Resources: size, Preemptible: true, RunningMinutes: minutes}
}

func TestA001_9_AFullHourCostsNothing(t *testing.T) {
	capacity := v1.Resources{VCPUs: 6, MemoryMB: 12000, DiskGB: 120}
	q := whatif.ScheduleQuestion{Hosts: []whatif.ScheduleHost{{Name: "a", Capacity: &capacity, Instances: []whatif.ScheduleInstance{
		preemptible("119", medium, 119), preemptible("120", medium, 120), preemptible("61", medium, 61),
	}}}}
	q.Request.Resources = &medium
	a := schedule(t, q)
	wantPlaced(t, a, placement("a", 0, "120"))
	if diff := cmp.Diff(map[string]float64{"overcommit": 0, "preemption_cost": 0}, a.Hosts[0].Weights); diff != "" {
		t.Errorf("one host alone is not weighed (-want +got):\n%s", diff)
	}
	q.PeriodMinutes = new(int64(59))
	wantPlaced(t, schedule(t, q), placement("a", 1, "119"))
}

func TestA001_10_EveryResourceCountsAndFreeSpaceDoes(t *testing.T) {
	q := whatif.ScheduleQuestion{Hosts: []whatif.ScheduleHost{{Name: "a", Capacity: &v1.Resources{VCPUs: 8, MemoryMB: 16000}, Instances: []whatif.ScheduleInstance{
		{ID: "N", Resources: v1.Resources{VCPUs: 1, MemoryMB: 8000}},
		preemptible("X", v1.Resources{VCPUs: 1, MemoryMB: 4000}, 40),
		preemptible("Y", v1.Resources{VCPUs: 2, MemoryMB: 2000}, 5),
		preemptible("Z", v1.Resources{VCPUs: 1, MemoryMB: 2000}, 10),
	}}}}
	q.Request.Resources = &v1.Resources{VCPUs: 2, MemoryMB: 4000}
	wantPlaced(t, schedule(t, q), placement("a", 15, "Y", "Z"))
}

func TestCustomClassesAreResourcesToo(t *testing.T) {
	card := func(n int64) *v1.Resources { return &v1.Resources{VCPUs: 1, Custom: map[string]int64{"CUSTOM_GPU": n}} }
	q := whatif.ScheduleQuestion{Hosts: []whatif.ScheduleHost{
		{Name: "a", Capacity: &v1.Resources{VCPUs: 64}},
		{Name: "b", Capacity: &v1.Resources{VCPUs: 64, Custom: map[string]int64{"CUSTOM_GPU": 4}}, Instances: []whatif.ScheduleInstance{
			preemptible("one", *card(1), 1), preemptible("two", *card(2), 59), preemptible("none", v1.Resources{VCPUs: 1}, 0),
		}},
	}}
	q.Request.Resources = card(3)
	a := schedule(t, q)
	wantPlaced(t, a, placement("b", 59, "two"))
	if a.Hosts[0].Passed {
		t.Errorf("a host without the class passes: %+v", a.Hosts[0])
	}
}

func TestSeveralInstancesArePlacedOneAfterTheOther(t *testing.T) {
	q := snapshot(t, "schedule")
	q.Request.Count = new(2)
	a := schedule(t, q)
	wantPlaced(t, a, placement("host-B", 11, "BP1"), placement("host-D", 19, "DP2"))
	one := snapshot(t, "schedule")
	if diff := cmp.Diff(schedule(t, one).Hosts, a.Hosts); diff != "" {
		t.Errorf("the hosts are not as before the first placement (-one +two):\n%s", diff)
	}
}

func TestSeveralInstancesArePlacedAllOrNone(t *testing.T) {
	q := snapshot(t, "schedule")
	q.Request.Count = new(9) // as many as the preemptible instances
	a := schedule(t, q)
	left, minutes := map[string]int{}, int64(0)
	for _, p := range a.Placements {
		minutes += p.CostMinutes
		for _, v := range p.Victims {
			left[v]++
		}
	}
	want := map[string]int{"AP1": 1, "AP2": 1, "BP1": 1, "BP2": 1, "CP1": 1, "CP2": 1, "DP1": 1, "DP2": 1, "DP3": 1}
	if diff := cmp.Diff(want, left); diff != "" || len(a.Placements) != 9 || minutes != 246 {
		t.Errorf("%d placements, %d minutes; victims (-want +got):\n%s", len(a.Placements), minutes, diff)
	}
	q.Request.Count = new(10)
	wantNowhere(t, schedule(t, q))
}

func TestEqualHostsAreDrawnWithTheSeed(t *testing.T) {
	q := whatif.ScheduleQuestion{Hosts: []whatif.ScheduleHost{{Name: "c", Capacity: &whole}, {Name: "a", Capacity: &whole}, {Name: "b", Capacity: &whole}}}
	q.Request.Resources = &medium
	wantPlaced(t, schedule(t, q), placement("a", 0))
	drawn := map[string]bool{}
	for seed := range int64(40) {
		q.Seed = &seed
		a := schedule(t, q)
		drawn[a.Placements[0].Host] = true
		if diff := cmp.Diff(a, schedule(t, q)); diff != "" {
			t.Fatalf("seed %d makes two answers:\n%s", seed, diff)
		}
	}
	if len(drawn) != 3 {
		t.Errorf("40 seeds drew %v", drawn)
	}
}

func TestHostsAreAnsweredInTheOrderOfTheQuestion(t *testing.T) {
	q := snapshot(t, "schedule")
	q.Hosts[0], q.Hosts[3] = q.Hosts[3], q.Hosts[0]
	var names []string
	for _, h := range schedule(t, q).Hosts {
		names = append(names, h.Name)
	}
	if diff := cmp.Diff([]string{"host-D", "host-B", "host-C", "host-A"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestEachWeigherIsNormalisedOverTheHostsThatPassAndMultiplied(t *testing.T) {
	q := whatif.ScheduleQuestion{
		Hosts: []whatif.ScheduleHost{
			{Name: "free", Capacity: &whole},
			{Name: "small", Capacity: &medium},
			{Name: "mixed", Capacity: &whole, Instances: []whatif.ScheduleInstance{
				{ID: "n", Resources: v1.Resources{VCPUs: 2, MemoryMB: 1000, DiskGB: 100}},
				preemptible("p", v1.Resources{VCPUs: 5, MemoryMB: 3000, DiskGB: 60}, 75),
				preemptible("r", v1.Resources{VCPUs: 1}, 61),
			}},
			{Name: "tiny", Capacity: &v1.Resources{VCPUs: 1, MemoryMB: 100_000, DiskGB: 100_000}},
		},
		Weighers: map[string]float64{"overcommit": 2, "preemption_cost": -1, "period": 4, "count": 0, "cpu": 1, "ram": 10, "disk": 0.5},
	}
	q.Request.Resources = &medium
	want := []whatif.ScheduleVerdict{
		{Name: "free", Passed: true, Weights: map[string]float64{"overcommit": 2, "preemption_cost": -1, "period": 4, "count": 0, "cpu": 1, "ram": 10, "disk": 0.5}, Weight: 16.5},
		{Name: "small", Passed: true, Weights: map[string]float64{"overcommit": 2, "preemption_cost": -1, "period": 4, "count": 0, "cpu": 0.25, "ram": 0, "disk": 0.125}, Weight: 5.375},
		{Name: "mixed", Passed: true, Weights: map[string]float64{"overcommit": 0, "preemption_cost": 0, "period": 0, "count": 0, "cpu": 0, "ram": 20. / 3, "disk": 0}, Weight: 20. / 3},
		{Name: "tiny", RefusedBy: "CapacityFilter", Weights: map[string]float64{}},
	}
	a := schedule(t, q)
	if diff := cmp.Diff(want, a.Hosts, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if raw, err := json.Marshal(a); err != nil || strings.Contains(string(raw), ":-0,") {
		t.Errorf("%v, a zero with a sign: %s", err, raw)
	}
	wantPlaced(t, a, placement("free", 0))
	q.Weighers = map[string]float64{"ram": -1, "disk": -1}
	wantPlaced(t, schedule(t, q), placement("small", 0))
	q.Weighers = map[string]float64{"count": -1}
	wantPlaced(t, schedule(t, q), placement("mixed", 15, "p"))
	q.Weighers = map[string]float64{}
	wantPlaced(t, schedule(t, q), placement("free", 0))
}

func TestAllHostsAreAnsweredHoweverMany(t *testing.T) {
	var q whatif.ScheduleQuestion
	q.Request.Resources = &medium
	for i := range 300 {
		h := whatif.ScheduleHost{Name: fmt.Sprintf("h%03d", i), Capacity: &medium}
		switch i % 3 {
		case 0:
			h.Instances = []whatif.ScheduleInstance{{ID: fmt.Sprint("n", i), Resources: medium}}
		case 1:
			h.Instances = []whatif.ScheduleInstance{preemptible(fmt.Sprint("p", i), medium, int64(i))}
		}
		q.Hosts = append(q.Hosts, h)
	}
	q.PeriodMinutes, q.Weighers = new(int64(1000)), map[string]float64{"preemption_cost": 298}
	for i, h := range schedule(t, q).Hosts {
		want := whatif.ScheduleVerdict{Name: h.Name, Passed: true, Weights: map[string]float64{"preemption_cost": 298}, Weight: 298}
		switch i % 3 {
		case 0:
			want = whatif.ScheduleVerdict{Name: h.Name, RefusedBy: "CapacityFilter", Weights: map[string]float64{}}
		case 1:
			want.Weight = float64(298 - i)
			want.Weights["preemption_cost"] = want.Weight
		}
		if diff := cmp.Diff(want, h, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Fatalf("host %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestABadScheduleQuestionNamesTheField(t *testing.T) {
	const question = `{"hosts": [{"name": "a", "capacity": {"vcpus": 8}, "instances": [{"id": "i", "resources": {"vcpus": 2}, "running_minutes": 5},
		{"id": "j", "resources": {"vcpus": 2}, "preemptible": true, "running_minutes": 5}]}, {"name": "b", "capacity": {"vcpus": 8}}],
		"request": {"resources": {"vcpus": 1}, "count": 1}, "weighers": {"cpu": 1}, "period_minutes": 60, "seed": 1}`
	if _, err := whatif.Schedule(strings.NewReader(question), seeded); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ replace, with, field, says string }{
		{`"hosts": [`, `"hosts": [], "x": [`, "x", `there is no field "x"`},
		{`"seed"`, `"sed"`, "sed", `did you mean "seed"?`},
		{`"id": "j"`, `"ident": "j"`, "hosts[0].instances[1].ident", ""},
		{`"capacity": {"vcpus": 8}, "instances"`, `"capacity": {"cpus": 8}, "instances"`, "hosts[0].capacity.cpus", `did you mean "vcpus"?`},
		{`"cpu": 1`, `"preemtion_cost": 1`, "weighers.preemtion_cost", `did you mean "preemption_cost"?`},
		{`"cpu": 1`, `"cpu": "1"`, "weighers.cpu", "must be a number"},
		{`"cpu": 1`, `"cpu": 1e300`, "weighers.cpu", ""},
		{`"running_minutes": 5}]`, `"running_minutes": -1}]`, "hosts[0].instances[1].running_minutes", ""},
		{`"running_minutes": 5}]`, `"running_minutes": 5.5}]`, "hosts[0].instances[1].running_minutes", "must be a whole number"},
		{`"running_minutes": 5}]`, `"running_minutes": 1e18}]`, "hosts[0].instances[1].running_minutes", ""},
		{`"preemptible": true`, `"preemptible": "yes"`, "hosts[0].instances[1].preemptible", "must be true or false"},
		{`"resources": {"vcpus": 2}, "preemptible"`, `"resources": {"vcpus": -2}, "preemptible"`, "hosts[0].instances[1].resources.vcpus", ""},
		{`{"resources": {"vcpus": 1}`, `{"resources": {"memory_mb": -1}`, "request.resources.memory_mb", ""},
		{`{"resources": {"vcpus": 1}`, `{"resources": {"disk_gb": 99999999999}`, "request.resources.disk_gb", ""},
		{`{"resources": {"vcpus": 1}`, `{"resources": {"custom": {"GPU": 1}}`, "request.resources.custom", "not a custom resource class"},
		{`{"resources": {"vcpus": 1}`, `{"resources": {"custom": {"CUSTOM_GPU": -1}}`, "request.resources.custom.CUSTOM_GPU", ""},
		{`{"resources": {"vcpus": 1}`, `{"resources": {"custom": {"CUSTOM_GPU": null}}`, "request.resources.custom.CUSTOM_GPU", "must be a whole number, not null"},
		{`{"resources": {"vcpus": 1}, `, `{`, "request.resources", "is required"},
		{`{"resources": {"vcpus": 1}`, `{"resources": {}`, "request.resources", ""},
		{`"id": "j"`, `"id": "i"`, "hosts[0].instances[1].id", "two instances"},
		{`"id": "j", `, ``, "hosts[0].instances[1].id", "is required"},
		{`{"name": "b", "capacity": {"vcpus": 8}}`, `{"name": "A", "capacity": {"vcpus": 8}}`, "hosts[1].name", "two hosts"},
		{`{"name": "b", "capacity": {"vcpus": 8}}`, `{"capacity": {"vcpus": 8}}`, "hosts[1].name", "is required"},
		{`{"name": "b", "capacity": {"vcpus": 8}}`, `{"name": "b"}`, "hosts[1].capacity", "is required"},
		{`{"name": "b", "capacity": {"vcpus": 8}}`, `null`, "hosts[1]", "must be an object, not null"},
		{`{"name": "b", "capacity": {"vcpus": 8}}`, `7`, "hosts[1]", "must be an object"},
		{`"count": 1`, `"count": 0`, "request.count", ""},
		{`"count": 1`, `"count": 100000000`, "request.count", ""},
		{`"period_minutes": 60`, `"period_minutes": 0`, "period_minutes", ""},
		{`"period_minutes": 60`, `"period_minutes": "1h"`, "period_minutes", "must be a whole number"},
	} {
		text := strings.Replace(question, tc.replace, tc.with, 1)
		if tc.replace == "" || text == question {
			t.Fatalf("%q is not in the question", tc.replace)
		}
		_, err := whatif.Schedule(strings.NewReader(text), seeded)
		if f := fault.Of(err); err == nil || f.Kind != fault.Invalid || f.Field != tc.field || !strings.Contains(f.Message, tc.says) {
			t.Errorf("%s: %v, want an error about %s with %q", tc.with, err, tc.field, tc.says)
		}
	}
	for _, text := range []string{`{}`, `{"hosts": []}`, `{"hosts": null}`} {
		if _, err := whatif.Schedule(strings.NewReader(text), seeded); fault.Of(err).Field != "hosts" {
			t.Errorf("%s: %v, want one about hosts", text, err)
		}
	}
}
