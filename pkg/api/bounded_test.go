// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// SQLite stores a text of any length, so a check that is forgotten shows in nothing else.
func TestEachTextOfARequestIsBounded(t *testing.T) {
	c := start(t, setup{})
	r := c.demo.book(`{"name": "r", "duration": 60}`)
	long := strings.Repeat("x", 1<<12)
	for _, of := range []struct {
		form       reflect.Type
		method, at string
		body       map[string]any
	}{
		{reflect.TypeFor[v1.ReservationRequest](), http.MethodPost, "/v1/reservations", map[string]any{"name": "s", "duration": 60}},
		{reflect.TypeFor[v1.ReservationChange](), http.MethodPatch, "/v1/reservations/" + r.ID, nil},
	} {
		for field := range of.form.Fields() {
			kind := field.Type
			if kind.Kind() == reflect.Pointer {
				kind = kind.Elem()
			}
			if kind.Kind() != reflect.String {
				continue
			}
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			body := map[string]any{}
			maps.Copy(body, of.body)
			body[key] = long
			text, err := json.Marshal(body)
			must(t, err)
			if a := c.demo.ask(t, of.method, of.at, string(text)); a.Code != http.StatusBadRequest {
				t.Errorf("%s: a %s of %d characters is answered with %d: %.200s", of.form.Name(), key, len(long), a.Code, a.Body)
			}
		}
	}
}
