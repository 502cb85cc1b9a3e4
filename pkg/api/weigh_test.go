// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/weighers"
)

// weighs asks which hosts a request may use, and how good they are.
func (c *cloud) weighs(hosts, request string) v1.WeighAnswer {
	c.t.Helper()
	return want[v1.WeighAnswer](c.t, c.admin.post("/v1/scheduler/weigh", fmt.Sprintf(`{"hosts": %s, "request": %s}`, hosts, request)), http.StatusOK)
}

const abc = `["A", "B", "C"]`

// withWeighers weighs as almanacd does by default.
func withWeighers(c **cloud) func(*api.Options) {
	return func(o *api.Options) {
		var err error
		o.Weighers, err = weighers.Choose([]string{"FreeTimeWeigher", "KWRankingWeigher"}, nil, weighers.Ports{Promises: o.Booking, Efficiencies: o.Inventory})
		if err != nil {
			panic(err)
		}
		o.Admission.Rule = inventory.PreemptibleRule{ExtraSpec: "almanac:preemptible", Hint: "preemptible", Projects: []string{"spot"}}
	}
}

func TestHostsAreWeighedByTheTimeUntilTheyArePromisedAndByTheirEfficiency(t *testing.T) {
	var c *cloud
	hosts := []inventory.Host{machine("A"), machine("B"), machine("C")}
	hosts[0].FlopsPerWatt, hosts[1].FlopsPerWatt = 4e9, 2e9
	c = start(t, setup{hosts: hosts, adjust: withWeighers(&c)})
	r := c.demo.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 3600, "host_properties": ["=", "$name", "B"]}`, at(24*3600)))
	// B is free for a day, which is worth half of 10, and half as efficient as A.
	got := c.weighs(`["C", "B", "unknown", "A"]`, `{"project_id": "demo"}`)
	if diff := cmp.Diff(v1.WeighAnswer{
		Hosts:   []string{"C", "unknown", "A"},
		Refused: map[string]string{"B": "the host is reserved from " + at(24*3600)},
		Weights: map[string]float64{"A": 11, "B": 5.5, "C": 10, "unknown": 10},
	}, got); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
	c.wait(24 * 3600)
	got = c.weighs(abc, fmt.Sprintf(`{"project_id": "demo", "hints": {"reservation": %q}, "instances": ["i1"]}`, r.ID))
	if diff := cmp.Diff(map[string]float64{"A": 1, "B": 0.5, "C": 0}, got.Weights); diff != "" {
		t.Errorf("inside (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"B"}, got.Hosts); diff != "" || got.Refusal != "" {
		t.Errorf("inside (-want +got):\n%s; refusal %q", diff, got.Refusal)
	}
}

// The filter and the weigher admit and refuse the same hosts.
func TestFilterAndWeigherSayTheSame(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "quantity": 2, "duration": 3600, "host_properties": ["in", "$name", "A", "C"]}`)
	later := c.demo.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 3600, "host_properties": ["=", "$name", "B"]}`, at(7200)))
	for range 2 {
		c.wait(1800)
		for _, project := range []string{"demo", "other"} {
			for _, hint := range []string{`{}`, `{"group": "x"}`, `{"reservation": []}`, `{"reservation": "unknown"}`,
				fmt.Sprintf(`{"reservation": %q}`, r.ID), fmt.Sprintf(`{"reservation": [%q]}`, later.ID), fmt.Sprintf(`{"reservation": [%q, %[1]q]}`, r.ID)} {
				for _, preemptible := range []bool{false, true} {
					request := fmt.Sprintf(`{"project_id": %q, "hints": %s, "preemptible": %t}`, project, hint, preemptible)
					filtered := want[v1.FilterAnswer](t, c.admin.post("/v1/scheduler/filter", fmt.Sprintf(`{"hosts": %s, "request": %s}`, abc, request)), http.StatusOK)
					weighed := c.weighs(abc, request)
					if diff := cmp.Diff(filtered, v1.FilterAnswer{Hosts: weighed.Hosts, Refused: weighed.Refused}); diff != "" {
						t.Errorf("%s (-filter +weigh):\n%s", request, diff)
					}
				}
			}
		}
	}
}

func TestTheTenantIsToldWhyHisReservationHasNoHost(t *testing.T) {
	c := start(t, setup{})
	later := c.demo.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 3600}`, at(3600)))
	slices := c.demo.book(`{"name": "r", "duration": 3600, "kind": "instance", "quantity": 2, "resources": {"vcpus": 2, "memory_mb": 2048, "disk_gb": 10}}`)
	whole := c.demo.book(`{"name": "r", "duration": 3600, "host_properties": ["=", "$name", "C"]}`)
	c.wait(0)
	hint := func(id string) string {
		return fmt.Sprintf(`{"project_id": "demo", "hints": {"reservation": %[1]q}, "instances": ["of %[1]s"]}`, id)
	}
	slices = want[v1.Reservation](t, c.demo.get("/v1/reservations/"+slices.ID), http.StatusOK)
	own := fmt.Sprintf(`{"project_id": "demo", "extra_specs": {%q: %q, %q: "1"}}`, inventory.ReservationMark, slices.ID, "resources:"+fence.OwnName(slices.ID))
	for name, test := range map[string]struct{ hosts, request, want string }{
		"no hint, and all is promised":    {`["A"]`, `{"project_id": "other"}`, ""},
		"its host":                        {abc, hint(whole.ID), ""},
		"not its hosts":                   {`["A", "B"]`, hint(whole.ID), "none of the hosts of reservation " + whole.ID + " has room for this"},
		"no host at all":                  {`[]`, hint(whole.ID), ""},
		"not yet":                         {abc, hint(later.ID), "has not started"},
		"unknown":                         {abc, hint("unknown"), "the project has no reservation unknown"},
		"instances by a flavor of others": {abc, hint(slices.ID), "create its instances with its flavor: reservation:" + slices.ID},
		"instances by their flavor":       {`["` + strings.Join(slices.Hosts, `", "`) + `"]`, own, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.weighs(test.hosts, test.request)
			if !strings.Contains(got.Refusal, test.want) || (got.Refusal == "") != (test.want == "") {
				t.Errorf("the refusal is %q, want %q; %v", got.Refusal, test.want, got)
			}
			if test.want != "" && len(got.Hosts) > 0 {
				t.Errorf("the instance may still use %v", got.Hosts)
			}
		})
	}
	if got := c.weighs(`["`+strings.Join(slices.Hosts, `", "`)+`"]`, own); len(got.Hosts) != len(slices.Hosts) {
		t.Errorf("by its flavor it may use %v of %v", got.Hosts, slices.Hosts)
	}
}

func TestItIsRememberedWhoseGuestsInstancesBecome(t *testing.T) {
	var c *cloud
	c = start(t, setup{adjust: withWeighers(&c)})
	r := c.demo.book(`{"name": "r", "duration": 3600}`)
	c.wait(0)
	for _, request := range []string{
		fmt.Sprintf(`{"project_id": "demo", "hints": {"reservation": %q}, "instances": ["i1", "i2"]}`, r.ID),
		`{"project_id": "other", "hints": {"preemptible": ["true"]}, "instances": ["i3"]}`,
		fmt.Sprintf(`{"project_id": "other", "hints": {"reservation": %q}, "instances": ["foreign"]}`, r.ID),
		fmt.Sprintf(`{"project_id": "demo", "extra_specs": {"almanac:reservation": %q}, "instances": ["by its flavor"]}`, r.ID),
		`{"project_id": "spot", "instances": ["by its project"]}`, `{"project_id": "other", "instances": ["stranger"]}`,
	} {
		c.weighs(abc, request)
	}
	guests := func() map[string]inventory.InstanceRecord {
		t.Helper()
		list, err := c.store.InstanceRecords(t.Context(), "i1", "i2", "i3", "foreign", "by its flavor", "by its project", "stranger")
		must(t, err)
		return list
	}
	own := inventory.InstanceRecord{Reservation: r.ID}
	if diff := cmp.Diff(map[string]inventory.InstanceRecord{"i1": own, "i2": own, "i3": {Preemptible: true}}, guests()); diff != "" {
		t.Errorf("remembered are (-want +got):\n%s", diff)
	}
	if a := c.demo.delete("/v1/reservations/" + r.ID); a.status != http.StatusNoContent {
		t.Fatalf("got %v", a)
	}
	moved := fmt.Sprintf(`{"project_id": "demo", "hints": {"reservation": %q}, "instances": [%%q]}`, r.ID)
	if got := c.weighs(abc, fmt.Sprintf(moved, "i1")); len(got.Hosts) != 3 || got.Refusal != "" {
		t.Errorf("an instance that has outlived its reservation may use %v: %s", got.Hosts, got.Refusal)
	}
	if got := c.weighs(abc, fmt.Sprintf(moved, "new")); len(got.Hosts) != 0 || got.Refusal == "" {
		t.Errorf("an instance that comes after the end may use %v", got.Hosts)
	}
	if got := guests(); got["i1"] != (inventory.InstanceRecord{}) || got["i2"] != own {
		t.Errorf("remembered are %v", got)
	}
}

func TestPreemptibleInstancesAreToldByTheRule(t *testing.T) {
	var c *cloud
	c = start(t, setup{adjust: withWeighers(&c)})
	c.demo.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 3600, "host_properties": ["=", "$name", "A"]}`, at(3600)))
	for request, open := range map[string]bool{
		`{"project_id": "other"}`:                                                        false,
		`{"project_id": "spot"}`:                                                         true,
		`{"project_id": "other", "preemptible": true}`:                                   true,
		`{"project_id": "other", "hints": {"preemptible": "true"}}`:                      true,
		`{"project_id": "other", "extra_specs": {"almanac:preemptible": "true"}}`:        true,
		`{"project_id": "other", "extra_specs": {"almanac:preemptible": "no"}}`:          false,
		`{"project_id": "other", "hints": {"group": "true"}, "extra_specs": {"x": "1"}}`: false,
	} {
		if got := c.weighs(`["A"]`, request); (len(got.Hosts) == 1) != open {
			t.Errorf("%s: the host is open to it: %t", request, !open)
		}
	}
}

// forgetful cannot store anything.
type forgetful struct{}

func (forgetful) InstanceRecords(context.Context, ...string) (map[string]inventory.InstanceRecord, error) {
	return nil, errors.New("the database is away")
}

func (forgetful) SaveInstanceRecords(context.Context, []string, inventory.InstanceRecord, span.Instant) error {
	return errors.New("the database is away")
}

func TestNobodyIsLetInWhoseGuestCannotBeRemembered(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.Admission.Records = forgetful{} }})
	r := c.demo.book(`{"name": "r", "duration": 3600}`)
	c.wait(0)
	got := c.weighs(abc, fmt.Sprintf(`{"project_id": "demo", "hints": {"reservation": %q}, "instances": ["i1"]}`, r.ID))
	if len(got.Hosts) > 0 || !strings.Contains(got.Refusal, "cannot be stored now; try again later") {
		t.Errorf("got %v", got)
	}
	if got := c.weighs(abc, `{"project_id": "demo", "instances": ["i1"]}`); len(got.Hosts) != 2 {
		t.Errorf("without a hint it may use %v", got.Hosts)
	}
}

func TestTenThousandHostsAreOneQuestion(t *testing.T) {
	var c *cloud
	c = start(t, setup{adjust: withWeighers(&c)})
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("compute-%05d.region-one.cloud.example.org", i)
	}
	got := c.weighs(encode(t, names), `{"project_id": "demo"}`)
	if len(got.Hosts) != len(names) || len(got.Weights) != len(names) {
		t.Errorf("%d hosts and %d weights", len(got.Hosts), len(got.Weights))
	}
}

func TestAWrongWeighQuestionIsToldItsField(t *testing.T) {
	c := start(t, setup{})
	for name, m := range map[string]mistake{
		"no hosts":                   {`{}`, "hosts", "is required", false},
		"a host without a name":      {`{"hosts": ["A", ""]}`, "hosts", "a host needs a name", false},
		"a host twice to Nova":       {`{"hosts": ["A", "a"]}`, "hosts", "which are equal to Nova", true},
		"unknown field":              {`{"hosts": ["A"], "requst": {}}`, "requst", `did you mean "request"?`, false},
		"nested unknown field":       {`{"hosts": ["A"], "request": {"instance": "x"}}`, "request.instance", `did you mean "instances"?`, false},
		"extra specs are a list":     {`{"hosts": ["A"], "request": {"extra_specs": []}}`, "request.extra_specs", "must be an object of strings, not []", false},
		"an extra spec is a number":  {`{"hosts": ["A"], "request": {"extra_specs": {"x": 1}}}`, "request.extra_specs", "must be an object of strings", false},
		"instances are a number":     {`{"hosts": ["A"], "request": {"instances": 3}}`, "request.instances", "must be a list of strings", false},
		"an instance without an id":  {`{"hosts": ["A"], "request": {"instances": [""]}}`, "request.instances", "an instance needs an id", false},
		"hints are those of nothing": {`{"hosts": ["A"], "request": {"hints": 1}}`, "request.hints", "must be an object of names and strings", false},
	} {
		t.Run(name, func(t *testing.T) { m.hold(t, c, "POST", "/v1/scheduler/weigh") })
	}
}
