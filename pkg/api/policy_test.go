// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

// call is a call that requires a token. ID stands for a reservation of project demo, which is
// also the id of an instance of that project.
type call struct {
	route, path, body string
	// The statuses for a reader and a member of demo, an admin of demo, a member of project
	// other, a reader of the system and a service.
	reader, member, admin, other, system, service int
	rule                                          string // the rule that a denied caller is shown
}

var calls = []call{
	{"POST /v1/reservations", "?dry_run=true", `{"name": "r", "duration": 60}`, 403, 200, 200, 200, 403, 403, "reservations:create"},
	{"POST /v1/reservations", "?dry_run=true", `{"name": "r", "duration": 60, "maintenance": true, "hosts": ["B"]}`, 403, 403, 200, 403, 403, 403, "reservations:"},
	{"GET /v1/reservations", "", "", 200, 200, 200, 200, 400, 403, "reservations:list"},
	{"GET /v1/reservations", "?all_projects=true", "", 403, 403, 200, 403, 200, 403, "reservations:list_all"},
	{"GET /v1/reservations", "?project_id=demo", "", 200, 200, 200, 403, 200, 403, "reservations:list"},
	{"GET /v1/reservations/{id}", "", "", 200, 200, 200, 404, 200, 403, "reservations:get"},
	{"PATCH /v1/reservations/{id}", "?dry_run=true", `{"name": "x"}`, 403, 200, 200, 404, 403, 403, "reservations:update"},
	{"DELETE /v1/reservations/{id}", "", "", 403, 204, 204, 404, 403, 403, "reservations:delete"},
	{"POST /v1/groups", "?dry_run=true", `{"name": "g", "duration": 60, "parts": [{}]}`, 403, 200, 200, 200, 403, 403, "reservations:create"},
	{"GET /v1/groups", "", "", 200, 200, 200, 200, 400, 403, "reservations:list"},
	{"GET /v1/groups", "?all_projects=true", "", 403, 403, 200, 403, 200, 403, "reservations:list_all"},
	{"GET /v1/groups/{id}", "", "", 200, 200, 200, 404, 200, 403, "reservations:get"},
	{"PATCH /v1/groups/{id}", "?dry_run=true", `{"name": "x"}`, 403, 200, 200, 404, 403, 403, "reservations:update"},
	{"DELETE /v1/groups/{id}", "?dry_run=true", "", 403, 200, 200, 404, 403, 403, "reservations:delete"},
	{"POST /v1/leases", "", `{"name": "l", "start_date": "now", "end_date": "2026-11-20 13:00"}`, 403, 201, 201, 201, 403, 403, "blazar:leases:post"},
	{"GET /v1/leases", "", "", 200, 200, 200, 200, 200, 403, "blazar:leases:get"},
	{"GET /v1/leases/{id}", "", "", 200, 200, 200, 403, 200, 403, "blazar:leases:get"},
	{"PUT /v1/leases/{id}", "", `{"name": "x"}`, 403, 200, 200, 403, 403, 403, "blazar:leases:put"},
	{"PATCH /v1/leases/{id}", "", `{"name": "x"}`, 403, 200, 200, 403, 403, 403, "blazar:leases:put"},
	{"DELETE /v1/leases/{id}", "", "", 403, 204, 204, 403, 403, 403, "blazar:leases:delete"},
	{"GET /v1/leases/{id}/hosts", "", "", 200, 200, 200, 403, 200, 403, "blazar:leases:get"},
	{"GET /v1/os-hosts", "", "", 200, 200, 200, 200, 200, 403, "blazar:oshosts:get"},
	{"POST /v1/webhooks", "", `{"name": "w", "url": "https://192.0.2.1/"}`, 403, 201, 201, 201, 403, 403, "webhooks:create"},
	{"POST /v1/webhooks", "", `{"name": "w", "url": "https://192.0.2.1/", "all_projects": true}`, 403, 403, 201, 403, 403, 403, "webhooks:create"},
	{"GET /v1/webhooks", "", "", 403, 200, 200, 200, 403, 403, "webhooks:list"},
	{"GET /v1/webhooks", "?all_projects=true", "", 403, 403, 200, 403, 403, 403, "webhooks:list_all"},
	{"GET /v1/webhooks/{id}", "", "", 403, 200, 200, 404, 403, 403, "webhooks:get"},
	{"DELETE /v1/webhooks/{id}", "", "", 403, 204, 204, 404, 403, 403, "webhooks:delete"},
	{"POST /v1/series", "?dry_run=true", weekly(""), 403, 200, 200, 200, 403, 403, "reservations:create"},
	{"GET /v1/series", "", "", 200, 200, 200, 200, 400, 403, "reservations:list"},
	{"GET /v1/series", "?all_projects=true", "", 403, 403, 200, 403, 200, 403, "reservations:list_all"},
	{"GET /v1/series/{id}", "", "", 200, 200, 200, 404, 200, 403, "reservations:get"},
	{"PATCH /v1/series/{id}", "?dry_run=true", `{"name": "x"}`, 403, 200, 200, 404, 403, 403, "reservations:update"},
	{"DELETE /v1/series/{id}", "?dry_run=true", "", 403, 200, 200, 404, 403, 403, "reservations:delete"},
	{"GET /v1/os-hosts/{id}", "", "", 200, 200, 200, 200, 200, 403, "blazar:oshosts:get"},
	{"PUT /v1/os-hosts/{id}", "", `{"gpu": "x"}`, 403, 403, 200, 403, 403, 403, "blazar:oshosts:put"},
	{"PATCH /v1/os-hosts/{id}", "", `{"gpu": "x"}`, 403, 403, 200, 403, 403, 403, "blazar:oshosts:put"},
	{"DELETE /v1/os-hosts/{id}", "", "", 403, 403, 204, 403, 403, 403, "blazar:oshosts:delete"},
	{"POST /v1/os-hosts", "", `{"name": "C"}`, 403, 403, 201, 403, 403, 403, "blazar:oshosts:post"},
	{"GET /v1/os-hosts/allocations", "", "", 200, 200, 200, 200, 200, 403, "blazar:oshosts:get_allocations"},
	{"GET /v1/os-hosts/{id}/allocation", "", "", 200, 200, 200, 200, 200, 403, "blazar:oshosts:get_allocations"},
	{"GET /v1/os-hosts/properties", "", "", 200, 200, 200, 200, 200, 403, "blazar:oshosts:get_resource_properties"},
	{"PATCH /v1/os-hosts/properties/{name}", "", `{"private": false}`, 403, 403, 200, 403, 403, 403, "blazar:oshosts:update_resource_properties"},
	{"GET /v1/floatingips", "", "", 200, 200, 200, 200, 200, 403, "blazar:floatingips:get"},
	{"GET /v1/floatingips/{id}", "", "", 404, 404, 404, 404, 404, 403, "blazar:floatingips:get"},
	{"POST /v1/floatingips", "", `{"floating_network_id": "nowhere", "floating_ip_address": "198.51.100.101"}`, 403, 403, 400, 403, 403, 403, "blazar:floatingips:post"},
	{"DELETE /v1/floatingips/{id}", "", "", 403, 403, 404, 403, 403, 403, "blazar:floatingips:delete"},
	{"GET /v1/reservations.ics", "", "", 200, 200, 200, 200, 403, 403, "feed:get"},
	{"GET /v1/feed", "", "", 200, 200, 200, 200, 403, 403, "feed:get"},
	{"GET /v1/availability", "?duration=60", "", 200, 200, 200, 200, 200, 403, "availability:get"},
	{"POST /v1/offers", "", `{"duration": 60}`, 200, 200, 200, 200, 200, 403, "offers:create"},
	{"GET /v1/calendar", "", "", 200, 200, 200, 200, 200, 403, "calendar:get"},
	{"GET /v1/events", "", "", 200, 200, 200, 200, 200, 403, "events:get"},
	{"GET /v1/limits", "?project_id=demo", "", 200, 200, 200, 403, 200, 403, "limits:get"},
	{"GET /v1/limits", "", "", 200, 200, 200, 200, 400, 403, "limits:get"},
	{"GET /v1/usage", "", "", 200, 200, 200, 200, 200, 403, "usage:get"},
	{"GET /v1/usage", "?by=host", "", 403, 403, 200, 403, 200, 403, "usage:get"},
	{"GET /v1/hosts", "", "", 200, 200, 200, 200, 200, 403, "hosts:list"},
	{"GET /v1/hosts/{name}", "", "", 200, 200, 200, 200, 200, 403, "hosts:get"},
	{"PATCH /v1/hosts/{name}", "", `{}`, 403, 403, 200, 403, 403, 403, "hosts:update"},
	{"GET /v1/properties", "", "", 200, 200, 200, 200, 200, 403, "properties:list"},
	{"PATCH /v1/properties/{name}", "", `{"hidden": false}`, 403, 403, 200, 403, 403, 403, "properties:update"},
	{"POST /v1/scheduler/filter", "", `{"hosts": ["A"]}`, 403, 403, 200, 403, 403, 200, "scheduler:filter"},
	{"POST /v1/scheduler/weigh", "", `{"hosts": ["A"]}`, 403, 403, 200, 403, 403, 200, "scheduler:weigh"},
	{"GET /v1/decisions/{id}", "", "", 200, 200, 200, 404, 200, 403, "decisions:get"},
	{"GET /v1/images", "", "", 403, 403, 200, 403, 200, 403, "images:list"},
	{"GET /v1/demo/servers", "", "", 403, 403, 200, 403, 403, 403, "demo:list"},
	{"POST /v1/demo/servers", "", `{"name": "web", "flavor": "small", "image": "debian"}`, 403, 403, 201, 403, 403, 403, "demo:create"},
	{"DELETE /v1/demo/servers/{id}", "", "", 403, 403, 404, 403, 403, 403, "demo:delete"},
	{"GET /v1/preemptible", "", "", 403, 403, 200, 403, 200, 403, "preemptible:list"},
	{"GET /v1/preemptible/cost", "?vcpus=1", "", 403, 403, 200, 403, 200, 403, "preemptible:get_cost"},
	{"POST /v1/besteffort", "", `{"name": "x", "flavor": "tiny", "image": "cirros", "duration": 60}`, 403, 201, 201, 201, 403, 403, "besteffort:create"},
	{"GET /v1/besteffort", "", "", 200, 200, 200, 200, 400, 403, "besteffort:list"},
	{"GET /v1/besteffort", "?all_projects=true", "", 403, 403, 200, 403, 200, 403, "besteffort:list_all"},
	{"GET /v1/besteffort/{id}", "", "", 200, 200, 200, 404, 200, 403, "besteffort:get"},
	{"DELETE /v1/besteffort/{id}", "", "", 403, 204, 204, 404, 403, 403, "besteffort:delete"},
	{"POST /v1/packing", "", `{}`, 403, 403, 200, 403, 200, 403, "packing:plan"},
	{"GET /v1/packing/runs", "", "", 403, 403, 200, 403, 200, 403, "packing:list_runs"},
	{"POST /v1/packing/runs", "", `{"plan": "another"}`, 403, 403, 409, 403, 403, 403, "packing:apply"},
	{"GET /v1/packing/runs/{id}", "", "", 403, 403, 404, 403, 404, 403, "packing:get_run"},
	{"DELETE /v1/packing/runs/{id}", "", "", 403, 403, 404, 403, 403, 403, "packing:stop"},
	{"GET /v1/energy", "", "", 403, 403, 200, 403, 200, 403, "energy:get"},
	{"PATCH /v1/energy", "", `{"stop": false}`, 403, 403, 200, 403, 403, 403, "energy:update"},
	{"GET /v1/energy/plan", "", "", 403, 403, 200, 403, 200, 403, "energy:get_plan"},
	{"POST /v1/energy/plan", "", `{"approve": "p"}`, 403, 403, 200, 403, 403, 403, "energy:approve"},
	{"GET /v1/energy/hosts", "", "", 403, 403, 200, 403, 200, 403, "energy:list_hosts"},
	{"GET /v1/energy/hosts/{name}", "", "", 403, 403, 200, 403, 200, 403, "energy:get_host"},
	{"POST /v1/energy/hosts/{name}", "", `{"action": "release"}`, 403, 403, 202, 403, 403, 403, "energy:order"},
	{"GET /v1/energy/audit", "", "", 403, 403, 200, 403, 200, 403, "energy:get_audit"},
	{"GET /v1/energy/demand", "", "", 403, 403, 200, 403, 200, 403, "energy:get_audit"},
	{"GET /v1/doctor", "", "", 403, 403, 200, 403, 403, 403, "doctor:get"},
	{"POST /v1/doctor", "", `{"dry_run": true}`, 403, 403, 200, 403, 403, 403, "doctor:fix"},
	{"GET /v1/readiness", "", "", 403, 403, 200, 403, 200, 200, "readiness:get"},
}

func (k call) by(token string, c *cloud) answer {
	c.t.Helper()
	r := c.demo.book(`{"name": "r", "duration": 60}`)
	method, path, _ := strings.Cut(k.route, " ")
	must(c.t, c.store.KeepDecisions(c.t.Context(), []placing.Decision{{Instances: []string{r.ID}, ProjectID: "demo", HandledBy: placing.Replaced}}))
	planned(c, "p", energy.Plan{})
	submitted(c, r.ID)
	name := "A"
	if strings.Contains(path, "properties") {
		name = "disk_gb"
	}
	id := r.ID
	if strings.Contains(path, "os-hosts") {
		id = "3" // C, which the reservation does not need
	}
	if strings.Contains(path, "series") {
		id = c.demo.series("").ID
		defer func() { c.demo.delete("/v1/series/" + id) }()
	}
	if strings.Contains(path, "webhooks/") {
		id = want[v1.Webhook](c.t, c.demo.post("/v1/webhooks", `{"name": "w", "url": "https://192.0.2.1/"}`), http.StatusCreated).ID
		defer func() { c.demo.delete("/v1/webhooks/" + id) }()
	}
	a := caller{c, token}.send(method, strings.NewReplacer("{id}", id, "{name}", name).Replace(path)+k.path, k.body)
	if rest := c.demo.delete("/v1/reservations/" + r.ID); rest.status != http.StatusNoContent && rest.status != http.StatusConflict {
		c.t.Errorf("%s: the reservation is left: %v", k.route, rest)
	}
	return a
}

//make:test-drawn
func TestEveryCallIsForThoseWhomItsRuleAllows(t *testing.T) {
	c := start(t, setup{adjust: func(o *api.Options) { o.FeedSecret, o.Demo = "secret", demoCloud{} }})
	for _, k := range calls {
		t.Run(k.route+k.path, func(t *testing.T) {
			for token, status := range map[string]int{
				"": 401, "expired": 401, "demo/reader": k.reader, "demo/member": k.member, "demo/admin": k.admin,
				"other/member": k.other, "other/admin": k.admin, "system/reader": k.system, "service/service": k.service, "demo/": 403, "/admin": 403,
			} {
				a := k.by(token, c)
				if a.status != status {
					t.Errorf("the token %q: want %d, got %v", token, status, a)
				}
				if status == 401 && a.header.Get("WWW-Authenticate") != `Keystone uri="http://keystone.test/v3"` {
					t.Errorf("the token %q: WWW-Authenticate is %q", token, a.header.Get("WWW-Authenticate"))
				}
				if a.status == 403 && token != "/admin" && !strings.Contains(string(a.body), k.rule) {
					t.Errorf("the token %q: %v does not name the rule %s", token, a, k.rule)
				}
			}
		})
	}
}

func TestEveryCallThatNeedsATokenIsTried(t *testing.T) {
	tried := make(map[string]bool)
	for _, k := range calls {
		tried[k.route] = true
	}
	for _, document := range []*openapi3.T{openContract(t).document, openContract(t).blazar} {
		for path, item := range document.Paths.Map() {
			for method, operation := range item.Operations() {
				free := operation.Security != nil && len(*operation.Security) == 0
				if free == tried[method+" "+path] {
					t.Errorf("%s %s needs no token: %v", method, path, free)
				}
			}
		}
	}
}

// watched records the rules that are checked, and the errors other than denials.
type watched struct {
	rules serving.Enforcer

	mu    sync.Mutex
	asked map[string]bool
	wrong []error
}

func (w *watched) Check(rule string, by policy.Credentials, target map[string]string) error {
	err := w.rules.Check(rule, by, target)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[rule] = true
	if err != nil && !fault.Is(err, fault.Denied) {
		w.wrong = append(w.wrong, err)
	}
	return err
}

func TestTheRulesAreThoseOfThePolicy(t *testing.T) {
	seen := &watched{rules: rules(t, ""), asked: make(map[string]bool)}
	c := start(t, setup{adjust: func(o *api.Options) {
		o.Policy, o.FeedSecret, o.Demo, o.RequestsPerSecond, o.Burst = seen, "secret", demoCloud{}, 1, 1000
	}})
	c.demo.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 60}`, at(600)))
	for _, k := range calls {
		k.by("other/admin", c)
		k.by("demo/member", c)
	}
	known := map[string]bool{"context_is_admin": true} // exempts from the rate limit
	for _, r := range policy.Defaults() {
		if len(r.Operations) > 0 {
			known[r.Name] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(seen.asked))); diff != "" || len(seen.wrong) > 0 {
		t.Errorf("rules (-known +asked):\n%s\n%v", diff, seen.wrong)
	}
}

func TestTheOperatorsPolicyDecides(t *testing.T) {
	ahead := fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 60}`, at(600))
	for name, test := range map[string]struct {
		policy, token string
		ask           func(p caller, id string) bool // whether the answer follows the policy
	}{
		"list all": {`"reservations:list_all": "role:auditor"`, "other/auditor", func(p caller, _ string) bool {
			return p.get("/v1/reservations?all_projects=true").status == 200
		}},
		"show": {`"reservations:get_all_projects": "role:auditor"`, "other/auditor,reader", func(p caller, id string) bool {
			return p.get("/v1/reservations/"+id).status == 200
		}},
		"show one project's": {`"reservations:get_all_projects": "'demo':%(project_id)s and role:auditor"`, "other/auditor,reader", func(p caller, id string) bool {
			return p.get("/v1/reservations/"+id).status == 200
		}},
		"not another project's": {`"reservations:get_all_projects": "'third':%(project_id)s"`, "demo/admin", func(p caller, _ string) bool {
			return p.get("/v1/reservations/"+p.cloud.other.book(ahead).ID).status != 200
		}},
		"change": {`"reservations:update_all_projects": "role:operator"`, "other/operator", func(p caller, id string) bool {
			return p.patch("/v1/reservations/"+id, `{"name": "changed", "quantity": 2}`).status == 200
		}},
		"delete": {`"reservations:delete_all_projects": "role:operator"`, "other/operator", func(p caller, id string) bool {
			return p.delete("/v1/reservations/"+id).status == 204
		}},
		"early hosts": {`"reservations:get_hosts": "rule:project_reader_api"`, "demo/reader", func(p caller, id string) bool {
			return len(want[v1.Reservation](p.cloud.t, p.get("/v1/reservations/"+id), 200).Hosts) == 1
		}},
		"early hosts of an offer": {`"reservations:get_hosts": "role:member"`, "demo/member", func(p caller, _ string) bool {
			return len(want[v1.OfferAnswer](p.cloud.t, p.post("/v1/reservations?dry_run=true", ahead), 200).Offer.Hosts) == 1
		}},
		"names in the calendar": {`{"reservations:get_all_projects": "role:member", "reservations:get_hosts": "role:member"}`, "other/member", func(p caller, id string) bool {
			return want[v1.Calendar](p.cloud.t, p.get("/v1/calendar"), 200).Hosts[0].Claims[0].ReservationID == id
		}},
		"hidden properties": {`"properties:get_hidden": "role:member"`, "demo/member", func(p caller, _ string) bool {
			p.cloud.admin.patch("/v1/properties/vcpus", `{"hidden": true}`)
			return slices.Contains(properties(p), "vcpus")
		}},
		"instances": {`"hosts:get_instances": "role:support"`, "demo/support,reader", func(p caller, _ string) bool {
			return want[v1.Host](p.cloud.t, p.get("/v1/hosts/B"), 200).Instances != nil
		}},
		"host": {`"hosts:update": "role:operator"`, "demo/operator", func(p caller, _ string) bool {
			return p.patch("/v1/hosts/A", `{"reservable": false}`).status == 200
		}},
		"property": {`"properties:update": "role:operator"`, "demo/operator", func(p caller, _ string) bool {
			return p.patch("/v1/properties/vcpus", `{"hidden": true}`).status == 200
		}},
		"scheduler": {`"scheduler:filter": "role:nova"`, "demo/nova", func(p caller, _ string) bool {
			return p.post("/v1/scheduler/filter", `{"hosts": []}`).status == 200
		}},
		"readiness": {`"readiness:get": "role:monitor"`, "demo/monitor", func(p caller, _ string) bool {
			return p.get("/v1/readiness").status == 200
		}},
		"booking, forbidden to admins": {`"reservations:create": "role:member and not role:admin"`, "demo/admin", func(p caller, _ string) bool {
			return p.post("/v1/reservations", ahead).status != 201
		}},
	} {
		t.Run(name, func(t *testing.T) {
			occupied := machine("B")
			occupied.Instances = []inventory.Instance{{ID: "i-1"}}
			for policy, want := range map[string]bool{"": false, test.policy: true} {
				c := start(t, setup{hosts: []inventory.Host{machine("A"), occupied, machine("C")}, adjust: func(o *api.Options) { o.Policy = rules(t, policy) }})
				r := c.demo.book(ahead)
				if got := test.ask(caller{c, test.token}, r.ID); got != want {
					t.Errorf("with the policy {%s} the answer follows it: %v", policy, got)
				}
			}
		})
	}
}

func TestTheTrailSaysInWhichRequestWhoDidIt(t *testing.T) {
	c := start(t, setup{})
	made := c.demo.post("/v1/reservations", `{"name": "r", "duration": 60}`)
	r := want[v1.Reservation](t, made, http.StatusCreated)
	changed := c.admin.patch("/v1/reservations/"+r.ID, `{"name": "new"}`)
	canceled := c.demo.delete("/v1/reservations/" + r.ID)
	trail, err := c.store.Trail(t.Context(), r.ID, 10)
	must(t, err)
	var got []string
	for _, change := range trail {
		got = append(got, change.UserID+" "+change.RequestID)
	}
	slices.Sort(got)
	var requests []string
	for _, a := range []answer{made, changed, canceled} {
		requests = append(requests, "demo-user "+a.header.Get("X-Openstack-Request-Id"))
	}
	slices.Sort(requests)
	if diff := cmp.Diff(requests, got); diff != "" {
		t.Errorf("the trail (-want +got):\n%s", diff)
	}
}
