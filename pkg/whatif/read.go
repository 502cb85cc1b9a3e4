// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/strictjson"
)

// read decodes one JSON object into the struct that into points to. A field with an unknown name
// (case matters) or of a wrong type is an Invalid fault that names its path.
func read(r io.Reader, into any) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return &fault.Error{Kind: fault.Invalid, Field: "input", Message: "cannot be read", Err: err}
	}
	var question json.RawMessage
	if err := json.Unmarshal(raw, &question); err != nil {
		return fault.Field("input", "is not JSON: %v", err)
	}
	if question = bytes.TrimSpace(question); question[0] != '{' {
		return fault.Field("input", "must be an object with the question")
	}
	if err := exact(question, reflect.New(reflect.TypeOf(into).Elem()).Elem(), ""); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Field("input", "is not a valid question: %v", err)
	}
	return nil
}

// exact returns an error for a field of raw that the type of place does not have or that has a
// different type there. A null field counts as absent; elements of lists, and numbers and strings in
// maps, must not be null.
func exact(raw json.RawMessage, place reflect.Value, path string) error {
	if place.Kind() == reflect.Pointer {
		place = reflect.New(place.Type().Elem()).Elem()
	}
	if several, is := place.Interface().(forms); is {
		place = reflect.New(several.form(raw)).Elem()
	}
	t := place.Type()
	switch raw[0] {
	case 'n': // null
	case '{':
		return exactObject(raw, place, path)
	case '[':
		if t.Kind() != reflect.Slice {
			return mistyped(path, t, "a list")
		}
		return exactList(raw, t.Elem(), path)
	default:
		if wrong, is := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(raw, place.Addr().Interface())); is {
			return mistyped(path, t, wrong.Value)
		}
	}
	return nil
}

// forms is a type with several JSON forms.
type forms interface {
	// form returns the type into which a value is decoded.
	form(raw json.RawMessage) reflect.Type
}

// exactList checks each element of a JSON list against the type of; path names the list in errors.
func exactList(raw json.RawMessage, of reflect.Type, path string) error {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return fault.Field(path, "cannot be read: %v", err)
	}
	for i, element := range list {
		path := fmt.Sprintf("%s[%d]", path, i)
		if strictjson.IsNull(element) {
			return mistyped(path, of, "null")
		}
		if err := exact(element, reflect.New(of).Elem(), path); err != nil {
			return err
		}
	}
	return nil
}

// exactObject checks the fields of a JSON object, or the values of a map, against the type of place.
func exactObject(raw json.RawMessage, place reflect.Value, path string) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return fault.Field(path, "cannot be read: %v", err)
	}
	t := place.Type()
	switch t.Kind() {
	case reflect.Struct:
		return strictjson.Fields(object, place, path, exact)
	case reflect.Map:
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if strictjson.IsNull(object[name]) && t.Elem().Kind() != reflect.Slice {
				return mistyped(strictjson.Under(path, name), t.Elem(), "null")
			}
			if err := exact(object[name], reflect.New(t.Elem()).Elem(), strictjson.Under(path, name)); err != nil {
				return err
			}
		}
		return nil
	default:
		return mistyped(path, t, "an object")
	}
}

// mistyped returns the fault that the value at path should be of type t.
func mistyped(path string, t reflect.Type, is string) error {
	want := strictjson.Article(t)
	switch {
	case want != "":
	case t.Kind() == reflect.Slice:
		want = "a list"
	default:
		want = "an object"
	}
	return fault.Field(path, "must be %s, not %s", want, is)
}
