package controller

import (
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Request is a request for best-effort work. It stays as it was made, except Cancelled,
// Over and VMs, which are stored beside it, as its Place is.
type Request struct {
	ID        string          `json:"id"`
	ProjectID string          `json:"project_id"`
	UserID    string          `json:"user_id"`
	Name      string          `json:"name"`
	Place     int64           `json:"-"` // in the queue; the store assigns it
	Created   span.Instant    `json:"created"`
	Flavor    Named           `json:"flavor"`
	Image     Named           `json:"image"`
	Shape     resource.Vector `json:"shape"`    // of a VM
	Duration  int64           `json:"duration"` // the longest time that each VM runs, in seconds
	Parallel  bool            `json:"parallel,omitempty"`
	// Networks are Nova's "none" or "auto", or the ids of networks.
	Networks []string          `json:"networks,omitempty"`
	KeyName  string            `json:"key_name,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Trust is the Keystone trust with which servers are made in the owner's name.
	Trust string `json:"trust,omitempty"`
	// Key is the Idempotency-Key that it came with, and BodyHash the hash of the body that
	// came with it; both may be empty.
	Key      string `json:"key,omitempty"`
	BodyHash string `json:"body_hash,omitempty"`
	// Cancelled is when its owner cancelled it, and Over when nothing of it was left to do;
	// 0 is not yet.
	Cancelled span.Instant `json:"-"`
	Over      span.Instant `json:"-"`
	VMs       []VM         `json:"-"` // by Number
}

// Named is a flavor or an image.
type Named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// VM is one virtual machine of a request: what was intended with it last, and what it was
// seen to be.
type VM struct {
	ID     string           `json:"id"`
	Number int              `json:"number"`
	Phase  besteffort.Phase `json:"phase"`
	// Node is where it is, or where it goes.
	Node string `json:"node,omitempty"`
	// Since, Until and Ran are those of besteffort.VM.
	Since span.Instant `json:"since"`
	Until span.Instant `json:"until,omitempty"`
	Ran   int64        `json:"ran,omitempty"`
	// Server is the id of its server; empty where it has none, or its id is not known yet.
	Server string `json:"server,omitempty"`
	// Attempt counts the servers that were requested; it tells that of the last request from
	// those before.
	Attempt int `json:"attempt,omitempty"`
	// Asked is when the present phase's order was last sent; 0 is not yet.
	Asked span.Instant `json:"asked,omitempty"`
	// Deadline is when a suspension that is not over fails, for the reservation.
	Deadline span.Instant `json:"deadline,omitempty"`
	// Held is what was taken from it in Placement while it is suspended, to be put back.
	Held *Held `json:"held,omitempty"`
	// Then is what it becomes when the server that is being deleted is gone: Done, Failed,
	// or Waiting, to begin again.
	Then besteffort.Phase `json:"then,omitempty"`
	// Failures counts what went wrong since it last ran for a while; RetryAt is when it is
	// tried again. Avoids are the hosts on which it did.
	Failures int          `json:"failures,omitempty"`
	RetryAt  span.Instant `json:"retry_at,omitempty"`
	Avoids   []string     `json:"avoids,omitempty"`
	// Released reports that its server was unlocked after it was resumed. Held is kept then,
	// so that allocations that are lost can be restored.
	Released bool `json:"released,omitempty"`
	// Reason is why it is as it is, a sentence for its owner; may be empty.
	Reason string `json:"reason,omitempty"`
}

// Held is what a server has in Placement.
type Held struct {
	ProjectID   string              `json:"project_id"`
	UserID      string              `json:"user_id"`
	Allocations placing.Allocations `json:"allocations"`
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
