// SPDX-License-Identifier: Apache-2.0

package state

import "github.com/almanac-cloud/almanac/reservation/besteffort"

// Status is the state of a request that its owner sees.
type Status string

// The states of a request.
const (
	StatusWaiting   Status = "waiting"   // no VM runs
	StatusRunning   Status = "running"   // some VMs run, or are about to
	StatusSuspended Status = "suspended" // it ran, and waits to be resumed
	StatusDone      Status = "done"
	StatusFailed    Status = "failed" // some VMs could not be run
	StatusCanceled  Status = "canceled"
)

// Statuses lists all states.
var Statuses = []Status{StatusWaiting, StatusRunning, StatusSuspended, StatusDone, StatusFailed, StatusCanceled}

// Status derives the state of a request from its VMs.
func (r *Request) Status() Status {
	count := map[besteffort.Phase]int{}
	for i := range r.VMs {
		count[r.VMs[i].Phase]++
	}
	over := count[besteffort.Done] + count[besteffort.Failed]
	switch {
	case r.Canceled != 0:
		return StatusCanceled
	case over == len(r.VMs) && count[besteffort.Failed] > 0:
		return StatusFailed
	case over == len(r.VMs):
		return StatusDone
	case over+count[besteffort.Waiting] == len(r.VMs):
		return StatusWaiting
	case over+count[besteffort.Waiting]+count[besteffort.Suspended]+count[besteffort.Suspending] == len(r.VMs):
		return StatusSuspended
	}
	return StatusRunning
}
