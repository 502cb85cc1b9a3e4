// SPDX-License-Identifier: Apache-2.0

package state

import (
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Task is an action in the cloud that is due for a VM.
type Task string

// The tasks.
const (
	TaskNone    Task = ""
	TaskCreate  Task = "create"  // its server
	TaskAdopt   Task = "adopt"   // the server that was found after Nova's answer was lost
	TaskSuspend Task = "suspend" // lock its server and suspend it
	TaskFree    Task = "free"    // lock its suspended server, and remove its allocation
	TaskResume  Task = "resume"  // restore its allocation and resume its server
	TaskRestore Task = "restore" // the allocation of its server, which runs without one
	TaskUnlock  Task = "unlock"  // its server, after it was resumed
	TaskDelete  Task = "delete"  // its server
)

// resendAfter is the number of seconds after which an order without effect is sent again.
const resendAfter = 15

// Next returns the action in the cloud that is due for the VM.
func (v *VM) Next(seen Sight, now span.Instant) Task {
	if v.Turn() == TurnBegin {
		return TaskCreate
	}
	s := seen.Server
	if s == nil || s.ID != v.Server {
		return TaskNone
	}
	sent := v.Asked != 0 && now < v.Asked.Add(resendAfter)
	switch {
	case v.Phase == besteffort.Starting && v.Asked != 0:
		return TaskAdopt
	case v.Phase == besteffort.Running && v.Held != nil && seen.Looked && seen.Allocated == nil:
		return TaskRestore
	case v.Phase == besteffort.Running && v.Held != nil && !v.Released:
		return TaskUnlock
	case v.Phase == besteffort.Suspending && s.Idle() && s.Status == "SUSPENDED", v.Phase == besteffort.Suspended && v.Occupies(seen):
		return TaskFree
	case v.Phase == besteffort.Suspending && s.Idle() && !sent:
		return TaskSuspend
	case v.Phase == besteffort.Resuming && s.Idle() && s.Status == "SUSPENDED" && seen.Looked && !sent:
		return TaskResume
	case v.Phase == besteffort.Stopping && !sent:
		return TaskDelete
	}
	return TaskNone
}

// Occupies reports whether the VM's server has an allocation that is in its record.
func (v *VM) Occupies(seen Sight) bool {
	return seen.Looked && seen.Allocated != nil && v.Held != nil
}

// Turn is the position of a task in a step.
type Turn int

// The turns, in order: VMs that leave hosts come first. The creation of servers comes last, because
// it is slow.
const (
	TurnLeave Turn = iota
	TurnContinue
	TurnBegin
	turnNever // of VMs that are over
)

// Turns lists the turns in which there can be something to do.
var Turns = []Turn{TurnLeave, TurnContinue, TurnBegin}

// Turn returns the turn in which the VM's task is due.
func (v *VM) Turn() Turn {
	switch {
	case v.Over():
		return turnNever
	case v.Phase == besteffort.Suspending || v.Phase == besteffort.Suspended || v.Phase == besteffort.Stopping:
		return TurnLeave
	case v.Phase == besteffort.Starting && v.Server == "" && v.Asked == 0:
		return TurnBegin
	}
	return TurnContinue
}
