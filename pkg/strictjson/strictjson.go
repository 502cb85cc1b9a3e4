// SPDX-License-Identifier: Apache-2.0

// Package strictjson reads JSON objects into structs whose fields have exact names: an unknown field
// is an Invalid fault that names its path and the nearest field. encoding/json ignores the case of
// names, and its errors do not name the path.
package strictjson

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Reader reads the value of one field into its place. The path consists of the names of the objects
// around the field and its own name, with dots between them.
type Reader func(raw json.RawMessage, place reflect.Value, path string) error

// Fields calls read for each field of the object, in the order of their names, with its place in
// the struct. path is the object's own, empty for the outermost. A field that the
// struct does not have is an Invalid fault, which names the nearest one. An error of read ends it.
func Fields(object map[string]json.RawMessage, into reflect.Value, path string, read Reader) error {
	places := make(map[string]reflect.Value)
	var known []string
	for i := range into.NumField() {
		name, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		places[name] = into.Field(i)
		known = append(known, name)
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		place, ok := places[name]
		if !ok {
			return fault.Field(Under(path, name), "%s", fault.Unknown("field", name, known))
		}
		if err := read(object[name], place, Under(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// Under returns the path of a field of the object at path.
func Under(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// IsNull reports whether a value is null.
func IsNull(raw json.RawMessage) bool { return string(raw) == "null" }

// IsWhole reports whether the type holds whole numbers in JSON.
func IsWhole(t reflect.Type) bool { return t.Kind() == reflect.Int || t.Kind() == reflect.Int64 }

// Article returns the name of a type with its article, for messages; "" for lists and objects, whose
// parts each caller names in its own words.
func Article(t reflect.Type) string {
	switch {
	case IsWhole(t):
		return "a whole number"
	case t.Kind() == reflect.Float64:
		return "a number"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.String:
		return "a string"
	default:
		return ""
	}
}
