// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

const (
	canceled      = "its request was canceled"
	timeUp        = "its time was up"
	ownerDeleted  = "its server was deleted by a user of its project"
	steadySeconds = 600 // of running, after which earlier failures no longer count
)

// Advance updates the record of a VM from the observation seen.
func (v *VM) Advance(r *Request, seen Sight, now span.Instant, l Limits) {
	switch {
	case v.Over():
		return
	case v.Phase == besteffort.Stopping:
		if r.Canceled != 0 {
			v.Then = besteffort.Done
		}
		v.stopped(seen, now)
		return
	case v.Phase == besteffort.Waiting:
		if r.Canceled != 0 {
			v.enter(besteffort.Done, now, canceled)
		}
		return
	case seen.Server == nil:
		v.missing(r, seen, now, l)
		return
	}
	if v.Server = seen.Server.ID; seen.Server.Host != "" && seen.Server.Host != v.Node {
		if v.Node = seen.Server.Host; v.Phase == besteffort.Running {
			v.Held, v.Released = nil, true // the allocation on another host
		}
	}
	if r.Canceled != 0 {
		v.remove(besteffort.Done, now, canceled)
		return
	}
	if !v.ended(seen.Server, now, l) {
		v.follow(r, seen, now, l)
	}
}

// stopped records that the VM's server was deleted.
func (v *VM) stopped(seen Sight, now span.Instant) {
	if seen.Server != nil {
		return
	}
	if v.Then == besteffort.Waiting {
		v.requeue(now, v.Reason)
		return
	}
	then, reason := v.Then, v.Reason
	v.enter(then, now, reason)
	v.Held, v.Then = nil, ""
}

// missing records that Nova has no server for a VM that had one, or was about to get one.
func (v *VM) missing(r *Request, seen Sight, now span.Instant, l Limits) {
	switch {
	case v.Server == "" && v.Asked == 0 && r.Canceled != 0:
		v.enter(besteffort.Done, now, canceled)
	case v.Server == "" && (v.Asked == 0 || now < v.Asked.Add(l.Unanswered)):
		// It has not been created, or may still appear.
	case r.Canceled != 0:
		v.enter(besteffort.Done, now, canceled)
	case v.Server == "":
		v.putOff(now, "Nova did not answer the request for its server", l.Backoff)
	case seen.ByOwner:
		v.Ran = v.Used(now)
		v.enter(besteffort.Done, now, ownerDeleted)
		v.Held = nil
	default:
		v.requeue(now, "its server is gone; it restarts")
	}
}

// putOff makes the VM wait for some seconds before it is restarted.
func (v *VM) putOff(now span.Instant, reason string, seconds int64) {
	v.requeue(now, reason)
	v.RetryAt = now.Add(seconds)
}

// fail schedules a restart of the VM. After too many failures the VM is Failed. The first failure
// counts only for the host, unless there is no other host.
func (v *VM) fail(now span.Instant, reason string, l Limits) {
	if first := v.Node != "" && v.Failures == 0 && len(v.Avoids) == 0; !first || l.Alone {
		v.Failures++
	}
	if v.Node != "" && !slices.Contains(v.Avoids, v.Node) {
		v.Avoids = append(slices.Clone(v.Avoids), v.Node)
	}
	v.RetryAt = now.Add(l.backoff(v.Failures))
	then := besteffort.Waiting
	if v.Failures > l.Retries {
		then = besteffort.Failed
	}
	switch {
	case v.Server != "":
		v.remove(then, now, reason)
	case then == besteffort.Waiting:
		v.requeue(now, reason)
	default:
		v.enter(then, now, reason)
	}
}

// ended reports whether the VM's server is of no further use, and records that.
func (v *VM) ended(s *Server, now span.Instant, l Limits) bool {
	switch {
	case s.Status == "ERROR":
		reason := "its server is in ERROR"
		if s.Fault != "" {
			reason += ": " + strings.TrimSuffix(s.Fault, ".")
		}
		v.fail(now, reason, l)
	case s.Status == "SHUTOFF" && s.Idle():
		v.remove(besteffort.Done, now, "its guest has shut down")
	case s.Status == "SOFT_DELETED":
		v.remove(besteffort.Done, now, ownerDeleted)
	default:
		return false
	}
	return true
}

// follow records the progress of the VM in its phase.
func (v *VM) follow(r *Request, seen Sight, now span.Instant, l Limits) {
	s := seen.Server
	switch v.Phase {
	case besteffort.Starting:
		if s.Status != "BUILD" && s.Idle() {
			v.run(r, now)
		} else if now >= max(v.Since, v.Asked).Add(l.Build) {
			v.fail(now, fmt.Sprintf("its server was not ACTIVE within %d s", l.Build), l)
		}
	case besteffort.Running:
		if now >= v.Since.Add(steadySeconds) && v.Failures > 0 {
			v.Failures, v.Avoids = 0, nil
		}
		if now >= v.Until {
			v.remove(besteffort.Done, now, timeUp)
		}
	case besteffort.Suspending:
		v.suspending(seen, now, l)
	case besteffort.Suspended:
		v.suspended(seen, now, l)
	case besteffort.Resuming:
		if s.Status == "ACTIVE" && s.Idle() {
			v.run(r, now)
		} else if now >= max(v.Since, v.Until).Add(l.Order) {
			v.fail(now, "its server could not be resumed", l)
		}
	}
}

// run begins or continues to count the time for which the VM runs.
func (v *VM) run(r *Request, now span.Instant) {
	v.enter(besteffort.Running, now, "")
	v.Until = now.Add(r.Duration - v.Ran)
}

// suspending records the progress of a suspension. A server that is suspended already gets more
// time, because only the call that removes its allocation is left.
func (v *VM) suspending(seen Sight, now span.Instant, l Limits) {
	deadline := v.Deadline
	if seen.Server.Status == "SUSPENDED" && seen.Server.Idle() && seen.Looked {
		deadline = deadline.Add(l.Order)
		if seen.Allocated == nil {
			v.enter(besteffort.Suspended, now, "")
			return
		}
		v.Held = seen.Allocated
	}
	if now > deadline {
		v.remove(besteffort.Waiting, now, "it could not be suspended in time for a reservation; it restarts")
	}
}

func (v *VM) suspended(seen Sight, now span.Instant, l Limits) {
	s := seen.Server
	switch {
	case s.Idle() && s.Status != "SUSPENDED":
		v.enter(besteffort.Suspending, now, "another user has resumed it")
		v.Deadline = now.Add(l.Order)
	case seen.Looked && seen.Allocated != nil: // another program restored it, as heal_allocations does
		v.Held = seen.Allocated
	}
}
