// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root lists the files and folders at the root of the repository.
var root = []string{
	".ci", ".github", ".gitignore", ".gitlab-ci.yml", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md",
	"cmd", "devstack", "docs", "etc", "filters", "findings",
	"go.mod", "go.sum", "inventory", "packaging", "pkg", "plugin", "reservation", "site", "tests", "weighers",
}

// A stray file at the root is easily committed by mistake.
func TestTheRootOfTheRepositoryHasOnlyWhatBelongsThere(t *testing.T) {
	found, err := tracked()
	if err != nil {
		found = unpacked(t)
	}
	for i, name := range found {
		found[i], _, _ = strings.Cut(name, "/")
	}
	slices.Sort(found)
	found = slices.Compact(found)
	for _, name := range found {
		if !slices.Contains(root, name) {
			t.Errorf("%s does not belong at the root of the repository; remove it, or add it to the list in tests/source/root_test.go", name)
		}
	}
	for _, name := range root {
		if !slices.Contains(found, name) {
			t.Errorf("%s is missing at the root of the repository", name)
		}
	}
}

// tracked returns the paths of what Git has, or would add. It fails where there is no Git, or no
// repository.
func tracked() ([]string, error) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), err
}

// unpacked returns what is at the root of a copy without Git, except what .gitignore names there.
func unpacked(t *testing.T) (found []string) {
	t.Helper()
	ignore, err := os.ReadFile("../../.gitignore")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	patterns := strings.Fields(string(ignore))
	for _, entry := range list {
		ignored := slices.ContainsFunc(patterns, func(pattern string) bool {
			match, _ := filepath.Match(strings.Trim(pattern, "/"), entry.Name())
			return match
		})
		if !ignored {
			found = append(found, entry.Name())
		}
	}
	return found
}
