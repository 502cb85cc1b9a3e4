// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// message is a captured message, without its context.
type message struct {
	Args   json.RawMessage
	Result json.RawMessage
}

// capture returns a message of testdata, by the name of its file.
func capture(t testing.TB, name string) message {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// captured returns the names of the messages of testdata that match.
func captured(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern+".json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures %s: %v", pattern, err)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".json")
	}
	return files
}

// specOf returns the spec_obj of a captured request, select_destinations-NAME-request.
func specOf(t testing.TB, name string) json.RawMessage {
	t.Helper()
	var args struct {
		SpecObj json.RawMessage `json:"spec_obj"`
	}
	if err := json.Unmarshal(capture(t, "select_destinations-"+name+"request").Args, &args); err != nil {
		t.Fatal(err)
	}
	return args.SpecObj
}

func decode(t testing.TB, raw []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v: %.200s", err, raw)
	}
	return value
}

func encode(t testing.TB, value any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// edited returns the plain captured request with values set, by path, such as
// "flavor.extra_specs". A path leads through the data of objects. The value unset removes the
// field.
func edited(t testing.TB, values map[string]any) json.RawMessage {
	t.Helper()
	spec := decode(t, specOf(t, "az-")).(map[string]any)
	data(t, spec, "")["availability_zone"] = nil
	for path, value := range values {
		parent, field := "", path
		if i := strings.LastIndex(path, "."); i >= 0 {
			parent, field = path[:i], path[i+1:]
		}
		if value == unset {
			delete(data(t, spec, parent), field)
		} else {
			data(t, spec, parent)[field] = value
		}
	}
	return encode(t, spec)
}

const unset = "(unset)"

func data(t testing.TB, spec map[string]any, path string) map[string]any {
	t.Helper()
	value := spec["nova_object.data"].(map[string]any)
	if path == "" {
		return value
	}
	for field := range strings.SplitSeq(path, ".") {
		value = value[field].(map[string]any)["nova_object.data"].(map[string]any)
	}
	return value
}

// novaObject returns a versioned object as decoded JSON.
func novaObject(name, version string, data map[string]any) map[string]any {
	return map[string]any{
		"nova_object.name": name, "nova_object.namespace": "nova", "nova_object.version": version, "nova_object.data": data,
	}
}

func read(t testing.TB, raw json.RawMessage) object.RequestSpec {
	t.Helper()
	spec, err := object.ReadRequestSpec(raw)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func request(t testing.TB, raw json.RawMessage, o object.Options) (placing.Request, object.Unsupported) {
	t.Helper()
	r, beyond, err := read(t, raw).Request(o)
	if err != nil {
		t.Fatal(err)
	}
	return r, beyond
}
