// Package workload reads and makes the work that is put to a cloud in simulations: logs of
// parallel machines (SWF, GWF), leases of Haizea (LWF), advance reservations of Grid'5000 (OAR),
// reservations and virtual machines (CSV, Azure), and the model of Lublin and Feitelson.
// Everything is streamed in the order of submission.
package workload

import (
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// Job is one piece of work: of a parallel machine, a reservation, or a virtual machine.
// Times are seconds on the workload's own clock, whose origin its reader says.
type Job struct {
	ID     string
	Line   int64 // of the file it was read from; 0 where it was made
	Submit int64
	// Reserved says that it was asked for ahead, for its Start; Start is 0 and without
	// meaning where it was not.
	Reserved bool
	Start    int64
	// Deadline is when it must be over; 0 is none.
	Deadline int64
	Runtime  int64 // what it takes; at least 1
	// Estimate is what its user said that it takes at most; 0 is not known.
	Estimate int64
	// Waited is how long it waited where it was logged, which is no property of the work; -1
	// is not known.
	Waited int64
	Size   int // hosts, processors or virtual machines; at least 1
	// Shape is that of each of them where they are virtual machines; the zero Vector else.
	Shape resource.Vector
	// Image is the disk image that each of them is made of, where one is named, and
	// ImageSize its size in bytes.
	Image       string
	ImageSize   int64
	Preemptible bool
	User        string
}

// Booked is for how long time is asked for: the Estimate, at least the Runtime where the
// machine would have killed nobody.
func (j *Job) Booked() int64 { return max(j.Estimate, j.Runtime) }

// Stream gives jobs in the order of their Submit.
type Stream interface {
	// Next gives the next job, and io.EOF after the last. An Invalid fault says that the
	// whole cannot be read; what is wrong with one line is no error, but in the account.
	Next() (Job, error)
}

// Account says how much of a file was used. Each of the Lines is a job or was skipped; those of
// headers and comments do not count.
type Account struct {
	Lines, Jobs int64
	Skipped     []Skipped // by reason
}

// Skipped is the lines that were left out for one reason.
type Skipped struct {
	Reason string  // a phrase such as "the run time is negative"
	Lines  int64   // how many
	First  []int64 // the numbers of the first of them, at most ten
}
