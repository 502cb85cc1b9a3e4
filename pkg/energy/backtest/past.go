// SPDX-License-Identifier: Apache-2.0

// Package backtest reads past demand from files, and shows how forecasters did on it.
package backtest

import (
	"bytes"
	"errors"
	"io"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// Past is past demand, sorted by time.
type Past struct {
	Series []energy.Demand
	Rows   int
	// Unused are the rows of the file that were skipped.
	Unused []NotUsed
	// Synthetic is true if the file has no sizes: then each job has the size 1 + JobID mod 8.
	Synthetic bool
}

// Reasons counts the lines that were skipped.
func (m *Past) Reasons() map[string]int {
	count := map[string]int{}
	for _, line := range m.Unused {
		count[line.Reason]++
	}
	return count
}

// Read reads a file of measurements, jobs or reservations, compressed with gzip or not; its name is
// for the errors.
func Read(content []byte, name string) (m Past, err error) {
	skipped := func(line int64, reason string) {
		if reason != workload.Blank {
			m.Unused = append(m.Unused, NotUsed{line, reason})
		}
	}
	uses, found, err := workload.ReadUse(bytes.NewReader(content), skipped)
	if err != nil {
		return m, err
	}
	for _, u := range uses {
		m.Series = append(m.Series, energy.Demand{At: span.Instant(u.At), InUse: u.InUse})
	}
	if m.Rows = len(uses) + len(m.Unused); found {
		return m, nil
	}
	file, err := workload.Read(bytes.NewReader(content), name, workload.OpenOptions{MakeUp: true, FileOrder: true, Skipped: skipped})
	if err != nil {
		return m, err
	}
	var busy []energy.Use
	for {
		job, err := file.Next()
		switch {
		case errors.Is(err, io.EOF):
			m.Series, m.Rows, m.Synthetic = energy.DemandOf(busy), len(busy)+len(m.Unused), file.Header().MadeUp != ""
			return m, nil
		case err != nil:
			return m, err
		}
		start := span.Instant(job.Begin() + max(0, job.Waited))
		busy = append(busy, energy.Use{Span: span.Span{Start: start, End: start.Add(job.Runtime)}, Hosts: job.Size})
	}
}
