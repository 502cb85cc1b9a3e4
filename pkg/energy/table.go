// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Efficiency is what an imported table of efficiencies contains for a host: FLOPS per watt, and the
// power that it draws in each state.
type Efficiency struct {
	FlopsPerWatt float64 // 0 means unknown
	Draw         Draw
}

// Table is an imported table of efficiencies. A row applies to the hosts
// of a list such as "node-[01-16,18]", or to all hosts that a pattern such as "node-*" matches; the
// first row that matches counts.
type Table struct {
	names    map[string]tableRow // rows for a single host, by its name
	patterns []tableRow          // rows with a pattern, in their order
}

type tableRow struct {
	place int // position among all rows
	host  string
	Efficiency
}

// Of returns the efficiency of a host; the zero Efficiency if no row matches.
func (t Table) Of(host string) Efficiency {
	own, named := t.names[host]
	for _, row := range t.patterns {
		if named && own.place < row.place {
			break
		}
		if fits, err := path.Match(row.host, host); err == nil && fits {
			return row.Efficiency
		}
	}
	return own.Efficiency
}

// add appends a row.
func (t *Table) add(row tableRow) {
	if row.place = len(t.names) + len(t.patterns); isPattern(row.host) {
		t.patterns = append(t.patterns, row)
	} else if _, named := t.names[row.host]; !named {
		t.names[row.host] = row
	}
}

// ReadTable reads a CSV table with a header. The column host is required; the columns
// flops_per_watt, idle_watts, full_watts, standby_watts, off_watts and boot_joules are optional. An
// empty cell means unknown. Errors are Invalid faults; an error in a row names its line.
func ReadTable(r io.Reader) (Table, error) {
	lines := csv.NewReader(r)
	lines.Comment, lines.TrimLeadingSpace = '#', true
	header, err := lines.Read()
	if errors.Is(err, io.EOF) {
		return Table{}, fault.New(fault.Invalid, "the table is empty; its first line names the columns, host and flops_per_watt among them")
	}
	if err != nil {
		return Table{}, fault.New(fault.Invalid, "the table cannot be read: %v", err)
	}
	table := Table{names: map[string]tableRow{}}
	for {
		cells, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return table, nil
		}
		if err != nil {
			return Table{}, fault.New(fault.Invalid, "the table cannot be read: %v", err)
		}
		row, err := readRow(header, cells)
		if err == nil {
			err = table.addAll(row)
		}
		if err != nil {
			line, _ := lines.FieldPos(0)
			return Table{}, fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// addAll appends a row for a pattern, or one for each name of a list of hosts.
func (t *Table) addAll(row tableRow) error {
	if isPattern(row.host) {
		if _, err := path.Match(row.host, ""); err != nil || strings.Contains(row.host, "[") {
			return fault.Field("host", "must be a list of hosts, or a pattern such as node-*, not %q", row.host)
		}
		t.add(row)
		return nil
	}
	hosts, err := inventory.ExpandNames(row.host)
	if err != nil {
		return fault.Field("host", "must be a list of hosts, or a pattern such as node-*: %v", err)
	}
	for _, row.host = range hosts {
		t.add(row)
	}
	return nil
}

func isPattern(host string) bool { return strings.ContainsAny(host, `*?\`) }

// readRow returns the row of a table of efficiencies. An empty cell leaves its value 0.
func readRow(header, cells []string) (tableRow, error) {
	var row tableRow
	columns := map[string]*float64{
		"flops_per_watt": &row.FlopsPerWatt, "idle_watts": &row.Draw.Idle, "full_watts": &row.Draw.Full,
		"standby_watts": &row.Draw.Standby, "off_watts": &row.Draw.Off, "boot_joules": &row.Draw.BootJoules,
	}
	for i, name := range header {
		if name == "host" {
			row.host = cells[i]
			continue
		}
		cell, known := columns[name]
		if !known {
			return row, fault.Field(name, "is not a column of the table; the columns are host, flops_per_watt, idle_watts, full_watts, standby_watts, off_watts and boot_joules")
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
	return row, nil
}
