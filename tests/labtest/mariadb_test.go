// SPDX-License-Identifier: Apache-2.0

package labtest_test

import (
	"database/sql"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// one runs a query that returns one value.
func one[T any](t *testing.T, db *sql.DB, query string) T {
	t.Helper()
	var value T
	if err := db.QueryRow(query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

func run(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func TestTheSharedDatabaseIsMariaDBAndGoesWithItsTest(t *testing.T) {
	var dsn string
	t.Run("during", func(t *testing.T) {
		url := labtest.Database(t)
		rest, found := strings.CutPrefix(url, "mysql+pymysql://almanac:almanac@")
		address, name, _ := strings.Cut(rest, "/")
		name, options, _ := strings.Cut(name, "?")
		if !found || !strings.HasPrefix(name, "almanac_test_") || options != "charset=utf8mb4" {
			t.Fatalf("Database() = %q, want mysql+pymysql://almanac:almanac@ADDRESS/almanac_test_...?charset=utf8mb4", url)
		}
		dsn = "almanac:almanac@tcp(" + address + ")/" + name
		db := open(t, dsn)
		if version := one[string](t, db, "SELECT VERSION()"); !strings.Contains(version, "MariaDB") {
			t.Errorf("version %q, want MariaDB", version)
		}
		if charset := one[string](t, db, "SELECT @@character_set_database"); charset != "utf8mb4" {
			t.Errorf("the database has character set %s, want utf8mb4", charset)
		}
		run(t, db, "CREATE TABLE promises (id INT PRIMARY KEY)")
	})
	if err := open(t, dsn).Ping(); err == nil {
		t.Error("the database still exists after its test")
	}
}

func TestAKilledMariaDBKeepsWhatWasCommitted(t *testing.T) {
	server := labtest.StartMariaDB(t)
	db := open(t, server.DSN("almanac"))
	run(t, db, "CREATE TABLE promises (id INT PRIMARY KEY)", "INSERT INTO promises VALUES (1)")
	open, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.Exec("INSERT INTO promises VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := db.Ping(); err == nil {
		t.Fatal("the killed server answers")
	}
	server.Start()
	if ids := one[string](t, db, "SELECT GROUP_CONCAT(id) FROM promises"); ids != "1" {
		t.Errorf("promises %s after the crash, want the committed one only: 1", ids)
	}
	run(t, db, "INSERT INTO promises VALUES (3)")
	server.Stop()
	server.Start()
	if ids := one[string](t, db, "SELECT GROUP_CONCAT(id ORDER BY id) FROM promises"); ids != "1,3" {
		t.Errorf("promises %s after a stop, want 1,3", ids)
	}
}

func TestPrivateServersCommitToDiskBeforeTheyAnswer(t *testing.T) {
	db := open(t, labtest.StartMariaDB(t).DSN("almanac"))
	if flush := one[int](t, db, "SELECT @@innodb_flush_log_at_trx_commit"); flush != 1 {
		t.Errorf("innodb_flush_log_at_trx_commit = %d, want 1", flush)
	}
}

func TestQuestionsCountsTheStatementsOfClientsAlone(t *testing.T) {
	server := labtest.StartMariaDB(t)
	db := open(t, server.DSN("almanac"))
	db.SetMaxOpenConns(1)
	run(t, db, "DO 1")
	before := server.Questions(t)
	server.URL("another")
	if idle := server.Questions(t) - before; idle != 0 {
		t.Errorf("%d statements while no client spoke, want 0", idle)
	}
	run(t, db, "DO 1", "DO 2", "DO 3")
	if counted := server.Questions(t) - before; counted != 3 {
		t.Errorf("%d statements counted, want 3", counted)
	}
}
