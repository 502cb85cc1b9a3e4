// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/policy"
)

// withoutClient names the calls for which pkg/client has no method, and why.
var withoutClient = map[string]string{
	"HEAD /healthcheck":              "GET has the same answer",
	"GET /metrics":                   "Prometheus reads them",
	"GET /v1/openapi.yaml":           "a document for generators of clients",
	"GET /v1/openapi-blazar.yaml":    "a document for generators of clients",
	"GET /feeds/{project_id}/{file}": "calendar programs read it",
	"GET /v1/reservations.ics":       "calendar programs read it",
	"POST /v1/scheduler/weigh":       "the plugin in nova-scheduler asks",
}

// withoutCommand names the other calls that no command of almanac makes, and why.
var withoutCommand = map[string]string{
	"GET /":                     "a command asks the service that its user names",
	"GET /healthcheck":          "almanacd healthcheck asks",
	"POST /v1/scheduler/filter": "the plugin in nova-scheduler asks",
}

// withoutGuide names the calls that no guide names, and why.
var withoutGuide = map[string]string{
	"HEAD /healthcheck":            "GET has the same answer",
	"GET /v1/demo/servers":         "docs/demo.md has the commands",
	"POST /v1/demo/servers":        "docs/demo.md has the commands",
	"DELETE /v1/demo/servers/{id}": "docs/demo.md has the commands",
}

// A call is in the client, in a command and in the guide, or its absence has a reason. Blazar's own clients make the calls
// in Blazar's form, which Blazar documents, and the page those below /dashboard.
func TestEachRouteHasItsClientItsCommandAndItsGuide(t *testing.T) {
	methods, commands := clientMethods(t), usedByCommands(t)
	text, err := os.ReadFile("../../docs/api.md")
	must(t, err)
	described, _, _ := strings.Cut(string(text), "\n## Rules\n") // that table lists all calls
	guide := strings.Split(described, "\n")
	unused := map[string]map[string]string{
		"pkg/client": maps.Clone(withoutClient), "a command of almanac": merged(withoutClient, withoutCommand), "docs/api.md": maps.Clone(withoutGuide),
	}
	for _, r := range table() {
		route := r.Method + " " + asDocumented(r.Path)
		if strings.HasPrefix(r.Path, "/dashboard") || inBlazarsForm(t, route) {
			continue
		}
		by := methods[r.Method+" "+parameter.ReplaceAllString(r.Path, "{}")]
		for place, is := range map[string]bool{
			"pkg/client":           len(by) > 0,
			"a command of almanac": slices.ContainsFunc(by, func(name string) bool { return commands[name] }),
			"docs/api.md":          named(guide, r.Method, asDocumented(r.Path)),
		} {
			switch why := unused[place][route]; {
			case !is && why == "":
				t.Errorf("%s is not in %s: add it there, or a reason to this test", route, place)
			case is && why != "":
				t.Errorf("%s is in %s, but this test states that it is not: %s", route, place, why)
			}
			delete(unused[place], route)
		}
	}
	for place, reasons := range unused {
		for route := range reasons {
			t.Errorf("this test has a reason why %s is not in %s, but there is no such call", route, place)
		}
	}
}

func merged[V any](one, other map[string]V) map[string]V {
	all := maps.Clone(one)
	maps.Copy(all, other)
	return all
}

func TestEachRuleIsInTheGuide(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	must(t, err)
	_, table, _ := strings.Cut(string(text), "\n## Rules\n")
	for _, rule := range policy.Defaults() {
		if len(rule.Operations) > 0 && !strings.Contains(table, "`"+rule.Name+"`") {
			t.Errorf("the table of rules in docs/api.md lacks %s", rule.Name)
		}
	}
}

// inBlazarsForm reports whether the document of the calls in Blazar's form has a call.
func inBlazarsForm(t *testing.T, route string) bool {
	method, path, _ := strings.Cut(route, " ")
	item := openContract(t).blazar.Paths.Value(path)
	return item != nil && item.GetOperation(method) != nil
}

// named reports whether a line names a call: its method, and its path but not as the beginning of another.
func named(lines []string, method, path string) bool {
	has := regexp.MustCompile(regexp.QuoteMeta(path) + `([^\w/.-]|$)`)
	by := regexp.MustCompile(`\b` + method + `\b`)
	return slices.ContainsFunc(lines, func(line string) bool { return has.MatchString(line) && by.MatchString(line) })
}

// sources returns the parsed files of a folder, without its tests.
func sources(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	must(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		files = append(files, file)
		return err
	}))
	if len(files) == 0 {
		t.Fatalf("%s has no source", folder)
	}
	return files
}

// usedByCommands returns the methods of the client that the commands use; their client is called almanac.
func usedByCommands(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, file := range sources(t, "../../cmd/almanac") {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, is := n.(*ast.SelectorExpr); is && slices.Contains([]string{"almanac", "(*client.Client)"}, types.ExprString(s.X)) {
				names[s.Sel.Name] = true
			}
			return true
		})
	}
	return names
}

// clientMethods returns the methods of the client by their calls, such as "GET /v1/hosts/{}".
func clientMethods(t *testing.T) map[string][]string {
	files := sources(t, "../client")
	constants := map[string]string{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, is := n.(*ast.ValueSpec); is && len(spec.Values) == len(spec.Names) {
				for i, name := range spec.Names {
					if text, is := textOf(spec.Values[i], nil); is {
						constants[name.Name] = text
					}
				}
			}
			return true
		})
	}
	calledBy, methods := map[string][]string{}, map[string][]string{}
	for _, file := range files {
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if route := clientCall(n, constants); route != "" {
					methods[route] = append(methods[route], f.Name.Name)
				}
				if call, is := n.(*ast.CallExpr); is {
					calledBy[calledName(call)] = append(calledBy[calledName(call)], f.Name.Name)
				}
				return true
			})
		}
	}
	for route, by := range methods {
		for _, name := range by {
			if !ast.IsExported(name) {
				methods[route] = append(methods[route], calledBy[name]...)
			}
		}
	}
	return methods
}

// clientCall returns the call that an expression of the client makes: a call{…}, or the pages of a list.
func clientCall(n ast.Node, constants map[string]string) string {
	switch n := n.(type) {
	case *ast.CompositeLit:
		var method, path, member string
		for _, e := range n.Elts {
			pair, is := e.(*ast.KeyValueExpr)
			if !is {
				continue
			}
			switch fmt.Sprint(pair.Key) {
			case "method":
				if s, is := pair.Value.(*ast.SelectorExpr); is {
					method = strings.ToUpper(strings.TrimPrefix(s.Sel.Name, "Method"))
				}
			case "path":
				path, _ = textOf(pair.Value, constants)
			case "id", "name":
				member = "/{}"
			}
		}
		if method != "" && path != "" {
			return method + " " + path + member
		}
	case *ast.CallExpr:
		if name := fmt.Sprint(n.Fun); name != "pages" && name != "pagesBy" {
			return ""
		}
		for _, argument := range n.Args {
			if path, _ := textOf(argument, constants); strings.HasPrefix(path, "/") {
				return http.MethodGet + " " + path
			}
		}
	}
	return ""
}

// textOf returns the value of a text or of a constant.
func textOf(e ast.Expr, constants map[string]string) (text string, is bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, is = constants[e.Name]
	}
	return text, is
}

// A client that sends a parameter which the service does not know gets an error, and learns all others from the document.
func TestEachRouteTakesTheParametersOfTheDocument(t *testing.T) {
	names := map[string]bool{}
	for _, file := range sources(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || calledName(call) != "Parameters" {
				return true
			}
			for _, argument := range call.Args {
				if name, is := textOf(argument, nil); is {
					names[name] = true
				}
			}
			return true
		})
	}
	if len(names) < 20 {
		t.Fatalf("the source names only %d parameters", len(names))
	}
	c := start(t, setup{adjust: everything})
	r, s := c.demo.book(`{"name": "r", "duration": 60}`), c.demo.series("")
	submitted(c, r.ID)
	hook := want[v1.Webhook](t, c.admin.post("/v1/webhooks", `{"name": "w", "url": "https://192.0.2.1/"}`), http.StatusCreated).ID
	for path, item := range openContract(t).document.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.Security != nil && len(*operation.Security) == 0 {
				continue // the answers to all are the same with any parameter
			}
			documented := map[string]bool{}
			for _, p := range operation.Parameters {
				if p.Value.In == "query" {
					documented[p.Value.Name] = true
				}
			}
			id := r.ID
			if strings.Contains(path, "series") {
				id = s.ID
			}
			if strings.Contains(path, "webhooks") {
				id = hook
			}
			at := strings.NewReplacer("{id}", id, "{name}", "A").Replace(path)
			if strings.Contains(path, "properties") {
				at = strings.Replace(path, "{name}", "disk_gb", 1)
			}
			for name := range merged(names, documented) {
				a := c.admin.ask(t, method, at+"?"+name+"=x", "{}").Body.String()
				refused := strings.Contains(a, fmt.Sprintf(`there is no parameter \"%s\"`, name))
				if refused == documented[name] {
					t.Errorf("%s %s: the document has the parameter %s: %v; the service answers %.200s", method, path, name, documented[name], a)
				}
			}
		}
	}
}

// calledName returns the last name of what is called.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
