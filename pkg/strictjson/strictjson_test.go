// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestAnUnknownFieldIsNamedWithItsPathAndTheNearestOne(t *testing.T) {
	var target struct {
		Host struct {
			Name string `json:"name"`
		} `json:"host"`
		Count int `json:"count,omitempty"`
	}
	var read Reader
	read = func(raw json.RawMessage, place reflect.Value, path string) error {
		if place.Kind() != reflect.Struct {
			return json.Unmarshal(raw, place.Addr().Interface())
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			return err
		}
		return Fields(object, place, path, read)
	}
	for question, want := range map[string]string{
		`{"count": 2, "host": {"name": "a"}}`: "",
		`{"Count": 3}`:                        `Count: there is no field "Count"; did you mean "count"?`,
		`{"host": {"nam": "b"}}`:              `host.nam: there is no field "nam"; did you mean "name"?`,
	} {
		err := read(json.RawMessage(question), reflect.ValueOf(&target).Elem(), "")
		if got := text(err); got != want {
			t.Errorf("%s: %q, want %q", question, got, want)
		}
	}
	if target.Count != 2 || target.Host.Name != "a" {
		t.Errorf("read %+v", target)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
