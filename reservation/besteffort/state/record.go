// SPDX-License-Identifier: Apache-2.0

// Package state is the state machine of best-effort work. From the stored requests and the
// observations of their servers, it decides the next state of each virtual machine and which order
// is due. It changes records in memory; it calls no service.
package state

import (
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// Request is a stored request for best-effort work. Only its VMs and its two last instants change.
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
	Duration  int64           `json:"duration"` // the most that each VM runs, in seconds
	Parallel  bool            `json:"parallel,omitempty"`
	// Networks are Nova's "none" or "auto", or the ids of networks.
	Networks []string          `json:"networks,omitempty"`
	KeyName  string            `json:"key_name,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Trust is the Keystone trust with which servers are created in the owner's name.
	Trust string `json:"trust,omitempty"`
	// Key is the Idempotency-Key of the request that created it, and BodyHash the hash of
	// the body; both may be empty.
	Key      string `json:"key,omitempty"`
	BodyHash string `json:"body_hash,omitempty"`
	// Canceled is when its owner canceled it, and Over when nothing was left to do for it; 0 means
	// not yet.
	Canceled span.Instant `json:"-"`
	Over     span.Instant `json:"-"`
	VMs      []VM         `json:"-"` // by Number
}

// Named is a flavor or an image.
type Named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// VM is one virtual machine of a request: what was last intended for it, and what was last
// observed.
type VM struct {
	ID     string           `json:"id"`
	Number int              `json:"number"`
	Phase  besteffort.Phase `json:"phase"`
	// Node is the host on which it is, or will be.
	Node string `json:"node,omitempty"`
	// Since, Until and Ran are the fields of besteffort.VM with these names.
	Since span.Instant `json:"since"`
	Until span.Instant `json:"until,omitempty"`
	Ran   int64        `json:"ran,omitempty"`
	// Server is the id of its server; empty if it has none, or if the id is not known yet.
	Server string `json:"server,omitempty"`
	// Attempt is the number of servers that were requested from Nova. It distinguishes the last
	// server from earlier ones.
	Attempt int `json:"attempt,omitempty"`
	// Asked is when the order of the present phase was last sent; 0 means not yet.
	Asked span.Instant `json:"asked,omitempty"`
	// Deadline is when a suspension that has not ended is abandoned because of a reservation; 0
	// means that none is in progress.
	Deadline span.Instant `json:"deadline,omitempty"`
	// Held is the allocation that was removed from Placement while it is suspended.
	Held *Held `json:"held,omitempty"`
	// Then is the next phase after the server that is being deleted is gone: Done, Failed or, to be
	// restarted, Waiting.
	Then besteffort.Phase `json:"then,omitempty"`
	// Failures is the number of failures since the VM last ran for a while. RetryAt is when the
	// next attempt may begin. Avoids are the hosts on which it failed.
	Failures int          `json:"failures,omitempty"`
	RetryAt  span.Instant `json:"retry_at,omitempty"`
	Avoids   []string     `json:"avoids,omitempty"`
	// Released is true if its server was unlocked after it was resumed. Held is kept then: if the
	// server runs without an allocation, Held is restored.
	Released bool `json:"released,omitempty"`
	// Reason explains its state to its owner, as a sentence; it may be empty.
	Reason string `json:"reason,omitempty"`
}

// Held is an allocation that a server had in Placement.
type Held struct {
	ProjectID   string              `json:"project_id"`
	UserID      string              `json:"user_id"`
	Allocations placing.Allocations `json:"allocations"`
}

// Over reports whether the VM has reached its last phase.
func (v *VM) Over() bool { return v.Phase == besteffort.Done || v.Phase == besteffort.Failed }

// Used returns how many seconds the VM has run until now.
func (v *VM) Used(now span.Instant) int64 {
	if v.Phase == besteffort.Running {
		return v.Ran + max(0, int64(now-v.Since))
	}
	return v.Ran
}

// Settled reports whether every VM is over.
func (r *Request) Settled() bool {
	for i := range r.VMs {
		if !r.VMs[i].Over() {
			return false
		}
	}
	return true
}

// Find returns the VM and the request with these ids; nil if there is none.
func Find(requests []Request, request, vm string) (*VM, *Request) {
	for i := range requests {
		if requests[i].ID != request {
			continue
		}
		for j := range requests[i].VMs {
			if requests[i].VMs[j].ID == vm {
				return &requests[i].VMs[j], &requests[i]
			}
		}
	}
	return nil, nil
}

// enter begins a phase.
func (v *VM) enter(p besteffort.Phase, now span.Instant, reason string) {
	v.Phase, v.Since, v.Until, v.Asked, v.Deadline, v.Reason = p, now, 0, 0, 0, reason
}

// requeue returns the VM to the queue. It will be restarted from the beginning.
func (v *VM) requeue(now span.Instant, reason string) {
	v.enter(besteffort.Waiting, now, reason)
	v.Node, v.Server, v.Ran, v.Held, v.Then = "", "", 0, nil, ""
}

// remove begins the deletion of the VM's server. The VM becomes then when the server is gone.
func (v *VM) remove(then besteffort.Phase, now span.Instant, reason string) {
	v.Ran = v.Used(now)
	v.enter(besteffort.Stopping, now, reason)
	v.Then = then
}
