// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// values are values of every kind for the keys of Blazar's bodies, some of them right for some key.
var values = append(slices.Clone(odd), "now", "2026-11-20 13:00", "2026-11-20 12:10", "1h", 600, "shelve", "None", "True", "1", "physical:host", "virtual:instance", "default",
	`["==", "$vcpus", "8"]`, `["and"]`, []any{"or", []any{"==", "$name", "A"}}, []any{[]any{}}, map[string]any{"id": 5})

// ofEachKind are a few values of each kind.
var ofEachKind = []any{nil, true, 0, -1, 1.5, 1e30, "", "x", "\x00", []any{}, []any{nil}, map[string]any{}, map[string]any{"id": 5}}

// The keys of bodies about hosts; any key is a capability.
var (
	hostKeys     = []string{"name", "id", "gpu", "slots", "vcpus", "reservable", "trust_id", "", " "}
	propertyKeys = []string{"private", "is_unique", "more"}
)

// leaseKeys returns the keys of the bodies of leases and of their reservations, and one that nobody knows.
func leaseKeys(t testing.TB) (ofLease, ofMember []string) {
	t.Helper()
	created, member := openContract(t).bodyOf("POST /v1/leases").Value.Properties, openContract(t).blazar.Components.Schemas["WrittenReservation"].Value.Properties
	return append(slices.Sorted(maps.Keys(created)), "more"), append(slices.Sorted(maps.Keys(member)), "more")
}

// bodyTaker is a cloud with a lease and two hosts with capabilities, to which a test sends bodies.
type bodyTaker struct {
	*cloud
	lease, member string
}

func startForBodies(t *testing.T) *bodyTaker {
	t.Helper()
	c := start(t, setup{hosts: computes("A", "B", "C")})
	l := c.demo.lease(hostLease("l", "12:10", "13:00", 1))
	want[map[string]any](t, c.admin.post("/v1/os-hosts", `{"name": "A", "gpu": "a100", "slots": 4}`), http.StatusCreated)
	return &bodyTaker{c, l.ID, l.Reservations[0]["id"].(string)}
}

// calls returns the calls that have a body, each with right bodies.
func (b *bodyTaker) calls() map[[2]string][]map[string]any {
	member := map[string]any{"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}
	slice := map[string]any{"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 512, "disk_gb": 1, "amount": 1, "affinity": nil}
	lease := func(members ...any) map[string]any {
		return map[string]any{"name": "l", "start_date": "2026-11-20 12:10", "end_date": "2026-11-20 13:00", "reservations": members}
	}
	changes := []map[string]any{lease(map[string]any{"id": b.member, "min": 1, "max": 1})}
	hosts := []map[string]any{{"name": "A", "gpu": "a100"}}
	return map[[2]string][]map[string]any{
		{"POST", "/v1/leases"}:                    {lease(member), lease(slice)},
		{"PUT", "/v1/leases/" + b.lease}:          changes,
		{"PATCH", "/v1/leases/" + b.lease}:        changes,
		{"POST", "/v1/os-hosts"}:                  hosts,
		{"PUT", "/v1/os-hosts/1"}:                 hosts,
		{"PATCH", "/v1/os-hosts/properties/gpu"}:  {{"private": false}},
		{"PATCH", "/v1/os-hosts/properties/none"}: {{"private": true}},
	}
}

// keys returns the keys of the body of a call; ofLease are those of a lease.
func keys(path string, ofLease []string) []string {
	switch {
	case path[:len("/v1/l")] == "/v1/l":
		return ofLease
	case len(path) > len("/v1/os-hosts/properties"):
		return propertyKeys
	}
	return hostKeys
}

// microversions are the microversions that a request may select.
var microversions = []string{"reservation 1.0", "reservation 1.1"}

// send sends a body by another way than a caller: without a network, and without the document.
func (b *bodyTaker) send(t reporter, version, method, path, body string) answer {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	request.Header.Set("OpenStack-API-Version", version)
	request.Header.Set("X-Auth-Token", b.admin.token)
	recorder := httptest.NewRecorder()
	b.handler.ServeHTTP(recorder, request)
	return answer{status: recorder.Code, header: recorder.Header(), body: recorder.Body.Bytes()}
}

// take sends a body. The answer must be a success, or a mistake of the user with a message, which
// changes nothing.
func (b *bodyTaker) take(t reporter, call [2]string, body any, send func(method, path, body string) answer) {
	t.Helper()
	text := encode(t, body)
	list := func() string { return b.send(t, microversions[0], "GET", "/v1/leases", "").String() }
	before := list()
	switch a := send(call[0], call[1], text); a.status {
	case http.StatusOK:
	case http.StatusCreated:
		if call[1] == "/v1/leases" {
			b.send(t, microversions[0], "DELETE", "/v1/leases/"+leaseIn(t, a, a.status).ID, "")
		}
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusConflict:
		if wantFault(t, a, a.status, "").Message == "" {
			t.Fatalf("%v %s: no error_message: %v", call, text, a)
		}
		if after := list(); after != before {
			t.Fatalf("%v %s is refused, and the leases are %s, were %s", call, text, after, before)
		}
	default:
		t.Fatalf("%v %s: got %v", call, text, a)
	}
}

// Each key of each body of Blazar's API may have a value of any kind beside right ones, and so may
// the whole body. What the server accepts is in its document.
//
//make:test-drawn
func TestNoValueOfAKeyBreaksTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("the test takes some seconds")
	}
	b := startForBodies(t)
	ofLease, ofMember := leaseKeys(t)
	for call, right := range b.calls() {
		take := func(body any) {
			for _, version := range microversions {
				b.take(t, call, body, func(method, path, body string) answer {
					return b.admin.send(method, path, body, "OpenStack-API-Version", version)
				})
			}
		}
		for _, body := range right {
			each(body, keys(call[1], ofLease), func(changed map[string]any) { take(changed) })
			members, _ := body["reservations"].([]any)
			for _, member := range members {
				each(member.(map[string]any), ofMember, func(changed map[string]any) {
					whole := maps.Clone(body)
					whole["reservations"] = []any{changed}
					take(whole)
				})
			}
		}
		for _, value := range ofEachKind {
			take(value)
		}
	}
}

// each calls f with copies of an object, in which one of the keys has one of ofEachKind.
func each(object map[string]any, keys []string, f func(map[string]any)) {
	for _, key := range keys {
		for _, value := range ofEachKind {
			changed := maps.Clone(object)
			changed[key] = value
			f(changed)
		}
	}
}

// The same for several keys at once. make test-blazar-bodies draws a million bodies.
//
//make:test-drawn test-blazar-bodies
func TestNoBodyOfBlazarsBreaksTheServer(t *testing.T) {
	b := startForBodies(t)
	ofLease, ofMember := leaseKeys(t)
	value := rapid.SampledFrom(values)
	member := rapid.MapOfN(rapid.SampledFrom(ofMember), rapid.OneOf(value, rapid.Just[any](b.member)), 0, 8)
	members := rapid.OneOf(value, rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(member, 0, 3).Draw(t, "members") }))
	calls := b.calls()
	routes := slices.SortedFunc(maps.Keys(calls), func(x, y [2]string) int { return slices.Compare(x[:], y[:]) })
	rapid.Check(t, func(rt *rapid.T) {
		for _, call := range routes {
			name := fmt.Sprint(call)
			body := rapid.MapOfN(rapid.SampledFrom(keys(call[1], ofLease)), value, 0, 6).Draw(rt, name)
			if rapid.Bool().Draw(rt, "the rest is right") {
				for key, right := range rapid.SampledFrom(calls[call]).Draw(rt, "right") {
					if _, drawn := body[key]; !drawn || rapid.Bool().Draw(rt, key) {
						body[key] = right
					}
				}
			}
			if _, has := body["reservations"]; has && rapid.Bool().Draw(rt, "with reservations") {
				body["reservations"] = members.Draw(rt, "reservations")
			}
			version := rapid.SampledFrom(microversions).Draw(rt, "version")
			b.take(rt, call, body, func(method, path, body string) answer { return b.send(rt, version, method, path, body) })
		}
	})
}
