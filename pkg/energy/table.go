package energy

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Efficiency is what a table knows of the power of hosts.
type Efficiency struct {
	FlopsPerWatt float64 // 0 is unknown
	Draw         Draw
}

// Table is an imported table of efficiencies, the rows in their order. A row is for a host,
// or for all that a pattern such as "node-*" matches; the first row that fits counts.
type Table []TableRow

// TableRow is one row of it.
type TableRow struct {
	Pattern string
	Efficiency
}

// Of gives what the table knows of a host.
func (t Table) Of(host string) Efficiency {
	for _, row := range t {
		if fits, err := path.Match(row.Pattern, host); err == nil && fits {
			return row.Efficiency
		}
	}
	return Efficiency{}
}

// ReadTable reads a CSV table with a header; of its columns host is needed, and
// flops_per_watt, idle_watts, full_watts, standby_watts, off_watts and boot_joules are
// known. An empty cell is unknown. Errors are Invalid faults that name the line.
func ReadTable(r io.Reader) (Table, error) {
	lines := csv.NewReader(r)
	lines.Comment, lines.TrimLeadingSpace = '#', true
	header, err := lines.Read()
	if errors.Is(err, io.EOF) {
		return nil, fault.New(fault.Invalid, "the table is empty; its first line names the columns, host and flops_per_watt among them")
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "the table cannot be read: %v", err)
	}
	var table Table
	for {
		cells, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return table, nil
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, "the table cannot be read: %v", err)
		}
		row, err := tableRow(header, cells)
		if err != nil {
			line, _ := lines.FieldPos(0)
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		table = append(table, row)
	}
}

func tableRow(header, cells []string) (TableRow, error) {
	var row TableRow
	columns := map[string]*float64{
		"flops_per_watt": &row.FlopsPerWatt, "idle_watts": &row.Draw.Idle, "full_watts": &row.Draw.Full,
		"standby_watts": &row.Draw.Standby, "off_watts": &row.Draw.Off, "boot_joules": &row.Draw.BootJoules,
	}
	for i, name := range header {
		if name == "host" {
			row.Pattern = cells[i]
			continue
		}
		cell, known := columns[name]
		if !known {
			return row, fault.Field(name, "is no column of the table; it has host, flops_per_watt, idle_watts, full_watts, standby_watts, off_watts and boot_joules")
		}
		if cells[i] == "" {
			continue
		}
		value, err := strconv.ParseFloat(cells[i], 64)
		if err != nil || !(value >= 0) || value > 1e18 {
			return row, fault.Field(name, "must be a number that is not negative, not %q", cells[i])
		}
		*cell = value
	}
	if _, err := path.Match(row.Pattern, ""); row.Pattern == "" || err != nil {
		return row, fault.Field("host", "must be the name of a host, or a pattern such as node-*, not %q", row.Pattern)
	}
	return row, nil
}
