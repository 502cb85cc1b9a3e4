// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// described starts a cloud whose hosts have properties of each type, from the inventory and from both
// APIs.
func described(t *testing.T) *cloud {
	a, b := compute("a"), compute("b")
	a.Properties = map[string]inventory.Value{
		"gpu": inventory.StringValue("a100"), "slots": inventory.NumberValue(64), "load": inventory.NumberValue(0.25), "ssd": inventory.BoolValue(true),
		"nets": inventory.ListValue([]string{"ib", "eth"}), "set": inventory.NumberValue(1),
	}
	b.Power = inventory.PowerSleeping
	c := start(t, setup{hosts: []inventory.Host{a, b}})
	c.wait(60)
	want[v1.Host](t, c.admin.patch("/v1/hosts/a", `{"properties": {"set": 2, "own": ["x"]}, "reservable": false}`), http.StatusOK)
	for _, host := range []string{"1", "2"} {
		want[any](t, c.admin.put("/v1/os-hosts/"+host, `{"rack": "007", "fast": "True", "lanes": 4}`), http.StatusOK)
	}
	c.wait(60)
	return c
}

// settings returns the values that each call sets as an admin reads them now, by its method and path.
func settings(t reporter, c *cloud) map[string]map[string]any {
	t.Helper()
	calls := map[string]map[string]any{
		"PATCH /v1/properties/rack":         {"hidden": false},
		"PATCH /v1/os-hosts/properties/gpu": {"private": false},
		"PUT /v1/os-hosts/1":                c.object("/v1/os-hosts/1", "host"),
		"PATCH /v1/os-hosts/b":              c.object("/v1/os-hosts/b", "host"),
	}
	for _, name := range []string{"a", "b"} {
		host, fields := c.object("/v1/hosts/"+name), make(map[string]any)
		for field := range reflect.TypeFor[v1.HostChange]().Fields() {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			value, shown := host[key]
			if !shown {
				t.Fatalf("how is the value of %s read, which PATCH /v1/hosts/{name} sets?", key)
			}
			fields[key] = value
		}
		calls["PATCH /v1/hosts/"+name] = fields
	}
	return calls
}

// What an admin reads of a host or a property, and sends back as a whole or in part, is not stored as a
// setting: later values of the inventory still count, and a capability keeps its spelling.
//
//make:test-drawn
func TestAHostThatIsReadAndSentBackStaysAsItIs(t *testing.T) {
	c := described(t)
	rapid.Check(t, func(rt *rapid.T) {
		c.t = rt
		before, stored := settings(rt, c), c.everything()
		call := rapid.SampledFrom(slices.Sorted(maps.Keys(before))).Draw(rt, "call")
		body := drawSome(rt, before[call])
		if properties, sent := body["properties"].(map[string]any); sent {
			body["properties"] = drawSome(rt, properties)
		}
		method, path, _ := strings.Cut(call, " ")
		if len(body) == 0 {
			return // some calls require a value
		}
		sent := encode(rt, body)
		if a := c.admin.send(method, path, sent); a.status != http.StatusOK {
			rt.Fatalf("%s of %s: %v", call, sent, a)
		}
		if diff := cmp.Diff(before, settings(rt, c)); diff != "" {
			rt.Fatalf("%s of %s (-before +after):\n%s", call, sent, diff)
		}
		if diff := cmp.Diff(stored, c.everything()); diff != "" {
			rt.Fatalf("%s of %s, stored (-before +after):\n%s", call, sent, diff)
		}
	})
}

func TestAPropertyHasOnlyNumbersThatAreComparedExactly(t *testing.T) {
	c := start(t, setup{})
	for i, tc := range []struct {
		value  string
		status int
	}{
		{"9007199254740992", 200}, {"9007199254740993", 400}, {"-9007199254740993", 400}, {"1.5", 200}, {"1e300", 200}, {"[1]", 400}, {`"9007199254740993"`, 200},
	} {
		if a := c.admin.patch("/v1/hosts/A", fmt.Sprintf(`{"properties": {"p%d": %s}}`, i, tc.value)); a.status != tc.status {
			t.Errorf("%s: got %v, want %d", tc.value, a, tc.status)
		}
	}
}
