// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/reservation/address"
)

// fullBody is a call, as in the document, with a path and a body that are right. The body has a value at each place
// below which the document has others.
type fullBody struct{ call, path, body string }

// fullBodies has each call with a body, and those of the calls for leases once for each type of reservation. LEASE,
// MEMBER and RESERVATION are ids.
var fullBodies = []fullBody{
	{"POST /v1/reservations", "", `{"name": "s", "duration": 60, "kind": "instance", "resources": {"vcpus": 1, "custom": {"CUSTOM_GPU": 0}}}`},
	{"POST /v1/reservations", "/v1/reservations?dry_run=true", `{"name": "s", "duration": 60, "maintenance": true, "hosts": ["A"]}`},
	{"POST /v1/groups", "", `{"name": "g", "duration": 60, "parts": [{"kind": "instance", "quantity": {"min": 1, "max": 1}, "resources": {"vcpus": 1, "custom": {"CUSTOM_GPU": 0}}}]}`},
	{"PATCH /v1/groups/{id}", "/v1/groups/RESERVATION", `{}`},
	{"POST /v1/series", "", `{"name": "s", "rule": "FREQ=DAILY;COUNT=2", "time_zone": "UTC", "local_start": "2026-12-01T09:00", "duration": 60, "except": [], "also": [], "kind": "instance", "resources": {"vcpus": 1, "custom": {"CUSTOM_GPU": 0}}}`},
	{"PATCH /v1/series/{id}", "/v1/series/SERIES", `{}`},
	{"POST /v1/webhooks", "", `{"name": "w", "url": "https://192.0.2.1/", "event_types": []}`},
	{"POST /v1/offers", "", `{"quantity": {"min": 1, "max": 1}, "duration": {"min": 60, "max": 60}, "windows": [{}], "alternatives": [{"kind": "instance", "resources": {"vcpus": 1, "custom": {"CUSTOM_GPU": 0}}}]}`},
	{"PATCH /v1/reservations/{id}", "/v1/reservations/RESERVATION", `{}`},
	{"PATCH /v1/hosts/{name}", "/v1/hosts/A", `{"properties": {}}`},
	{"PATCH /v1/properties/{name}", "/v1/properties/gpu", `{"hidden": true}`},
	{"POST /v1/doctor", "", `{}`},
	{"POST /v1/scheduler/filter", "", `{"hosts": ["A"], "request": {"hints": {"reservation": ["RESERVATION"]}}}`},
	{"POST /v1/scheduler/weigh", "", `{"hosts": ["A"], "request": {"hints": {"reservation": ["RESERVATION"]}, "extra_specs": {}, "instances": ["i"]}}`},
	{"POST /v1/besteffort", "", `{"name": "w", "flavor": "tiny", "image": "cirros", "duration": 60, "networks": ["1bd4a1c8-4b61-4d8f-9d3c-4e6a3a3c4e11"], "metadata": {}}`},
	{"POST /v1/demo/servers", "", `{"name": "w", "flavor": "small", "image": "debian", "hints": {}}`},
	{"POST /v1/packing", "", `{}`},
	{"POST /v1/packing/runs", "", `{}`},
	{"PATCH /v1/energy", "", `{"mode": "off", "aggregates": {}, "hosts": {}}`},
	{"POST /v1/energy/plan", "", `{"approve": "p"}`},
	{"POST /v1/energy/hosts/{name}", "/v1/energy/hosts/A", `{"action": "on"}`},
	{"POST /v1/leases", "", leaseOf(`"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""`)},
	{"POST /v1/leases", "", leaseOf(`"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 512, "disk_gb": 1, "amount": 1, "affinity": null, "resource_properties": ""`)},
	{"POST /v1/leases", "", leaseOf(`"resource_type": "virtual:floatingip", "network_id": "outside", "amount": 1, "required_floatingips": []`)},
	{"PUT /v1/leases/{id}", "/v1/leases/LEASE", `{"reservations": [{"id": "MEMBER"}]}`},
	{"PATCH /v1/leases/{id}", "/v1/leases/LEASE", `{"reservations": [{"id": "MEMBER"}]}`},
	{"POST /v1/os-hosts", "", `{"name": "A"}`},
	{"PUT /v1/os-hosts/{id}", "/v1/os-hosts/1", `{"gpu": "a100"}`},
	{"PATCH /v1/os-hosts/{id}", "/v1/os-hosts/1", `{"gpu": "a100"}`},
	{"PATCH /v1/os-hosts/properties/{name}", "/v1/os-hosts/properties/gpu", `{"private": true}`},
	{"POST /v1/floatingips", "", `{"floating_network_id": "outside", "floating_ip_address": "198.51.100.200"}`},
}

func leaseOf(member string) string {
	return `{"name": "l", "start_date": "2026-11-20 13:00", "end_date": "2026-11-20 14:00", "reservations": [{` + member + `}]}`
}

// unbounded names the places of a body that take a text of any length, and why that breaks nothing.
var unbounded = map[string]string{
	"POST /v1/leases events.*.event_type": "a body has at most 64 KiB, and the column of the events takes 1 MiB",
}

// textPlace is a place for a text in the body of a call: keys, where * is each element of a list and + a further key
// of an object. longest is its length in the document; nil if that has none.
type textPlace struct {
	path    []string
	longest *uint64
	// isKey is true if the text is the further key itself, whose value is then value.
	isKey bool
	value any
}

func (p textPlace) String() string {
	if p.isKey {
		return "key of " + strings.Join(p.path[:len(p.path)-1], ".")
	}
	return strings.Join(p.path, ".")
}

// textPlaces returns the places of a schema below path. Of alternatives it has all.
func textPlaces(s *openapi3.SchemaRef, path ...string) (list []textPlace) {
	if len(path) > 5 { // expressions contain expressions
		return nil
	}
	within := func(s *openapi3.SchemaRef, key string) {
		list = append(list, textPlaces(s, append(slices.Clone(path), key)...)...)
	}
	if len(path) > 0 {
		list = append(list, textPlace{path: path, longest: s.Value.MaxLength})
	}
	for _, s := range slices.Concat(openapi3.SchemaRefs{s}, s.Value.AnyOf, s.Value.OneOf, s.Value.AllOf) {
		for _, key := range slices.Sorted(maps.Keys(s.Value.Properties)) {
			within(s.Value.Properties[key], key)
		}
		if s.Value.Items != nil {
			within(s.Value.Items, "*")
		}
		if more := s.Value.AdditionalProperties.Schema; more != nil {
			key := textPlace{path: append(slices.Clone(path), "+"), isKey: true}
			if more.Value.Type.Includes("string") {
				key.value = "x"
			}
			list = append(list, key)
			within(more, "+")
		}
	}
	return list
}

// with returns a copy of a body with a text in a place.
func (p textPlace) with(body any, text string) any {
	return p.set(body, p.path, text)
}

func (p textPlace) set(at any, path []string, text string) any {
	if len(path) == 0 {
		return text
	}
	switch key := path[0]; {
	case key == "*":
		list, _ := at.([]any)
		var first any
		if len(list) > 0 {
			first = list[0]
		}
		return []any{p.set(first, path[1:], text)}
	default:
		object, _ := at.(map[string]any)
		object = maps.Clone(object)
		if object == nil {
			object = map[string]any{}
		}
		switch {
		case key == "+" && p.isKey:
			object[text] = p.value
		case key == "+":
			object["another"] = p.set(object["another"], path[1:], text)
		default:
			object[key] = p.set(object[key], path[1:], text)
		}
		return object
	}
}

// startWithEverything starts a cloud in which each of fullBodies is accepted many times, and returns it with the function
// that replaces the names of ids.
func startWithEverything(t *testing.T) (*cloud, func(string) string) {
	t.Helper()
	hosts := computes("A")
	for n := range 60 {
		hosts = append(hosts, compute(fmt.Sprint("host-", n)))
	}
	hosts[0].Properties = map[string]inventory.Value{"gpu": inventory.StringValue("a100")}
	c := start(t, setup{hosts: hosts, adjust: func(o *api.Options) { o.Demo = demoCloud{} }})
	c.wait(60)
	measured(c)
	planned(c, "p", energy.Plan{})
	for n := range 60 {
		must(t, c.store.Enroll(t.Context(), address.Enrolled{ID: uuid.NewString(), Network: "outside", Subnet: "subnet", Address: fmt.Sprint("198.51.100.", 20+n)}))
	}
	l := c.demo.lease(hostLease("l", "12:10", "13:00", 1))
	r := c.demo.book(`{"name": "r", "start_time": "2026-11-20T12:10:00Z", "duration": 3600}`)
	s := c.demo.series("")
	return c, strings.NewReplacer("LEASE", l.ID, "MEMBER", l.Reservations[0]["id"].(string), "RESERVATION", r.ID, "SERIES", s.ID).Replace
}

// stores reports whether the files of the database contain a text.
func (c *cloud) stores(text string) bool {
	c.t.Helper()
	files, err := filepath.Glob(c.file + "*")
	must(c.t, err)
	return slices.ContainsFunc(files, func(path string) bool {
		raw, err := os.ReadFile(path)
		must(c.t, err)
		return bytes.Contains(raw, []byte(text))
	})
}

// tooLong matches the message of an error about the length of a text.
var tooLong = regexp.MustCompile(`more than \d+ characters`)

// holdBound sends a body with texts in a place: one that is too long is refused, or at least not stored.
func holdBound(t *testing.T, c *cloud, name string, p textPlace, send func(text string) answer) {
	t.Helper()
	mark := uuid.NewString()
	if p.longest != nil && *p.longest > 0 {
		of := strings.Repeat("ä"+mark, int(*p.longest)/len(mark)+1)
		atMost, more := send(string([]rune(of)[:*p.longest])), send(string([]rune(of)[:*p.longest+1]))
		if message := faultOf(atMost); message != "" && message == faultOf(more) {
			t.Errorf("%s: the document allows %d characters, which are refused: %s", name, *p.longest, message)
		}
		if more.status < 300 {
			t.Errorf("%s: the document allows %d characters, and more are accepted", name, *p.longest)
		}
		return
	}
	a := send(strings.Repeat(mark, 20<<10/len(mark)))
	reason, named := unbounded[name]
	switch stored := a.status < 300 && c.stores(mark+mark); {
	case a.status >= 500:
		t.Errorf("%s: a long text is answered with %.300v", name, a)
	case stored && !named:
		t.Errorf("%s: a long text is stored; bound it, or state in unbounded why that breaks nothing", name)
	case !stored && named:
		t.Errorf("%s: a long text is not stored, but unbounded states that it is: %s", name, reason)
	case tooLong.MatchString(faultOf(a)) && p.longest == nil && !p.isKey:
		t.Errorf("%s: a long text is refused, and the document has no maxLength: %s", name, faultOf(a))
	case a.status == http.StatusConflict && bytes.Contains(a.body, []byte(`"refused"`)):
		t.Errorf("%s: the request is refused for another reason: %.300v", name, a)
	}
}

// faultOf returns the message of an error; empty for an answer that is none.
func faultOf(a answer) string {
	var e v1.ErrorAnswer
	if a.status < 300 || json.Unmarshal(a.body, &e) != nil {
		return ""
	}
	return e.Error.Message
}

// SQLite stores a text of any length, so a bound that is forgotten shows in nothing else until MariaDB refuses the row.
// Blazar's calls are held with the keys of microversion 1.1.
func TestEachTextOfARequestIsBounded(t *testing.T) {
	contract, held := openContract(t), map[string]bool{}
	for _, full := range fullBodies {
		held[full.call] = true
		method, path, _ := strings.Cut(full.call, " ")
		schema := contract.bodyOf(full.call)
		if schema == nil {
			t.Errorf("the document has no body for %s", full.call)
			continue
		}
		c, replaced := startWithEverything(t)
		if full.path != "" {
			path = replaced(full.path)
		}
		send := func(body any) answer {
			_, a := c.admin.exchange(method, path, encode(t, body), "OpenStack-API-Version", "reservation 1.1")
			return a
		}
		var body map[string]any
		must(t, json.Unmarshal([]byte(replaced(full.body)), &body))
		if a := send(body); a.status >= 300 {
			t.Errorf("%s: %s is answered with %v", full.call, full.body, a)
			continue
		}
		for _, p := range textPlaces(schema) {
			held[full.call+" "+p.String()] = true
			holdBound(t, c, full.call+" "+p.String(), p, func(text string) answer { return send(p.with(body, text)) })
		}
	}
	for _, call := range contract.routes() {
		if contract.bodyOf(call) != nil && !held[call] {
			t.Errorf("%s has a body; add one to fullBodies", call)
		}
	}
	for name := range unbounded {
		if !held[name] {
			t.Errorf("unbounded names %s, which is no place", name)
		}
	}
}

// bodyOf returns the schema of the body of a call; nil if it has none.
func (c *contract) bodyOf(call string) *openapi3.SchemaRef {
	method, path, _ := strings.Cut(call, " ")
	for _, document := range []*openapi3.T{c.document, c.blazar} {
		item := document.Paths.Value(path)
		if item == nil || item.GetOperation(method) == nil || item.GetOperation(method).RequestBody == nil {
			continue
		}
		return item.GetOperation(method).RequestBody.Value.Content.Get("application/json").Schema
	}
	return nil
}
