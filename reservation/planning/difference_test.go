// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/reservation"
)

// A change that Difference leaves out is accepted, and neither stored nor in the log.
func TestEveryTermThatAChangeChangesIsToldAndStored(t *testing.T) {
	for _, of := range []string{"Terms", "Span"} {
		var none reservation.Reservation
		for field := range reflect.ValueOf(none).FieldByName(of).Fields() {
			everyPart(t, field.Type, func(alter func(reflect.Value), path string) {
				var plan Plan
				alter(reflect.ValueOf(&plan).Elem().FieldByName(of).FieldByIndex(field.Index))
				after := Changed(none, plan, none.Membership, 1)
				if !cmp.Equal(after.Terms, plan.Terms) || after.Span != plan.Span {
					t.Errorf("a change of %s.%s%s is not stored", of, field.Name, path)
				}
				if told, _ := after.LastEvent(reservation.ChangedEvent); told.Detail == "" {
					t.Errorf("a change of %s.%s%s has no text in the log", of, field.Name, path)
				}
			})
		}
	}
}

// everyPart calls try once for each field of the type, at every depth, with a function that
// sets that field to another value.
func everyPart(t *testing.T, of reflect.Type, try func(alter func(reflect.Value), path string)) {
	t.Helper()
	switch of.Kind() {
	case reflect.String:
		try(func(v reflect.Value) { v.SetString("x") }, "")
	case reflect.Int, reflect.Int64:
		try(func(v reflect.Value) { v.SetInt(1) }, "")
	case reflect.Bool:
		try(func(v reflect.Value) { v.SetBool(true) }, "")
	case reflect.Map:
		try(func(v reflect.Value) {
			v.Set(reflect.MakeMap(of))
			v.SetMapIndex(reflect.ValueOf("x").Convert(of.Key()), reflect.New(of.Elem()).Elem())
		}, "")
	case reflect.Struct:
		for i := range of.NumField() {
			everyPart(t, of.Field(i).Type, func(alter func(reflect.Value), path string) {
				try(func(v reflect.Value) { alter(v.Field(i)) }, "."+of.Field(i).Name+path)
			})
		}
	default:
		t.Fatalf("this test cannot alter a value of kind %s", of.Kind())
	}
}
