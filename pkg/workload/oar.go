// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// OARMadeUp describes what OpenOptions.MakeUp makes up for reservations of OAR.
const OARMadeUp = "The log has neither how many hosts were reserved nor when they were asked for. Both are made up: " +
	"1 + (JobID mod 8) hosts, asked for (JobID mod 48) hours before the start."

// OARBare describes the assumptions without OpenOptions.MakeUp.
const OARBare = "The log has neither how many hosts were reserved nor when they were asked for. " +
	"Each reservation is taken to be for 1 host and asked for when it starts."

const (
	oarColumns   = 3
	oarCanceled  = "was canceled before its start"
	oarBackwards = "ends before it starts, or as it starts"
	oarStray     = "starts outside of the time of the log"
)

// gwaT2 is the period of the reservations of Grid'5000 in the Grid Workloads Archive (GWA-T-2):
// from April 2004 to the day of the export, the 10th of November 2006.
var gwaT2 = span.Span{
	Start: span.At(time.Date(2004, time.April, 1, 0, 0, 0, 0, time.UTC)),
	End:   span.At(time.Date(2006, time.November, 11, 0, 0, 0, 0, time.UTC)),
}

// gwaMark occurs in the first line of the tables of GWA-T-2.
var gwaMark = []byte("get-clean-log.py")

// oar reads advance reservations of OAR in the form of Grid'5000's in the Grid Workloads
// Archive: JobID, StartTime and StopTime in seconds since 1970, -1 if absent, separated by tabs,
// with comments after #.
type oar struct {
	makeUp bool
	within span.Span // bounds the starts; the zero Span is no bound
	row    row
}

// isHeader reports whether the line is a comment. One with the mark of the archive limits the time that
// counts.
func (f *oar) isHeader(line []byte) bool {
	if line[0] != '#' {
		return false
	}
	if f.within == (span.Span{}) && bytes.Contains(line, gwaMark) {
		f.within = gwaT2
	}
	return true
}

// job returns the job of a line of OAR, as a reservation, or why the line is left out.
func (f *oar) job(line []byte) (job Job, why string) {
	r := &f.row
	r.split(line)
	if len(r.fields) != oarColumns {
		return job, fewColumns
	}
	id, start, stop := r.time(0), r.time(1), r.time(2)
	switch {
	case r.why != "":
		return job, r.why
	case id < 0:
		return job, outOfRange
	case stop == -1:
		return job, oarCanceled
	case start == -1 || stop <= start:
		return job, oarBackwards
	case f.within != (span.Span{}) && !f.within.Contains(span.Instant(start)):
		return job, oarStray
	}
	job = Job{ID: r.text(0), Submit: start, Reserved: true, Start: start, Runtime: stop - start, Waited: -1, Size: 1}
	if f.makeUp {
		const sizes, hours, hour = 8, 48, 3600
		job.Size = 1 + int(id%sizes)
		job.Submit = start - id%hours*hour
	}
	return job, ""
}
