// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// testFiles returns the texts of all files with tests, by path.
func testFiles(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(repository.Root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			texts[path] = repository.Read(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// A target of the Makefile runs the tests that have its name in a line `//make:` above them.
func TestEachMarkOfATestIsThatOfATarget(t *testing.T) {
	var marks []string
	for path, text := range testFiles(t) {
		for _, found := range regexp.MustCompile(`(?m)^//make:(.*)\n(.*)$`).FindAllStringSubmatch(text, -1) {
			if !strings.HasPrefix(found[2], "func Test") {
				t.Errorf("%s: a mark of %s is not above a test", path, found[1])
			}
			marks = append(marks, strings.Fields(found[1])...)
		}
	}
	slices.Sort(marks)
	marks = slices.Compact(marks)
	makefile := repository.Read(t, repository.Root+"/Makefile")
	for _, name := range repository.Matches(`\$\(call (?:named|marked),([a-z-]+)\)`, makefile) {
		if !slices.Contains(marks, name) {
			t.Errorf("no test has the mark of %s", name)
		}
	}
	for _, name := range marks {
		if recipe := regexp.MustCompile(`(?m)^` + name + `:.*\n(\t.*\n)*?\t.*\$\(call marked,` + name + `\)`); !recipe.MatchString(makefile) {
			t.Errorf("tests have the mark of %s, and no target of that name runs them", name)
		}
	}
}

// make test leaves out what takes long, so that only another target runs it.
func TestEveryLongTestOfTheCloudIsRunByATarget(t *testing.T) {
	number := 0
	for path, text := range testFiles(t) {
		for _, found := range regexp.MustCompile(`(.*)\nfunc (Test\w+)\(t \*testing\.T\) \{\n\tlabtest\.Long\(t\)`).FindAllStringSubmatch(text, -1) {
			if number++; !strings.HasPrefix(found[1], "//make:") {
				t.Errorf("%s: no target of the Makefile runs %s; write the name of one above it: //make:test-cloud", path, found[2])
			}
		}
	}
	if number < 20 {
		t.Errorf("found %d long tests", number)
	}
}
