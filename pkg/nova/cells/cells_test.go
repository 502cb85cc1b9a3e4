// SPDX-License-Identifier: Apache-2.0

package cells_test

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/cells"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

const (
	one   = "51f45fda-684a-409f-8385-fa43a34ca382"
	other = "0f1e2d3c-0000-4000-8000-00000000000a"
)

var quiet = slog.New(slog.DiscardHandler)

func written(t *testing.T, text string) cells.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return cells.NewFile(path)
}

// tabled returns the table with these rows, from its fourth line on.
func tabled(rows ...string) string {
	const border = "+-----------+--------------------------------------+----------+"
	lines := append([]string{border, "| Cell Name |              Cell UUID               | Hostname |", border}, rows...)
	return strings.Join(append(lines, border), "\n") + "\n"
}

func row(name, cell, host string) string {
	return fmt.Sprintf("|   %s   | %s | %s  |", name, cell, host)
}

// The database and nova-manage of one cloud return the same.
func TestTheDatabaseAndTheFileOfNovaManageNameEveryHost(t *testing.T) {
	cloud := labtest.OpenStack(t)
	db, err := cells.OpenDatabase(labtest.NovaAPIDatabase(t), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	told, err := db.Cells(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range cloud.Hosts(t) {
		if told[host] == "" {
			t.Errorf("the cell of %s is missing", host)
		}
	}
	read, err := written(t, cloud.NovaManage(t, "cell_v2", "list_hosts")).Cells(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(told, read); diff != "" {
		t.Errorf("the file is not as the database (-database +file):\n%s", diff)
	}
}

// foreign returns a database with Nova's two tables: a connection of a user with only the rights
// that Almanac needs, and one with all rights.
func foreign(t *testing.T) (restricted string, db *sql.DB) {
	t.Helper()
	m := labtest.StartMariaDB(t)
	all := m.URL("nova_api")
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr, config.DBName = "almanac", "almanac", "tcp", address(all), "nova_api"
	db, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, statement := range []string{
		"CREATE TABLE cell_mappings (id INT PRIMARY KEY, uuid VARCHAR(36), name VARCHAR(255), transport_url TEXT, database_connection TEXT, disabled BOOL)",
		"CREATE TABLE host_mappings (id INT PRIMARY KEY, cell_id INT, host VARCHAR(255))",
		"INSERT INTO cell_mappings VALUES (1, '" + one + "', 'cell1', 'secret', 'secret', 0), (2, '" + other + "', NULL, 'secret', 'secret', 1)",
		"INSERT INTO host_mappings VALUES (1, 1, 'cmp-001'), (2, 2, 'cmp-002')",
		"CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'p@ss/word'",
		"GRANT SELECT (id, uuid, disabled) ON nova_api.cell_mappings TO reader@'127.0.0.1'",
		"GRANT SELECT (cell_id, host) ON nova_api.host_mappings TO reader@'127.0.0.1'",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return strings.Replace(all, "almanac:almanac@", "reader:p%40ss%2Fword@", 1), db
}

func address(url string) string {
	_, rest, _ := strings.Cut(url, "@")
	address, _, _ := strings.Cut(rest, "/")
	return address
}

func TestAUserWhoMayReadFiveColumnsWillDoAndHostsOfADisabledCellAreLeftOut(t *testing.T) {
	restricted, admin := foreign(t)
	db, err := cells.OpenDatabase(restricted, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	told, err := db.Cells(t.Context())
	if diff := cmp.Diff(map[string]string{"cmp-001": one}, told); err != nil || diff != "" {
		t.Errorf("error %v, cells (-want +got):\n%s", err, diff)
	}
	if _, err := admin.Exec("DROP TABLE host_mappings"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Cells(t.Context()); !fault.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "word") {
		t.Errorf("got %v without a table, want an unavailable fault without the password", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := db.Cells(ended); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v when the time is up, want an unavailable fault", err)
	}
}

func TestTheDatabaseOfAnotherServiceCannotBeChanged(t *testing.T) {
	pool, err := store.OpenForeign(labtest.Database(t), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = pool.Exec("CREATE TABLE of_almanac (id INT)")
	if err == nil || !strings.Contains(err.Error(), "READ ONLY") {
		t.Errorf("got %v, want that the transaction is read-only", err)
	}
}

func TestAConnectionThatCannotWorkIsInvalid(t *testing.T) {
	for _, connection := range []string{"", "sqlite:///nova.db", "postgresql://nova:secret@db/nova_api", "mysql+pymysql://nova:secret@db", "mysql://nova:secret@db:x/nova_api"} {
		if _, err := cells.OpenDatabase(connection, quiet); !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an invalid fault without the password", connection, err)
		}
	}
}

func TestAFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	f := cells.NewFile(path)
	if _, err := f.Cells(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v without a file, want an unavailable fault", err)
	}
	for _, c := range []struct {
		text string
		want map[string]string
	}{
		{tabled(), map[string]string{}},
		{tabled(row("cell1", one, "cmp-001")), map[string]string{"cmp-001": one}},
		{"\n" + strings.ReplaceAll(tabled(row("None", one, "cmp-001"), row("a|b", other, "cmp-002.example")), "\n", "\r\n"),
			map[string]string{"cmp-001": one, "cmp-002.example": other}},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := f.Cells(t.Context())
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("error %v, cells (-want +got):\n%s", err, diff)
		}
	}
}

func TestAFileThatIsNoTableIsRefusedByLine(t *testing.T) {
	whole := tabled(row("cell1", one, "cmp-001"), row("cell1", one, "cmp-002"))
	for text, want := range map[string]string{
		"":                                      "complete table",
		"nova-manage: command not found":        "line 1",
		"WARNING x\n" + whole:                   "line 1",
		tabled("| cell1 | " + one + " |"):       "line 4",
		tabled(row("cell1", "cell1", "a")):      "line 4",
		tabled(row("cell1", one, "")):           "line 4",
		tabled("  cell1   " + one + "  cmp-1 "): "line 4",
		tabled(row("cell1", one, "a"), row("cell2", other, "a")): "line 5",
		whole[:strings.LastIndex(whole, "\n+")+1]:                "complete table",
		whole[:strings.Index(whole, "cmp-002")+3]:                "line 5",
		whole[:strings.Index(whole, "| cell1")+1]:                "complete table",
		whole[:63]:                             "complete table",
		"\x00\xff" + strings.Repeat("x", 1000): "line 1",
	} {
		_, err := written(t, text).Cells(t.Context())
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "list_hosts") || len(err.Error()) > 500 {
			t.Errorf("%q: got %v, want an invalid fault about %s, and what to do", text, err, want)
		}
	}
}

func TestASingleCellIsThatOfEveryHost(t *testing.T) {
	single, err := cells.NewSingle(one)
	if err != nil {
		t.Fatal(err)
	}
	got, err := single.Cells(t.Context())
	if err != nil || got[cells.AnyHost] != one {
		t.Errorf("got %v (%v), want %s", got, err, one)
	}
	if _, err := cells.NewSingle("cell1"); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v for a name, want an invalid fault", err)
	}
}
