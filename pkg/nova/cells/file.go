package cells

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// File is a file with what `nova-manage cell_v2 list_hosts` prints: a table with the
// name of a cell, its UUID and a host in each row (nova/cmd/manage.py list_hosts).
type File struct{ path string }

// NewFile gives the file at path, which it does not read yet.
func NewFile(path string) File { return File{path} }

// Cells reads the file, as it is now. It fails with an Unavailable fault where it cannot
// be read, and with an Invalid one, which names the line, where it holds something else
// or only a part of the table, as while it is being written.
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
		return nil, f.wrong("it does not hold a whole table")
	}
	return t.cells, nil
}

func (f File) wrong(format string, args ...any) error {
	return fault.Field("cells_file", "%s: %s; write what `nova-manage cell_v2 list_hosts` prints into it anew",
		f.path, fmt.Sprintf(format, args...))
}

// table is what is read of a table: a border, the heads of the columns, a border, the
// rows, a border.
type table struct {
	cells   map[string]string
	borders int
	headed  bool
	closed  bool // the last line was a border
}

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
	if !t.headed { // in the language of who has called nova-manage
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
		return fmt.Errorf("host %q is in another cell before", shortened(host))
	}
	t.cells[host] = cell
	return nil
}

// shortened keeps a message legible where the file is something else altogether.
func shortened(text string) string {
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
