// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Enter records an act of a plan as the intention for the VM, if the act still applies. deadline is
// when a suspension must have ended. While the hosts are untrusted no VM starts or resumes, but VMs
// still leave hosts.
func (v *VM) Enter(r *Request, act besteffort.Act, now, deadline span.Instant, untrusted bool) {
	switch {
	case act.Action == besteffort.Start && v.Phase == besteffort.Waiting && v.RetryAt <= now && r.Canceled == 0 && !untrusted:
		if slices.Contains(v.Avoids, act.Node) {
			return
		}
		v.enter(besteffort.Starting, now, "")
		v.Node, v.Until, v.Server = act.Node, act.Until, ""
		v.Attempt++
	case act.Action == besteffort.Suspend && v.Phase == besteffort.Running:
		v.Ran = v.Used(now)
		v.enter(besteffort.Suspending, now, act.Reason)
		v.Until, v.Deadline, v.Released = act.Until, deadline, false
	case act.Action == besteffort.Resume && v.Phase == besteffort.Suspended && v.RetryAt <= now && !untrusted:
		switch {
		case v.Held == nil: // a server without an allocation must not run
			v.remove(besteffort.Waiting, now, "its allocation in Placement is not known; it restarts")
		case act.Node == v.Node: // a suspended server is resumed where it is, or not at all
			v.enter(besteffort.Resuming, now, "")
			v.Until = act.Until
		}
	case act.Action == besteffort.Stop && v.Phase == besteffort.Running:
		v.remove(besteffort.Done, now, "its time was up")
	}
}

// Yield records that a VM which is not suspended must leave a node that a reservation holds, or
// will soon. deadline is when a suspension must have ended.
func (v *VM) Yield(now, deadline span.Instant) {
	const reason = "a reservation needs its host; it restarts"
	switch v.Phase {
	case besteffort.Starting:
		if v.Server != "" {
			v.remove(besteffort.Waiting, now, reason)
		} else if v.Asked == 0 {
			v.requeue(now, reason)
		}
	case besteffort.Running:
		v.remove(besteffort.Waiting, now, reason)
	case besteffort.Resuming:
		v.enter(besteffort.Suspending, now, "a reservation needs its host")
		v.Deadline = deadline
	}
}
