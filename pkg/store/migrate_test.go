package store

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"
)

func TestMigrationsApplyOnceAndAreReported(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "almanac.db"), nil)
	for _, want := range []struct {
		before  bool
		applied []string
	}{
		{false, []string{"0001_reservations"}},
		{true, nil},
	} {
		list, err := s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]MigrationStatus{{"0001_reservations", want.before}}, list); d != "" {
			t.Errorf("status (-want +got):\n%s", d)
		}
		applied, err := s.Migrate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want.applied, applied); d != "" {
			t.Errorf("applied (-want +got):\n%s", d)
		}
	}
}

func TestOfMigrationsAtOnceOneDoesTheWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "almanac.db")
	var wg sync.WaitGroup
	applied := make([][]string, 4)
	for i := range applied {
		s := openFile(t, path, nil)
		wg.Go(func() {
			var err error
			if applied[i], err = s.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	count := 0
	for _, ids := range applied {
		count += len(ids)
	}
	if count != len(migrations) {
		t.Errorf("%d migrations were applied %d times: %v", len(migrations), count, applied)
	}
}

func TestAFailedMigrationLeavesNothing(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "almanac.db"), nil)
	if err := s.writer.Exec("CREATE TABLE host_overrides (host TEXT)").Error; err != nil {
		t.Fatal(err)
	}
	if _, err := s.Migrate(t.Context()); err == nil {
		t.Fatal("the table of another was taken for ours")
	}
	if got := schema(t, s); len(got) != 1 {
		t.Errorf("there are %v, want the table of the other alone", got)
	}
}

func TestTheMigratedSchemaIsThatOfTheRows(t *testing.T) {
	migrated := openMigrated(t, nil)
	created := openFile(t, filepath.Join(t.TempDir(), "almanac.db"), nil)
	err := created.write(t.Context(), func(tx *gorm.DB) error {
		return tx.Migrator().CreateTable(&reservationRow{}, &claimRow{}, &eventRow{}, &keyRow{}, &overrideRow{}, &hiddenRow{})
	})
	if err != nil {
		t.Fatal(err)
	}
	got := schema(t, migrated)
	delete(got, "migrations")
	if d := cmp.Diff(schema(t, created), got); d != "" {
		t.Errorf("schema (-of the rows +migrated):\n%s", d)
	}
}

// schema gives the statement behind each table and index.
func schema(t *testing.T, s *Store) map[string]string {
	t.Helper()
	var entries []struct{ Name, SQL string }
	if err := s.reader.Raw("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").Scan(&entries).Error; err != nil {
		t.Fatal(err)
	}
	statements := make(map[string]string)
	for _, e := range entries {
		statements[e.Name] = e.SQL
	}
	return statements
}
