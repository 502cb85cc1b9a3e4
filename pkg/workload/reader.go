// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// The reasons for which a job of any format is skipped.
const (
	tooLarge     = "is larger than the machine"
	submitBefore = "was submitted at a negative time"
	startBefore  = "starts before it was submitted"
	noRun        = "has a run time that is not positive"
	noSize       = "has a size that is not positive"
	shortTime    = "has a deadline before which it cannot be over"
	tooLasting   = "lasts longer than the limit"
	tooFar       = "starts farther ahead than the limit"
)

// reader reads the jobs of a file in its order, and counts the lines that it skips.
type reader struct {
	ledger
	name     string
	format   string
	header   Header
	mostSize int
	longest  int64
	from     interface {
		next() (job Job, why string, err error)
	}
}

// textFormat is a format with one job on each line.
type textFormat interface {
	// isHeader reports whether a line, which is not blank, is a header or a comment, and stores the
	// values in it.
	isHeader(line []byte) bool
	job(line []byte) (job Job, why string)
}

// text reads jobs from lines.
type text struct {
	lines  lines
	format textFormat
	// ahead is the line that ended the header; it is the first line that text returns.
	ahead struct {
		is   bool
		line []byte
		why  string
		err  error
	}
}

// begin reads the header.
func (r *reader) begin(from *bufio.Reader, o OpenOptions) error {
	t := &text{lines: lines{r: from}}
	r.from = t
	switch r.format {
	case "lwf":
		if first := beginning(from); len(first) > 0 && first[0] == '<' {
			l := newLeases(from, &r.header)
			r.from = l
			return unlessEOF(l.err)
		}
		t.format = &oldLeases{}
	case "swf":
		t.format = &swf{columns: swfColumns, comment: ';', hosts: o.ProcsPerHost, head: &r.header}
	case "gwf":
		t.format = &swf{columns: gwfColumns, comment: '#', hosts: o.ProcsPerHost, head: &r.header}
	case "oar":
		t.format = &oar{makeUp: o.MakeUp, within: o.Within}
		r.header.MadeUp = OARBare
		if o.MakeUp {
			r.header.MadeUp = OARMadeUp
		}
	case "csv":
		return r.beginTable(t)
	}
	t.look()
	if err := unlessEOF(t.ahead.err); err != nil {
		return broken(t.lines.number, err)
	}
	return nil
}

// unlessEOF returns err, or nil if err is io.EOF.
func unlessEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// beginTable reads the header of a CSV, which has the names of the columns.
func (r *reader) beginTable(t *text) error {
	columns := &table{}
	t.format = columns
	for {
		line, why, err := t.lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return fault.Field("trace", "there is no header with the names of the columns")
		case err != nil:
			return broken(t.lines.number, err)
		case why == Blank:
			r.lines++
			r.skip(why, t.lines.number)
		case why == "" && columns.isHeader(line):
		case why != "":
			return fault.Field("trace", "line %d, which should be the header, %s", t.lines.number, why)
		default:
			return columns.header(line)
		}
	}
}

// look reads the lines of the header, until the first line that does not belong to it.
func (t *text) look() {
	a := &t.ahead
	for a.is = true; ; {
		a.line, a.why, a.err = t.lines.next()
		if a.err != nil || a.why != "" || !t.format.isHeader(a.line) {
			return
		}
	}
}

// next returns the job of the next line, or why the line is left out; io.EOF at the end.
func (t *text) next() (job Job, why string, err error) {
	if !t.ahead.is {
		t.look()
	}
	t.ahead.is = false
	line, why, err := t.ahead.line, t.ahead.why, t.ahead.err
	switch {
	case errors.Is(err, io.EOF):
		return job, "", io.EOF
	case err != nil:
		return job, "", broken(t.lines.number, err)
	case why == "":
		job, why = t.format.job(line)
	}
	job.Line = t.lines.number
	return job, why, nil
}

// broken returns the error for a file that breaks off after a line; line 0 means that it has no
// whole line.
func broken(line int64, err error) error {
	message := "the file breaks off before its first line"
	if line > 0 {
		message = fmt.Sprintf("the file breaks off after line %d", line)
	}
	return &fault.Error{Kind: fault.Invalid, Message: message, Err: err}
}

// Next implements Stream, in the order of the file.
func (r *reader) Next() (Job, error) {
	for {
		job, why, err := r.from.next()
		if err != nil {
			return Job{}, named(r.name, err)
		}
		r.ledger.lines++
		if why == "" {
			why = r.wrong(&job)
		}
		if why == "" {
			r.jobs++
			if r.longest > 0 {
				job.Estimate = min(job.Estimate, r.longest)
			}
			return job, nil
		}
		r.skip(why, job.Line)
	}
}

// wrong returns the reason to skip a job; "" means that it can be used.
func (r *reader) wrong(j *Job) (why string) {
	begin := j.Begin()
	switch {
	case j.Submit < 0:
		return submitBefore
	case j.Runtime < 1:
		return noRun
	case j.Size < 1:
		return noSize
	case begin < j.Submit:
		return startBefore
	case j.Deadline != 0 && j.Deadline < begin+j.Runtime:
		return shortTime
	case r.mostSize > 0 && j.Size > r.mostSize:
		return tooLarge
	case r.longest > 0 && j.Runtime > r.longest:
		return tooLasting
	case r.longest > 0 && begin-j.Submit > r.longest:
		return tooFar
	}
	return ""
}

// beginning returns the beginning of the content, without leading white space.
func beginning(from *bufio.Reader) []byte {
	first, _ := from.Peek(buffered) // a later read returns the error
	return bytes.TrimLeft(first, blanks)
}

const blanks = " \t\r\n"

// recognize returns the format by the content, or else by the name of the file.
func recognize(from *bufio.Reader, name string) (string, error) {
	text, err := from.Peek(buffered)
	first := bytes.TrimLeft(text, blanks)
	if len(first) > 0 && first[0] == '<' {
		return "lwf", nil
	}
	semicolons, hashes := false, false
	var r row
	for line := range bytes.Lines(first) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
			continue
		case line[0] == ';':
			semicolons = true
			continue
		case line[0] == '#':
			hashes = true
			continue
		}
		r.split(line)
		_, why := whole(r.fields[0], mostTime)
		number := why == ""
		switch n := len(r.fields); {
		case n == swfColumns && number && !hashes:
			return "swf", nil
		case n == gwfColumns && number:
			return "gwf", nil
		case n == lwfColumns && number && r.fields[8][0] == '\'':
			return "lwf", nil
		case n == oarColumns && number:
			return "oar", nil
		case !number && bytes.IndexByte(line, ',') >= 0 && !semicolons:
			return "csv", nil
		}
		break
	}
	base := strings.TrimSuffix(strings.ToLower(name), ".gz")
	switch ending := strings.TrimPrefix(path.Ext(base), "."); {
	case ending == "swf" || ending == "gwf" || ending == "lwf" || ending == "oar" || ending == "csv":
		return ending, nil
	case semicolons:
		return "swf", nil
	case unlessEOF(err) != nil:
		return "", broken(int64(bytes.Count(text, []byte("\n"))), err)
	case err != nil && len(first) == 0:
		return "", fault.Field("trace", "the file is empty")
	}
	return "", fault.Field("trace_format", "the content does not show the format; name it: %s", strings.Join(Formats, ", "))
}
