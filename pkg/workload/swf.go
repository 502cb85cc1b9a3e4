// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// The indexes of the columns of the Standard Workload Format that are used. The Grid Workload
// Format has the same columns up to the user.
const (
	swfJob       = 0
	swfSubmit    = 1
	swfWait      = 2
	swfRun       = 3
	swfAllocated = 4
	swfRequested = 7
	swfTime      = 8
	swfStatus    = 10
	swfUser      = 11

	swfColumns = 18
	gwfColumns = 29
)

// The reasons for which a line of these formats is skipped.
const (
	neverRan = "never ran"
	partial  = "is a part of the job of a line before it"
)

// partialStatuses are those of a part of a job that was interrupted: it continues, it completed, it
// failed. A line with another status comes first and contains the whole job.
var partialStatuses = []string{"2", "3", "4"}

// swf reads the Standard Workload Format of the Parallel Workloads Archive, version 2.2
// (https://www.cs.huji.ac.il/labs/parallel/workload/swf.html), and the Grid Workload Format
// of the Grid Workloads Archive. Times are seconds since the start of the log.
//
// The size is the allocated number of processors if the log has it, because some logs request nodes
// instead (SDSC Blue Horizon in Haizea's form); otherwise the requested number. A job without an
// allocation that did not run was canceled in the queue and is skipped. A run time of 0 means less
// than half a second, and counts as 1. The parts of a job that was interrupted are skipped if a line
// before them contains the whole job.
type swf struct {
	columns int
	comment byte
	hosts   int // processors of a host
	row     row
	head    *Header
	whole   string // number of the last job whose line contains all of it
}

// isHeader reports whether the line is a comment, and stores the field of the header that it may
// contain.
func (f *swf) isHeader(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	if line[0] != f.comment {
		return false
	}
	key, value, found := strings.Cut(strings.Trim(string(line), ";# \t"), ":")
	if value = strings.TrimSpace(value); found && value != "" {
		f.head.set(key, value)
	}
	return true
}

// job returns the job of a line of the Standard Workload Format, or why the line is left out.
func (f *swf) job(line []byte) (job Job, why string) {
	r := &f.row
	r.split(line)
	if len(r.fields) != f.columns {
		return job, fewColumns
	}
	if !slices.Contains(partialStatuses, r.text(swfStatus)) {
		f.whole = r.text(swfJob)
	} else if r.text(swfJob) == f.whole {
		return job, partial
	}
	job = Job{
		Submit: r.time(swfSubmit), Runtime: r.time(swfRun),
		Waited: max(-1, r.time(swfWait)), Estimate: max(0, r.time(swfTime)),
	}
	allocated, requested := r.size(swfAllocated), r.size(swfRequested)
	switch {
	case r.why != "":
		return job, r.why
	case allocated <= 0 && job.Runtime <= 0:
		return job, neverRan
	case job.Runtime == 0:
		job.Runtime = 1
	}
	job.Size = allocated
	if allocated <= 0 {
		job.Size = requested
	}
	job.Size = hostsOf(job.Size, f.hosts)
	job.ID, job.User = r.text(swfJob), r.text(swfUser)
	if job.User == "-1" {
		job.User = ""
	}
	return job, ""
}

// hostsOf returns the number of hosts that together have a number of processors.
func hostsOf(processors, perHost int) int {
	if perHost = max(1, perHost); processors > 0 {
		return (processors-1)/perHost + 1
	}
	return processors
}

// Header is what a file states about itself; absent values are zero.
type Header struct {
	Computer, Installation, Acknowledge string
	MaxProcs, MaxNodes                  int
	// UnixStart is the time, in seconds since 1970, that is 0 on the workload's clock.
	UnixStart int64
	// MadeUp describes what the reader made up about the jobs; empty means nothing.
	MadeUp string
}

// set stores a line of a header. If several lines have the same key, the first one counts.
func (h *Header) set(key, value string) {
	number := func() int64 {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || n > mostTime {
			return 0
		}
		return n
	}
	const longest = 200
	value = value[:min(len(value), longest)]
	switch strings.TrimSpace(key) {
	case "Computer":
		h.Computer = cmp.Or(h.Computer, value)
	case "Installation":
		h.Installation = cmp.Or(h.Installation, value)
	case "Acknowledge":
		h.Acknowledge = cmp.Or(h.Acknowledge, value)
	case "MaxProcs":
		h.MaxProcs = cmp.Or(h.MaxProcs, int(min(number(), mostSize)))
	case "MaxNodes":
		h.MaxNodes = cmp.Or(h.MaxNodes, int(min(number(), mostSize)))
	case "UnixStartTime":
		h.UnixStart = cmp.Or(h.UnixStart, number())
	}
}
