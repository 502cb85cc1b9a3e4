// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// read are packages whose doc.go lists the files in the order of reading: what a file uses stands in those before it.
var read = []string{
	"reservation/planning", "reservation/booking",
	"pkg/api/serving", "pkg/api/calendar", "pkg/api/events", "pkg/api/hosts", "pkg/api/instances", "pkg/api/leases", "pkg/api/page", "pkg/api/reservations", "pkg/api",
}

// listed matches a file in such a list.
var listed = regexp.MustCompile(`(?m)^//   - (\w+\.go): \w`)

// TestAPackageIsReadFromItsFirstFileToItsLast counts the uses of the functions, methods and types of one file in another.
// Under a tenth of them run against the order of reading, since Go's files may use each other in circles.
func TestAPackageIsReadFromItsFirstFileToItsLast(t *testing.T) {
	for _, p := range packages(t) {
		if !slices.Contains(read, p.name()) {
			continue
		}
		doc, err := os.ReadFile(filepath.Join(p.Dir, "doc.go"))
		if err != nil {
			t.Fatal(err)
		}
		place := map[string]int{"doc.go": 0}
		for i, found := range listed.FindAllStringSubmatch(string(doc), -1) {
			place[found[1]] = i + 1
		}
		for _, name := range p.GoFiles {
			if _, is := place[name]; !is {
				t.Errorf("%s/doc.go does not list %s", p.name(), name)
			}
		}
		if len(place) != len(p.GoFiles) {
			t.Errorf("%s/doc.go lists %d files, and the package has %d", p.name(), len(place)-1, len(p.GoFiles)-1)
		}
		all, against := 0, map[string]int{}
		for use, n := range usesBetweenFiles(t, p) {
			if all += n; place[use[0]] < place[use[1]] {
				against[use[0]+" uses "+use[1]] += n
			}
		}
		wrong := 0
		for _, n := range against {
			wrong += n
		}
		if all == 0 || wrong*10 >= all {
			t.Errorf("%s: %d of %d uses run against the order of doc.go: %v", p.name(), wrong, all, against)
		}
	}
}

// usesBetweenFiles counts how often one file of a package names a function, a method or a type of another.
func usesBetweenFiles(t *testing.T, p pkg) map[[2]string]int {
	t.Helper()
	set, files := parsed(t, p)
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked, err := (&types.Config{Importer: exported(t, set, p)}).Check(p.ImportPath, set, files, info)
	if err != nil {
		t.Fatal(err)
	}
	uses := map[[2]string]int{}
	for id, o := range info.Uses {
		_, isFunc := o.(*types.Func)
		if o.Pkg() != checked || !isFunc && o.Parent() != checked.Scope() {
			continue
		}
		from, to := filepath.Base(set.Position(id.Pos()).Filename), filepath.Base(set.Position(o.Pos()).Filename)
		if from != to {
			uses[[2]string{from, to}]++
		}
	}
	return uses
}

// exported returns an importer of what the compiler wrote about the packages that p imports.
func exported(t *testing.T, set *token.FileSet, p pkg) types.Importer {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", p.ImportPath)
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			files[path] = file
		}
	}
	return importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		content, err := os.ReadFile(files[path])
		return io.NopCloser(bytes.NewReader(content)), err
	})
}

// mostMethods is how many methods a type of these packages may have. One with more has several subjects.
const mostMethods = 40

func TestATypeHasOneSubject(t *testing.T) {
	for _, p := range packages(t) {
		if !slices.Contains(read, p.name()) {
			continue
		}
		methods := map[string]int{}
		_, files := parsed(t, p)
		for _, f := range files {
			for _, d := range f.Decls {
				if fn, is := d.(*ast.FuncDecl); is && fn.Recv != nil {
					of := fn.Recv.List[0].Type
					if pointer, is := of.(*ast.StarExpr); is {
						of = pointer.X
					}
					if generic, is := of.(*ast.IndexExpr); is {
						of = generic.X
					}
					methods[of.(*ast.Ident).Name]++
				}
			}
		}
		for name, n := range methods {
			if n >= mostMethods {
				t.Errorf("%s.%s has %d methods, and %d are too many: divide it by its subjects", p.name(), name, n, mostMethods)
			}
		}
	}
}
