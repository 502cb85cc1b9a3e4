// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/workload"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

const mostWorkers = 64

// migration has the flags of "reservation import".
type migration struct {
	format  string
	perHost int
	shiftTo moment
	rows    int
	workers int
	policy  string
	dryRun  bool
	report  string
}

func (p *process) reservationImportCommand() *cobra.Command {
	m := &migration{}
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Book the reservations of a file",
		Long: `Book the reservations of a file, one request for each line, in the order of the file.
The file may be compressed with gzip; - is standard input. Its format is one of

` + workload.FormatsHelp + `

Each request is for whole hosts, from the start (or the submission of a job without a
start) for the estimate or the run time. swf and gwf count processors: each becomes a
host, unless --procs-per-host tells how many a host has. Their times begin at the
UnixStartTime of the file. The reservations of oar receive the synthetic size 1 + JobID mod 8. A reservation
without a name is called job-ID or line-NUMBER.

The command counts lines that cannot be used, and does not send them. --shift-to moves
all starts by the same time, so that the first start is then. You can import the same
file with the same shift again: nothing is booked twice.

The summary is printed as data. The exit code is 0 if Almanac accepted or refused every
request.`,
		Example: `  almanac reservation import plan.csv
  almanac reservation import grid5000_reservation_jobs.log.gz --rows 5000 --shift-to now+1h --report answers.csv`,
		Args: needsOne("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			return flagged(c.LocalNonPersistentFlags(), p.migrate(c, m, args[0]))
		},
	}
	flags := c.Flags()
	flags.StringVar(&m.format, "trace-format", "", "format of the file (default: recognized from its content)")
	flags.IntVar(&m.perHost, "procs-per-host", 1, "processors of a host, for files that count processors")
	flags.Var(&m.shiftTo, "shift-to", "move all starts so that the first is then (default: as in the file)")
	flags.IntVar(&m.rows, "rows", 0, "use only the first lines with data; 0 is all")
	flags.IntVar(&m.workers, "workers", 1, "number of concurrent requests")
	flags.StringVar(&m.policy, "policy", "", "how to choose among the possible starts (default first-fit)")
	flags.BoolVar(&m.dryRun, "dry-run", false, "only request offers, each without the other reservations of the file")
	flags.StringVar(&m.report, "report", "", "write the answer to each line to this CSV file")
	completeFlag(c, "trace-format", oneOf(workload.Formats))
	completeFlag(c, "policy", oneOf(calendar.Policies))
	return c
}

func (p *process) migrate(c *cobra.Command, m *migration, name string) error {
	switch {
	case m.workers < 1 || m.workers > mostWorkers || m.rows < 0:
		return fault.New(fault.Invalid, "--workers must be from 1 to %d, and --rows not negative", mostWorkers)
	case m.perHost < 1:
		return fault.Field("--procs-per-host", "a host has at least 1 processor")
	}
	content, err := p.read(name)
	if err != nil {
		return err
	}
	load, err := readLoad(content, name, m)
	if err != nil {
		return err
	}
	return with(p, c, summaryFields, inShows, func(ctx context.Context, almanac *client.Client, out printer[importSummary]) error {
		now, err := almanac.Now(ctx)
		if err != nil {
			return err
		}
		shift, err := p.shift(m, load, now)
		if err != nil {
			return err
		}
		var report *os.File
		if m.report != "" {
			if report, err = os.Create(m.report); err != nil {
				return &fault.Error{Kind: fault.Invalid, Field: "--report", Message: "the file cannot be written", Err: err}
			}
		}
		begun := p.now()
		s := &sender{almanac: almanac, load: load, shift: shift, policy: m.policy, dryRun: m.dryRun}
		stopped := s.send(ctx, m.workers, p.newProgress(load.valid(), "rows"))
		sum := summarize(s, p.now().Sub(begun))
		if report != nil {
			if err := errors.Join(writeReport(report, s), report.Close()); err != nil {
				return fmt.Errorf("write the report: %w", err)
			}
		}
		if err := out.one(sum, sum); err != nil {
			return err
		}
		if stopped != nil {
			return fmt.Errorf("the import stopped: %w", stopped)
		}
		if sum.Failed > 0 {
			return &outcome{exitFailed, fmt.Sprintf("%d rows were neither accepted nor refused; --report FILE shows why", sum.Failed)}
		}
		return nil
	})
}

// load is a file of reservations.
type load struct {
	rows []row
	// digest is the beginning of the SHA-256 of the file as it is stored.
	digest string
	// synthetic is true if the file has no sizes and the reader made them up.
	synthetic bool
}

// row is one line of a file.
type row struct {
	workload.Job
	problem string // why the row cannot be sent; empty if it can
}

// The reasons of the import for which a row is not sent.
const (
	tooLate       = "ends after the year 9000"
	importStopped = "import stopped"
)

var lastEnd = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()

// readLoad reads the rows of a file, at most m.rows of them; 0 means all. Their times are in
// seconds since 1970.
func readLoad(content []byte, name string, m *migration) (load, error) {
	sum := sha256.Sum256(content)
	l := load{digest: hex.EncodeToString(sum[:])[:12]}
	limit := m.rows
	if limit == 0 {
		limit = math.MaxInt
	}
	file, err := workload.Read(bytes.NewReader(content), name, workload.OpenOptions{
		Format: m.format, ProcsPerHost: m.perHost, MakeUp: true, FileOrder: true,
		Skipped: func(line int64, reason string) {
			if reason != workload.Blank {
				l.rows = append(l.rows, row{workload.Job{Line: line}, reason})
			}
		},
	})
	if err != nil {
		return l, aboutFile(err)
	}
	l.synthetic = file.Header().MadeUp != ""
	for len(l.rows) < limit {
		job, err := file.Next()
		switch {
		case errors.Is(err, io.EOF):
			limit = min(limit, len(l.rows))
			continue
		case err != nil:
			return l, aboutFile(err)
		}
		r := row{Job: later(job, file.Header().UnixStart)}
		if r.Begin()+r.Booked() > lastEnd {
			r.problem = tooLate
		}
		l.rows = append(l.rows, r)
	}
	l.rows = l.rows[:limit]
	return l, nil
}

// later returns a job with times in seconds since 1970. A time before the start of its file counts
// from that start.
func later(job workload.Job, start int64) workload.Job {
	if job.Submit >= start {
		return job
	}
	job.Submit += start
	if job.Reserved {
		job.Start += start
	}
	return job
}

// aboutFile replaces the word trace in an error of the reader by the argument FILE.
func aboutFile(err error) error {
	about := *fault.Of(err)
	if about.Field == "" || about.Field == "trace" {
		about.Field = "FILE"
	}
	return &about
}

// first returns the earliest start of the rows that can be sent; false if there are none.
func (l load) first() (first int64, found bool) {
	for _, r := range l.rows {
		if r.problem == "" && (!found || r.Begin() < first) {
			first, found = r.Begin(), true
		}
	}
	return first, found
}

// valid counts the rows that can be sent.
func (l load) valid() (count int) {
	for _, r := range l.rows {
		if r.problem == "" {
			count++
		}
	}
	return count
}

// shift returns the offset of all rows in seconds, and prints it.
func (p *process) shift(m *migration, l load, now time.Time) (int64, error) {
	first, found := l.first()
	if !found {
		return 0, nil
	}
	var shift int64
	if !m.shiftTo.at.IsZero() {
		shift = m.shiftTo.at.Unix() - first
	}
	start := time.Unix(first+shift, 0)
	if !start.After(now) {
		return 0, fault.New(fault.Invalid, "the first reservation would start in the past, at %s; move all with --shift-to now+1h", stamp(start))
	}
	if l.synthetic {
		p.inform("the file has no sizes; each reservation has the synthetic size 1 + JobID mod 8")
	}
	p.inform("offset of all rows: %d s; the first start moves from %s to %s", shift, stamp(time.Unix(first, 0)), stamp(start))
	return shift, nil
}

// importSummary counts the rows of an import by their answers.
type importSummary struct {
	Rows           int            `json:"rows"`
	NotSent        map[string]int `json:"not_sent"` // by reason
	Accepted       int            `json:"accepted"`
	Refused        map[string]int `json:"refused"` // by constraint
	Failed         int            `json:"failed"`
	ShiftSeconds   int64          `json:"shift_seconds"`
	SyntheticSizes bool           `json:"synthetic_sizes"`
	DryRun         bool           `json:"dry_run"`
	Seconds        float64        `json:"seconds"`
	RowsPerSecond  float64        `json:"rows_per_second"` // answered rows
}

func summaryFields(s importSummary) []field {
	return []field{
		{"Rows", s.Rows, inLists}, {"Not Sent", s.NotSent, inLists}, {"Accepted", s.Accepted, inLists}, {"Refused", s.Refused, inLists},
		{"Failed", s.Failed, inLists}, {"Shift Seconds", s.ShiftSeconds, inLists}, {"Synthetic Sizes", s.SyntheticSizes, inLists},
		{"Dry Run", s.DryRun, inLists}, {"Seconds", s.Seconds, inLists}, {"Rows Per Second", s.RowsPerSecond, inLists},
	}
}

func summarize(s *sender, took time.Duration) importSummary {
	sum := importSummary{
		Rows: len(s.load.rows), NotSent: make(map[string]int), Refused: make(map[string]int),
		ShiftSeconds: s.shift, SyntheticSizes: s.load.synthetic, DryRun: s.dryRun,
		Seconds: took.Round(time.Millisecond).Seconds(),
	}
	answered := 0
	for i, a := range s.answers {
		switch a.verdict {
		case accepted:
			sum.Accepted++
			answered++
		case refused:
			sum.Refused[a.constraint]++
			answered++
		case failed:
			sum.Failed++
		default:
			sum.NotSent[cmp.Or(s.load.rows[i].problem, importStopped)]++
		}
	}
	if took > 0 {
		sum.RowsPerSecond = float64(int64(float64(answered)/took.Seconds()*10)) / 10
	}
	return sum
}

// writeReport writes the answer to each row.
func writeReport(out io.Writer, s *sender) error {
	records := [][]string{{"line", "id", "start", "end", "quantity", "answer", "constraint", "message"}}
	for i, a := range s.answers {
		r := s.load.rows[i]
		record := []string{strconv.FormatInt(r.Line, 10), r.ID, "", "", "", string(a.verdict), a.constraint, a.message}
		if a.verdict == unsent {
			record[7] = cmp.Or(r.problem, importStopped)
		} else {
			request := s.request(r)
			record[2], record[3], record[4] = stamp(*request.StartTime), stamp(*request.EndTime), strconv.Itoa(r.Size)
		}
		records = append(records, record)
	}
	return csv.NewWriter(out).WriteAll(records)
}
