// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

// mutant is a change of docs/mutants.md that breaks a rule.
type mutant struct {
	rule, file string
	// pkg has the test that finds it.
	pkg, test   string
	is, becomes string
}

var mutantSection = regexp.MustCompile("(?m)^## (.+)\n\n`([^`]+)`, found by `([\\w/-]+)\\.(Test\\w+)`\\.\n\n```diff\n((?:[-+ ].*\n)+)```$")

func mutants(t *testing.T) (all []mutant) {
	t.Helper()
	page := repository.Read(t, "../../docs/mutants.md")
	for _, s := range mutantSection.FindAllStringSubmatch(page, -1) {
		m := mutant{rule: s[1], file: s[2], pkg: s[3], test: s[4]}
		for line := range strings.Lines(s[5]) {
			if line[0] != '+' {
				m.is += line[1:]
			}
			if line[0] != '-' {
				m.becomes += line[1:]
			}
		}
		all = append(all, m)
	}
	if n := strings.Count(page, "\n## "); n != len(all) || n < 20 {
		t.Fatalf("%d of %d sections of docs/mutants.md have the form of a mutant, and 20 rules are the least", len(all), n)
	}
	return all
}

func TestEachMutantFitsTheCodeAndItsTestExists(t *testing.T) {
	for _, m := range mutants(t) {
		if n := strings.Count(repository.Read(t, "../../"+m.file), m.is); n != 1 {
			t.Errorf("%s: %s has the code of this mutant %d times, want once", m.rule, m.file, n)
		}
		files, err := filepath.Glob("../../" + m.pkg + "/*_test.go")
		if err != nil {
			t.Fatal(err)
		}
		there := false
		for _, file := range files {
			there = there || strings.Contains(repository.Read(t, file), "\nfunc "+m.test+"(t *testing.T) {")
		}
		if !there {
			t.Errorf("%s: there is no test %s in %s", m.rule, m.test, m.pkg)
		}
	}
}

// TestEachMutantIsFound is `make mutants`: it takes minutes, since each mutant is compiled.
//
//make:mutants
func TestEachMutantIsFound(t *testing.T) {
	if os.Getenv("ALMANAC_TEST_MUTANTS") == "" {
		t.Skip("make mutants runs this: it compiles each mutant")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants(t) {
		t.Run(m.rule, func(t *testing.T) {
			if out, err := tested(t, root, m, m.is); err != nil {
				t.Fatalf("%s fails as it is: %s", m.test, out)
			}
			if out, err := tested(t, root, m, m.becomes); err == nil {
				t.Errorf("%s does not find it: %s", m.test, out)
			} else if !strings.Contains(out, "--- FAIL: "+m.test) {
				t.Errorf("the mutant does not compile: %s", out)
			}
		})
	}
}

// tested runs the test of a mutant with its code replaced.
func tested(t *testing.T, root string, m mutant, code string) (out string, err error) {
	t.Helper()
	folder := t.TempDir()
	mutated, overlay := filepath.Join(folder, "mutant.go"), filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(mutated, []byte(strings.Replace(repository.Read(t, "../../"+m.file), m.is, code, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.file): mutated}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replaced, 0o600); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-overlay", overlay, "-run", "^"+m.test+"$", "./"+m.pkg)
	run.Dir = root
	combined, err := run.CombinedOutput()
	return string(combined), err
}
