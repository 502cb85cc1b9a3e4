// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"io"
	"slices"
	"strings"
)

// Use is a measurement: the number of hosts in use at a time, in seconds since 1970.
type Use struct {
	At    int64
	InUse int
}

// The columns of a CSV of measurements.
var useColumns = []string{"in_use", "time"}

const notLater = "is not later than the line before"

// ReadUse reads measurements from a CSV with the columns time and in_use, compressed with gzip or
// not. skipped receives the number of each skipped line and the reason. found is false if the file
// has other columns; it may then be a file for Read.
func ReadUse(r io.Reader, skipped func(line int64, reason string)) (uses []Use, found bool, err error) {
	text, err := unzipped(r)
	if err != nil {
		return nil, false, err
	}
	from, columns := lines{r: text}, &table{}
	for {
		line, why, err := from.next()
		switch {
		case errors.Is(err, io.EOF):
			return uses, columns.columns != nil, nil
		case err != nil:
			return nil, false, broken(from.number, err)
		case why == Blank || why == "" && columns.isHeader(line):
			continue
		case columns.columns == nil:
			if why != "" || !columns.measured(line) {
				return nil, false, nil
			}
			continue
		}
		var use Use
		if why == "" {
			use, why = columns.use(line)
		}
		if n := len(uses); why == "" && n > 0 && use.At <= uses[n-1].At {
			why = notLater
		}
		if why == "" {
			uses = append(uses, use)
		} else {
			skipped(from.number, why)
		}
	}
}

// measured reads the header, and reports whether its columns are those of measurements.
func (f *table) measured(line []byte) bool {
	names, _ := splitCSV(nil, line)
	for i, name := range names {
		names[i] = strings.ToLower(strings.TrimSpace(name))
	}
	f.columns = names
	return slices.Equal(slices.Sorted(slices.Values(names)), useColumns)
}

// use parses a measurement. why is the reason to skip the line; "" if there is none.
func (f *table) use(line []byte) (use Use, why string) {
	var ok bool
	if f.cells, ok = splitCSV(f.cells[:0], line); !ok {
		return use, badQuotes
	}
	if len(f.cells) != len(f.columns) {
		return use, fewColumns
	}
	f.why = ""
	at, timed := f.instant("time")
	if !timed || f.cell("in_use") == "" {
		f.fail(noNumber)
	}
	return Use{At: at, InUse: int(f.count("in_use", 0, mostSize))}, f.why
}
