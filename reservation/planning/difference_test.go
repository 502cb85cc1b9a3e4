// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"reflect"
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
)

// Otherwise the service would accept a change of one reservation into the other without
// storing it.
func TestEveryTermThatAChangeChangesIsToldAndStored(t *testing.T) {
	for _, of := range []string{"Terms", "Span"} {
		var none reservation.Reservation
		for field := range reflect.ValueOf(none).FieldByName(of).Fields() {
			everyPart(t, field.Type, func(alter func(reflect.Value), path string) {
				var after reservation.Reservation
				alter(reflect.ValueOf(&after).Elem().FieldByName(of).FieldByIndex(field.Index))
				if Difference(none, after) == "" {
					t.Errorf("a change of %s.%s%s changes nothing", of, field.Name, path)
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
