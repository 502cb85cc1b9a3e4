package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

const mostWorkers = 64

// migration has the flags of "reservation import".
type migration struct {
	format  string
	shiftTo moment
	rows    int
	workers int
	policy  string
	dryRun  bool
	report  string
}

func (p *process) reservationImportCommand() *cobra.Command {
	m := &migration{shiftTo: moment{clock: p.now}}
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Book the reservations of a file",
		Long: `Book the reservations of a file, one request for each row, in the order of the file.
The file may be compressed with gzip; - is standard input. It is one of

  csv       a header line, then one reservation a line: name, start, end, quantity and
            if wanted properties (a filter in JSON); times in epoch seconds or RFC 3339.
            A reservation without a name is named after its row: row-7
  grid5000  the reservation table of the Grid Workloads Archive, GWA-T-2: JobID,
            StartTime, StopTime in epoch seconds, separated by tabs. It has no sizes:
            each reservation gets the synthetic size 1 + JobID mod 8

Rows that were cancelled before their start, that have no start, or that cannot be
read are counted and not sent. --shift-to moves all rows by the same time, so that
the first start of the file falls there. The same file with the same shift can be
imported again: what was booked is not booked twice.

The summary is printed as data. The exit code is 0 when every row that was sent was
accepted or refused.`,
		Example: `  almanac reservation import plan.csv
  almanac reservation import grid5000_reservation_jobs.log.gz --rows 5000 --shift-to now+1h --report answers.csv`,
		Args: needsOne("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			return p.migrate(c.Context(), m, args[0])
		},
	}
	flags := c.Flags()
	flags.StringVar(&m.format, "input-format", "", "format of the file: csv or grid5000 (default: what its first line looks like)")
	flags.Var(&m.shiftTo, "shift-to", "move all rows so that the first start is then (default: as in the file)")
	flags.IntVar(&m.rows, "rows", 0, "take only the first rows of the file; 0 is all")
	flags.IntVar(&m.workers, "workers", 1, "how many requests to have under way at once")
	flags.StringVar(&m.policy, "policy", "", "how to choose among the starts that would do (default first-fit)")
	flags.BoolVar(&m.dryRun, "dry-run", false, "ask for offers only; each row is judged without the others")
	flags.StringVar(&m.report, "report", "", "write the answer to every row to this CSV file")
	completeFlag(c, "input-format", cobra.FixedCompletions(workloadFormats, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(c, "policy", oneOf(calendar.Policies))
	return c
}

func (p *process) migrate(ctx context.Context, m *migration, name string) error {
	out, err := newPrinter(p, summaryColumns, inShows)
	if err != nil {
		return err
	}
	if m.workers < 1 || m.workers > mostWorkers || m.rows < 0 {
		return fault.New(fault.Invalid, "--workers must be from 1 to %d, and --rows not negative", mostWorkers)
	}
	content, err := p.read(name)
	if err != nil {
		return err
	}
	load, err := readWorkload(content, m.format, m.rows)
	if err != nil {
		return err
	}
	shift, err := p.shift(m, load)
	if err != nil {
		return err
	}
	var report *os.File
	if m.report != "" {
		if report, err = os.Create(m.report); err != nil {
			return &fault.Error{Kind: fault.Invalid, Field: "--report", Message: "the file cannot be written", Err: err}
		}
	}
	almanac, err := p.connect(ctx)
	if err != nil {
		return err
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
		return &outcome{exitFailed, fmt.Sprintf("%d rows were neither accepted nor refused; --report FILE says why", sum.Failed)}
	}
	return nil
}

// shift gives by how many seconds the rows are moved, and prints it.
func (p *process) shift(m *migration, load workload) (int64, error) {
	first, found := load.first()
	if !found {
		return 0, nil
	}
	var shift int64
	if !m.shiftTo.at.IsZero() {
		shift = m.shiftTo.at.Unix() - first
	}
	start := time.Unix(first+shift, 0)
	if !start.After(p.now()) {
		return 0, fault.New(fault.Invalid, "the first reservation would start at %s, which is past; move all with --shift-to now+1h", stamp(start))
	}
	if load.synthetic {
		p.inform("the file has no sizes; each reservation gets the synthetic size 1 + JobID mod 8")
	}
	p.inform("offset of all rows: %d s; the first start moves from %s to %s", shift, stamp(time.Unix(first, 0)), stamp(start))
	return shift, nil
}
