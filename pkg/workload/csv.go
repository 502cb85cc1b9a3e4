// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// CSVColumns are the columns of a CSV of reservations or virtual machines, in any order. It needs
// submit or start, and runtime or end. quantity is another name of size. If submit is missing, it
// equals start, and the other way round. A missing size is 1; other missing values are absent in
// the Job.
var CSVColumns = []string{
	"name", "id", "submit", "start", "end", "deadline", "runtime", "estimate", "quantity", "size", "properties",
	"vcpus", "memory_mb", "disk_gb", "preemptible", "user",
}

// The reasons for which a line of a CSV is skipped.
const (
	badInstant  = "has a time that is neither seconds nor as 2026-01-31T12:00:00Z"
	badDuration = "has a duration that is neither seconds nor as 2h30m"
	badFlag     = "has a preemptible that is neither true nor false"
	noSubmit    = "has neither submit nor start"
	noRuntime   = "has neither runtime nor end"
	badQuotes   = "has quotes that do not end"
	badFilter   = "has properties that are not JSON"
	badCount    = "has a fraction where a whole number should be"
)

// table reads CSV with a header. Times are dates, or seconds as written; dates become seconds since
// 1970, in UTC if they have no zone. Durations are seconds, or in a form such as 2h30m. Lines that
// begin with # are comments.
type table struct {
	columns []string // nil before the header
	cells   []string
	why     string
}

// header reads the names of the columns; the error is an Invalid fault.
func (f *table) header(line []byte) error {
	names, _ := splitCSV(nil, line)
	for i, name := range names {
		if name = strings.ToLower(strings.TrimSpace(name)); name == "quantity" {
			name = "size"
		}
		switch {
		case !slices.Contains(CSVColumns, name):
			return fault.Field("trace", "column %d: %s; the columns are %s", i+1,
				fault.Unknown("column", name, CSVColumns), strings.Join(CSVColumns, ", "))
		case slices.Contains(f.columns, name):
			return fault.Field("trace", "the column %s appears twice", name)
		}
		f.columns = append(f.columns, name)
	}
	has := func(name string) bool { return slices.Contains(f.columns, name) }
	switch {
	case !has("submit") && !has("start"):
		return fault.Field("trace", "there is neither a column submit nor a column start")
	case !has("runtime") && !has("end"):
		return fault.Field("trace", "there is neither a column runtime nor a column end")
	}
	return nil
}

func (f *table) isHeader(line []byte) bool { return line[0] == '#' }

// job returns the job of a line, or why the line is left out.
func (f *table) job(line []byte) (job Job, why string) {
	var ok bool
	if f.cells, ok = splitCSV(f.cells[:0], line); !ok {
		return job, badQuotes
	}
	if len(f.cells) != len(f.columns) {
		return job, fewColumns
	}
	f.why = ""
	submit, asked := f.instant("submit")
	start, reserved := f.instant("start")
	end, ends := f.instant("end")
	runtime, runs := f.seconds("runtime")
	job = Job{ID: f.cell("id"), Name: f.cell("name"), User: f.cell("user"), Waited: -1, Reserved: reserved, Start: start, Submit: submit}
	if !asked {
		job.Submit = start
	}
	switch {
	case f.why != "":
		return job, f.why
	case !asked && !reserved:
		return job, noSubmit
	case runs:
		job.Runtime = runtime
	case !ends:
		return job, noRuntime
	case reserved:
		job.Runtime = end - start
	default:
		job.Runtime = end - submit
	}
	job.Deadline, _ = f.instant("deadline")
	job.Estimate, _ = f.seconds("estimate")
	job.Size = int(f.count("size", 1, mostSize))
	job.Shape.VCPUs = f.count("vcpus", 0, mostSize)
	job.Shape.MemoryMB = f.count("memory_mb", 0, mostTime)
	job.Shape.DiskGB = f.count("disk_gb", 0, mostTime)
	job.Preemptible = f.flag("preemptible")
	if job.Properties = f.cell("properties"); job.Properties != "" && !json.Valid([]byte(job.Properties)) {
		f.fail(badFilter)
	}
	return job, f.why
}

// cell returns the value of a column; empty if the column does not exist.
func (f *table) cell(name string) string {
	i := slices.Index(f.columns, name)
	if i < 0 {
		return ""
	}
	return strings.TrimSpace(f.cells[i])
}

func (f *table) fail(why string) {
	if f.why == "" {
		f.why = why
	}
}

// dates are the forms of a time, with a zone or in UTC.
var dates = []string{
	time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00",
	"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly,
}

// instant reads a cell with seconds since 1970 or a date; given is false for an empty cell.
func (f *table) instant(name string) (t int64, given bool) {
	text := f.cell(name)
	if text == "" {
		return 0, false
	}
	t, why := whole([]byte(text), mostTime)
	if why != noNumber {
		if why != "" {
			f.fail(why)
		}
		return t, true
	}
	for _, layout := range dates {
		if at, err := time.ParseInLocation(layout, text, time.UTC); err == nil {
			return at.Unix(), true
		}
	}
	f.fail(badInstant)
	return 0, true
}

// seconds reads a cell with seconds or a duration such as 2h; given is false for an empty cell.
func (f *table) seconds(name string) (s int64, given bool) {
	text := f.cell(name)
	if text == "" {
		return 0, false
	}
	s, why := whole([]byte(text), mostTime)
	if why == noNumber {
		var err error
		s, err = span.ParseDuration(text)
		switch {
		case err != nil:
			why = badDuration
		case s > mostTime:
			why = outOfRange
		default:
			why = ""
		}
	}
	if why == "" && s < 0 {
		why = outOfRange
	}
	if why != "" {
		f.fail(why)
	}
	return s, true
}

// count reads a cell with a whole number up to most; otherwise for an empty cell.
func (f *table) count(name string, otherwise, most int64) int64 {
	text := f.cell(name)
	if text == "" {
		return otherwise
	}
	n, why := whole([]byte(text), most)
	if exact, err := strconv.ParseFloat(text, 64); why == "" && err == nil && exact != math.Trunc(exact) {
		why = badCount
	}
	if why == "" && n < 0 {
		why = outOfRange
	}
	if why != "" {
		f.fail(why)
	}
	return n
}

// flag reads a cell with yes or no; an empty one is no.
func (f *table) flag(name string) bool {
	text := strings.ToLower(f.cell(name))
	if text == "" {
		return false
	}
	yes, err := strconv.ParseBool(text)
	switch {
	case err == nil:
		return yes
	case text == "yes", text == "no":
		return text == "yes"
	}
	f.fail(badFlag)
	return false
}

// splitCSV appends the cells of a line to cells (RFC 4180, except that a cell contains no line
// breaks). ok is false if a quotation does not end.
func splitCSV(cells []string, line []byte) (_ []string, ok bool) {
	for {
		if quoted := bytes.TrimLeft(line, " "); len(quoted) > 0 && quoted[0] == '"' {
			cell, rest, ok := cutQuoted(quoted[1:])
			if !ok {
				return cells, false
			}
			cells, line = append(cells, cell), rest
		} else {
			end := bytes.IndexByte(line, ',')
			if end < 0 {
				return append(cells, string(line)), true
			}
			cells, line = append(cells, string(line[:end])), line[end:]
		}
		if len(line) == 0 {
			return cells, true
		}
		line = line[1:] // the comma
	}
}

// cutQuoted returns the cell before the closing quotation mark, and the rest of the line from the
// comma on. ok is false if the mark is missing.
func cutQuoted(text []byte) (cell string, rest []byte, ok bool) {
	var b []byte
	for {
		end := bytes.IndexByte(text, '"')
		if end < 0 {
			return "", nil, false
		}
		b, text = append(b, text[:end]...), text[end+1:]
		if len(text) > 0 && text[0] == '"' {
			b, text = append(b, '"'), text[1:]
			continue
		}
		text = bytes.TrimLeft(text, " ")
		if len(text) > 0 && text[0] != ',' {
			return "", nil, false
		}
		return string(b), text, true
	}
}
