// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-gormigrate/gormigrate/v2"
	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	gormschema "gorm.io/gorm/schema"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// migrated returns a store with an empty schema.
func migrated(t *testing.T, connection string) *Store {
	t.Helper()
	s := openFor(t, connection, nil)
	if _, err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// models returns a value of every type of row, by table.
func models(t *testing.T, s *Store) map[string]any {
	t.Helper()
	rows := map[string]any{}
	for _, row := range slices.Concat(allRows, []any{&leaseGroupRow{}, &seriesRow{}, &webhookRow{}, &deliveryRow{}, &hostNumberRow{}, &capabilitiesRow{}, &toldRow{}, &enrolledRow{}, &addressClaimRow{}, &pastClaimRow{}, &pastUsageRow{}, &purgedRow{}}) {
		rows[row.(interface{ TableName() string }).TableName()] = row
	}
	tables, err := s.writer.Migrator().GetTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if rows[table] == nil && table != gormigrate.DefaultOptions.TableName && table != "sqlite_sequence" {
			t.Fatalf("this test has no row for the table %s", table)
		}
	}
	return rows
}

// fill stores three rows in every table, with values that a careless copy changes. Rows refer to
// each other, because the n-th values of all texts are equal.
func fill(t *testing.T, s *Store) {
	t.Helper()
	rows := models(t, s)
	for _, c := range copied {
		for n := 1; n <= 3; n++ {
			row := reflect.New(reflect.TypeOf(rows[c.table]).Elem())
			for i := range row.Elem().NumField() {
				set(row.Elem().Field(i), n)
			}
			err := s.writer.WithContext(t.Context()).Omit(clause.Associations).Clauses(clause.OnConflict{UpdateAll: true}).Create(row.Interface()).Error
			if err != nil {
				t.Fatalf("fill %s: %v", c.table, err)
			}
		}
	}
}

func set(field reflect.Value, n int) {
	switch field.Kind() {
	case reflect.String:
		field.SetString(fmt.Sprintf("é'%d\\ 😀 ", n))
	case reflect.Int, reflect.Int64:
		field.SetInt(int64(n) << 30)
	case reflect.Bool:
		field.SetBool(n%2 == 1)
	case reflect.Pointer:
		if n > 1 {
			field.Set(reflect.New(field.Type().Elem()))
			set(field.Elem(), n)
		}
	case reflect.Slice:
		if field.Type().Elem().Kind() == reflect.Uint8 {
			field.SetBytes([]byte{0, 0xff, '\\', byte(n)})
		}
	}
}

// contents returns all rows as text, by table.
func contents(t *testing.T, s *Store) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for table, model := range models(t, s) {
		rows := reflect.New(reflect.SliceOf(reflect.TypeOf(model).Elem()))
		if err := s.reader.WithContext(t.Context()).Find(rows.Interface()).Error; err != nil {
			t.Fatal(err)
		}
		for i := range rows.Elem().Len() {
			var text strings.Builder
			row := rows.Elem().Index(i)
			for j := range row.NumField() {
				value := row.Field(j)
				if value.Kind() == reflect.Pointer && !value.IsNil() {
					value = value.Elem()
				}
				fmt.Fprintf(&text, "%s=%q ", row.Type().Field(j).Name, fmt.Sprint(value))
			}
			all[table] = append(all[table], text.String())
		}
		slices.Sort(all[table])
	}
	return all
}

func TestACopyHasEveryRowOfEveryTable(t *testing.T) {
	first, server, last := openMigrated(t, nil), migrated(t, labtest.Database(t)), openMigrated(t, nil)
	fill(t, first)
	want := contents(t, first)
	for table, rows := range want {
		if len(rows) < 3 {
			t.Fatalf("the table %s has %d rows", table, len(rows))
		}
	}
	from := first
	for _, to := range []*Store{server, last} {
		var progress []int64
		sizes, err := from.CopyTo(t.Context(), to, func(done int64) { progress = append(progress, done) })
		if err != nil {
			t.Fatal(err)
		}
		total := int64(0)
		for _, size := range sizes {
			total += size.Rows
		}
		if !slices.IsSorted(progress) || progress[len(progress)-1] != total {
			t.Errorf("progress %v, want up to %d", progress, total)
		}
		if diff := cmp.Diff(want, contents(t, to)); diff != "" {
			t.Errorf("rows (-original +copy):\n%s", diff)
		}
		from = to
	}
}

// A row is copied by the fields of its type.
func TestEveryColumnHasAFieldThatACopyReads(t *testing.T) {
	s := openMigrated(t, nil)
	for table, model := range models(t, s) {
		row := &gorm.Statement{DB: s.reader}
		if err := row.Parse(model); err != nil {
			t.Fatal(err)
		}
		columns, err := s.reader.Migrator().ColumnTypes(table)
		if err != nil {
			t.Fatal(err)
		}
		for _, column := range columns {
			if row.Schema.LookUpField(column.Name()) == nil {
				t.Errorf("the rows of %s lack the column %s", table, column.Name())
			}
		}
	}
}

// A table whose rows the database numbers, and that is not in numbered, gives numbers out again after a copy.
func TestEachTableThatTheDatabaseNumbersIsInNumbered(t *testing.T) {
	s := migrated(t, "sqlite://")
	var found []string
	for table, row := range models(t, s) {
		parsed, err := gormschema.Parse(row, &sync.Map{}, s.writer.NamingStrategy)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(parsed.Fields, func(f *gormschema.Field) bool { return f.AutoIncrement }) {
			found = append(found, table)
		}
	}
	slices.Sort(found)
	if diff := cmp.Diff(slices.Sorted(slices.Values(numbered)), found); diff != "" {
		t.Errorf("numbered tables (-numbered +rows):\n%s", diff)
	}
}

func TestANumberOfTheLogOfChangesIsNotUsedAgainAfterACopy(t *testing.T) {
	first, server, last := openMigrated(t, nil), migrated(t, labtest.Database(t)), openMigrated(t, nil)
	add := func(s *Store, version int64) int64 {
		t.Helper()
		row := changeRow{ReservationID: "r", Version: version}
		if err := s.writer.WithContext(t.Context()).Create(&row).Error; err != nil {
			t.Fatal(err)
		}
		return row.Seq
	}
	for version := range int64(5) {
		add(first, version)
	}
	from := first
	for i, to := range []*Store{server, last} {
		if err := from.writer.WithContext(t.Context()).Where("seq > 2").Delete(&changeRow{}).Error; err != nil { // as a purge does
			t.Fatal(err)
		}
		if _, err := from.CopyTo(t.Context(), to, func(int64) {}); err != nil {
			t.Fatal(err)
		}
		if got, want := add(to, int64(10+i)), int64(6+i); got != want {
			t.Errorf("copy %d numbers the next change %d, want %d", i+1, got, want)
		}
		from = to
	}
}

func TestACopyIsRefusedWholeUnlessTheOtherDatabaseIsEmptyAndBothSchemasAreKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(from, to *gorm.DB) error
		want    string
	}{
		"rows there": {
			func(_, to *gorm.DB) error { return to.Create(&hiddenRow{"x"}).Error },
			"the table hidden_properties of the database to copy to has rows; name an empty database",
		},
		"a newer schema here": {
			func(from, _ *gorm.DB) error {
				return from.Exec("INSERT INTO migrations VALUES ('9999_tomorrow')").Error
			},
			"a newer almanacd has applied the migration 9999_tomorrow; use that almanacd",
		},
		"an older schema here": {
			func(from, _ *gorm.DB) error {
				return from.Exec("DELETE FROM migrations WHERE id = '0005_floating_ips'").Error
			},
			"the database lacks the migration 0005_floating_ips; run almanacd db sync",
		},
		"a row that does not fit there": {
			func(from, to *gorm.DB) error {
				return to.Exec("CREATE TRIGGER no BEFORE INSERT ON claims BEGIN SELECT RAISE(ABORT, 'no room'); END").Error
			},
			"table claims: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := openMigrated(t, nil), openMigrated(t, nil)
			fill(t, from)
			if err := tc.prepare(from.writer.WithContext(t.Context()), to.writer.WithContext(t.Context())); err != nil {
				t.Fatal(err)
			}
			before := contents(t, to)
			_, err := from.CopyTo(t.Context(), to, func(int64) {})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if diff := cmp.Diff(before, contents(t, to)); diff != "" {
				t.Errorf("a part was copied (-before +after):\n%s", diff)
			}
		})
	}
}

func TestSizesNeedAMigratedDatabase(t *testing.T) {
	s := openFor(t, "sqlite:///"+filepath.Join(t.TempDir(), "almanac.db"), nil)
	if _, err := s.Sizes(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}
