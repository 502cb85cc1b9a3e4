// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestThePageOnBlazarNamesTestsAndCommandsThatExist(t *testing.T) {
	page, err := os.ReadFile("../docs/blazar.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	exists := make(map[string]bool)
	for _, target := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllSubmatch(makefile, -1) {
		exists["make "+string(target[1])] = true
	}
	for name := range testsOf(t) {
		exists[name] = true
	}
	named := regexp.MustCompile("`((?:Test|Benchmark)\\w+|make [a-z-]+)`").FindAllSubmatch(page, -1)
	for _, name := range named {
		if !exists[string(name[1])] {
			t.Errorf("there is no %s", name[1])
		}
	}
	if len(named) < 20 {
		t.Errorf("the page names %d", len(named))
	}
}

// testsOf returns the names of all tests and benchmarks of the repository.
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	function := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)\(`)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range function.FindAllSubmatch(text, -1) {
			names[string(name[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
