// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// keyForm matches a text of the code that may be a key of a body.
var keyForm = regexp.MustCompile(`^[a-z][a-z_]+$`)

// keysRead returns the keys that pkg/blazar reads of a body, o or body in its code: texts that index the body or are
// given to a method of it or beside it, and texts of a list over whose elements a function goes that does one of these.
func keysRead(t *testing.T, files ...string) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	for _, pattern := range files {
		paths, err := filepath.Glob("../../pkg/blazar/" + pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v %v", pattern, paths, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, is := d.(*ast.FuncDecl); is {
					addKeysRead(f, keys)
				}
			}
		}
	}
	return keys
}

// isBody reports whether an expression is the body of a request or an object in it.
func isBody(e ast.Expr) bool {
	name, is := e.(*ast.Ident)
	return is && (name.Name == "o" || name.Name == "e" || name.Name == "m" || name.Name == "body")
}

// addKeysRead adds the keys that a function reads.
func addKeysRead(f *ast.FuncDecl, keys map[string]bool) {
	add := func(e ast.Expr) {
		if literal, is := e.(*ast.BasicLit); is && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil && keyForm.MatchString(text) {
				keys[text] = true
			}
		}
	}
	readsListed := false // by a variable
	asked := func(e ast.Expr) {
		add(e)
		if _, literal := e.(*ast.BasicLit); !literal {
			readsListed = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr:
			if isBody(n.X) {
				asked(n.Index)
			}
		case *ast.CallExpr:
			method, is := n.Fun.(*ast.SelectorExpr)
			if is && isBody(method.X) || slices.ContainsFunc(n.Args, isBody) {
				for _, arg := range n.Args {
					asked(arg)
				}
			}
		}
		return true
	})
	if !readsListed {
		return
	}
	ast.Inspect(f, func(n ast.Node) bool {
		loop, is := n.(*ast.RangeStmt)
		if !is {
			return true
		}
		if list, is := loop.X.(*ast.CompositeLit); is {
			for _, e := range list.Elts {
				add(e)
				if row, is := e.(*ast.CompositeLit); is && len(row.Elts) > 0 {
					add(row.Elts[0])
				}
			}
		}
		return true
	})
}

// answerKeys returns the keys of the types of Blazar's answers, and of a host.
func answerKeys() map[string]bool {
	keys := map[string]bool{}
	var add func(of reflect.Type)
	add = func(of reflect.Type) {
		switch {
		case of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice:
			add(of.Elem())
		case of.Kind() == reflect.Struct:
			for field := range of.Fields() {
				if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); key != "" {
					keys[key] = true
				}
				add(field.Type)
			}
		}
	}
	for _, of := range []reflect.Type{
		reflect.TypeFor[blazar.Lease](), reflect.TypeFor[blazar.Offer](), reflect.TypeFor[blazar.FloatingIP](), reflect.TypeFor[blazar.HostAllocations](),
		reflect.TypeFor[blazar.Property](), reflect.TypeFor[blazar.PropertyRow](),
	} {
		add(of)
	}
	for key := range blazar.Host(&inventory.Host{}, func(string) bool { return false }) {
		keys[key] = true
	}
	return keys
}

// listedKeys returns the keys of a document in Blazar's form: those of the bodies of requests, and those of answers but not
// of errors.
func listedKeys(t *testing.T) (asked, answered map[string]bool) {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromFile("../../pkg/api/openapi-blazar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asked, answered = map[string]bool{}, map[string]bool{}
	var add func(s *openapi3.SchemaRef, to map[string]bool)
	add = func(s *openapi3.SchemaRef, to map[string]bool) {
		if s == nil {
			return
		}
		for key, inner := range s.Value.Properties {
			to[key] = true
			add(inner, to)
		}
		for _, inner := range slices.Concat(s.Value.OneOf, s.Value.AnyOf, s.Value.AllOf, openapi3.SchemaRefs{s.Value.Items}) {
			add(inner, to)
		}
	}
	for _, item := range document.Paths.Map() {
		for _, operation := range item.Operations() {
			if operation.RequestBody != nil {
				add(operation.RequestBody.Value.Content.Get("application/json").Schema, asked)
			}
			for status, response := range operation.Responses.Map() {
				if content := response.Value.Content.Get("application/json"); content != nil && strings.HasPrefix(status, "2") {
					add(content.Schema, answered)
				}
			}
		}
	}
	return asked, answered
}

// ignoredKeys are keys of requests that the contract lists and nobody reads.
func ignoredKeys() map[string]bool {
	keys := map[string]bool{}
	for key := range blazar.Host(&inventory.Host{}, func(string) bool { return false }) {
		keys[key] = true // a column of a host is ignored in a request
	}
	return keys
}

// The keys of the types are those of the contract, and the page names those of requests.
func TestEachKeyOfBlazarsFormIsInTheContractAndOnThePage(t *testing.T) {
	read, page := keysRead(t, "*.go"), repository.Read(t, "../../docs/blazar.md")
	asked, answered := listedKeys(t)
	for key := range read {
		if !asked[key] {
			t.Errorf("requests may have %s, which openapi-blazar.yaml does not list in a body", key)
		}
		if !strings.Contains(page, "`"+key+"`") {
			t.Errorf("requests may have %s, which docs/blazar.md does not name", key)
		}
	}
	for key := range asked {
		if !read[key] && !ignoredKeys()[key] {
			t.Errorf("openapi-blazar.yaml lists %s in a body, which nobody reads", key)
		}
	}
	typed := answerKeys()
	for _, file := range []string{"leases.go", "list.go", "hosts.go", "addresses.go"} { // they have the keys around these types
		for _, key := range repository.Matches("\"(\\w+)\"[:`]", repository.Read(t, "../../pkg/api/leases/"+file)) {
			typed[key] = true
		}
	}
	for key := range typed {
		if !answered[key] {
			t.Errorf("an answer may have %s, which openapi-blazar.yaml does not list", key)
		}
	}
	for key := range answered {
		if !typed[key] {
			t.Errorf("openapi-blazar.yaml lists %s in an answer, which no type has", key)
		}
	}
}
