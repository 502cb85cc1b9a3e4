// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"database/sql"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the driver for MariaDB in database/sql
)

// Database creates a database in the shared MariaDB and returns its SQLAlchemy URL. The end of the
// test drops it.
func Database(t testing.TB) string {
	t.Helper()
	number := port(t, "mariadb")
	server, err := sql.Open("mysql", dsn(number, ""))
	if err != nil {
		t.Fatal(err)
	}
	name := unique("almanac_test_")
	if _, err := server.Exec("CREATE DATABASE " + name); err != nil {
		t.Fatalf("make a database in the lab's MariaDB: %v", err)
	}
	t.Cleanup(func() {
		defer server.Close()
		if _, err := server.Exec("DROP DATABASE " + name); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return databaseURL(number, name)
}

func databaseURL(port int, database string) string {
	return fmt.Sprintf("mysql+pymysql://almanac:almanac@127.0.0.1:%d/%s?charset=utf8mb4", port, database)
}

func dsn(port int, database string) string {
	return fmt.Sprintf("almanac:almanac@tcp(127.0.0.1:%d)/%s", port, database)
}

// DSN returns the data source name of the database of a URL that Database has returned.
func DSN(t testing.TB, url string) string {
	t.Helper()
	return dsn(port(t, "mariadb"), url[strings.LastIndex(url, "/")+1:strings.LastIndex(url, "?")])
}

// Execute runs statements in one session, in the database of a URL that Database has returned.
func Execute(t testing.TB, url string, statements ...string) {
	t.Helper()
	server, err := sql.Open("mysql", DSN(t, url))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.SetMaxOpenConns(1)
	for _, statement := range statements {
		if _, err := server.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// store writes fields of the row with the UUID into a table of a service.
func store(t testing.TB, database, table, uuid string, fields map[string]any) {
	t.Helper()
	server, err := sql.Open("mysql", dsn(port(t, "mariadb"), database))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for field, value := range fields {
		if _, err := server.Exec("UPDATE "+table+" SET "+field+" = ? WHERE uuid = ?", value, uuid); err != nil {
			t.Fatalf("store %s of %s in %s: %v", field, uuid, database, err)
		}
	}
}

// MariaDB is a server of the test's own, with the settings of the shared one: a commit is on disk
// before it is acknowledged.
type MariaDB struct {
	t      testing.TB
	launch func() (*process, error)
	port   int

	mu      sync.Mutex
	process *process
	admin   *sql.DB
	own     int64 // statements that admin has sent to this process
}

// StartMariaDB starts a private server on a free port. The end of the test stops it and removes its
// data.
func StartMariaDB(t testing.TB) *MariaDB {
	t.Helper()
	lab := folder(t)
	files := private(t, lab, "mariadb")
	data := copyTemplate(t, lab, files)
	m := &MariaDB{t: t, port: freePorts(t, 1)}
	account := mysqlAccount(t)
	m.launch = func() (*process, error) {
		return launch(account, filepath.Join(files, "mariadbd.log"), "mariadbd",
			"--defaults-file="+filepath.Join(lab, "mariadb.cnf"), "--datadir="+data, "--tmpdir="+data,
			fmt.Sprintf("--port=%d", m.port), "--socket="+filepath.Join(data, "test.sock"),
			"--pid-file="+filepath.Join(data, "test.pid"))
	}
	t.Cleanup(m.Kill)
	m.Start()
	return m
}

// copyTemplate returns a data folder like that of a fresh installation.
func copyTemplate(t testing.TB, lab, files string) string {
	t.Helper()
	data := filepath.Join(files, "data")
	copying := exec.CommandContext(t.Context(), "cp", "-a", "--sparse=always", filepath.Join(lab, "mariadb-template"), data)
	if said, err := copying.CombinedOutput(); err != nil {
		t.Fatalf("copy the data folder of a fresh MariaDB: %v\n%s", err, said)
	}
	return data
}

// Start starts a server that was killed or stopped, on its old port, and returns when it answers.
func (m *MariaDB) Start() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil {
		m.t.Fatal("this MariaDB runs already")
	}
	started, err := m.launch()
	if err != nil {
		m.t.Fatal(err)
	}
	m.process = started
	admin, err := sql.Open("mysql", dsn(m.port, ""))
	if err != nil {
		m.t.Fatal(err)
	}
	// One connection for all statements makes them countable.
	admin.SetMaxOpenConns(1)
	m.admin, m.own = admin, 0
	if err := started.answers(patience, admin.Ping); err != nil {
		m.t.Fatal(err)
	}
}

// Kill is kill -9. A server that does not run stays as it is.
func (m *MariaDB) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		return
	}
	m.process.kill()
	m.gone()
}

// Stop shuts the server down cleanly.
func (m *MariaDB) Stop() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		return
	}
	if err := m.process.stop(patience); err != nil {
		m.t.Error(err)
	}
	m.gone()
}

func (m *MariaDB) gone() {
	m.admin.Close()
	m.process, m.admin = nil, nil
}

// URL returns the SQLAlchemy URL of a database, which it creates if it is missing.
func (m *MariaDB) URL(database string) string {
	m.t.Helper()
	m.create(database)
	return databaseURL(m.port, database)
}

// DSN returns the same database in the form of go-sql-driver, for a checker that reads it by
// itself.
func (m *MariaDB) DSN(database string) string {
	m.t.Helper()
	m.create(database)
	return dsn(m.port, database)
}

func (m *MariaDB) create(database string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.admin == nil {
		return // tests may request URLs of a stopped server
	}
	m.own++
	if _, err := m.admin.Exec("CREATE DATABASE IF NOT EXISTS `" + database + "`"); err != nil {
		m.t.Fatalf("make a database: %v", err)
	}
}

// Questions counts the statements that clients have sent to the server since it started, by SHOW
// GLOBAL STATUS LIKE 'Questions', without those of this package. The end of a connection counts as
// one; a ping does not.
func (m *MariaDB) Questions(t testing.TB) int64 {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.admin == nil {
		t.Fatal("this MariaDB does not run")
	}
	m.own++
	var name string
	var count int64
	if err := m.admin.QueryRow("SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &count); err != nil {
		t.Fatalf("count statements: %v", err)
	}
	return count - m.own
}

// Record returns the statements that the server received from other connections while do ran, for
// each connection in order.
func (m *MariaDB) Record(t testing.TB, do func()) (byConnection map[int64][]string) {
	t.Helper()
	exec := func(statement string) {
		if _, err := m.admin.Exec(statement); err != nil {
			t.Fatalf("record statements: %v", err)
		}
	}
	exec("SET GLOBAL log_output = 'TABLE'")
	exec("TRUNCATE mysql.general_log")
	exec("SET GLOBAL general_log = 1")
	do()
	exec("SET GLOBAL general_log = 0")
	rows, err := m.admin.Query("SELECT thread_id, argument FROM mysql.general_log WHERE command_type = 'Query' ORDER BY event_time")
	if err != nil {
		t.Fatalf("record statements: %v", err)
	}
	defer rows.Close()
	byConnection = map[int64][]string{}
	for rows.Next() {
		var connection int64
		var statement string
		if err := rows.Scan(&connection, &statement); err != nil {
			t.Fatalf("record statements: %v", err)
		}
		byConnection[connection] = append(byConnection[connection], statement)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("record statements: %v", err)
	}
	return byConnection
}
