// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-gormigrate/gormigrate/v2"
	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"
)

// steps returns the schema after each migration, with that of an empty database first.
func steps(t *testing.T, s *Store) []map[string]string {
	t.Helper()
	after := []map[string]string{{}}
	for i := range migrations {
		err := s.write(t.Context(), func(tx *gorm.DB) error {
			return gormigrate.New(s.withOptions(tx), gormigrate.DefaultOptions, migrations[:i+1]).Migrate()
		})
		if err != nil {
			t.Fatalf("%s: %v", migrations[i].ID, err)
		}
		now := schema(t, s)
		maps.DeleteFunc(now, func(name, _ string) bool { return strings.HasPrefix(name, gormigrate.DefaultOptions.TableName+".") })
		after = append(after, now)
	}
	return after
}

// A database that an earlier version has made gets only what later migrations add. So a column that a row gets without
// a migration of its own, or in an old one, is missing there.
func TestAMigrationAddsWhatItAddedWhenItWasReleased(t *testing.T) {
	after := steps(t, openFile(t, filepath.Join(t.TempDir(), "almanac.db"), nil))
	var added strings.Builder
	for i, m := range migrations {
		fmt.Fprintln(&added, m.ID)
		for _, name := range slices.Sorted(maps.Keys(after[i+1])) {
			if _, old := after[i][name]; !old {
				fmt.Fprintf(&added, "  %s %s\n", name, after[i+1][name])
			}
		}
	}
	const path = "testdata/migrations.txt"
	released, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(released), "\n"), strings.Split(added.String(), "\n")); diff != "" {
		t.Errorf("the migrations add something else (-%s +code); what a row gets needs a migration of its own, whose lines are added to the end of the file:\n%s", path, diff)
	}
}

// The previous version works on beside this one, and reads and writes what it knows.
func TestAMigrationTakesNothingAway(t *testing.T) {
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			after := steps(t, openFor(t, start(t)(), nil))
			for i, m := range migrations {
				for entry, is := range after[i] {
					if now := after[i+1][entry]; now != is {
						t.Errorf("%s: %s was %q and becomes %q", m.ID, entry, is, now)
					}
				}
			}
		})
	}
}
