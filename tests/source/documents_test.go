// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	decision "github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
	"github.com/almanac-cloud/almanac/reservation/takeover"
)

// documents lists the domain types that are stored, sent or printed whole as JSON. They and the types that
// they contain have JSON tags. Each has a golden file in its package, testdata/TYPE.json, with a
// value in every field.
var documents = []any{
	energy.Record{}, energy.Settings{}, energy.Report{}, // stored
	energy.Order{}, energy.Outcome{}, energy.Reading{}, energy.Access{}, inventory.Host{}, // sent; the first two are also in the agents' state file
	takeover.Finding{},                                                                                                                                            // printed
	rebalance.Run{}, state.Request{}, state.VM{}, eviction.Record{}, decision.Decision{}, reservation.Membership{}, reservation.Together{}, reservation.Pattern{}, // stored
}

var update = flag.Bool("update", false, "write the golden files of the documents")

// A new form of a document must still read what databases, agents and controllers have. To write
// the golden files, run go test ./tests/source -run Documents -update.
func TestDocumentsKeepTheirForm(t *testing.T) {
	for _, zero := range documents {
		of := reflect.TypeOf(zero)
		t.Run(of.String(), func(t *testing.T) {
			document := reflect.New(of)
			fill(t, document.Elem(), of.Name(), new(int64))
			text, err := json.MarshalIndent(document.Interface(), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("../..", strings.TrimPrefix(of.PkgPath(), module+"/"), "testdata", strings.ToLower(of.Name())+".json")
			if *update {
				if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(bytes.TrimSpace(golden)), string(text)); d != "" {
				t.Errorf("the form has changed (-golden file +written):\n%s", d)
			}
			read := reflect.New(of)
			if err := json.Unmarshal(golden, read.Interface()); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(document.Interface(), read.Interface()); d != "" {
				t.Errorf("the document that was read differs from the one that was written (-written +read):\n%s", d)
			}
		})
	}
}

var jsonTag = regexp.MustCompile(`^json:"(-|[a-z][a-z0-9_]*(,omitempty|,omitzero)?)"$`)

// fill sets every field with a JSON form to a different value.
func fill(t *testing.T, v reflect.Value, name string, n *int64) {
	t.Helper()
	*n++
	switch v.Kind() {
	case reflect.Struct:
		switch v.Type() {
		case reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(time.Unix(*n, 0).UTC()))
			return
		case reflect.TypeFor[inventory.Value]():
			v.Set(reflect.ValueOf(inventory.StringValue(fmt.Sprint(name, " ", *n))))
			return
		}
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !jsonTag.MatchString(string(field.Tag)) {
				t.Errorf("%s.%s has the tag %q, want only a JSON name in lower case", v.Type(), field.Name, field.Tag)
			}
			if field.Tag.Get("json") != "-" {
				fill(t, v.Field(i), field.Name, n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), name, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), name, n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, name, n)
		fill(t, value, name, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint(name, " ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(*n)
	default:
		t.Fatalf("%s: a document has no %s", name, v.Type())
	}
}

// documentTypes returns the names, as package.Type, of the documents and of all types of this
// module that they contain.
func documentTypes() map[string]bool {
	names := map[string]bool{}
	var walk func(of reflect.Type)
	walk = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(of.Elem())
		case reflect.Map:
			walk(of.Key())
			walk(of.Elem())
		case reflect.Struct:
			path, ours := strings.CutPrefix(of.PkgPath(), module+"/")
			if name := path + "." + of.Name(); ours && !names[name] {
				names[name] = true
				for i := range of.NumField() {
					walk(of.Field(i).Type)
				}
			}
		}
	}
	for _, document := range documents {
		walk(reflect.TypeOf(document))
	}
	return names
}
