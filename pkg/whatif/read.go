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
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// read decodes one JSON object into the struct that into points to. A field with an unknown name
// (case matters) or of a wrong type is an Invalid fault that names its path.
func read(r io.Reader, into any) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return &fault.Error{Kind: fault.Invalid, Field: "input", Message: "cannot be read", Err: err}
	}
	value, err := numbered(raw)
	if err != nil {
		return fault.Field("input", "is not JSON: %v", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return fault.Field("input", "must be an object with the question")
	}
	if err := exact(value, reflect.TypeOf(into).Elem(), ""); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fault.Field("input", "is not a valid question: %v", err)
	}
	return nil
}

// numbered decodes JSON; numbers stay json.Number, as written.
func numbered(raw []byte) (value any, err error) {
	if err := json.Unmarshal(raw, new(json.RawMessage)); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// exact returns an error for a field of value that t does not have or that has a different type
// there. A null field counts as absent; elements of lists, and numbers and strings in maps, must
// not be null.
func exact(value any, t reflect.Type, path string) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if several, is := reflect.Zero(t).Interface().(forms); is {
		t = several.form(value)
	}
	switch value := value.(type) {
	case nil:
	case map[string]any:
		return exactObject(value, t, path)
	case []any:
		if t.Kind() != reflect.Slice {
			return mistyped(path, t, "a list")
		}
		for i, element := range value {
			path := fmt.Sprintf("%s[%d]", path, i)
			if element == nil {
				return mistyped(path, t.Elem(), "null")
			}
			if err := exact(element, t.Elem(), path); err != nil {
				return err
			}
		}
	default:
		raw, err := json.Marshal(value)
		if err != nil {
			return fault.Field(path, "cannot be read: %v", err)
		}
		if wrong, is := errors.AsType[*json.UnmarshalTypeError](json.Unmarshal(raw, reflect.New(t).Interface())); is {
			return mistyped(path, t, wrong.Value)
		}
	}
	return nil
}

// forms is a type with several JSON forms.
type forms interface {
	// form returns the type into which value is decoded.
	form(value any) reflect.Type
}

func exactObject(value map[string]any, t reflect.Type, path string) error {
	fields := make(map[string]reflect.Type)
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			fields[name] = t.Field(i).Type
		}
	case reflect.Map:
		for name := range value {
			fields[name] = t.Elem()
		}
	default:
		return mistyped(path, t, "an object")
	}
	for _, name := range slices.Sorted(maps.Keys(value)) {
		if fields[name] == nil {
			return fault.Field(under(path, name), "%s", fault.Unknown("field", name, slices.Sorted(maps.Keys(fields))))
		}
		if value[name] == nil && t.Kind() == reflect.Map && fields[name].Kind() != reflect.Slice {
			return mistyped(under(path, name), fields[name], "null")
		}
		if err := exact(value[name], fields[name], under(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// under returns the path of a field in the object at path.
func under(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

func mistyped(path string, t reflect.Type, is string) error {
	return fault.Field(path, "must be %s, not %s", article(t), is)
}

// article returns the name of a type with its article, for messages.
func article(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}
