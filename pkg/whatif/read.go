package whatif

import (
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

// read reads one JSON object into the struct that into points to. A field that the
// struct does not have, letter by letter, is an Invalid fault that names it with
// its path.
func read(r io.Reader, into any) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return &fault.Error{Kind: fault.Invalid, Field: "input", Message: "cannot be read", Err: err}
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return fault.Field("input", "is not JSON: %v", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return fault.Field("input", "must be an object with the question")
	}
	if err := exact(value, reflect.TypeOf(into).Elem(), ""); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
		if !ok {
			return fault.Field("input", "cannot be read as a question: %v", err)
		}
		return fault.Field(wrong.Field, "must be %s, not %s", article(wrong.Type), wrong.Value)
	}
	return nil
}

// exact says which field of value t does not have.
func exact(value any, t reflect.Type, path string) error {
	switch value := value.(type) {
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return nil // the type is at fault, and named when it is read
		}
		fields := make(map[string]reflect.Type)
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			fields[name] = t.Field(i).Type
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if fields[name] == nil {
				return fault.Field(path+name, "%s", fault.Unknown("field", name, slices.Sorted(maps.Keys(fields))))
			}
			if err := exact(value[name], fields[name], path+name+"."); err != nil {
				return err
			}
		}
	case []any:
		if t.Kind() != reflect.Slice {
			return nil
		}
		for i, element := range value {
			if err := exact(element, t.Elem(), fmt.Sprintf("%s[%d].", strings.TrimSuffix(path, "."), i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// article names a type for people.
func article(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}
