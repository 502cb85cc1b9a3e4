// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/api/instances"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/weighers"
)

// spot is a preemptible instance that has run for this many seconds at noon.
func spot(id string, vcpus, seconds int64) inventory.Instance {
	return inventory.Instance{
		ID: id, Name: "name of " + id, ProjectID: "science", Status: "ACTIVE", Launched: noon.Add(-seconds), Preemptible: true,
		Flavor: inventory.Flavor{Name: "m1.spot"}, Holds: map[string]int64{"VCPU": vcpus},
	}
}

// populated returns four hosts of 4 VCPUs: a has 1 free, b and c none, and d is off.
func populated(t *testing.T) *inventory.States {
	t.Helper()
	host := func(name string, used int64, instances ...inventory.Instance) inventory.HostState {
		return inventory.HostState{
			Name: name, Node: name, Up: true, Enabled: name != "d", DisabledReason: "repair", Traits: []string{"CUSTOM_" + strings.ToUpper(name)},
			Stocks: map[string]inventory.Stock{"VCPU": {Total: 4, Ratio: 1, Used: used}, "MEMORY_MB": {Total: 4096, Ratio: 1}}, Instances: instances,
		}
	}
	locked := spot("locked", 1, 100)
	locked.Locked = true
	states, err := inventory.NewStates([]inventory.HostState{
		host("a", 3, spot("a1", 2, 3600+50), locked),
		host("b", 4, spot("b1", 1, 10), spot("b2", 1, 20), inventory.Instance{ID: "normal", Status: "ACTIVE"}),
		host("c", 4, spot("c1", 4, 40)),
		host("d", 0),
	}, nil)
	must(t, err)
	return states
}

// choosing places instances on these states, as the service does.
func choosing(t *testing.T, states *inventory.States) instances.Placing {
	t.Helper()
	cost, err := preemption.NewCost("partial_hour", preemption.CostOptions{Period: 3600})
	must(t, err)
	evictor := &preemption.Evictor{Cost: cost}
	return instances.Placing{
		States: func() *inventory.States { return states },
		Pipeline: &scheduler.Pipeline{
			Filters: []filters.Filter{filters.Traits{}, filters.Capacity{Evicts: true}, filters.Compute{}}, SubsetSize: 1, Evictor: evictor, Spares: true,
			Weighers: []weighers.Weighted{{Weigher: weighers.PreemptionCostWeigher{Evictor: evictor}, Multiplier: 1}},
		},
		Flavors: func(context.Context) ([]inventory.Flavor, error) {
			return []inventory.Flavor{
				{ID: "3", Name: "m1.medium", Resources: resource.Vector{VCPUs: 2}},
				{ID: "4", Name: "m1.onb", Resources: resource.Vector{VCPUs: 2}, ExtraSpecs: map[string]string{"trait:CUSTOM_B": "required"}},
				{ID: "5", Name: "m1.notb", Resources: resource.Vector{VCPUs: 2}, ExtraSpecs: map[string]string{"trait:CUSTOM_B": "forbidden"}},
				{ID: "6", Name: "m1.spot", Resources: resource.Vector{VCPUs: 2}, ExtraSpecs: map[string]string{"almanac:preemptible": "true"}},
			}, nil
		},
	}
}

// startPlacing starts an Almanac that places on the hosts of populated.
func startPlacing(t *testing.T, adjust func(*instances.Placing)) *cloud {
	t.Helper()
	return start(t, setup{adjust: func(o *api.Options) {
		o.Placing = choosing(t, populated(t))
		o.Admission.Rule.ExtraSpec = "almanac:preemptible"
		if adjust != nil {
			adjust(&o.Placing)
		}
	}})
}

func listed(t *testing.T, who caller, query string) []v1.PreemptibleInstance {
	t.Helper()
	return want[v1.PreemptibleInstances](t, who.get("/v1/preemptible"+query), http.StatusOK).Instances
}

func TestPreemptibleInstancesAreListedTheCheapestFirst(t *testing.T) {
	c := startPlacing(t, nil)
	of := func(id, host string, vcpus, seconds, cost int64, reason string) v1.PreemptibleInstance {
		return v1.PreemptibleInstance{
			ID: id, Name: "name of " + id, ProjectID: "science", Host: host, Status: "ACTIVE", Flavor: "m1.spot", Holds: map[string]int64{"VCPU": vcpus},
			LaunchedAt: new(noon.Add(-seconds).Time()), Cost: &cost, Unit: "s", Evictable: reason == "", Reason: reason,
		}
	}
	all := []v1.PreemptibleInstance{
		of("b1", "b", 1, 10, 10, ""), of("b2", "b", 1, 20, 20, ""), of("c1", "c", 4, 40, 40, ""), of("a1", "a", 2, 3650, 50, ""),
		of("locked", "a", 1, 100, 100, "it is locked"),
	}
	for query, want := range map[string][]v1.PreemptibleInstance{
		"": all, "?limit=2": all[:2], "?host=B": all[:2], "?project_id=science": all, "?project_id=other": {}, "?host=z": {},
	} {
		if diff := cmp.Diff(want, listed(t, c.admin, query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	c.seconds.Add(3580) // b2 has run for an hour
	if got := listed(t, c.admin, "?limit=1"); got[0].ID != "b2" || *got[0].Cost != 0 {
		t.Errorf("an hour later the cheapest is %+v", got)
	}
}

func TestWithoutPlacingTheInventoryTellsWhatIsPreemptible(t *testing.T) {
	h := machine("A")
	h.Instances = []inventory.Instance{spot("a1", 1, 5), {ID: "normal"}}
	c := start(t, setup{hosts: []inventory.Host{h}})
	got := listed(t, c.admin, "")
	if len(got) != 1 || got[0].ID != "a1" || got[0].Host != "A" || got[0].Cost != nil || got[0].Evictable || !strings.Contains(got[0].Reason, "mode = replace") {
		t.Errorf("got %+v", got)
	}
	costs := want[v1.PreemptionCosts](t, c.admin.get("/v1/preemptible/cost?vcpus=1"), http.StatusOK)
	if len(costs.Hosts) != 0 || !strings.Contains(costs.Reason, "mode = replace") {
		t.Errorf("got %+v", costs)
	}
	if e := wantError(t, c.admin.get("/v1/preemptible/cost?flavor=m1.medium"), http.StatusBadRequest); e.Field != "flavor" || !strings.Contains(e.Message, "no flavors") {
		t.Errorf("got %+v", e)
	}
}

// costs returns the answer in words: "host: room", "host: victims cost", "host: reason".
func costs(t *testing.T, who caller, query string) (hosts []string) {
	t.Helper()
	for _, h := range want[v1.PreemptionCosts](t, who.get("/v1/preemptible/cost?"+query), http.StatusOK).Hosts {
		word := h.Reason
		if h.Room {
			word = "room"
		}
		var ids []string
		sum := int64(0)
		for _, v := range h.Victims {
			ids, sum = append(ids, v.ID), sum+v.Cost
		}
		if len(ids) > 0 {
			word = strings.Join(ids, ",") + " " + (time.Duration(h.Cost) * time.Second).String()
		}
		if sum != h.Cost || (h.Unit == "s") != (len(ids) > 0) {
			t.Errorf("the victims cost %d together: %+v", sum, h)
		}
		hosts = append(hosts, h.Host+": "+word)
	}
	return hosts
}

func TestWhoWouldLeaveIsToldInTheOrderOfChoice(t *testing.T) {
	c := startPlacing(t, nil)
	const off = "d: ComputeFilter: its nova-compute is disabled: repair"
	for query, want := range map[string][]string{
		"vcpus=1":                 {"a: room", "b: b1 10s", "c: c1 40s", off},
		"vcpus=2":                 {"b: b1,b2 30s", "c: c1 40s", "a: a1 50s", off},
		"vcpus=2&limit=1":         {"b: b1,b2 30s"},
		"vcpus=4":                 {"c: c1 40s", "a: CapacityFilter: 3 VCPU are free or can be freed, 4 are requested", "b: CapacityFilter: 2 VCPU are free or can be freed, 4 are requested", off},
		"memory_mb=1&project_id=": {"a: room", "b: room", "c: room", off},
		"flavor=m1.medium":        {"b: b1,b2 30s", "c: c1 40s", "a: a1 50s", off},
		"flavor=3&limit=2":        {"b: b1,b2 30s", "c: c1 40s"},
		"flavor=m1.onb&limit=1":   {"b: b1,b2 30s"},
		"flavor=m1.notb&limit=2":  {"c: c1 40s", "a: a1 50s"},
		"flavor=m1.spot&limit=1":  {"a: CapacityFilter: 1 VCPU are free, 2 are requested"},
	} {
		if diff := cmp.Diff(want, costs(t, c.admin, query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	full := want[v1.PreemptionCosts](t, c.admin.get("/v1/preemptible/cost?vcpus=2&limit=1"), http.StatusOK)
	victim := func(id string, cost int64) v1.Victim {
		return v1.Victim{ID: id, Name: "name of " + id, ProjectID: "science", Cost: cost, Unit: "s"}
	}
	if diff := cmp.Diff(v1.PreemptionCosts{Resources: map[string]int64{"VCPU": 2}, Considered: 4, Hosts: []v1.PreemptionCost{
		{Host: "b", Victims: []v1.Victim{victim("b1", 10), victim("b2", 20)}, Cost: 30, Unit: "s"},
	}}, full); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhereNobodyMakesRoomAHostHasRoomOrNot(t *testing.T) {
	c := startPlacing(t, func(p *instances.Placing) {
		p.Pipeline.Filters, p.Pipeline.Weighers, p.Pipeline.Evictor = []filters.Filter{filters.Capacity{}}, nil, nil
	})
	if diff := cmp.Diff([]string{"a: room", "d: room"}, costs(t, c.admin, "vcpus=1&limit=2")); diff != "" {
		t.Error(diff)
	}
	if got := listed(t, c.admin, "?limit=1"); got[0].Cost != nil || got[0].Evictable || !strings.Contains(got[0].Reason, "preempt_action") {
		t.Errorf("got %+v", got)
	}
}

func TestBeforeTheHostsAreReadNothingIsToldOfCosts(t *testing.T) {
	c := startPlacing(t, func(p *instances.Placing) { p.States = func() *inventory.States { return nil } })
	wantError(t, c.admin.get("/v1/preemptible/cost?vcpus=1"), http.StatusServiceUnavailable)
	if got := listed(t, c.admin, ""); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestABadQuestionAboutPreemptibleInstancesNamesTheParameter(t *testing.T) {
	c := startPlacing(t, nil)
	for path, field := range map[string]string{
		"?limit=0": "limit", "?hots=a": "hots", "/cost": "vcpus", "/cost?vcpus=0": "vcpus", "/cost?vcpus=-1": "vcpus", "/cost?memory_mb=4GB": "memory_mb",
		"/cost?vcpus=1&flavor=m1.medium": "flavor", "/cost?flavor=m1.medum": "flavor", "/cost?vcpus=1&limit=1001": "limit", "/cost?vcpu=1": "vcpu",
	} {
		if e := wantError(t, c.admin.get("/v1/preemptible"+path), http.StatusBadRequest); e.Field != field {
			t.Errorf("%s: %+v, want one about %s", path, e, field)
		}
	}
}

func TestOnlyAdminsAndReadersOfTheSystemSeePreemptibleInstances(t *testing.T) {
	c := startPlacing(t, nil)
	for _, path := range []string{"/v1/preemptible", "/v1/preemptible/cost?vcpus=1"} {
		for _, who := range []caller{c.demo, c.reader, c.other} {
			wantError(t, who.get(path), http.StatusForbidden)
		}
	}
}

// evicting is a decision about instances of project demo that evicted two instances of science
// and one of demo.
func evicting() placing.Decision {
	d := placed()
	d.Placements[0].Victims = []placing.Victim{
		{ID: "victim-1", Name: "batch", ProjectID: "science", Cost: 11, Unit: "s"}, {ID: "victim-2", Name: "mine", ProjectID: "demo", Cost: 12, Unit: "s"},
	}
	d.Placements[1].Victims = []placing.Victim{{ID: "victim-3", Name: "late", ProjectID: "science", Cost: 13, Unit: "s"}}
	return d
}

func TestADecisionShowsWhoLeftForIt(t *testing.T) {
	c := decide(t, evicting())
	for _, id := range []string{placedID, "victim-3"} {
		d := want[v1.Decisions](t, c.admin.get("/v1/decisions/"+id), http.StatusOK).Decisions[0]
		got := [][]v1.Victim{d.Placements[0].Victims, d.Placements[1].Victims, d.Evicted}
		if diff := cmp.Diff([][]v1.Victim{
			{{ID: "victim-1", Name: "batch", ProjectID: "science", Cost: 11, Unit: "s"}, {ID: "victim-2", Name: "mine", ProjectID: "demo", Cost: 12, Unit: "s"}},
			{{ID: "victim-3", Name: "late", ProjectID: "science", Cost: 13, Unit: "s"}}, nil,
		}, got); diff != "" || d.RequestID != requestID {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

func TestTenantsSeeOfAnEvictionOnlyTheirOwnInstances(t *testing.T) {
	c := decide(t, evicting())
	science := caller{c, "science/reader"}
	for _, tc := range []struct {
		who     caller
		id      string
		secrets []string
	}{
		{c.demo, placedID, []string{"victim-1", "victim-3", "science", "batch", "late", "host-", "evicted"}},
		{science, "victim-1", []string{"victim-2", "mine", "demo", placedID, twinID, requestID, "r1", "host-", "node-", "Filter"}},
		{science, requestID, []string{"victim-2", "mine", "demo", placedID, twinID, requestID, "r1", "host-", "node-", "Filter"}},
	} {
		a := tc.who.get("/v1/decisions/" + tc.id)
		got := want[v1.Decisions](t, a, http.StatusOK).Decisions
		if len(got) != 1 {
			t.Fatalf("%s reads %v", tc.who.token, a)
		}
		for _, secret := range tc.secrets {
			if strings.Contains(string(a.body), secret) {
				t.Errorf("%s reads %q of %s in %v", tc.who.token, secret, tc.id, a)
			}
		}
	}
	own := want[v1.Decisions](t, c.demo.get("/v1/decisions/victim-2"), http.StatusOK).Decisions[0]
	if diff := cmp.Diff([]v1.Victim{{ID: "victim-2", Name: "mine", ProjectID: "demo", Cost: 12, Unit: "s"}}, own.Placements[0].Victims); diff != "" {
		t.Errorf("the project's own victim (-want +got):\n%s", diff)
	}
	evicted := want[v1.Decisions](t, science.get("/v1/decisions/victim-1"), http.StatusOK).Decisions[0]
	if diff := cmp.Diff(v1.Decision{
		ProjectID: "science", Instances: []string{"victim-1", "victim-3"}, HandledBy: placing.Replaced, At: noon.Time(), Placements: []v1.Placement{}, Filters: []v1.FilterCount{},
		Evicted: []v1.Victim{{ID: "victim-1", Name: "batch", ProjectID: "science", Cost: 11, Unit: "s"}, {ID: "victim-3", Name: "late", ProjectID: "science", Cost: 13, Unit: "s"}},
	}, evicted); diff != "" {
		t.Errorf("the victim's owner (-want +got):\n%s", diff)
	}
	if e := wantError(t, c.other.get("/v1/decisions/victim-1"), http.StatusNotFound); !strings.Contains(e.Message, "no decision about") {
		t.Errorf("a third project reads %+v", e)
	}
}
