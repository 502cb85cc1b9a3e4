// SPDX-License-Identifier: Apache-2.0

package state

import (
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// refusalBackoff is the number of failures whose backoff applies after a refusal by Nova.
const refusalBackoff = 3

// NotSent records that no request for the VM's server was sent to Nova, because of err.
func (r *Request) NotSent(v *VM, now span.Instant, err error, l Limits) {
	r.putOff(v, now, "Nova was not asked for its server: "+fault.Of(err).Message, l)
}

// Refused records that Nova refused to create the VM's server at the instant at, in a step that
// began at now. It returns false if err is no refusal: then the server may still appear.
func (r *Request) Refused(v *VM, now, at span.Instant, err error, l Limits) bool {
	switch {
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.NotFound): // its flavor or its image is gone, for example
		v.fail(now, "Nova refuses it: "+fault.Of(err).Message, l)
	case fault.Is(err, fault.Denied), fault.Is(err, fault.Conflict), fault.Is(err, fault.TooMany): // a quota is used up, for example
		r.putOff(v, at, "Nova refuses it now: "+fault.Of(err).Message, l)
	default:
		v.Reason = "Nova has not answered the request for its server yet"
		return false
	}
	return true
}

// putOff makes the refused VM wait, and also the VMs of its request that have no server yet: Nova
// would refuse them too, and while they wait they occupy no host.
func (r *Request) putOff(refused *VM, now span.Instant, reason string, l Limits) {
	seconds := l.backoff(refusalBackoff)
	for i := range r.VMs {
		switch v := &r.VMs[i]; {
		case v == refused, v.Turn() == TurnBegin:
			v.putOff(now, reason, seconds)
		case v.Phase == besteffort.Waiting:
			v.RetryAt = max(v.RetryAt, now.Add(seconds))
		}
	}
}

// NotResumed records that the VM's host has no free capacity to resume it yet.
func (v *VM) NotResumed(now span.Instant, l Limits) {
	v.enter(besteffort.Suspended, now, "its host has no free capacity for it yet")
	v.RetryAt = now.Add(l.Backoff)
}

// NotRestored records that the VM runs but others use its capacity: it is suspended again.
func (v *VM) NotRestored(now span.Instant, l Limits) {
	v.Ran = v.Used(now)
	v.enter(besteffort.Suspending, now, "others use its capacity")
	v.Deadline, v.Released = now.Add(l.Order), false
}
