// SPDX-License-Identifier: Apache-2.0

package store

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// databases returns connections to new databases.
var databases = map[string]func(t testing.TB) (connection func() string){
	"SQLite": func(t testing.TB) func() string {
		return func() string { return "sqlite:///" + filepath.Join(t.TempDir(), "almanac.db") }
	},
	"MariaDB": func(t testing.TB) func() string { return func() string { return labtest.Database(t) } },
}

func TestMigrationsApplyOnceAndAreReported(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "almanac.db"), nil)
	for _, want := range []struct {
		before  bool
		applied []string
	}{
		{false, []string{"0001_first_schema", "0002_leases", "0003_hosts", "0004_usage_told", "0005_floating_ips", "0006_maintenance", "0007_past", "0008_together", "0009_movable", "0010_series", "0011_webhooks", "0012_waiting"}},
		{true, nil},
	} {
		list, err := s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]MigrationStatus{{"0001_first_schema", want.before}, {"0002_leases", want.before}, {"0003_hosts", want.before}, {"0004_usage_told", want.before}, {"0005_floating_ips", want.before}, {"0006_maintenance", want.before}, {"0007_past", want.before}, {"0008_together", want.before}, {"0009_movable", want.before}, {"0010_series", want.before}, {"0011_webhooks", want.before}, {"0012_waiting", want.before}}, list); d != "" {
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

// A checkout from before the first release has other migrations and rows.
func TestADatabaseFromBeforeTheFirstReleaseIsRefusedAndLeftAlone(t *testing.T) {
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			s := openFor(t, start(t)(), nil)
			for _, statement := range []string{
				"CREATE TABLE migrations (id VARCHAR(255) PRIMARY KEY)", "CREATE TABLE reservations (id VARCHAR(36) PRIMARY KEY)",
				"INSERT INTO migrations VALUES ('0001_reservations'), ('0002_replicas')",
			} {
				if err := s.writer.Exec(statement).Error; err != nil {
					t.Fatal(err)
				}
			}
			before := schema(t, s)
			_, migrateErr := s.Migrate(t.Context())
			_, pendingErr := s.Pending(t.Context())
			for what, err := range map[string]error{"migrate": migrateErr, "pending": pendingErr} {
				if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "0002_replicas") || !strings.Contains(err.Error(), "empty database") {
					t.Errorf("%s: %v, want a conflict fault that names the last migration and the remedy", what, err)
				}
			}
			if d := cmp.Diff(before, schema(t, s)); d != "" {
				t.Errorf("schema (-before +after):\n%s", d)
			}
		})
	}
}

func TestADatabaseOfANewerVersionIsUpToDate(t *testing.T) {
	s := openMigrated(t, nil)
	if err := s.writer.Exec("INSERT INTO migrations VALUES ('0002_newer')").Error; err != nil {
		t.Fatal(err)
	}
	if pending, err := s.Pending(t.Context()); len(pending) > 0 || err != nil {
		t.Errorf("pending are %v: %v", pending, err)
	}
}

func TestOfMigrationsAtOnceOneDoesTheWork(t *testing.T) {
	for name, start := range databases {
		t.Run(name, func(t *testing.T) { testOneMigrates(t, start(t)()) })
	}
}

func testOneMigrates(t *testing.T, connection string) {
	stores := make([]*Store, 4)
	for i := range stores {
		stores[i] = openFor(t, connection, nil)
	}
	var wg sync.WaitGroup
	applied := make([][]string, len(stores))
	for i, s := range stores {
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

// schema returns each column, each column of an index and each foreign key, with its type.
func schema(t *testing.T, s *Store) map[string]string {
	t.Helper()
	query := `SELECT m.name || '.' || c.name AS name, c.type || ' ' || c."notnull" || ' ' || coalesce(c.dflt_value, 'none') || ' ' || c.pk AS type
		FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name <> 'sqlite_sequence'
		UNION ALL SELECT m.name || '.' || i.name || '.' || x.seqno, x.name || ' ' || i."unique"
		FROM sqlite_master m, pragma_index_list(m.name) i, pragma_index_info(i.name) x WHERE m.type = 'table'
		UNION ALL SELECT m.name || '.' || f."from" || '.' || f."table", f."to" || ' ' || f.on_delete
		FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'`
	if s.writing == nil {
		query = `SELECT CONCAT(table_name, '.', column_name) AS name, CONCAT_WS(' ', column_type, is_nullable, COALESCE(column_default, 'none'), collation_name, extra) AS type
			FROM information_schema.columns WHERE table_schema = DATABASE()
			UNION ALL SELECT CONCAT(table_name, '.', index_name, '.', seq_in_index), CONCAT_WS(' ', column_name, non_unique)
			FROM information_schema.statistics WHERE table_schema = DATABASE()
			UNION ALL SELECT CONCAT(table_name, '.', constraint_name), CONCAT_WS(' ', referenced_table_name, delete_rule)
			FROM information_schema.referential_constraints WHERE constraint_schema = DATABASE()`
	}
	var entries []struct{ Name, Type string }
	if err := s.reader.Raw(query).Scan(&entries).Error; err != nil {
		t.Fatal(err)
	}
	columns := make(map[string]string)
	for _, e := range entries {
		columns[e.Name] = e.Type
	}
	return columns
}

func TestAMigrationThatWasBrokenOffGoesOn(t *testing.T) {
	connection := databases["MariaDB"](t)()
	whole := openFor(t, databases["MariaDB"](t)(), nil)
	if _, err := whole.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"DROP TABLE `changes`", "DROP TABLE `claims`", "DROP TABLE `decision_subjects`", "DROP TABLE `energy_demand`", "DROP TABLE `packing_runs`",
	} {
		s := openFor(t, connection, nil)
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, broken := range []string{statement, "DELETE FROM `migrations`"} {
			if err := s.writer.Exec(broken).Error; err != nil {
				t.Fatal(err)
			}
		}
		if applied, err := s.Migrate(t.Context()); err != nil || len(applied) != len(migrations) {
			t.Errorf("after %s: applied %v: %v", statement, applied, err)
		}
		if d := cmp.Diff(schema(t, whole), schema(t, s)); d != "" {
			t.Errorf("after %s (-whole +resumed):\n%s", statement, d)
		}
	}
}

func TestADatabaseOfSomethingElseIsLeftAlone(t *testing.T) {
	s := openFor(t, databases["MariaDB"](t)(), nil)
	if err := s.writer.Exec("CREATE TABLE `reservations` (`id` INT PRIMARY KEY)").Error; err != nil {
		t.Fatal(err)
	}
	before := schema(t, s)
	if _, err := s.Migrate(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict fault", err)
	}
	if d := cmp.Diff(before, schema(t, s)); d != "" {
		t.Errorf("schema (-before +after):\n%s", d)
	}
}
