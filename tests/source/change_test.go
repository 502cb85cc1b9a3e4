// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/tests/repository"
)

// The steps that *Places* holds are the places of that test, and all files and names of the steps exist.
func TestTheExampleOfAChangeHasAllItsSteps(t *testing.T) {
	_, table, _ := strings.Cut(repository.Read(t, repository.Root+"/docs/architecture.md"), "\n| step | where | red if it is forgotten |\n")
	var steps []string
	named := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 {
			continue
		}
		step := strings.TrimPrefix(cells[0], "| ")
		if strings.Contains(cells[2], "*Places*") {
			steps = append(steps, step)
		}
		for where := range strings.SplitSeq(cells[1], "; ") {
			names := named.FindAllStringSubmatch(where, -1)
			if len(names) == 0 {
				t.Errorf("the step %q names no file", step)
				continue
			}
			text, err := os.ReadFile(repository.Root + "/" + names[0][1])
			if err != nil {
				t.Errorf("the step %q: %v", step, err)
			}
			for _, name := range names[1:] {
				if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name[1]) + `\b`).Match(text) {
					t.Errorf("the step %q: %s has no %s", step, names[0][1], name[1])
				}
			}
		}
	}
	var places []string
	for _, place := range fieldPlaces(t) {
		name, _, _ := strings.Cut(place.name, " (")
		places = append(places, name)
	}
	slices.Sort(places)
	slices.Sort(steps)
	if diff := cmp.Diff(places, steps); diff != "" {
		t.Errorf("places of a field (-test +steps of docs/architecture.md):\n%s", diff)
	}
}

// Operators who upgrade learn from it that the schema changes.
func TestTheChangelogNamesEachMigration(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Connection: "sqlite:///" + t.TempDir() + "/almanac.db"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	migrations, err := s.Status(t.Context())
	if err != nil || len(migrations) == 0 {
		t.Fatal(migrations, err)
	}
	changelog := repository.Read(t, repository.Root+"/CHANGELOG.md")
	for _, m := range migrations {
		if !strings.Contains(changelog, "`"+m.ID+"`") {
			t.Errorf("CHANGELOG.md does not name the migration %s", m.ID)
		}
	}
}
