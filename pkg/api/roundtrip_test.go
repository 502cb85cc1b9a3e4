// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/api"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// phases are the times, in seconds after noon, between which no reservation of repeatedly starts or ends.
var phases = []struct {
	name     string
	from, to int
}{
	{"before the start", 30, 540},
	{"in the minute of the start on a second", 557, 599},
	{"in the minute of the start", 600, 604},
	{"in the minute of start and end", 625, 654},
	{"while they are active", 700, 4139},
	{"in the last minute of the leases", 4140, 4199},
	{"in the last minute of the lease on a second", 4240, 4256},
	{"in the last minute of the last", 4260, 4280},
	{"once they are over", 4400, 9000},
}

// repeatedly starts a cloud with reservations of all kinds, made through both APIs, whose times are
// minutes or seconds. Their ids are those of their leases in Blazar's API.
func repeatedly(t *testing.T) (c *cloud, ids []string) {
	var id atomic.Int64
	c = start(t, setup{hosts: computes("A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N"), adjust: func(o *api.Options) {
		o.Blazar.Nova = &callersNova{t: t, groups: map[string]string{}, quota: 9}
		o.NewID = func() string { return fmt.Sprintf("6f1a7a52-0000-4000-8000-%012d", id.Add(1)) }
	}})
	enrolled(c, "198.51.100.101", "198.51.100.102", "198.51.100.103")
	c.other.book(`{"name": "until a second", "duration": 557, "host_properties": ["=", "$name", "H"]}`)
	late := `{"name": "late", "start_date": "2026-11-20 12:05", "duration": 3700, "deadline": "2026-11-20 15:00", "reservations": [
		{"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": ["==", "$service_name", "H"], "resource_properties": ""}]}`
	ids = append(ids, leaseIn(t, c.demo.newer("POST", "/v1/leases", late), http.StatusCreated).ID)
	for _, body := range []string{
		`{"name": "native", "start_time": "2026-11-20T12:10:20Z", "duration": 3661}`,
		`{"name": "short", "start_time": "2026-11-20T12:10:25Z", "duration": 30}`,
		`{"name": "instances", "kind": "instance", "start_time": "2026-11-20T12:10:05Z", "duration": 3600, "quantity": 2,
			"resources": {"vcpus": 2, "memory_mb": 1024}, "affinity": "different", "host_properties": [">=", "$vcpus", 4], "before_end": 95, "on_end": "shelve"}`,
	} {
		ids = append(ids, c.demo.book(body).ID)
	}
	blocker := c.other.book(`{"name": "for a time", "start_time": "2026-11-20T12:10:00Z", "duration": 60, "quantity": 7}`)
	lease := func(keys string, members ...string) {
		body := fmt.Sprintf(`{"name": "l%d", "start_date": "2026-11-20 12:10", %s, "reservations": [%s]}`, len(ids), keys, strings.Join(members, ","))
		ids = append(ids, leaseIn(t, c.demo.newer("POST", "/v1/leases", body), http.StatusCreated).ID)
	}
	until := `"end_date": "2026-11-20 13:10"`
	whole := `{"resource_type": "physical:host", "min": 1, "max": %d, "hypervisor_properties": %q, "resource_properties": ""}`
	lease(until+`, "on_end": "stop"`, fmt.Sprintf(whole, 8, "")) // gets fewer than it may have
	gone(t, c.other.delete("/v1/reservations/"+blocker.ID))
	lease(until+`, "before_end_date": "2026-11-20 12:40"`, someInstances(1, "true"), fmt.Sprintf(whole, 1, `[ ">=",  "$vcpus", "4" ]`))
	lease(until+`, "before_end_date": "2026-11-20 13:09"`, `{"resource_type": "flavor:instance", "flavor_id": 7, "amount": 2}`)
	lease(until, `{"resource_type": "virtual:floatingip", "network_id": "outside", "amount": 2, "required_floatingips": ["198.51.100.102"]}`)
	lease(until)
	return c, ids
}

// inPhases checks a property in each phase, at each moment that it draws.
func inPhases(t *testing.T, c *cloud, property func(rt *rapid.T)) {
	for _, phase := range phases {
		c.t = t
		c.wait(int64(phase.from) - int64(c.elapsed()/time.Second))
		c.wait(0)
		t.Run(phase.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				c.t = rt
				c.seconds.Store(int64(noon) + int64(rapid.IntRange(phase.from, phase.to).Draw(rt, "at")))
				property(rt)
			})
		})
		c.seconds.Store(int64(noon) + int64(phase.to))
	}
}

// object returns the JSON object at a path of an answer.
func (c *cloud) object(path string, inside ...string) map[string]any {
	c.t.Helper()
	object := want[map[string]any](c.t, c.admin.send("GET", path, "", "OpenStack-API-Version", "reservation 1.1"), http.StatusOK)
	for _, key := range inside {
		object = object[key].(map[string]any)
	}
	return object
}

// leaseFields returns the values of a lease, as GET returns it, by the keys in which PUT sets them.
// The document of the API lists the keys.
func leaseFields(t reporter, c *cloud, lease map[string]any) map[string]any {
	t.Helper()
	fields := make(map[string]any)
	for key := range c.contract.blazar.Components.RequestBodies["Change"].Value.Content["application/json"].Schema.Value.Properties {
		switch key {
		case "name", "start_date", "end_date", "reservations":
			fields[key] = lease[key]
		case "before_end_date":
			for _, e := range lease["events"].([]any) {
				if e := e.(map[string]any); e["event_type"] == "before_end_lease" {
					fields[key] = e["time"]
				}
			}
		case "duration":
			begin, end := instantOf(t, lease["start_date"]), instantOf(t, lease["end_date"])
			fields[key] = float64(end - begin)
		case "on_end":
			for _, r := range lease["reservations"].([]any) {
				if chosen, has := r.(map[string]any)[key]; has {
					fields[key] = chosen
				}
			}
		case "deadline", "dry_run": // no part of a lease
		default:
			t.Fatalf("how is the value of %s read, which PUT /v1/leases/{id} sets?", key)
		}
	}
	return fields
}

// instantOf returns the instant of a time in an answer of either API.
func instantOf(t reporter, text any) span.Instant {
	t.Helper()
	at, err := time.Parse(time.RFC3339, strings.TrimSuffix(fmt.Sprint(text), "Z")+"Z")
	must(t, err)
	return span.At(at)
}

// drawSome draws a part of an object.
func drawSome(rt *rapid.T, whole map[string]any) map[string]any {
	part := make(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(whole)) {
		if rapid.Bool().Draw(rt, key) {
			part[key] = whole[key]
		}
	}
	return part
}

// respell replaces the values of an object by others of drawn forms.
func respell(rt *rapid.T, object map[string]any, draw func(rt *rapid.T, key string, value any) any) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		object[key] = draw(rt, key, object[key])
	}
}

// drawSpelling returns a value in another form that Blazar's API reads as the same.
func drawSpelling(rt *rapid.T, key string, value any) any {
	as := func(forms ...any) any { return rapid.SampledFrom(forms).Draw(rt, key+" as") }
	switch value := value.(type) {
	case string:
		var list []any
		switch {
		case slices.Contains([]string{"start_date", "end_date", "before_end_date"}, key):
			at := instantOf(rt, value).Time()
			zone := time.FixedZone("", rapid.SampledFrom([]int{0, 3600, -34_200, 20_700}).Draw(rt, "zone"))
			return as(value, at.Format("2006-01-02 15:04"), at.Format("2006-1-2 15:4"), strings.ToLower(at.Format("2006-1-2T15:4:5Z")),
				at.In(zone).Format(time.RFC3339), at.In(zone).Format("2006-01-02 15:04-07:00"))
		case strings.HasSuffix(key, "_properties") && json.Unmarshal([]byte(value), &list) == nil:
			return as(value, list, " "+value)
		}
	case float64:
		whole := strconv.FormatFloat(value, 'f', -1, 64)
		return as(value, json.RawMessage(whole+".0"), whole)
	case bool:
		return as(value, map[bool]string{true: "True", false: "no"}[value])
	}
	return value
}

// What a client of Blazar's API reads of a lease, and sends back as a whole or in part, in any form,
// changes nothing: not the times, which have no seconds in this form, nor the amounts, where there
// is more room now, nor what is stored.
//
//make:test-drawn
func TestALeaseThatIsReadAndSentBackStaysAsItIs(t *testing.T) {
	c, ids := repeatedly(t)
	inPhases(t, c, func(rt *rapid.T) {
		path := "/v1/leases/" + rapid.SampledFrom(ids).Draw(rt, "lease")
		lease, stored := c.object(path, "lease"), c.everything()
		body := drawSome(rt, leaseFields(rt, c, lease))
		if members, sent := body["reservations"].([]any); sent {
			parts := make([]any, len(members))
			for i, m := range members {
				part := drawSome(rt, m.(map[string]any))
				respell(rt, part, drawSpelling)
				part["id"] = m.(map[string]any)["id"]
				parts[i] = part
			}
			body["reservations"] = parts
		}
		version := rapid.SampledFrom([]string{"reservation 1.0", "reservation 1.1"}).Draw(rt, "version")
		if _, timed := body["duration"]; timed && version == "reservation 1.1" {
			delete(body, "end_date") // both are not accepted
		}
		respell(rt, body, drawSpelling)
		method := rapid.SampledFrom([]string{http.MethodPut, http.MethodPatch}).Draw(rt, "method")
		sent := encode(rt, body)
		if a := c.demo.send(method, path, sent, "OpenStack-API-Version", version); a.status != http.StatusOK {
			rt.Fatalf("%s of %s: %v", method, sent, a)
		}
		if diff := cmp.Diff(lease, c.object(path, "lease")); diff != "" {
			rt.Fatalf("%s of %s (-before +after):\n%s", method, sent, diff)
		}
		if diff := cmp.Diff(stored, c.everything()); diff != "" {
			rt.Fatalf("%s of %s, stored (-before +after):\n%s", method, sent, diff)
		}
	})
}

// What a client of the native API reads of a reservation, and sends back, changes nothing.
//
//make:test-drawn
func TestAReservationThatIsReadAndSentBackStaysAsItIs(t *testing.T) {
	c, ids := repeatedly(t)
	for _, id := range ids {
		for _, r := range c.object("/v1/leases/"+id, "lease")["reservations"].([]any) {
			ids = append(ids, r.(map[string]any)["id"].(string))
		}
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return c.admin.get("/v1/reservations/"+id).status != http.StatusOK })
	inPhases(t, c, func(rt *rapid.T) {
		path := "/v1/reservations/" + rapid.SampledFrom(ids).Draw(rt, "reservation")
		r, stored := c.object(path), c.everything()
		fields := make(map[string]any)
		for field := range reflect.TypeFor[v1.ReservationChange]().Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			value, shown := r[strings.TrimSuffix(name, "_time")]
			if !shown && name == "host_properties" {
				value, shown = "", true // it has no filter
			}
			if !shown && name == "notice" {
				value, shown = 0.0, true // its time is fixed
			}
			if _, held := r["held_until"]; !shown && !held && name == "hold" {
				value, shown = 0.0, true // it is confirmed
			}
			if !shown && r["kind"] != "instance" && (name == "resources" || name == "affinity") {
				continue // it has no instances
			}
			if !shown {
				rt.Fatalf("how is the value of %s read, which PATCH /v1/reservations/{id} sets?", name)
			}
			fields[name] = value
		}
		body := drawSome(rt, fields)
		respell(rt, body, drawNativeSpelling)
		sent := encode(rt, body)
		over := slices.Contains([]any{"ended", "canceled"}, r["status"]) // which cannot be changed
		if a := c.demo.patch(path, sent); a.status != http.StatusOK && !(over && a.status == http.StatusConflict) {
			rt.Fatalf("PATCH of %s: %v", sent, a)
		}
		if diff := cmp.Diff(r, c.object(path)); diff != "" {
			rt.Fatalf("PATCH of %s (-before +after):\n%s", sent, diff)
		}
		if diff := cmp.Diff(stored, c.everything()); diff != "" {
			rt.Fatalf("PATCH of %s, stored (-before +after):\n%s", sent, diff)
		}
	})
}

// drawNativeSpelling returns a value in another form that the native API reads as the same.
func drawNativeSpelling(rt *rapid.T, name string, value any) any {
	as := func(forms ...any) any { return rapid.SampledFrom(forms).Draw(rt, name+" as") }
	switch value := value.(type) {
	case string:
		if !strings.HasSuffix(name, "_time") {
			return value
		}
		at := instantOf(rt, value).Time()
		zone := time.FixedZone("", rapid.SampledFrom([]int{0, 3600, -34_200, 20_700}).Draw(rt, "zone"))
		return as(value, strings.ToLower(value), at.In(zone).Format(time.RFC3339), at.Format("2006-01-02T15:04:05.75Z"))
	case float64:
		return as(value, json.RawMessage(strconv.FormatFloat(value, 'f', -1, 64)+".0"))
	case []any:
		return as(value, encode(rt, value), json.RawMessage(strings.ReplaceAll(encode(rt, value), ",", " ,  ")))
	}
	return value
}

// An end in the minute of the present one is the present one, but the word now means now.
func TestTheWordNowEndsALeaseInItsLastMinute(t *testing.T) {
	c := start(t, setup{})
	path := "/v1/leases/" + c.demo.book(`{"name": "r", "duration": 3598}`).ID
	c.wait(3550)
	if l := leaseIn(t, c.demo.put(path, `{"end_date": "2026-11-20 12:59"}`), http.StatusOK); l.EndDate != "2026-11-20T12:59:58.000000" {
		t.Errorf("with its own end to the minute, it ends at %s", l.EndDate)
	}
	if l := leaseIn(t, c.demo.put(path, `{"end_date": "now"}`), http.StatusOK); l.EndDate != "2026-11-20T12:59:10.000000" {
		t.Errorf("with the word now, it ends at %s, want now", l.EndDate)
	}
}

// A request gets the same offer in whatever form its values are written.
func TestARequestInAnotherFormGetsTheSame(t *testing.T) {
	c := start(t, setup{limits: planning.Limits{Hold: 900, Waiting: 1}})
	examples := map[string]any{
		"name": "r", "kind": "instance", "host_properties": []any{">=", "$vcpus", 4.0}, "start_time": at(3600), "end_time": at(9000), "duration": 1800.0,
		"quantity": 2.0, "policy": "first-fit", "resources": map[string]any{"vcpus": 2.0, "memory_mb": 512.0, "disk_gb": 1.0}, "affinity": "same",
		"together": map[string]any{"by": "name", "rule": "fewest", "required": false}, "on_end": "shelve", "before_end": 60.0, "notice": 60.0, "hold": 600.0,
		"wait_until": at(3600),
	}
	for field := range reflect.TypeFor[v1.ReservationRequest]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, has := examples[name]; !has && !slices.Contains([]string{"flavor", "image", "maintenance", "hosts"}, name) {
			t.Fatalf("there is no example of %s", name) // those four have one form only
		}
	}
	offer := func(body map[string]any) v1.Offer {
		return want[v1.OfferAnswer](c.t, c.admin.post("/v1/reservations?dry_run=true", encode(c.t, body)), http.StatusOK).Offer
	}
	usual := offer(examples)
	rapid.Check(t, func(rt *rapid.T) {
		c.t = rt
		body := maps.Clone(examples)
		size := maps.Clone(examples["resources"].(map[string]any))
		respell(rt, size, drawNativeSpelling)
		respell(rt, body, drawNativeSpelling)
		body["resources"] = size
		if diff := cmp.Diff(usual, offer(body)); diff != "" {
			rt.Fatalf("%v (-usual +got):\n%s", body, diff)
		}
	})
}
