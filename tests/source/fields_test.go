// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// A new field of a reservation is shown, requested, changed, sent and documented, or absent names the places where it
// is not, and why. The stored rows have tests of their own in tests/storetest.
func TestEachFieldOfAReservationIsInEachPlaceOrItsAbsenceHasAReason(t *testing.T) {
	places := fieldPlaces(t)
	unused := map[[2]string]string{}
	for _, a := range absent {
		for _, field := range strings.Fields(a.fields) {
			for _, place := range a.places {
				if unused[[2]string{field, place}] != "" {
					t.Errorf("the absence of %s in %s has two reasons", field, place)
				}
				unused[[2]string{field, place}] = a.why
			}
		}
	}
	for _, field := range fieldsOf(t) {
		for _, place := range places {
			key := [2]string{field, place.name}
			switch why := unused[key]; {
			case place.has(field) && why != "":
				t.Errorf("%s is in %s, but absent states that it is not: %s", field, place.name, why)
			case !place.has(field) && why == "":
				t.Errorf("%s is not in %s: add it there, or state in absent why it does not belong there", field, place.name)
			}
			delete(unused, key)
		}
	}
	for key := range unused {
		t.Errorf("absent names the field %s in the place %s; one of them does not exist", key[0], key[1])
	}
}

// A text of the owner that the log has whole, or with its line breaks, would be as long, and would look, as its owner likes.
func TestTheLogCutsAndQuotesEachTextOfAReservation(t *testing.T) {
	long := "[\"first\nsecond\", \"" + strings.Repeat("x", 255) + "\"]"
	for _, before := range examples() {
		for _, field := range fieldsOf(t) {
			after := before
			after.Claims, after.Addresses, after.Events = slices.Clone(before.Claims), slices.Clone(before.Addresses), slices.Clone(before.Events)
			visit(t, reflect.ValueOf(&after).Elem(), "", func(path string, v reflect.Value) {
				if path == field && v.Type() == reflect.TypeFor[string]() {
					v.SetString(long)
				}
			})
			if said := planning.Difference(before, after); strings.Contains(said, "\n") || len(said) > len(long) {
				t.Errorf("the log has %s as it was written: set text in its row of changeable (reservation/planning/changed.go)", field)
			}
		}
	}
}

// fieldsOf returns the paths of all fields of a reservation, sorted.
func fieldsOf(t *testing.T) []string {
	fields := map[string]bool{}
	visit(t, reflect.ValueOf(&reservation.Reservation{}).Elem(), "", func(path string, _ reflect.Value) { fields[path] = true })
	return slices.Sorted(maps.Keys(fields))
}

// visit calls do with each field that contains no other fields, and its path, such as Name or Events.Type. It adds an
// element to empty slices.
func visit(t *testing.T, v reflect.Value, path string, do func(path string, v reflect.Value)) {
	t.Helper()
	switch {
	case v.Type() == reflect.TypeFor[resource.Vector](), v.Type() == reflect.TypeFor[reservation.Together]():
		do(path, v)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			switch {
			case field.Anonymous:
				visit(t, v.Field(i), path, do)
			case path == "":
				visit(t, v.Field(i), field.Name, do)
			default:
				visit(t, v.Field(i), path+"."+field.Name, do)
			}
		}
	case v.Kind() == reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			visit(t, v.Index(i), path, do)
		}
	default:
		do(path, v)
	}
}

// vary sets a field to another value. A text becomes valid JSON, the form of filters.
func vary(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(`"another"`)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 60)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[reservation.Together]() {
			v.Set(reflect.ValueOf(reservation.Together{By: "rack", Rule: reservation.TogetherSpread, Values: 2}))
			return
		}
		v.Set(reflect.ValueOf(resource.Vector{VCPUs: 64}))
	default:
		t.Fatalf("%s: teach the test another value of a %s", path, v.Type())
	}
}

// examples returns reservations of each kind, in a lease and alone.
func examples() (all []reservation.Reservation) {
	const noon = span.Instant(1795262400)
	hour := span.New(noon, 3600)
	for _, kind := range reservation.Kinds {
		for _, lease := range []string{"", "5d1c2f6e-0c3c-4b5e-8a53-0f6f1c9b7a20"} {
			r := reservation.Reservation{
				ID: "8a8f1f3e-5f6c-4f0e-9d2e-3a2f6f1f0a11", ProjectID: "p", UserID: "u",
				Terms: reservation.Terms{
					Name: "training", Kind: kind, Quantity: 2, Policy: calendar.PolicyFirstFit, HostProperties: `["=", "$gpu", "a100"]`,
					Resources: resource.Vector{VCPUs: 2}, Affinity: calendar.AffinitySame, Image: "i", OnEnd: reservation.OnEndDelete, BeforeEnd: 600, Notice: 60,
				},
				Membership: reservation.Membership{LeaseID: lease},
				Status:     reservation.Active, Span: hour, Window: hour,
				Claims:    []reservation.Claim{{Host: "node-1", Span: hour}},
				Addresses: []address.Claim{{Network: "n", Address: "192.0.2.1"}},
				Events: []reservation.Event{
					{Type: reservation.StartEvent, Time: noon, State: reservation.EventDone, Done: noon + 1},
					{Type: reservation.BeforeEndEvent, Time: noon + 3000, State: reservation.EventDue},
					{Type: reservation.EndEvent, Time: noon + 3600, State: reservation.EventDue},
				},
				Created: noon - 3600, Updated: noon, Version: 1,
			}
			if lease != "" {
				r.Membership.Min, r.Membership.Max = 1, 3
			}
			all = append(all, r)
		}
	}
	return all
}

// shownAs returns the JSON keys that change if a field has another value, such as events.type for one in a list.
func shownAs(t *testing.T, field string, show func(r reservation.Reservation) any) []string {
	t.Helper()
	keys := map[string]bool{}
	for i := range examples() {
		one, other := examples()[i], examples()[i]
		visit(t, reflect.ValueOf(&one).Elem(), "", func(string, reflect.Value) {})
		visit(t, reflect.ValueOf(&other).Elem(), "", func(path string, v reflect.Value) {
			if path == field {
				vary(t, path, v)
			}
		})
		compare(asJSON(t, show(one)), asJSON(t, show(other)), "", keys)
	}
	return slices.Sorted(maps.Keys(keys))
}

func asJSON(t *testing.T, v any) (parsed any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &parsed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// compare adds the keys with different values. Of a list of objects they are those of the objects.
func compare(one, other any, path string, keys map[string]bool) {
	list, isList := one.([]any)
	others, areLists := other.([]any)
	object, isObject := one.(map[string]any)
	objects, areObjects := other.(map[string]any)
	switch {
	case isList && areLists && len(list) == len(others):
		for i := range list {
			compare(list[i], others[i], path, keys)
		}
	case isObject && areObjects && path != "resources" && path != "together":
		for key := range maps.Keys(merged(object, objects)) {
			compare(object[key], objects[key], strings.TrimPrefix(path+"."+key, "."), keys)
		}
	case !reflect.DeepEqual(one, other):
		keys[path] = true
	}
}

func merged(one, other map[string]any) map[string]any {
	all := maps.Clone(one)
	maps.Copy(all, other)
	return all
}
