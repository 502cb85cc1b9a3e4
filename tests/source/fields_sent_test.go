// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// notSent has the fields of requests that no command sends, and why. A type without a field has all of them.
var notSent = map[string]string{
	"FilterQuestion":            "the plugin in nova-scheduler asks",
	"WeighQuestion":             "the plugin in nova-scheduler asks",
	"EnergyApprove":             "the client makes it of the id of the plan",
	"ReservationRequest.Flavor": "only an error tells of it: resources take its place",
}

// requestTypes returns the names of the types of the API that are bodies of requests.
func requestTypes(t *testing.T) map[string]bool {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromFile("../../pkg/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, item := range document.Paths.Map() {
		for _, operation := range item.Operations() {
			if operation.RequestBody == nil {
				continue
			}
			ref := operation.RequestBody.Value.Content.Get("application/json").Schema.Ref
			names[ref[strings.LastIndex(ref, "/")+1:]] = true
		}
	}
	return names
}

// A field that no command sends is one that users of the command line do not have.
func TestEachFieldOfARequestIsSentByTheCommandLineOrHasAReason(t *testing.T) {
	const path, api = module + "/cmd/almanac", module + "/pkg/api/v1"
	all, set := builtPackages(t, "./cmd/almanac"), token.NewFileSet()
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) })
	var files []*ast.File
	for _, name := range all[path].GoFiles {
		file, err := parser.ParseFile(set, filepath.Join(all[path].Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: from}).Check(path, set, files, &info); err != nil {
		t.Fatal(err)
	}
	used := map[types.Object]bool{}
	for _, o := range info.Uses {
		used[o] = true
	}
	v1Types, err := from.Import(api)
	if err != nil {
		t.Fatal(err)
	}
	names, unused := requestTypes(t), map[string]bool{}
	for name := range notSent {
		unused[name] = true
	}
	for name := range names {
		o := v1Types.Scope().Lookup(name)
		if o == nil {
			t.Errorf("openapi.yaml has the request %s, and pkg/api/v1 no such type", name)
			continue
		}
		of := o.Type().Underlying().(*types.Struct)
		for i := range of.NumFields() {
			field := of.Field(i)
			at := name
			if notSent[name] == "" {
				at = name + "." + field.Name()
			}
			switch why := notSent[at]; {
			case !used[field] && why == "":
				t.Errorf("no command of almanac sends %s; add it, or a reason to notSent", at)
			case used[field] && why != "":
				t.Errorf("a command sends %s.%s, and notSent states that none does: %s", name, field.Name(), why)
			}
			delete(unused, at)
		}
	}
	for name := range unused {
		t.Errorf("notSent names %s, which is no field of a request", name)
	}
}
