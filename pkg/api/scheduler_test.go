// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/filters"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// admitted returns which of A, B and C a request may use.
func (c *cloud) admitted(request string) []string {
	c.t.Helper()
	got := want[v1.FilterAnswer](c.t, c.admin.post("/v1/scheduler/filter", fmt.Sprintf(`{"hosts": ["A", "B", "C"], "request": %s}`, request)), http.StatusOK)
	if len(got.Hosts)+len(got.Refused) != 3 {
		c.t.Errorf("%s: %v and %v are not all hosts of the request", request, got.Hosts, got.Refused)
	}
	for host, reason := range got.Refused {
		if reason == "" {
			c.t.Errorf("%s: %s is refused without a reason", request, host)
		}
	}
	return got.Hosts
}

// Check A004-8 of paper 004: A and C are reserved.
func TestAnInstanceGoesWhereItsReservationIs(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "quantity": 2, "duration": 3600, "host_properties": ["in", "$name", "A", "C"]}`)
	c.wait(0)
	for name, test := range map[string]struct {
		request string
		want    []string
	}{
		"its id":                 {fmt.Sprintf(`{"project_id": "demo", "hints": {"reservation": %q}}`, r.ID), []string{"A", "C"}},
		"its id in a list":       {fmt.Sprintf(`{"project_id": "demo", "hints": {"reservation": [%q]}}`, r.ID), []string{"A", "C"}},
		"its id, preemptible":    {fmt.Sprintf(`{"project_id": "demo", "hints": {"reservation": %q}, "preemptible": true}`, r.ID), []string{"A", "C"}},
		"no id":                  {`{"project_id": "demo"}`, []string{"B"}},
		"another hint":           {`{"project_id": "demo", "hints": {"group": "x"}}`, []string{"B"}},
		"no id, preemptible":     {`{"project_id": "demo", "preemptible": true}`, []string{"B"}},
		"nothing":                {`null`, []string{"B"}},
		"an unknown id":          {`{"project_id": "demo", "hints": {"reservation": "nothing"}}`, []string{}},
		"its id among others":    {fmt.Sprintf(`{"project_id": "demo", "hints": {"reservation": ["nothing", %q]}}`, r.ID), []string{"A", "C"}},
		"its id, other project":  {fmt.Sprintf(`{"project_id": "other", "hints": {"reservation": %q}}`, r.ID), []string{}},
		"its id, and no project": {fmt.Sprintf(`{"hints": {"reservation": %q}}`, r.ID), []string{}},
	} {
		if diff := cmp.Diff(test.want, c.admitted(test.request)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	path := "/v1/reservations/" + r.ID
	if a := c.demo.delete(path); a.status != http.StatusNoContent {
		t.Fatalf("got %v", a)
	}
	if diff := cmp.Diff([]string{"A", "B", "C"}, c.admitted(`{"project_id": "demo"}`)); diff != "" {
		t.Errorf("deleted, the hosts are not free (-want +got):\n%s", diff)
	}
	if got := c.admitted(fmt.Sprintf(`{"project_id": "demo", "hints": {"reservation": %q}}`, r.ID)); len(got) > 0 {
		t.Errorf("deleted, the reservation still admits to %v", got)
	}
	wantError(t, c.demo.delete(path), http.StatusConflict)
}

func TestTheFenceKeepsOthersOffAPromisedHost(t *testing.T) {
	const normal, preemptible = `{"project_id": "other"}`, `{"project_id": "other", "preemptible": true}`
	all, rest := []string{"A", "B", "C"}, []string{"B", "C"}
	for name, test := range map[string]struct {
		fence filters.Fence
		// seconds after noon; the reservation of A begins at 3600 and ends at 7200
		at                          int64
		wantNormal, wantPreemptible []string
	}{
		"always, long before":     {filters.FenceAlways, 0, rest, all},
		"always, during":          {filters.FenceAlways, 3600, rest, rest},
		"always, after":           {filters.FenceAlways, 7200, all, all},
		"lead time, long before":  {filters.FenceLeadTime, 3600 - 901, all, all},
		"lead time, shortly":      {filters.FenceLeadTime, 3600 - 900, rest, all},
		"lead time, last second":  {filters.FenceLeadTime, 7199, rest, rest},
		"lead time, at the start": {filters.FenceLeadTime, 3600, rest, rest},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, setup{fence: test.fence})
			r := c.demo.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 3600}`, at(3600)))
			c.wait(test.at)
			if diff := cmp.Diff(test.wantNormal, c.admitted(normal)); diff != "" {
				t.Errorf("normal (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantPreemptible, c.admitted(preemptible)); diff != "" {
				t.Errorf("preemptible (-want +got):\n%s", diff)
			}
			inside := c.admitted(fmt.Sprintf(`{"project_id": "demo", "hints": {"reservation": %q}}`, r.ID))
			if runs := test.at >= 3600 && test.at < 7200; runs != cmp.Equal(inside, []string{"A"}) {
				t.Errorf("with the hint: %v", inside)
			}
		})
	}
}

func TestTheFilterKeepsTheOrderAsked(t *testing.T) {
	c := start(t, setup{})
	got := want[v1.FilterAnswer](t, c.admin.post("/v1/scheduler/filter", `{"hosts": ["C", "unknown", "A"]}`), http.StatusOK)
	if diff := cmp.Diff(v1.FilterAnswer{Hosts: []string{"C", "unknown", "A"}, Refused: map[string]string{}}, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	got = want[v1.FilterAnswer](t, c.admin.post("/v1/scheduler/filter", `{"hosts": []}`), http.StatusOK)
	if len(got.Hosts) != 0 {
		t.Errorf("a request without hosts: got %v", got.Hosts)
	}
}

func TestAWrongFilterQuestionIsToldItsField(t *testing.T) {
	c := start(t, setup{})
	for name, m := range map[string]mistake{
		"no hosts":              {`{}`, "hosts", "is required", false},
		"hosts is a text":       {`{"hosts": "A"}`, "hosts", `must be a list of strings, not "A"`, false},
		"hosts has a number":    {`{"hosts": ["A", 1]}`, "hosts", "must be a list of strings", false},
		"a host without a name": {`{"hosts": ["A", ""]}`, "hosts", "a host needs a name", false},
		"a host that is null":   {`{"hosts": ["A", null]}`, "hosts", "a host needs a name", false},
		"request is a list":     {`{"hosts": ["A"], "request": []}`, "request", "must be an object, not []", false},
		"unknown field":         {`{"hosts": ["A"], "requst": {}}`, "requst", `did you mean "request"?`, false},
		"nested unknown field":  {`{"hosts": ["A"], "request": {"project": "demo"}}`, "request.project", `did you mean "project_id"?`, false},
		"nested wrong type":     {`{"hosts": ["A"], "request": {"preemptible": "no"}}`, "request.preemptible", "must be true or false", false},
		"hints are a list":      {`{"hosts": ["A"], "request": {"hints": ["x"]}}`, "request.hints", "must be an object of names and strings", false},
		"a hint is a number":    {`{"hosts": ["A"], "request": {"hints": {"reservation": 1}}}`, "request.hints", "hint reservation must be a string", false},
		"a hint lists a number": {`{"hosts": ["A"], "request": {"hints": {"reservation": [1]}}}`, "request.hints", "hint reservation must be a string", false},
	} {
		t.Run(name, func(t *testing.T) { m.hold(t, c, "POST", "/v1/scheduler/filter") })
	}
}
