// SPDX-License-Identifier: Apache-2.0

// Package cells returns the cell of each host: the UUID of the cell by the name of the host's
// nova-compute. Nova's API does not contain it; nova-scheduler reads it from the API database.
package cells

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/store"
)

// Single is a cloud whose hosts are all in one cell.
type Single struct{ cell string }

// NewSingle returns a cloud with one cell. It returns an Invalid fault if cell is not a UUID.
func NewSingle(cell string) (Single, error) {
	if !placing.IsUUID(cell) {
		return Single{}, fault.Field("cell", "must be the UUID of a cell, as `nova-manage cell_v2 list_cells` prints it, not %q", cell)
	}
	return Single{cell}, nil
}

// AnyHost is the key for all hosts that are not listed.
const AnyHost = ""

// Cells returns the one cell under AnyHost, which stands for each host.
func (s Single) Cells(context.Context) (map[string]string, error) {
	return map[string]string{AnyHost: s.cell}, nil
}

const (
	// answerTime bounds a query; 10,000 hosts need some hundredths of a second.
	answerTime = 10 * time.Second
	// query does not read the columns of cell_mappings that contain passwords of the cells
	// (nova/db/api/models.py CellMapping).
	query = "SELECT h.host, c.uuid FROM host_mappings h JOIN cell_mappings c ON c.id = h.cell_id WHERE NOT c.disabled"
)

// Database is Nova's API database. It is safe for concurrent use.
type Database struct{ pool *sql.DB }

// OpenDatabase returns the database of the connection, as in [api_database] connection in
// Nova's configuration. The user needs to read host and cell_id of host_mappings, and id, uuid
// and disabled of cell_mappings; Almanac never writes. OpenDatabase does not connect yet. It
// returns an Invalid fault for an unusable connection.
func OpenDatabase(connection string, log *slog.Logger) (*Database, error) {
	pool, err := store.OpenForeign(connection, log)
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	pool.SetConnMaxIdleTime(time.Minute)
	return &Database{pool}, nil
}

// Close closes the connections.
func (d *Database) Close() error { return d.pool.Close() }

// Cells returns the cell of each host that nova-manage cell_v2 discover_hosts has found, except
// for disabled cells, which get no instances. It returns Unavailable faults.
func (d *Database) Cells(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	all, err := d.read(ctx)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Unavailable, Message: "the cells of the hosts cannot be read from Nova's API database", Err: err}
	}
	return all, nil
}

// read returns the cell of each host.
func (d *Database) read(ctx context.Context) (map[string]string, error) {
	rows, err := d.pool.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var host, cell string
		if err := rows.Scan(&host, &cell); err != nil {
			return nil, err
		}
		all[host] = cell
	}
	return all, rows.Err()
}

// File is a file with the output of `nova-manage cell_v2 list_hosts`: a table whose rows
// contain the name of a cell, its UUID and a host (nova/cmd/manage.py list_hosts).
type File struct{ path string }

// NewFile returns the file at path, without reading it.
func NewFile(path string) File { return File{path} }

// Cells reads the file and returns the UUID of the cell of each host. It returns an Unavailable
// fault if the file cannot be read, and an Invalid fault with the line if the content is not a
// complete output of `nova-manage cell_v2 list_hosts`, for instance while the file is being
// written.
func (f File) Cells(context.Context) (map[string]string, error) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Unavailable, Message: "the file with the cells of the hosts cannot be read", Err: err}
	}
	t := table{cells: map[string]string{}}
	for i, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := t.read(line); err != nil {
			return nil, f.wrong("line %d: %v", i+1, err)
		}
	}
	if t.borders < 3 || !t.closed {
		return nil, f.wrong("it does not contain a complete table")
	}
	return t.cells, nil
}

func (f File) wrong(format string, args ...any) error {
	return fault.Field("cells_file", "%s: %s; write the output of `nova-manage cell_v2 list_hosts` to it again",
		f.path, fmt.Sprintf(format, args...))
}

// table is the state of reading a table: a border, the column headers, a border, the rows, a
// border.
type table struct {
	cells   map[string]string
	borders int
	headed  bool
	closed  bool // the last line was a border
}

// read reads one line of the table that nova-manage cell_v2 list_hosts prints.
func (t *table) read(line string) error {
	if strings.HasPrefix(line, "+-") && strings.Trim(line, "+-") == "" {
		t.borders++
		t.closed = true
		return nil
	}
	t.closed = false
	inner, ok := strings.CutPrefix(line, "|")
	inner, ok2 := strings.CutSuffix(inner, "|")
	columns := strings.Split(inner, "|")
	last := len(columns) - 1
	if !ok || !ok2 || last < 2 {
		return fmt.Errorf("%q is not a row of three columns", shortened(line))
	}
	if !t.headed { // in the language of the user who called nova-manage
		t.headed = true
		return nil
	}
	cell, host := strings.TrimSpace(columns[last-1]), strings.TrimSpace(columns[last])
	if !placing.IsUUID(cell) {
		return fmt.Errorf("%q is not the UUID of a cell", shortened(cell))
	}
	if host == "" {
		return fmt.Errorf("it names no host")
	}
	if other, twice := t.cells[host]; twice && other != cell {
		return fmt.Errorf("host %q is in another cell in an earlier row", shortened(host))
	}
	t.cells[host] = cell
	return nil
}

// shortened keeps messages readable if the file is something else entirely.
func shortened(text string) string {
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
