// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/pkg/client/bulk"
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
	file, err := bulk.Read(content, name, m.format, m.perHost, m.rows)
	if err != nil {
		return err
	}
	return with(p, c, summaryFields, inShows, func(ctx context.Context, almanac *client.Client, out printer[bulk.Summary]) error {
		now, err := almanac.Now(ctx)
		if err != nil {
			return err
		}
		shift, err := p.shift(m, file, now)
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
		s := &bulk.Import{Almanac: almanac, File: file, Shift: shift, Policy: m.policy, DryRun: m.dryRun}
		shown := p.newProgress(file.Valid(), "rows")
		stopped := s.Send(ctx, m.workers, func() { shown.add(1) })
		shown.finish()
		sum := s.Summary(p.now().Sub(begun))
		if report != nil {
			if err := errors.Join(s.WriteReport(report), report.Close()); err != nil {
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

// shift returns the offset of all rows in seconds, and prints it.
func (p *process) shift(m *migration, file bulk.File, now time.Time) (int64, error) {
	first, found := file.First()
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
	if file.Synthetic {
		p.inform("the file has no sizes; each reservation has the synthetic size 1 + JobID mod 8")
	}
	p.inform("offset of all rows: %d s; the first start moves from %s to %s", shift, stamp(time.Unix(first, 0)), stamp(start))
	return shift, nil
}

func summaryFields(s bulk.Summary) []field {
	return []field{
		{"Rows", s.Rows, inLists}, {"Not Sent", s.NotSent, inLists}, {"Accepted", s.Accepted, inLists}, {"Refused", s.Refused, inLists},
		{"Failed", s.Failed, inLists}, {"Shift Seconds", s.ShiftSeconds, inLists}, {"Synthetic Sizes", s.SyntheticSizes, inLists},
		{"Dry Run", s.DryRun, inLists}, {"Seconds", s.Seconds, inLists}, {"Rows Per Second", s.RowsPerSecond, inLists},
	}
}
