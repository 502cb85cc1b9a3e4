package controller

import (
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Request is a request for best-effort work as it is stored. But for Cancelled, Over and
// VMs it stays as it was made.
type Request struct {
	ID, ProjectID, UserID, Name string
	// Place is its place in the queue, which the store gives.
	Place    int64
	Created  span.Instant
	Flavor   Named
	Image    Named
	Shape    resource.Vector // of a VM
	Duration int64           // the most that each VM runs, in seconds
	Parallel bool
	// Networks are Nova's "none" or "auto", or the ids of networks.
	Networks []string
	KeyName  string
	Metadata map[string]string
	// Trust is the trust of Keystone by which servers are made in the owner's name.
	Trust string
	// Key is the Idempotency-Key that it came with, and BodyHash the hash of the body that
	// came with it; both may be empty.
	Key, BodyHash string
	// Cancelled is when its owner gave it up, and Over when nothing was left of it to do; 0
	// is not yet.
	Cancelled, Over span.Instant
	VMs             []VM // by Number
}

// Named is something of the cloud.
type Named struct{ ID, Name string }

// VM is one virtual machine of a request: what was intended with it last, and what it was
// seen to be.
type VM struct {
	ID     string
	Number int
	Phase  besteffort.Phase
	// Node is where it is, or is to be.
	Node string
	// Since, Until and Ran are those of besteffort.VM.
	Since, Until span.Instant
	Ran          int64
	// Server is the id of its server; empty where it has none, or its id is not known yet.
	Server string
	// Attempt counts the servers that were asked for; it tells that of the last one from
	// those before.
	Attempt int
	// Asked is when the present phase's order was last given; 0 is not yet.
	Asked span.Instant
	// Deadline is when a suspension that is not over is given up, for the reservation.
	Deadline span.Instant
	// Held is what was taken from it in Placement while it is suspended, to be put back.
	Held *Held
	// Then is what it becomes when the server that is being deleted is gone: Done, Failed,
	// or Waiting, to begin anew.
	Then besteffort.Phase
	// Failures counts what went wrong since it last ran for a while; RetryAt is when it is
	// tried again. Avoids are the hosts on which it did.
	Failures int
	RetryAt  span.Instant
	Avoids   []string
	// Released says that its server was unlocked after it was resumed. Held is kept then:
	// whoever finds that it has nothing gives it that back.
	Released bool
	// Reason says why it is as it is, in a sentence for its owner; may be empty.
	Reason string
}

// Held is what a server has in Placement.
type Held struct {
	ProjectID, UserID string
	Allocations       placing.Allocations
}

// Status is what a request is to its owner.
type Status string

// The states of a request.
const (
	Waiting   Status = "waiting"   // none of it runs
	Running   Status = "running"   // some of it runs, or is about to
	Suspended Status = "suspended" // it ran, and waits to go on
	Done      Status = "done"
	Failed    Status = "failed" // some of it could not be run
	Cancelled Status = "cancelled"
)

// Statuses are all of them.
var Statuses = []Status{Waiting, Running, Suspended, Done, Failed, Cancelled}

// Status follows from the VMs.
func (r *Request) Status() Status {
	count := map[besteffort.Phase]int{}
	for i := range r.VMs {
		count[r.VMs[i].Phase]++
	}
	over := count[besteffort.Done] + count[besteffort.Failed]
	switch {
	case r.Cancelled != 0:
		return Cancelled
	case over == len(r.VMs) && count[besteffort.Failed] > 0:
		return Failed
	case over == len(r.VMs):
		return Done
	case over+count[besteffort.Waiting] == len(r.VMs):
		return Waiting
	case over+count[besteffort.Waiting]+count[besteffort.Suspended]+count[besteffort.Suspending] == len(r.VMs):
		return Suspended
	}
	return Running
}

// over says that nothing more becomes of the VM.
func (v *VM) over() bool { return v.Phase == besteffort.Done || v.Phase == besteffort.Failed }

// settled says that every VM is over.
func (r *Request) settled() bool {
	for i := range r.VMs {
		if !r.VMs[i].over() {
			return false
		}
	}
	return true
}

// enter begins a phase.
func (v *VM) enter(p besteffort.Phase, now span.Instant, reason string) {
	v.Phase, v.Since, v.Until, v.Asked, v.Deadline, v.Reason = p, now, 0, 0, 0, reason
}

// again puts the VM back into the queue, to begin anew.
func (v *VM) again(now span.Instant, reason string) {
	v.enter(besteffort.Waiting, now, reason)
	v.Node, v.Server, v.Ran, v.Held, v.Then = "", "", 0, nil, ""
}

// remove begins the deletion of the VM's server; then says what becomes of the VM.
func (v *VM) remove(then besteffort.Phase, now span.Instant, reason string) {
	v.Ran = v.used(now)
	v.enter(besteffort.Stopping, now, reason)
	v.Then = then
}

// used gives how long the VM has run by now.
func (v *VM) used(now span.Instant) int64 {
	if v.Phase == besteffort.Running {
		return v.Ran + max(0, int64(now-v.Since))
	}
	return v.Ran
}

// Used gives how many seconds the VM has run by now.
func (v *VM) Used(now span.Instant) int64 { return v.used(now) }
