// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// documentsOf writes the pages of the packages into a folder, one folder for each package.
func documentsOf(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	built.Shell(t, "../..", nil, "packaging/documents", folder)
	return folder
}

func TestThePagesOfThePackagesHaveNoDeadLink(t *testing.T) {
	pages, err := filepath.Glob(documentsOf(t) + "/*/*.md")
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	const forge = "https://github.com/almanac-cloud/almanac/blob/main/"
	for _, page := range pages {
		for _, link := range repository.Matches(`\]\(([^)\s]+)\)`, repository.Read(t, page)) {
			file, _, _ := strings.Cut(link, "#")
			target := filepath.Join(filepath.Dir(page), file)
			if inSource, is := strings.CutPrefix(file, forge); is {
				target = filepath.Join("../..", inSource)
			} else if strings.Contains(file, "://") {
				continue
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s of the package %s leads to %s", filepath.Base(page), filepath.Base(filepath.Dir(page)), link)
			}
		}
	}
}

// A page that a package does not have is read at the repository, and one that it has is read here.
func TestThePagesOfAPackageLeadToEachOther(t *testing.T) {
	folder := documentsOf(t)
	for page, want := range map[string]string{
		"almanac/install.md":        "](first-day.md)",
		"almanac/CHANGELOG.md":      "](operations.md#maintenance-of-hosts)",
		"almanac/operations.md":     "](examples/ops/almanac-alerts.yml)",
		"almanac/demo.md":           "](https://github.com/almanac-cloud/almanac/blob/main/docs/adr/0031-the-simulated-cloud.md",
		"almanac-power/energy.md":   "](https://github.com/almanac-cloud/almanac/blob/main/docs/concepts.md",
		"almanac-client/tenants.md": "](images.md)",
	} {
		if !strings.Contains(repository.Read(t, filepath.Join(folder, page)), want) {
			t.Errorf("%s has no %s: %v", page, want, slices.Sorted(slices.Values(repository.Matches(`(\]\([^)]*\))`, repository.Read(t, filepath.Join(folder, page))))))
		}
	}
}
