// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

const (
	placedID  = "0d5cbe0f-98c7-4a91-9d63-2d56c1b6f00a"
	twinID    = "b5c9d8a1-5a4e-4dd6-8f2a-f3ad5b4e4f5e"
	requestID = "req-6f1f0f1c-58a2-4a5b-93b9-0b0ce0f3a1d2"
)

// placed is a decision about two instances of project demo. refused is one about the first of
// them, a minute later.
func placed() placing.Decision {
	return placing.Decision{
		RequestID: requestID, ProjectID: "demo", Instances: []string{placedID, twinID}, Reservation: "r1", HandledBy: placing.Replaced, At: noon, Took: 1845,
		Placements: []placing.Placement{
			{Instance: placedID, Host: "host-a", Node: "node-a", Alternates: []string{"host-c"}}, {Instance: twinID, Host: "host-b", Node: "node-b"},
		},
		Considered: 4, Filters: []placing.FilterCount{{Filter: "ComputeFilter", Left: 3}, {Filter: "ReservationFilter", Left: 3}},
		Refused: []placing.RefusedHost{{Host: "host-d", Filter: "ComputeFilter", Reason: "its nova-compute is down"}},
		Ranked:  []placing.RankedHost{{Host: "host-a", Weight: 1.5, Parts: map[string]float64{"RAMWeigher": 1, "CPUWeigher": 0.5}}, {Host: "host-b"}},
	}
}

func refused() placing.Decision {
	return placing.Decision{
		RequestID: "req-2", ProjectID: "demo", Instances: []string{placedID}, HandledBy: placing.PassedOn, At: noon + 60, Took: 20_000,
		Reason: "no valid host was found",
	}
}

// decide starts an Almanac with these decisions.
func decide(t *testing.T, list ...placing.Decision) *cloud {
	t.Helper()
	c := start(t, setup{})
	must(t, c.store.KeepDecisions(t.Context(), list))
	return c
}

func TestDecisionsAreShownByInstanceAndByRequest(t *testing.T) {
	c := decide(t, placed(), refused())
	first := v1.Decision{
		RequestID: requestID, ProjectID: "demo", Instances: []string{placedID, twinID}, ReservationID: "r1", HandledBy: "replaced",
		At: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), TookMS: 1.845,
		Placements: []v1.Placement{
			{Instance: placedID, Host: "host-a", Node: "node-a", Alternates: []string{"host-c"}}, {Instance: twinID, Host: "host-b", Node: "node-b", Alternates: []string{}},
		},
		Considered: 4, Filters: []v1.FilterCount{{Filter: "ComputeFilter", Left: 3}, {Filter: "ReservationFilter", Left: 3}},
		Refused: []v1.RefusedHost{{Host: "host-d", Filter: "ComputeFilter", Reason: "its nova-compute is down"}},
		Ranked: []v1.RankedHost{
			{Host: "host-a", Weight: 1.5, Parts: map[string]float64{"RAMWeigher": 1, "CPUWeigher": 0.5}}, {Host: "host-b", Parts: map[string]float64{}},
		},
	}
	second := v1.Decision{
		RequestID: "req-2", ProjectID: "demo", Instances: []string{placedID}, HandledBy: "passed on", At: first.At.Add(time.Minute), TookMS: 20,
		Placements: []v1.Placement{}, Reason: "no valid host was found", Filters: []v1.FilterCount{}, Refused: []v1.RefusedHost{}, Ranked: []v1.RankedHost{},
	}
	for id, shown := range map[string][]v1.Decision{placedID: {second, first}, twinID: {first}, requestID: {first}, "req-2": {second}} {
		got := want[v1.Decisions](t, c.admin.get("/v1/decisions/"+id), http.StatusOK)
		if diff := cmp.Diff(v1.Decisions{Decisions: shown}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

func TestATenantSeesOwnDecisionsWithoutHosts(t *testing.T) {
	foreign := refused()
	foreign.ProjectID = "other"
	c := decide(t, placed(), foreign)
	for _, who := range []caller{c.demo, c.reader} {
		a := who.get("/v1/decisions/" + placedID)
		for _, secret := range []string{"host-", "node-", "Weigher", "nova-compute"} {
			if strings.Contains(string(a.body), secret) {
				t.Errorf("%s reads %q in %v", who.token, secret, a)
			}
		}
		got := want[v1.Decisions](t, a, http.StatusOK).Decisions
		if len(got) != 1 || got[0].RequestID != requestID || len(got[0].Placements) != 2 || got[0].Placements[1].Instance != twinID || len(got[0].Filters) != 2 {
			t.Errorf("%s reads %v", who.token, a)
		}
	}
	if got := want[v1.Decisions](t, c.other.get("/v1/decisions/"+placedID), http.StatusOK).Decisions; len(got) != 1 || got[0].RequestID != "req-2" {
		t.Errorf("the other project reads %+v", got)
	}
}

func TestAnUnknownDecisionAndThatOfAnotherProjectAreTheSame(t *testing.T) {
	c := decide(t, placed())
	for _, a := range []answer{c.other.get("/v1/decisions/" + twinID), c.admin.get("/v1/decisions/nothing")} {
		if e := wantError(t, a, http.StatusNotFound); !strings.Contains(e.Message, "use the id of an instance or of a request") {
			t.Errorf("the message is %q", e.Message)
		}
	}
}

func TestTheOperatorsPolicyDecidesOnDecisions(t *testing.T) {
	const path = "/v1/decisions/" + placedID
	for policy, test := range map[string]struct {
		token string
		ask   func(p caller) bool // whether the answer follows the policy
	}{
		`"decisions:get": "role:auditor"`:                                        {"demo/auditor", func(p caller) bool { return p.get(path).status == 200 }},
		`"decisions:get_all_projects": "role:auditor"`:                           {"other/auditor,reader", func(p caller) bool { return p.get(path).status == 200 }},
		`"decisions:get_all_projects": "'demo':%(project_id)s and role:auditor"`: {"other/auditor,reader", func(p caller) bool { return p.get(path).status == 200 }},
		`"decisions:get_hosts": "rule:project_reader_api"`: {"demo/reader", func(p caller) bool {
			return strings.Contains(string(p.get(path).body), "host-a")
		}},
	} {
		for rule, want := range map[string]bool{"": false, policy: true} {
			c := start(t, setup{adjust: func(o *api.Options) { o.Policy = rules(t, rule) }})
			must(t, c.store.KeepDecisions(t.Context(), []placing.Decision{placed()}))
			if got := test.ask(caller{c, test.token}); got != want {
				t.Errorf("with the policy {%s} the answer follows it: %v", rule, got)
			}
		}
	}
}

func TestTheDocumentHasTheWaysOfDecisions(t *testing.T) {
	ways := openContract(t).document.Components.Schemas["Decision"].Value.Properties["handled_by"].Value.Enum
	if diff := cmp.Diff(anyOf(placing.Interposed, placing.Replaced, placing.PassedOn), ways); diff != "" {
		t.Errorf("the ways (-known +listed):\n%s", diff)
	}
}
