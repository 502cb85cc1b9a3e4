// SPDX-License-Identifier: Apache-2.0

package bulk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// File is a file of reservations.
type File struct {
	// Synthetic is true if the file has no sizes and the reader made them up.
	Synthetic bool

	rows []row
	// digest is the beginning of the SHA-256 of the file as it is stored.
	digest string
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

// Read reads the first lines with data of a file, at most so many; 0 means all. Its name is for the
// errors, format is one of workload.Formats or empty, and a host has perHost processors.
func Read(content []byte, name, format string, perHost, most int) (File, error) {
	sum := sha256.Sum256(content)
	l := File{digest: hex.EncodeToString(sum[:])[:12]}
	limit := most
	if limit == 0 {
		limit = math.MaxInt
	}
	file, err := workload.Read(bytes.NewReader(content), name, workload.OpenOptions{
		Format: format, ProcsPerHost: perHost, MakeUp: true, FileOrder: true,
		Skipped: func(line int64, reason string) {
			if reason != workload.Blank {
				l.rows = append(l.rows, row{workload.Job{Line: line}, reason})
			}
		},
	})
	if err != nil {
		return l, aboutFile(err)
	}
	l.Synthetic = file.Header().MadeUp != ""
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

// First returns the earliest start of the rows that can be sent; false if there are none.
func (l File) First() (first int64, found bool) {
	for _, r := range l.rows {
		if r.problem == "" && (!found || r.Begin() < first) {
			first, found = r.Begin(), true
		}
	}
	return first, found
}

// Valid counts the rows that can be sent.
func (l File) Valid() (count int) {
	for _, r := range l.rows {
		if r.problem == "" {
			count++
		}
	}
	return count
}
