package cells

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// File is a file with the output of `nova-manage cell_v2 list_hosts`: a table whose rows
// contain the name of a cell, its UUID and a host (nova/cmd/manage.py list_hosts).
type File struct{ path string }

// NewFile returns the file at path, without reading it.
func NewFile(path string) File { return File{path} }

// Cells reads the file in its present state. It returns an Unavailable fault if the file cannot
// be read, and an Invalid fault, with the line, if it is not such a table or incomplete, for
// instance while it is being written.
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
