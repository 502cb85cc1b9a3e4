// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
)

// A field that is never drawn could be left out of the store unnoticed.
func TestTheReservationsOfTheTestsLeaveNoFieldOut(t *testing.T) {
	drawn := make(map[string]bool)
	rapid.Check(t, func(rt *rapid.T) { noteFields(reflect.ValueOf(anyReservation("r").Draw(rt, "reservation")), drawn) })
	for _, of := range []any{reservation.Reservation{}, reservation.Terms{}, reservation.Occurrence{}, reservation.Claim{}, reservation.Event{}, resource.Vector{}} {
		for field := range reflect.TypeOf(of).Fields() {
			if name := reflect.TypeOf(of).Name() + "." + field.Name; !drawn[name] {
				t.Errorf("%s was never drawn", name)
			}
		}
	}
}

// Projects is what a caller goes through, and BelongsTo what it asks about one.
func TestAReservationBelongsToEachOfItsProjectsAndToNoOther(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := anyReservation("r").Draw(rt, "reservation")
		projects := r.Projects()
		if len(projects) == 0 {
			rt.Fatal("it belongs to nobody")
		}
		asked := append([]string{name().Draw(rt, "another"), "", r.ProjectID + " "}, projects...)
		eachText(reflect.ValueOf(&r).Elem(), "", func(_ string, v reflect.Value) { asked = append(asked, v.String()) })
		for _, project := range asked {
			if has := slices.Contains(projects, project); r.BelongsTo(project) != has {
				rt.Fatalf("it belongs to %q: %v, and its projects are %q", project, !has, projects)
			}
		}
	})
}

// noteFields notes the fields of the structures in v that are not zero.
func noteFields(v reflect.Value, into map[string]bool) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); !field.IsZero() {
				into[v.Type().Name()+"."+v.Type().Field(i).Name] = true
				noteFields(field, into)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			noteFields(v.Index(i), into)
		}
	}
}
