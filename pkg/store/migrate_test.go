package store

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// databases gives connections to new databases.
var databases = map[string]func(t *testing.T) (connection func() string){
	"SQLite": func(t *testing.T) func() string {
		return func() string { return "sqlite:///" + filepath.Join(t.TempDir(), "almanac.db") }
	},
	"MariaDB": func(t *testing.T) func() string { return func() string { return labtest.Database(t) } },
}

func TestMigrationsApplyOnceAndAreReported(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "almanac.db"), nil)
	for _, want := range []struct {
		before  bool
		applied []string
	}{
		{false, []string{"0001_reservations", "0002_replicas", "0003_power", "0004_decisions", "0005_guests", "0006_evictions", "0007_energy", "0008_images", "0009_besteffort", "0010_packing", "0011_limits"}},
		{true, nil},
	} {
		list, err := s.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		state := []MigrationStatus{
			{"0001_reservations", want.before}, {"0002_replicas", want.before}, {"0003_power", want.before}, {"0004_decisions", want.before},
			{"0005_guests", want.before},
			{"0006_evictions", want.before}, {"0007_energy", want.before}, {"0008_images", want.before}, {"0009_besteffort", want.before}, {"0010_packing", want.before}, {"0011_limits", want.before},
		}
		if d := cmp.Diff(state, list); d != "" {
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

// allRows are the tables as the code uses them.
var allRows = []any{
	&reservationRow{}, &claimRow{}, &eventRow{}, &keyRow{}, &overrideRow{}, &hiddenRow{},
	&hostRow{}, &usageRow{}, &changeRow{}, &leaseRow{}, &decisionRow{}, &subjectRow{}, &guestRow{}, &evictionRow{},
	&powerRow{}, &powerEntryRow{}, &energyRow{}, &demandRow{},
	&imageRow{}, &imageTransferRow{}, &cachedImageRow{}, &bestEffortRow{}, &bestEffortVMRow{}, &packingRunRow{},
}

func TestTheMigratedSchemaIsThatOfTheRows(t *testing.T) {
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			connection := start(t)
			migrated := openFor(t, connection(), nil)
			if _, err := migrated.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			created := openFor(t, connection(), nil)
			if err := created.withOptions(created.writer).Migrator().CreateTable(allRows...); err != nil {
				t.Fatal(err)
			}
			got := schema(t, migrated)
			maps.DeleteFunc(got, func(column, _ string) bool { return strings.HasPrefix(column, "migrations.") })
			if d := cmp.Diff(schema(t, created), got); d != "" {
				t.Errorf("schema (-of the rows +migrated):\n%s", d)
			}
		})
	}
}

// schema gives each column and each column of an index, with what it is.
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

// The content of a database that has seen migration 0001 alone stays, and what
// 0002 counts agrees with it.
func TestAnUpgradeKeepsWhatIsThere(t *testing.T) {
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			s := openFor(t, start(t)(), nil)
			all := migrations
			migrations = all[:1]
			_, err := s.Migrate(t.Context())
			migrations = all
			if err != nil {
				t.Fatal(err)
			}
			if pending, err := s.Pending(t.Context()); err != nil || cmp.Diff([]string{"0002_replicas", "0003_power", "0004_decisions", "0005_guests", "0006_evictions", "0007_energy", "0008_images", "0009_besteffort", "0010_packing", "0011_limits"}, pending) != "" {
				t.Errorf("pending are %v: %v", pending, err)
			}
			for _, row := range []any{
				old("one", "demo", "active", 2), old("two", "demo", "pending", 1), old("three", "demo", "ended", 4), old("four", "other", "starting", 3),
				&key0001{ProjectID: "demo", IdempotencyKey: "k", ReservationID: "one"},
				&override0001{Host: "node-0", Properties: `{"gpu":"a100"}`}, &hidden0001{Property: "rack"},
			} {
				if err := s.writer.Create(row).Error; err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantUpgraded(t, s)
			// The version before goes on writing beside this one.
			for _, row := range []any{old("late", "demo", "ended", 1), &override0001{Host: "node-1"}, &usage0002{ProjectID: "late"}} {
				if err := s.writer.Create(row).Error; err != nil {
					t.Errorf("the version before cannot write: %v", err)
				}
			}
			if overrides, err := s.Overrides(t.Context()); len(overrides) != 2 || overrides["node-1"].Power != nil || err != nil {
				t.Errorf("the overrides are %v: %v", overrides, err)
			}
			if r, err := s.Get(t.Context(), "late"); err != nil || r.Events[0].Holder != "" || r.Events[0].Until != 0 {
				t.Errorf("what it wrote is %+v: %v", r.Events, err)
			}
		})
	}
}

// old gives a reservation of n hosts for 100 seconds, one of them for two slices.
func old(id, project, status string, n int) *reservation0001 {
	r := &reservation0001{
		ID: id, ProjectID: project, Status: status, Quantity: n, StartAt: 1000, EndAt: 1100, Version: 3,
		Events: []event0001{{ReservationID: id, Type: "start", DueAt: 1000, State: "pending"}},
	}
	for i := range n {
		r.Claims = append(r.Claims, claim0001{ReservationID: id, Seq: i, Host: fmt.Sprint("node-", i), StartAt: 1000, EndAt: 1100, Slices: 2 * (i % 2)})
	}
	return r
}

func wantUpgraded(t *testing.T, s *Store) {
	t.Helper()
	got, err := s.Recall(t.Context(), booking.Recall{All: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []booking.HostVersion{{Host: "node-0", Version: 1}, {Host: "node-1", Version: 1}, {Host: "node-2", Version: 1}}
	if d := cmp.Diff(want, got.Hosts); d != "" {
		t.Errorf("hosts (-want +got):\n%s", d)
	}
	if len(got.Reservations) != 3 || len(got.Log) != 0 {
		t.Errorf("%d live reservations and %d log entries, want 3 and none", len(got.Reservations), len(got.Log))
	}
	for _, r := range got.Reservations {
		if len(r.Claims) != r.Quantity || len(r.Events) != 1 || r.Version != 3 {
			t.Errorf("%+v is not as it was", r)
		}
	}
	var usage []usageRow
	if err := s.reader.Order("project_id").Find(&usage).Error; err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]usageRow{{"demo", 3, 400, 0}, {"other", 3, 400, 0}}, usage); d != "" {
		t.Errorf("usage (-want +got):\n%s", d)
	}
	if use, ok, err := s.Key(t.Context(), "demo", "k"); !ok || err != nil || use.ReservationID != "one" {
		t.Errorf("the key is %+v: %v", use, err)
	}
	overrides, err := s.Overrides(t.Context())
	if hidden, hiddenErr := s.Hidden(t.Context()); len(overrides) != 1 || !hidden["rack"] || err != nil || hiddenErr != nil {
		t.Errorf("overrides are %v (%v), hidden %v (%v)", overrides, err, hidden, hiddenErr)
	}
}

func TestAMigrationThatWasBrokenOffGoesOn(t *testing.T) {
	connection := databases["MariaDB"](t)()
	whole := openFor(t, databases["MariaDB"](t)(), nil)
	if _, err := whole.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"DROP TABLE `changes`", "ALTER TABLE `events` DROP COLUMN `until_at`", "DROP TABLE `claims`",
		"DROP INDEX `idx_idempotency_keys_reservation` ON `idempotency_keys`", "ALTER TABLE `host_overrides` DROP COLUMN `power`",
		"DROP TABLE `decision_subjects`", "DROP TABLE `energy_demand`",
		"ALTER TABLE `project_usage` DROP COLUMN `version`", "DROP INDEX `idx_reservations_held` ON `reservations`",
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
