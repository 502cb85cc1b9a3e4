// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"reflect"
	"testing"
)

func TestHostsThatDifferInAnyFieldAreNotIdentical(t *testing.T) {
	var h Host
	if same := h; !h.identical(&same) {
		t.Error("a host is not identical to its copy")
	}
	eachField(reflect.ValueOf(&h).Elem(), "", func(name string, field reflect.Value) {
		before := h
		field.Set(other(field.Type()))
		if h.identical(&before) {
			t.Errorf("a host with another %s is identical", name)
		}
		h = before
	})
}

// eachField calls do for each field of a struct, and of the structs in it.
func eachField(of reflect.Value, name string, do func(name string, field reflect.Value)) {
	for i := range of.NumField() {
		field, called := of.Field(i), name+"."+of.Type().Field(i).Name
		if field.Kind() == reflect.Struct {
			eachField(field, called, do)
		} else {
			do(called, field)
		}
	}
}

// other returns a value that is not the zero value.
func other(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
	case reflect.String:
		v.SetString("another")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1)
	default:
		v.SetInt(1)
	}
	return v
}
