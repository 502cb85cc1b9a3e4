// SPDX-License-Identifier: Apache-2.0

package state

import (
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Together keeps the VMs of a parallel request together: if one restarts, all do, and if one is
// given up, all are.
func (r *Request) Together(now span.Instant) {
	if !r.Parallel {
		return
	}
	restarts, failed := false, false
	for i := range r.VMs {
		v := &r.VMs[i]
		restarts = restarts || v.Phase == besteffort.Stopping && v.Then == besteffort.Waiting || v.Phase == besteffort.Waiting && v.Attempt > 0
		failed = failed || v.Phase == besteffort.Stopping && v.Then == besteffort.Failed || v.Phase == besteffort.Failed
	}
	for i := range r.VMs {
		v := &r.VMs[i]
		switch {
		case v.Over():
		case failed && v.Phase == besteffort.Stopping && v.Then == besteffort.Waiting:
			v.Then = besteffort.Failed
		case failed && v.Phase == besteffort.Waiting:
			v.enter(besteffort.Failed, now, "another VM of its request has failed")
		case v.Phase == besteffort.Stopping || v.Phase == besteffort.Waiting || v.Server == "":
		case failed:
			v.remove(besteffort.Failed, now, "another VM of its request has failed")
		case restarts:
			v.remove(besteffort.Waiting, now, "another VM of its request restarts, and they run together")
		}
	}
}
