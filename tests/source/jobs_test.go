// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// eachReplica names the periodic work that each replica does by itself, and why. All other work is done by one replica
// at a time, the one that holds its lease.
var eachReplica = map[string]string{
	"all that waits":        "each replica looks, and the first commit is the one that is stored",
	"announcement":          "each agent announces its own hosts",
	"announcements":         "each replica announces its own commits",
	"clock":                 "each replica compares its own clock",
	"decisions":             "each replica stores its own decisions",
	"energy status":         "each replica shows it",
	"events":                "a claim of each event decides which replica carries it out",
	"follow":                "each replica follows the others",
	"inventory":             "each replica reads the hosts",
	"inventory service":     "each replica serves the hosts that it reads",
	"keystone":              "each replica validates tokens",
	"news of hosts":         "each replica has streams of its own",
	"notifications waiting": "each replica shows their number",
	"power agents":          "each replica speaks with the agents",
	"presence":              "each replica reports its own",
	"prune":                 "each replica forgets what it no longer needs in memory",
	"readiness":             "each replica looks at its own parts",
	"room for what waits":   "each replica learns what has become free, and the first commit is the one that is stored",
	"resync":                "each replica compares what it knows with the database",
	"simulated cloud":       "the cloud is in the process",
	"tariff":                "each replica reads it",
	"unheard claims":        "each replica has its own",
}

// noPart names the periodic work that is no part of the readiness, and why.
var noPart = map[string]string{
	"announcement":  "almanac-power has no readiness",
	"news of hosts": "it cannot fail",
	"readiness":     "it looks at the parts",
}

// work is periodic work as the source has it.
type work struct {
	name, folder, receiver, function string
	every, leased                    bool
}

func TestEachPeriodicWorkHasItsPlaces(t *testing.T) {
	files := productionFiles(t)
	calls, found := map[string]int{}, []work{}
	for folder, whole := range files {
		for _, file := range whole {
			if folder == "pkg/app" || strings.HasPrefix(folder, "cmd/") { // they run the jobs
				ast.Inspect(file, func(n ast.Node) bool {
					if call, is := n.(*ast.CallExpr); is {
						calls[lastName(call.Fun)]++
					}
					return true
				})
			}
			found = append(found, workOf(folder, file, whole)...)
		}
	}
	if len(found) < 30 {
		t.Fatalf("the source has only %d jobs: %v", len(found), found)
	}
	guide := repository.Read(t, repository.OperationsPage)
	_, parts, _ := strings.Cut(guide, "\n| part | what \"not healthy\" means |")
	parts, _, _ = strings.Cut(parts, "\n\n")
	own, outside, names, makers := maps.Clone(eachReplica), maps.Clone(noPart), map[string]string{}, map[string][]string{}
	for _, w := range found {
		where := w.folder + ", " + w.function
		switch {
		case w.name == "":
			t.Errorf("%s: a job has no name that the test can read", where)
		case names[w.name] != "":
			t.Errorf("%s: %s has a job %q too; logs, metrics and the readiness tell jobs by their names", where, names[w.name], w.name)
		}
		names[w.name] = where
		if !w.every {
			t.Errorf("%s: the job %q has no time between its steps", where, w.name)
		}
		makers[w.function] = append(makers[w.function], w.folder+w.receiver)
		if w.leased == (own[w.name] != "") {
			t.Errorf("%s: the job %q takes a lease: %v; either it takes one, or eachReplica states why each replica does the work", where, w.name, w.leased)
		}
		if listed := slices.Contains(repository.Matches("`([^`]+)`", firstCells(parts)), w.name); listed == (outside[w.name] != "") {
			t.Errorf("%s: the parts of the readiness in %s have the job %q: %v; either they have it, or noPart states why not", where, repository.OperationsPage, w.name, listed)
		}
		delete(own, w.name)
		delete(outside, w.name)
	}
	for function, of := range makers {
		slices.Sort(of)
		if of = slices.Compact(of); calls[function] < len(of) {
			t.Errorf("%v have a function %s that makes a job; it is called %d times, so a job does not run", of, function, calls[function])
		}
	}
	for _, reasons := range []map[string]string{own, outside} {
		for name := range reasons {
			t.Errorf("the test has a reason for the job %q, which does not exist", name)
		}
	}
}

// firstCells returns the first cells of the rows of a table.
func firstCells(table string) string {
	var cells strings.Builder
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		cells.WriteString(cell + "\n")
	}
	return cells.String()
}

// productionFiles returns the parsed files without tests, by package.
func productionFiles(t *testing.T) map[string][]*ast.File {
	t.Helper()
	files := map[string][]*ast.File{}
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.name(), "tests/") {
			_, files[p.name()] = parsed(t, p)
		}
	}
	return files
}

// workOf returns the jobs that the functions of a file make. The other files of the package have the steps.
func workOf(folder string, file *ast.File, whole []*ast.File) (found []work) {
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			literal, is := n.(*ast.CompositeLit)
			if !is || literal.Type == nil {
				return true
			}
			switch types.ExprString(literal.Type) {
			case "job.Job":
				found = append(found, jobOf(literal, folder, f, whole)...)
			case "[]job.Job":
				for _, e := range literal.Elts {
					if inner, is := e.(*ast.CompositeLit); is {
						found = append(found, jobOf(inner, folder, f, whole)...)
					}
				}
			}
			return true
		})
	}
	return found
}

// jobOf returns the work of a literal; several if its name is a parameter of the function.
func jobOf(literal *ast.CompositeLit, folder string, f *ast.FuncDecl, whole []*ast.File) (found []work) {
	w := work{folder: folder, function: f.Name.Name}
	if f.Recv != nil {
		w.receiver = " " + types.ExprString(f.Recv.List[0].Type)
	}
	names := []string{""}
	for _, e := range literal.Elts {
		pair, is := e.(*ast.KeyValueExpr)
		if !is {
			continue
		}
		switch types.ExprString(pair.Key) {
		case "Name":
			names = namesIn(pair.Value, f, whole)
		case "Every":
			w.every = true
		case "Step":
			w.leased = takesLease(pair.Value, f, whole)
		}
	}
	for _, w.name = range names {
		found = append(found, w)
	}
	return found
}

// namesIn returns the values of an expression: of a text, of a constant of the function, or of the first argument
// wherever the package calls the function.
func namesIn(e ast.Expr, f *ast.FuncDecl, whole []*ast.File) (values []string) {
	if text, is := literalText(e); is {
		return []string{text}
	}
	name := types.ExprString(e)
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is && spec.Names[0].Name == name && len(spec.Values) == 1 {
			if text, is := literalText(spec.Values[0]); is {
				values = append(values, text)
			}
		}
		return true
	})
	for _, file := range whole {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, is := n.(*ast.CallExpr); is && lastName(call.Fun) == f.Name.Name && len(call.Args) > 0 {
				if text, is := literalText(call.Args[0]); is {
					values = append(values, text)
				}
			}
			return true
		})
	}
	return values
}

func literalText(e ast.Expr) (string, bool) {
	literal, is := e.(*ast.BasicLit)
	if !is || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

// takesLease reports whether a step takes a lease: in its expression, or in the method of the package that it names.
func takesLease(step ast.Expr, f *ast.FuncDecl, whole []*ast.File) (leased bool) {
	look := func(n ast.Node) bool {
		if s, is := n.(*ast.SelectorExpr); is {
			leased = leased || slices.Contains([]string{"job.Leased", "job.Hold"}, types.ExprString(s))
		}
		return true
	}
	ast.Inspect(step, look)
	name := lastName(step)
	if _, local := step.(*ast.Ident); local {
		ast.Inspect(f, look)
	}
	for _, file := range whole {
		for _, d := range file.Decls {
			if method, is := d.(*ast.FuncDecl); is && method.Recv != nil && method.Name.Name == name {
				ast.Inspect(method, look)
			}
		}
	}
	return leased
}

// lastName returns the last part of a name such as a.b.c.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// asksTrust names the work of one replica that must not act on an inventory that is not trusted, and the file in which it
// asks. An untrusted inventory may lack hosts and instances that are there.
var asksTrust = map[string]string{
	"best-effort work":             "reservation/besteffort/controller/decide.go",
	"energy":                       "pkg/energy/controller/observe.go",
	"healing":                      "reservation/upkeep/healing.go",
	"images":                       "reservation/staging/controller/observe.go",
	"packing":                      "pkg/rebalance/executor.go",
	"preparation":                  "reservation/upkeep/prepare.go",
	"records of deleted instances": "reservation/upkeep/forget.go",
}

// withoutTrust names the other work of one replica, and why it may go on.
var withoutTrust = map[string]string{
	"floating IPs of reservations":  "it compares reservations with Neutron",
	"server groups of reservations": "it compares reservations with the server groups of Nova",
	"snapshots before the end":      "it asks Nova for the servers of a reservation",
	"idempotency keys":              "it removes old rows",
	"old audit":                     "it removes old rows",
	"old best-effort work":          "it removes old rows",
	"old decisions":                 "it removes old rows",
	"notices that are over":         "it withdraws the notice of an instance that is there; it finds one that is missing later",
	"notifications":                 "it sends what is stored",
	"usage service":                 "it sends what is stored",
	"webhooks":                      "it reads the log of changes",
	"webhook deliveries":            "it sends what is stored",
}

func TestWorkOnTheInventoryAsksWhetherItIsTrustedOrHasAReason(t *testing.T) {
	unused := maps.Clone(withoutTrust)
	maps.Copy(unused, asksTrust)
	for folder, whole := range productionFiles(t) {
		for _, file := range whole {
			for _, w := range workOf(folder, file, whole) {
				path, why := asksTrust[w.name], withoutTrust[w.name]
				switch {
				case !w.leased:
				case (path == "") == (why == ""):
					t.Errorf("%s: add the job %q to asksTrust or, with a reason, to withoutTrust", folder, w.name)
				case path != "" && !regexp.MustCompile(`\.Untrusted\(`).MatchString(repository.Read(t, repository.Root+"/"+path)):
					t.Errorf("%s does not ask whether the inventory is trusted, and the job %q must", path, w.name)
				case path != "" && filepath.Dir(path) != folder:
					t.Errorf("the job %q is in %s, and asks in %s", w.name, folder, path)
				}
				if w.leased {
					delete(unused, w.name)
				}
			}
		}
	}
	for name := range unused {
		t.Errorf("the test has a reason for the job %q, which does not exist, or takes no lease", name)
	}
}
