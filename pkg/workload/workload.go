// SPDX-License-Identifier: Apache-2.0

// Package workload reads and generates the work of simulations: logs of parallel machines
// (SWF, GWF), leases of Haizea (LWF), advance reservations of Grid'5000 (OAR), reservations
// and virtual machines (CSV, Azure), and the model of Lublin and Feitelson. It also reads the
// files that "almanac reservation import" and "almanac energy backtest" accept.
package workload

import (
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// Job is a job of a parallel machine, a reservation, or a group of virtual machines. Times are
// seconds on the clock of the workload; the comment on each reader states what 0 is.
type Job struct {
	ID     string
	Name   string // of a reservation
	Line   int64  // line number in the file; 0 if generated
	Submit int64
	// Reserved is true for a job that was requested ahead of its Start. Other jobs have Start 0.
	Reserved bool
	Start    int64
	// Deadline is the latest end; 0 means none.
	Deadline int64
	Runtime  int64 // at least 1
	// Estimate is the user's upper bound of the Runtime; 0 means unknown.
	Estimate int64
	// Waited is the number of seconds that the job waited in the queue when it was logged; -1 means
	// unknown.
	Waited int64
	Size   int // number of hosts, processors or virtual machines; at least 1
	// Shape is the size of each virtual machine; the zero Vector means that the job has whole
	// hosts.
	Shape resource.Vector
	// Properties is the filter, in JSON, that the hosts must pass; empty means none.
	Properties string
	// Image is the disk image of each virtual machine, and ImageSize its size in bytes; empty if
	// the workload names none.
	Image       string
	ImageSize   int64
	Preemptible bool
	User        string
}

// Begin returns the earliest start: Start if the job is Reserved, otherwise Submit.
func (j *Job) Begin() int64 {
	if j.Reserved {
		return j.Start
	}
	return j.Submit
}

// Booked returns the requested duration: the Estimate, or the Runtime if that is longer, because
// then the machine did not end the job at its estimate.
func (j *Job) Booked() int64 { return max(j.Estimate, j.Runtime) }

// Stream is a sequence of jobs in the order of their Submit.
type Stream interface {
	// Next returns the next job; the error is io.EOF after the last one, or an Invalid fault if the
	// source cannot be read. A wrong line is not an error: the account counts it.
	Next() (Job, error)
}

// Account states how much of a file was used. Lines counts the jobs and the skipped lines, without
// lines of headers and comments.
type Account struct {
	Lines, Jobs int64
	Skipped     []Skipped // by reason
}

// Skipped counts the lines that were skipped for one of the reasons.
type Skipped struct {
	Reason string  // a phrase such as "the run time is negative"
	Lines  int64   // how many
	First  []int64 // the numbers of the first lines, at most ten
}
