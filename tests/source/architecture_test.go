// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/repository"
)

var (
	packageRow = regexp.MustCompile("(?m)^\\| (\\d+) \\| `([^`]+)` \\|")
	namedTest  = regexp.MustCompile("`([\\w/]+)\\.(Test\\w+)`")
)

func TestTheArchitectureListsEachPackageOnItsLayer(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range packageRow.FindAllStringSubmatch(repository.Read(t, "../../docs/architecture.md"), -1) {
		layer, _ := strconv.Atoi(row[1])
		if listed[row[2]] {
			t.Errorf("%s is listed twice", row[2])
		}
		listed[row[2]] = true
		if at, known := layerOf(row[2]); !known || at != layer {
			t.Errorf("%s is listed on layer %d; tests/source/layout_test.go has %d", row[2], layer, at)
		}
	}
	for _, names := range layers {
		for _, name := range names {
			if !listed[name] {
				t.Errorf("%s is not listed", name)
			}
			if _, err := os.Stat("../../" + name); err != nil {
				t.Errorf("tests/source/layout_test.go lists %s: %v", name, err)
			}
		}
	}
}

func TestTheTestsThatTheArchitectureNamesExist(t *testing.T) {
	named := namedTest.FindAllStringSubmatch(repository.Read(t, "../../docs/architecture.md"), -1)
	if len(named) == 0 {
		t.Fatal("the architecture names no test")
	}
	for _, test := range named {
		if out, err := exec.CommandContext(t.Context(), "grep", "-rlw", "--include=*_test.go", "func "+test[2], "../../"+test[1]).CombinedOutput(); err != nil {
			t.Errorf("%s has no test %s: %s", test[1], test[2], strings.TrimSpace(string(out)))
		}
	}
}

// mostFiles is how many files a package has without a reason for more. Below tests/ those of tests count.
const mostFiles = 30

func TestAPackageOfManyFilesHasItsReasonInTheTable(t *testing.T) {
	table := repository.Read(t, "../../docs/architecture.md")
	for _, p := range packages(t) {
		row := regexp.MustCompile("(?m)^\\| \\d+ \\| `" + regexp.QuoteMeta(p.name()) + "` \\|.*$").FindString(table)
		files := len(p.GoFiles)
		if strings.HasPrefix(p.name(), "tests/") {
			all, _ := filepath.Glob(filepath.Join(p.Dir, "*.go"))
			files = len(all)
		}
		switch explained := strings.Contains(row, "more than 30 files, as "); {
		case files > mostFiles && !explained:
			t.Errorf("%s has %d files: divide it, or state the reason in its row: `more than 30 files, as …`", p.name(), files)
		case files <= mostFiles && explained:
			t.Errorf("%s has only %d files; its row needs no reason", p.name(), files)
		}
	}
}
