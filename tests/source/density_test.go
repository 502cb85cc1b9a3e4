// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// separated lists the packages whose files have one subject each: in fewer than half of the pairs
// of files, one file names a symbol of the other.
var separated = []string{
	"pkg/dispatch", "pkg/eviction", "pkg/placing",
	"reservation/besteffort", "reservation/besteffort/state", "reservation/besteffort/requests", "reservation/besteffort/controller",
}

func TestFewFilesOfAPackageNameEachOther(t *testing.T) {
	exports := exportData(t, separated)
	for _, p := range packages(t) {
		for _, name := range separated {
			if p.name() != name {
				continue
			}
			named, possible := filePairs(t, p, exports)
			t.Logf("%s: %d of %d pairs of files", name, len(named), possible)
			if 2*len(named) >= possible {
				t.Errorf("%s: in %d of %d pairs of files, one names a symbol of the other, want fewer than half: %v", name, len(named), possible, named)
			}
		}
	}
}

// filePairs returns the pairs of files in which one uses a package-level symbol or a method that
// the other declares, and the number of possible pairs.
func filePairs(t *testing.T, p pkg, exports map[string]string) (named map[[2]string]string, possible int) {
	t.Helper()
	set, files := parsed(t, p)
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	checked, err := config.Check(p.ImportPath, set, files, info)
	if err != nil {
		t.Fatal(err)
	}
	named = map[[2]string]string{}
	for use, of := range info.Uses {
		function, isFunction := of.(*types.Func)
		isMethod := isFunction && function.Signature().Recv() != nil
		if of.Pkg() != checked || of.Parent() != checked.Scope() && !isMethod {
			continue
		}
		one, other := file(set, use.Pos()), file(set, of.Pos())
		if one > other {
			one, other = other, one
		}
		if one != other {
			named[[2]string{one, other}] = of.Name()
		}
	}
	return named, len(files) * (len(files) - 1) / 2
}

func file(set *token.FileSet, at token.Pos) string {
	name := set.File(at).Name()
	return name[strings.LastIndex(name, "/")+1:]
}

// exportData returns the files with the compiled types of the packages that these import.
func exportData(t *testing.T, names []string) map[string]string {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export"}
	for _, name := range names {
		args = append(args, "./"+name)
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Dir, list.Stderr = "../..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var one struct{ ImportPath, Export string }
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return exports
		} else if err != nil {
			t.Fatal(err)
		}
		exports[one.ImportPath] = one.Export
	}
}
