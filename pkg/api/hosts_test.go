// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// threeHosts returns A, which has everything, B, which has little, and C, which is in use.
func threeHosts() []inventory.Host {
	a, b, c := machine("A"), machine("B"), machine("C")
	a.Capacity.Custom = map[string]int64{"CUSTOM_GPU_A100": 4}
	a.Zone, a.Aggregates, a.Traits = "az1", []string{"gpu", "fast"}, []string{"HW_CPU_X86_AVX512F"}
	a.BootSeconds, a.FlopsPerWatt = 420, 1.8e10
	a.Properties = map[string]inventory.Value{
		"gpu": inventory.StringValue("a100"), "rack": inventory.NumberValue(1), "nvme": inventory.BoolValue(true),
		"networks": inventory.ListValue([]string{"ethernet", "infiniband"}),
	}
	b.Power, b.Reservable = "", false
	b.Properties = map[string]inventory.Value{"rack": inventory.NumberValue(2)}
	c.Used, c.InstanceCount = resource.Vector{VCPUs: 2, MemoryMB: 4096}, 3
	return []inventory.Host{c, a, b}
}

func TestAHostIsShownWithAllThatIsKnownOfIt(t *testing.T) {
	c := start(t, setup{hosts: threeHosts()})
	for name, host := range map[string]v1.Host{
		"A": {
			Resources: v1.Resources{VCPUs: 8, MemoryMB: 32768, DiskGB: 100, Custom: map[string]int64{"CUSTOM_GPU_A100": 4}},
			Zone:      "az1", Aggregates: []string{"fast", "gpu"}, Traits: []string{"HW_CPU_X86_AVX512F"},
			Properties: map[string]any{"gpu": "a100", "rack": 1.0, "nvme": true, "networks": []any{"ethernet", "infiniband"}},
			Reservable: true, Power: "on", BootSeconds: 420, FlopsPerWatt: 1.8e10,
		},
		"B": {
			Resources:  v1.Resources{VCPUs: 8, MemoryMB: 32768, DiskGB: 100},
			Aggregates: []string{}, Traits: []string{}, Properties: map[string]any{"rack": 2.0}, Power: "on",
		},
		"C": {
			Resources: v1.Resources{VCPUs: 8, MemoryMB: 32768, DiskGB: 100}, Used: v1.Resources{VCPUs: 2, MemoryMB: 4096}, InstanceCount: 3,
			Aggregates: []string{}, Traits: []string{}, Properties: map[string]any{}, Reservable: true, Power: "on",
		},
	} {
		host.Name = name
		if diff := cmp.Diff(host, want[v1.Host](t, c.demo.get("/v1/hosts/"+name), http.StatusOK)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHostsAreListedByNameAndFiltered(t *testing.T) {
	c := start(t, setup{hosts: threeHosts()})
	for query, names := range map[string][]string{
		"":                           {"A", "B", "C"},
		"limit=3":                    {"A", "B", "C"},
		"limit=2":                    {"A", "B", "next: B"},
		"limit=2&marker=B":           {"C"},
		"marker=C":                   {},
		"host_properties=":           {"A", "B", "C"},
		filter(`["=", "$rack", 2]`):  {"B"},
		filter(`["!=", "$rack", 2]`): {"A", "C"},
		filter(`["in", "infiniband", "$networks"]`):                            {"A"},
		filter(`["and", [">=", "$vcpus", 8], ["<", "$free_ram_mb", 32768]]`):   {"C"},
		filter(`"[\"=\", \"$name\", \"A\"]"`):                                  {"A"},
		filter(`["or", ["=", "$rack", 1], ["=", "$name", "C"]]`) + "&limit=1":  {"A", "next: A"},
		filter(`["or", ["=", "$rack", 1], ["=", "$name", "C"]]`) + "&marker=A": {"C"},
		filter(`["or", ["=", "$rackk", 1], ["=", "$b", 1], ["=", "$b", "C"]]`): {"unknown: [b rackk]"},
	} {
		page := want[v1.HostList](t, c.demo.get("/v1/hosts?"+query), http.StatusOK)
		got := []string{}
		for _, h := range page.Hosts {
			got = append(got, h.Name)
		}
		if page.Next != "" {
			got = append(got, "next: "+string(page.Next))
		}
		if len(page.UnknownProperties) > 0 {
			got = append(got, fmt.Sprintf("unknown: %v", page.UnknownProperties))
		}
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}

func filter(json string) string { return "host_properties=" + url.QueryEscape(json) }

func TestWhatAnAdminSetsOfAHostHoldsForFilters(t *testing.T) {
	c := start(t, setup{hosts: threeHosts()})
	h := want[v1.Host](t, c.admin.patch("/v1/hosts/B", `{"properties": {"rack": 7, "owner": "physics", "nvme": true, "networks": []}, "reservable": true}`), http.StatusOK)
	if diff := cmp.Diff(map[string]any{"rack": 7.0, "owner": "physics", "nvme": true, "networks": []any{}}, h.Properties); diff != "" || !h.Reservable {
		t.Errorf("host (-want +got):\n%s", diff)
	}
	body := `{"name": "r", "duration": 60, "host_properties": ["and", ["=", "$owner", "physics"], ["=", "$rack", 7]]}`
	if r := c.admin.book(body); !cmp.Equal(r.Hosts, []string{"B"}) {
		t.Errorf("reserved %v, want B", r.Hosts)
	}
	h = want[v1.Host](t, c.admin.patch("/v1/hosts/B", `{"properties": {"owner": null, "rack": null}}`), http.StatusOK)
	if diff := cmp.Diff(map[string]any{"nvme": true, "networks": []any{}}, h.Properties); diff != "" || !h.Reservable {
		t.Errorf("host after removing (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(h, want[v1.Host](t, c.admin.patch("/v1/hosts/B", `{}`), http.StatusOK)); diff != "" {
		t.Errorf("nothing changed it:\n%s", diff)
	}
}

func TestAnAdminSetsThePowerOfAHostAndGivesItBack(t *testing.T) {
	hosts := []inventory.Host{machine("A")}
	hosts[0].Problem = "its nova-compute is down"
	c := start(t, setup{hosts: hosts})
	for _, step := range []struct{ body, power, problem string }{
		{`{}`, "on", "its nova-compute is down"},
		{`{"power": "sleeping"}`, "sleeping", ""},
		{`{"reservable": true}`, "sleeping", ""},
		{`{"power": "waking"}`, "waking", ""},
		{`{"power": "failed"}`, "failed", "its nova-compute is down"},
		{`{"power": null}`, "on", "its nova-compute is down"},
		{`{"power": "sleeping", "reservable": true}`, "sleeping", ""},
		{`{"power": ""}`, "on", "its nova-compute is down"},
	} {
		h := want[v1.Host](t, c.admin.patch("/v1/hosts/A", step.body), http.StatusOK)
		if h.Power != step.power || h.Problem != step.problem {
			t.Errorf("%s: power %q, problem %q; want %q, %q", step.body, h.Power, h.Problem, step.power, step.problem)
		}
	}
}

func TestAHostWithAProblemIsNotPromisedAndASleepingOneIsWhenItIsAwake(t *testing.T) {
	hosts := []inventory.Host{machine("A")}
	hosts[0].Problem, hosts[0].BootSeconds = "its nova-compute is down", 300
	c := start(t, setup{hosts: hosts})
	refusal := want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations", `{"name": "r", "duration": 60}`), http.StatusConflict).Refusal
	if refusal.Constraint != "free_hosts" || refusal.Matched != 1 || refusal.Free != 0 || refusal.EarliestStart != nil {
		t.Errorf("got %+v, want that one host matches and will never be free", refusal)
	}
	want[v1.Host](t, c.admin.patch("/v1/hosts/A", `{"power": "sleeping"}`), http.StatusOK)
	if r := c.demo.book(`{"name": "r", "duration": 60}`); span.At(r.Start) != noon+300 || !r.DelayedByBoot {
		t.Errorf("it starts at %v (delayed: %v), want after its boot", r.Start, r.DelayedByBoot)
	}
}

func TestTenantsSeeNeitherInstancesNorWhatTheProblemsAre(t *testing.T) {
	hosts := []inventory.Host{machine("A"), machine("B"), machine("C")}
	hosts[0].InstanceCount, hosts[0].Problem = 2, "it is disabled: ticket 7"
	hosts[0].Instances = []inventory.Instance{
		{
			ID: "i-1", Name: "web", ProjectID: "demo", Status: "ACTIVE", Launched: noon, Preemptible: true,
			Flavor: inventory.Flavor{Name: "m1.tiny", ExtraSpecs: map[string]string{inventory.ReservationMark: "r-1"}},
		},
		{ID: "i-2", Name: "db", ProjectID: "other", Status: "BUILD"},
	}
	hosts[1].Power, hosts[2].InstanceCount = inventory.PowerFailed, 3 // its source reports only the number
	instances := map[string][]v1.Instance{
		"A": {
			{ID: "i-1", Name: "web", ProjectID: "demo", Status: "ACTIVE", LaunchedAt: new(noon.Time()), Preemptible: true, Flavor: "m1.tiny", ReservationID: "r-1"},
			{ID: "i-2", Name: "db", ProjectID: "other", Status: "BUILD"},
		},
		"B": {},
	}
	c := start(t, setup{hosts: hosts})
	for token, by := range map[string]struct {
		instances map[string][]v1.Instance
		problem   map[string]string
	}{
		"demo/admin":    {instances, map[string]string{"A": "it is disabled: ticket 7", "B": "it is marked as failed"}},
		"system/reader": {instances, map[string]string{"A": "it is disabled: ticket 7", "B": "it is marked as failed"}},
		"demo/member":   {nil, map[string]string{"A": "it accepts no instances now", "B": "it accepts no instances now"}},
		"other/reader":  {nil, map[string]string{"A": "it accepts no instances now", "B": "it accepts no instances now"}},
	} {
		asking := caller{c, token}
		for _, listed := range want[v1.HostList](t, asking.get("/v1/hosts"), http.StatusOK).Hosts {
			shown := want[v1.Host](t, asking.get("/v1/hosts/"+listed.Name), http.StatusOK)
			if diff := cmp.Diff(by.instances[listed.Name], shown.Instances); diff != "" || listed.Instances != nil {
				t.Errorf("%s sees on %s (-want +got):\n%s\nand in the list %v", token, listed.Name, diff, listed.Instances)
			}
			if want := by.problem[listed.Name]; shown.Problem != want || listed.Problem != want {
				t.Errorf("%s reads of %s %q and %q, want %q", token, listed.Name, shown.Problem, listed.Problem, want)
			}
		}
	}
}

func TestAHostOutsideThePoolIsNotPromised(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "quantity": 3, "duration": 600}`)
	want[v1.Host](t, c.admin.patch("/v1/hosts/A", `{"reservable": false}`), http.StatusOK)
	if got := want[v1.Reservation](t, c.admin.get("/v1/reservations/"+r.ID), http.StatusOK); len(got.Hosts) != 3 {
		t.Errorf("what is promised stays promised: %v", got.Hosts)
	}
	later := fmt.Sprintf(`{"name": "r", "quantity": 3, "start_time": %q, "duration": 60}`, at(3600))
	if got := want[v1.ErrorAnswer](t, c.demo.post("/v1/reservations", later), http.StatusConflict).Refusal; got.Constraint != "pool" || got.Matched != 2 {
		t.Errorf("got %+v, want that the pool has two", got)
	}
}

func TestAWrongHostChangeIsToldItsField(t *testing.T) {
	c := start(t, setup{hosts: threeHosts()})
	for name, m := range map[string]mistake{
		"unknown field":       {`{"reservabel": true}`, "reservabel", `did you mean "reservable"?`, false},
		"reservable is text":  {`{"reservable": "yes"}`, "reservable", `must be true or false, not "yes"`, false},
		"power is a truth":    {`{"power": false}`, "power", "must be a string, not false", false},
		"unknown power":       {`{"power": "off"}`, "power", `there is no power state "off"; the states are on, sleeping, waking and failed`, false},
		"properties are text": {`{"properties": "x"}`, "properties", `must be an object, not "x"`, false},
		"another type":        {`{"properties": {"gpu": 1}}`, "properties.gpu", "a property has one type on all hosts", true},
		"a built-in one":      {`{"properties": {"vcpus": 64}}`, "properties.vcpus", "is built in", true},
		"an object":           {`{"properties": {"x": {"y": 1}}}`, "properties.x", "must be a number, a string", false},
		"a list of numbers":   {`{"properties": {"x": ["a", 1]}}`, "properties.x", "a list may contain only strings", false},
		"no name":             {`{"properties": {"": null}}`, "properties", "a property needs a name", true},
		"the first of two":    {`{"properties": {"y": [1], "x": [1]}}`, "properties.x", "a list may contain only strings", false},
	} {
		t.Run(name, func(t *testing.T) { m.hold(t, c, "PATCH", "/v1/hosts/B") })
	}
}

func TestPropertiesListWhatAFilterMayUse(t *testing.T) {
	c := start(t, setup{hosts: threeHosts()})
	got := make(map[string]v1.Property)
	for _, p := range want[v1.Properties](t, c.demo.get("/v1/properties"), http.StatusOK).Properties {
		got[p.Name] = p
	}
	for _, p := range []v1.Property{
		{Name: "gpu", Type: "string", Values: []any{"a100"}},
		{Name: "rack", Type: "number", Values: []any{1.0, 2.0}},
		{Name: "nvme", Type: "bool", Values: []any{true}},
		{Name: "networks", Type: "list", Values: []any{"ethernet", "infiniband"}},
		{Name: "zone", Type: "string", Values: []any{"az1"}, BuiltIn: true},
		{Name: "traits", Type: "list", Values: []any{"HW_CPU_X86_AVX512F"}, BuiltIn: true},
		{Name: "free_ram_mb", Type: "number", Values: []any{28672.0, 32768.0}, BuiltIn: true},
	} {
		if diff := cmp.Diff(p, got[p.Name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.Name, diff)
		}
	}
	if len(got) != 18 {
		t.Errorf("%d are listed, want fourteen built in and four others", len(got))
	}
}

func TestAWrongPropertyChangeIsToldItsField(t *testing.T) {
	c := start(t, setup{hosts: threeHosts()})
	for name, m := range map[string]mistake{
		"nothing":       {`{}`, "hidden", "is required", false},
		"null":          {`{"hidden": null}`, "hidden", "is required", false},
		"a text":        {`{"hidden": "yes"}`, "hidden", "must be true or false", false},
		"unknown field": {`{"hiden": true}`, "hiden", `did you mean "hidden"?`, false},
	} {
		t.Run(name, func(t *testing.T) { m.hold(t, c, "PATCH", "/v1/properties/rack") })
	}
}
