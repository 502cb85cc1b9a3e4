// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// odd holds values of every kind, some of them right for some field.
var odd = []any{
	nil, true, 0, 1, 2, -1, 1.5, 3600, 1 << 40, -1 << 63, 1e30, "", "x", "2h30m", "first-fit", "pe-worst-fit", "host", "instance", "same",
	"none", "delete", "\x00", "🂡", at(-1), at(0), at(60), at(3600), at(7200), "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
	[]any{}, []any{nil}, []any{"=", 1, 1}, []any{"=", "$vcpus", 8}, []any{"not", []any{"=", "$x", 1}}, []any{"in", "A", "$name"}, `["=", 1, 1]`,
	map[string]any{}, map[string]any{"vcpus": 1}, map[string]any{"vcpus": 1 << 62, "memory_mb": 1}, map[string]any{"custom": map[string]any{"X": 1}},
}

// objects draws objects with these field names.
func objects(names ...string) *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom(names), rapid.SampledFrom(odd), 0, 6)
}

// The server answers every body as the document states: with what the body asks for, or with the
// user's mistake or a refusal, and then changes nothing. Each request also checks that the
// document allows what the server accepts.
//
//make:test-drawn
func TestNoBodyBreaksTheServer(t *testing.T) {
	c := start(t, setup{})
	r := c.admin.book(`{"name": "r", "duration": 7200}`)
	requests := objects("name", "kind", "host_properties", "start_time", "end_time", "duration", "quantity", "policy", "resources",
		"flavor", "affinity", "image", "on_end", "before_end", "more")
	changes := objects("name", "quantity", "start_time", "end_time", "more")
	before := c.everything()
	rapid.Check(t, func(rt *rapid.T) {
		c.t = rt
		for call, body := range map[[2]string]map[string]any{
			{"POST", "/v1/reservations?dry_run=true"}:               requests.Draw(rt, "request"),
			{"PATCH", "/v1/reservations/" + r.ID + "?dry_run=true"}: changes.Draw(rt, "change"),
			{"POST", "/v1/scheduler/filter"}:                        objects("hosts", "request").Draw(rt, "question"),
			{"POST", "/v1/scheduler/weigh"}:                         objects("hosts", "request").Draw(rt, "question"),
		} {
			a := c.admin.send(call[0], call[1], encode(t, body))
			if !slices.Contains([]int{http.StatusOK, http.StatusBadRequest, http.StatusConflict}, a.status) {
				rt.Fatalf("%v %v: got %v", call, body, a)
			}
		}
	})
	c.t = t
	if diff := cmp.Diff(before, c.everything()); diff != "" {
		t.Errorf("something was stored:\n%s", diff)
	}
}
