package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// workload is a file of reservations.
type workload struct {
	rows []row
	// digest begins the SHA-256 of the file as it is stored.
	digest string
	// synthetic says that the file has no sizes and they were made up.
	synthetic bool
}

// row is one reservation of a file, its times in epoch seconds.
type row struct {
	id         string // of the row in the file
	name       string
	start, end int64
	quantity   int
	properties json.RawMessage
	problem    string // why the row cannot be sent; empty where it can
}

// Why rows are not sent.
const (
	unreadable    = "unreadable"
	cancelledRow  = "cancelled before start"
	startless     = "no start"
	endsTooEarly  = "end not after start"
	underOne      = "quantity under 1"
	importStopped = "import stopped"
)

// reason is why the row was not sent.
func (r row) reason() string {
	if r.problem == "" {
		return importStopped
	}
	return r.problem
}

// check gives what is wrong with the times of the row.
func (r row) check() string {
	switch {
	case r.start < 0:
		return startless
	case r.end <= r.start:
		return endsTooEarly
	}
	return ""
}

// first is the earliest start of the rows that can be sent, false where there
// are none.
func (w workload) first() (int64, bool) {
	var first int64
	found := false
	for _, r := range w.rows {
		if r.problem == "" && (!found || r.start < first) {
			first, found = r.start, true
		}
	}
	return first, found
}

// valid counts the rows that can be sent.
func (w workload) valid() int {
	count := 0
	for _, r := range w.rows {
		if r.problem == "" {
			count++
		}
	}
	return count
}

var workloadFormats = []string{"csv", "grid5000"}

// readWorkload reads a file, compressed or not; of its rows at most the first
// limit, 0 is all. An empty format is recognized.
func readWorkload(content []byte, format string, limit int) (workload, error) {
	sum := sha256.Sum256(content)
	w := workload{digest: hex.EncodeToString(sum[:])[:12]}
	text, err := expand(content)
	if err != nil {
		return w, err
	}
	if format == "" {
		format = recognize(text)
	}
	switch format {
	case "grid5000":
		w.synthetic = true
		w.rows = readGrid5000(text, limit)
	case "csv":
		w.rows, err = readCSV(text, limit)
	default:
		err = fault.Field("--input-format", "%s", unknown("format", format, workloadFormats))
	}
	return w, err
}

// expand undoes gzip and takes away a byte order mark.
func expand(content []byte) (string, error) {
	if bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
		reader, err := gzip.NewReader(bytes.NewReader(content))
		if err == nil {
			content, err = io.ReadAll(reader)
		}
		if err != nil {
			return "", &fault.Error{Kind: fault.Invalid, Message: "the file is damaged; compress it again with gzip", Err: err}
		}
	}
	return strings.TrimPrefix(string(content), "\ufeff"), nil
}

// recognize tells the formats by the first line that has data.
func recognize(text string) string {
	for line := range dataLines(text) {
		if strings.Contains(line, "\t") {
			return "grid5000"
		}
		break
	}
	return "csv"
}

// dataLines walks the lines that are neither blank nor comments.
func dataLines(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\r\n")
			if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") && !yield(line) {
				return
			}
		}
	}
}

// readGrid5000 reads JobID, StartTime and StopTime, separated by tabs. StopTime -1
// is a reservation that was cancelled before its start.
func readGrid5000(text string, limit int) []row {
	var rows []row
	for line := range dataLines(text) {
		if limit > 0 && len(rows) == limit {
			break
		}
		rows = append(rows, grid5000Row(strings.Split(line, "\t")))
	}
	return rows
}

func grid5000Row(fields []string) row {
	r := row{id: strings.TrimSpace(fields[0])}
	job, jobErr := strconv.ParseUint(r.id, 10, 63)
	var startErr, endErr error = nil, errors.New("absent")
	if len(fields) == 3 {
		r.start, startErr = epoch(fields[1])
		r.end, endErr = epoch(fields[2])
	}
	if errors.Join(jobErr, startErr, endErr) != nil {
		r.problem = unreadable
		return r
	}
	r.name = "grid5000-" + r.id
	r.quantity = 1 + int(job%8)
	r.problem = r.check()
	if r.end == -1 {
		r.problem = cancelledRow
	}
	return r
}

// epoch reads seconds since 1970, no later than the year 9000.
func epoch(text string) (int64, error) {
	seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err == nil && seconds > lastEpoch {
		err = errors.New("too late")
	}
	return seconds, err
}

var lastEpoch = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// readCSV reads a table with a header. The id of a row is its number.
func readCSV(text string, limit int) ([]row, error) {
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comment, reader.FieldsPerRecord, reader.TrimLeadingSpace = '#', -1, true
	header, err := reader.Read()
	if err != nil {
		return nil, fault.New(fault.Invalid, "the file has no header; a CSV file begins with the line name,start,end,quantity")
	}
	known := []string{"name", "start", "end", "quantity", "properties"}
	for _, name := range header {
		if !slices.Contains(known, name) {
			return nil, fault.Field("header", "%s", unknown("column", name, known))
		}
	}
	for _, name := range known[:4] {
		if !slices.Contains(header, name) {
			return nil, fault.Field("header", "the column %s is missing", name)
		}
	}
	var rows []row
	for limit == 0 || len(rows) < limit {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		r := row{id: strconv.Itoa(len(rows) + 1), problem: unreadable}
		if err == nil && len(record) == len(header) {
			fields := make(map[string]string, len(header))
			for i, name := range header {
				fields[name] = record[i]
			}
			r.fill(fields)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// fill reads the fields of a line of CSV.
func (r *row) fill(fields map[string]string) {
	var startErr, endErr, quantityErr error
	if r.name = fields["name"]; strings.TrimSpace(r.name) == "" {
		r.name = "row-" + r.id
	}
	r.start, startErr = epochOrTime(fields["start"])
	r.end, endErr = epochOrTime(fields["end"])
	r.quantity, quantityErr = strconv.Atoi(strings.TrimSpace(fields["quantity"]))
	if filter := strings.TrimSpace(fields["properties"]); filter != "" {
		r.properties = json.RawMessage(filter)
	}
	switch {
	case errors.Join(startErr, endErr, quantityErr) != nil, r.properties != nil && !json.Valid(r.properties):
		r.problem = unreadable
	case r.quantity < 1:
		r.problem = underOne
	default:
		r.problem = r.check()
	}
}

func epochOrTime(text string) (int64, error) {
	if t, err := time.Parse(time.RFC3339, strings.TrimSpace(text)); err == nil {
		return t.Unix(), nil
	}
	return epoch(text)
}
