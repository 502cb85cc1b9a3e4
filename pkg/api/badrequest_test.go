// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

func TestAWrongChangeIsToldItsField(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(fmt.Sprintf(`{"name": "r", "start_time": %q, "duration": 3600}`, at(3600)))
	for name, m := range map[string]mistake{
		"unknown field":          {`{"end": "2026-12-01T10:00:00Z"}`, "end", `there is no field "end"`, false},
		"what cannot be changed": {`{"duration": 60}`, "duration", "send the new end_time", false},
		"quantity 0":             {`{"quantity": 0}`, "quantity", "must be at least 1", false},
		"quantity is a text":     {`{"quantity": "2"}`, "quantity", "must be a whole number", false},
		"an empty name":          {`{"name": ""}`, "name", "is required", false},
		"a name of blanks":       {`{"name": "  "}`, "name", "is required", false},
		"name is a list":         {`{"name": ["x"]}`, "name", "must be a string", false},
		"a start in the past":    {fmt.Sprintf(`{"start_time": %q}`, at(-121)), "start_time", "lies in the past", true},
		"the epoch":              {`{"start_time": "1970-01-01T00:00:00Z"}`, "start_time", "lies in the past", true},
		"end before start":       {fmt.Sprintf(`{"end_time": %q}`, at(3599)), "end_time", "is not after the start", true},
		"start after end":        {fmt.Sprintf(`{"start_time": %q}`, at(7200)), "start_time", "is not before the end", true},
		"an end in the past":     {fmt.Sprintf(`{"end_time": %q}`, at(-10)), "end_time", "is not after the start", true},
		"beyond the calendar":    {`{"end_time": "9000-01-01T00:00:01Z"}`, "end_time", "must lie before 9000", true},
		"no zone":                {`{"end_time": "2026-12-01T10:00:00"}`, "end_time", "must be a time with its zone", false},
	} {
		t.Run(name, func(t *testing.T) { m.hold(t, c, "PATCH", "/v1/reservations/"+r.ID) })
		t.Run(name+", dry run", func(t *testing.T) { m.hold(t, c, "PATCH", "/v1/reservations/"+r.ID+"?dry_run=true") })
	}
}

// bodies lists the calls with a body, each with a correct one.
var bodies = map[string]struct{ method, path, right string }{
	"create": {"POST", "/v1/reservations", `{"name": "r", "duration": 60}`},
	"change": {"PATCH", "/v1/reservations/ID", `{"name": "x"}`},
	"host":   {"PATCH", "/v1/hosts/A", `{"reservable": true}`},
	"hide":   {"PATCH", "/v1/properties/vcpus", `{"hidden": false}`},
	"filter": {"POST", "/v1/scheduler/filter", `{"hosts": ["A"]}`},
	"weigh":  {"POST", "/v1/scheduler/weigh", `{"hosts": ["A"]}`},
	"energy": {"PATCH", "/v1/energy", `{"stop": true}`},
	"order":  {"POST", "/v1/energy/hosts/A", `{"action": "release"}`},
}

func TestABodyMustBeOneJSONObject(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(`{"name": "r", "duration": 60}`)
	for call, b := range bodies {
		path := strings.Replace(b.path, "ID", r.ID, 1)
		for name, m := range map[string]mistake{
			"empty":               {"", "", "the body is not JSON", false},
			"blanks":              {"  \n", "", "the body is not JSON", false},
			"a word":              {"reserve", "", "the body is not JSON", false},
			"cut off":             {b.right[:len(b.right)-1], "", "the body is not JSON", false},
			"something behind it": {b.right + " x", "", "the body is not JSON", true}, // the validator stops at the end of the object
			"a form":              {"duration=60", "", "the body is not JSON", false},
			"not UTF-8":           {b.right[:len(b.right)-1] + ", \"\xff\": 1}", "", "the body is not UTF-8", false},
			"null":                {"null", "", "must be a JSON object, not null", false},
			"an array":            {"[" + b.right + "]", "", "must be a JSON object, not [{", false},
			"a text":              {`"x"`, "", `must be a JSON object, not "x"`, false},
			"a number":            {"7", "", "must be a JSON object, not 7", false},
			"nested without end":  {`{"name": ` + strings.Repeat("[", 20_000), "", "the body is not JSON", false},
			"nested too deep":     {`{"name": ` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}", "", "the body is not JSON", false},
		} {
			t.Run(call+", "+name, func(t *testing.T) {
				m.hold(t, c, b.method, path)
			})
		}
	}
}

func TestABodyOverTheBoundOfItsCallIsTooLarge(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(`{"name": "r", "duration": 60}`)
	most := map[string]int{"create": 64 << 10, "change": 64 << 10}
	for call, b := range bodies {
		path := strings.Replace(b.path, "ID", r.ID, 1)
		bound, own := most[call]
		if !own {
			bound = 1 << 20
		}
		padded := b.right + strings.Repeat(" ", bound-len(b.right))
		before := c.everything()
		wantError(t, c.admin.send(b.method, path, padded+" "), http.StatusRequestEntityTooLarge)
		if diff := cmp.Diff(before, c.everything()); diff != "" {
			t.Errorf("%s: something was stored:\n%s", call, diff)
		}
		if a := c.admin.send(b.method, path, padded); a.status == http.StatusRequestEntityTooLarge {
			t.Errorf("%s of %d bytes is too large", call, bound)
		}
	}
}

func TestParametersHaveABound(t *testing.T) {
	c := start(t, setup{})
	for _, path := range []string{"/v1/availability?duration=60&host_properties=", "/v1/hosts?host_properties=", "/v1/calendar?host=", "/v1/hosts/A?x="} {
		e := wantError(t, c.demo.get(path+strings.Repeat("x", 64<<10)), http.StatusBadRequest)
		if !strings.Contains(e.Message, "at most 65536") {
			t.Errorf("%s: %s", path, e.Message)
		}
	}
}

func TestAWrongParameterIsToldAndNothingDone(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(`{"name": "r", "duration": 3600}`)
	before := c.everything()
	for _, test := range []struct{ call, wantField, wantSays string }{
		{"GET /v1/reservations?stat=active", "stat", `there is no parameter "stat"; did you mean "start"?`},
		{"GET /v1/reservations?limit=0", "limit", "from 1 to 1000"},
		{"GET /v1/reservations?limit=1001", "limit", "from 1 to 1000"},
		{"GET /v1/reservations?limit=-1", "limit", "from 1 to 1000"},
		{"GET /v1/reservations?limit=many", "limit", `not "many"`},
		{"GET /v1/reservations?limit=", "limit", "from 1 to 1000"},
		{"GET /v1/reservations?limit=1&limit=2", "limit", "may appear only once"},
		{"GET /v1/reservations?marker=nothing", "marker", "there is no reservation nothing"},
		{"GET /v1/reservations?status=activ", "status", `did you mean "active"?`},
		{"GET /v1/reservations?status=active,", "status", `there is no status ""`},
		{"GET /v1/reservations?kind=hosts", "kind", `did you mean "host"?`},
		{"GET /v1/reservations?kind=", "kind", `there is no kind ""`},
		{"GET /v1/reservations?start=yesterday", "start", "must be a time with its zone"},
		{"GET /v1/reservations?start=" + at(60) + "&end=" + at(60), "end", "is not after the start"},
		{"GET /v1/reservations?all_projects=maybe", "all_projects", "must be true or false"},
		{"GET /v1/reservations?name=%zz", "", "the parameters cannot be read"},
		{"GET /v1/reservations?name=a;limit=2", "", "the parameters cannot be read"},
		{"POST /v1/reservations?dry_run=perhaps", "dry_run", `must be true or false, not "perhaps"`},
		{"POST /v1/reservations?dry_run", "dry_run", "must be true or false"},
		{"POST /v1/reservations?dryrun=true", "dryrun", `did you mean "dry_run"?`},
		{"PATCH /v1/reservations/ID?dry_run=", "dry_run", "must be true or false"},
		{"GET /v1/reservations/ID?x=1", "x", "there is no parameter"},
		{"DELETE /v1/reservations/ID?dryrun=true", "dryrun", "there is no parameter"},
		{"GET /v1/hosts?limit=x", "limit", "from 1 to 1000"},
		{"GET /v1/hosts?marker=Z", "marker", "there is no host Z"},
		{"GET /v1/hosts?host_properties=vcpus", "host_properties", "is not JSON"},
		{"GET /v1/hosts/A?x=1", "x", "there is no parameter"},
		{"GET /v1/properties?x=1", "x", "there is no parameter"},
		{"GET /v1/calendar?start=" + at(60) + "&end=" + at(0), "end", "is not after the start"},
		{"GET /v1/calendar?start=0000-01-01T00:00:00%2B01:00", "start", "must lie in the years 1 to 8999"},
		{"GET /v1/calendar?start=9999-12-31T00:00:00Z", "start", "must lie in the years 1 to 8999"},
		{"GET /v1/calendar?host=A,AA", "host", `there is no host "AA"; did you mean "A"?`},
		{"GET /v1/calendar?host=A%5B1", "host", `has no "]" after a "["`},
		{"GET /v1/availability", "duration", "is required"},
		{"GET /v1/availability?duration=0", "duration", "is required, at least one second"},
		{"GET /v1/availability?duration=soon", "duration", "is not a duration"},
		{"GET /v1/availability?duration=101y", "duration", "is not a duration"},
		{"GET /v1/availability?duration=9999999999999999", "duration", "must be from one second to 100 years"},
		{"GET /v1/availability?duration=60&quantity=0", "quantity", "from 1 to"},
		{"GET /v1/availability?duration=60&quantity=1e30", "quantity", "must be a whole number"},
		{"GET /v1/availability?duration=60&start=" + at(-121), "start", "lies in the past"},
		{"GET /v1/availability?duration=60&start=1970-01-01T00:00:00Z&end=" + at(60), "start", "lies in the past"},
		{"GET /v1/availability?duration=60&end=" + at(0), "end", "is not after the start"},
		{"GET /v1/availability?duration=61&end=" + at(60), "duration", "is longer than the window"},
		{"GET /v1/availability?duration=60&host_properties=[1]", "host_properties", "begins with 1"},
	} {
		method, path, _ := strings.Cut(strings.Replace(test.call, "ID", r.ID, 1), " ")
		body := map[string]string{"POST": `{"duration": 60}`, "PATCH": `{"name": "x"}`}[method]
		e := wantError(t, c.admin.send(method, path, body), http.StatusBadRequest)
		if e.Field != test.wantField || !strings.Contains(e.Message, test.wantSays) {
			t.Errorf("%s: got %q: %q, want %q and %q", test.call, e.Field, e.Message, test.wantField, test.wantSays)
		}
		if diff := cmp.Diff(before, c.everything()); diff != "" {
			t.Errorf("%s did something:\n%s", test.call, diff)
		}
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	c := start(t, setup{})
	for _, call := range []string{
		"GET /v1/reservations/00000000-0000-0000-0000-000000000000", "DELETE /v1/reservations/x", "PATCH /v1/reservations/%2e%2e",
		"GET /v1/reservations/%00", "GET /v1/reservations/%ff", "GET /v1/reservations/a%2Fb",
		"GET /v1/hosts/nothing", "PATCH /v1/hosts/nothing", "PATCH /v1/properties/nothing",
		"GET /v2", "GET /v1/reservation", "POST /v1/reservations/x/y", "GET /v1//hosts", "GET /v1/properties/vcpus/x",
	} {
		method, path, _ := strings.Cut(call, " ")
		body := map[string]string{"POST": "{}", "PATCH": "{}"}[method]
		if strings.Contains(path, "properties/nothing") {
			body = `{"hidden": true}`
		}
		wantError(t, c.admin.send(method, path, body), http.StatusNotFound)
	}
}

func TestAMethodThatIsNotPossibleIsToldWhichAre(t *testing.T) {
	c := start(t, setup{})
	for call, allow := range map[string]string{
		"PUT /v1/reservations":       "GET, POST",
		"DELETE /v1/hosts/A":         "GET, PATCH",
		"POST /v1/availability":      "GET",
		"GET /v1/scheduler/filter":   "POST",
		"FETCH /healthcheck":         "GET, HEAD",
		"OPTIONS /v1/reservations/x": "GET, PATCH, DELETE",
	} {
		method, path, _ := strings.Cut(call, " ")
		a := c.admin.send(method, path, "")
		wantError(t, a, http.StatusMethodNotAllowed)
		if got := a.header.Get("Allow"); got != allow {
			t.Errorf("%s: Allow is %q, want %q", call, got, allow)
		}
	}
}

func TestATrailingSlashIsAcceptedEverywhere(t *testing.T) {
	c := start(t, setup{})
	r := want[v1.Reservation](t, c.admin.post("/v1/reservations/", `{"name": "r", "duration": 60}`), http.StatusCreated)
	for call, status := range map[string]int{
		"GET /v1/": 200, "GET /v1/reservations/": 200, "GET /v1/reservations/?limit=1": 200, "GET /v1/hosts//": 200,
		"GET /v1/hosts/A/": 200, "GET /v1/availability/?duration=60": 200, "GET /v1/calendar/": 200, "GET /v1/properties/": 200,
		"GET /healthcheck/": 200, "GET /metrics/": 200, "GET /v1/openapi.yaml/": 200, "DELETE /v1/reservations/" + r.ID + "/": 204,
	} {
		method, path, _ := strings.Cut(call, " ")
		if a := c.admin.send(method, path, ""); a.status != status {
			t.Errorf("%s: got %v", call, a)
		}
	}
}
