// SPDX-License-Identifier: Apache-2.0

// Package besteffort plans work without a start time into the gaps between reservations (paper
// 000, "Best-Effort and AR scheduling"): a queue of VMs, first come, first served, that are
// backfilled, or suspended before a reservation and resumed after it. A plan is a pure function
// of the situation.
package besteffort

import (
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Request asks for VMs of one shape, each for at most Duration seconds.
type Request struct {
	ID        string
	Submitted span.Instant
	Place     int64 // in the queue; smaller is earlier, and stays so when it is suspended
	Shape     resource.Vector
	Duration  int64
	Image     staging.Image // the zero Image is none
	// Parallel reports whether all VMs run at the same time (HPDC'08); otherwise each runs alone,
	// as soon as it can (the paper).
	Parallel bool
	VMs      []VM
}

// Phase is the state of a VM.
type Phase string

// The phases. In those that end in -ing an operation is under way.
const (
	Waiting    Phase = "waiting"    // it has not run, or must restart
	Staging    Phase = "staging"    // its image is being sent to its node
	Starting   Phase = "starting"   // its server is being created, or boots
	Running    Phase = "running"    // its time counts
	Suspending Phase = "suspending" // its memory is being written
	Suspended  Phase = "suspended"  // it has run, and waits
	Moving     Phase = "moving"     // its memory and its disk move to another node
	Resuming   Phase = "resuming"   // its memory is being read
	Stopping   Phase = "stopping"   // it is being shut down
	Done       Phase = "done"       // it has run
	Failed     Phase = "failed"     // it failed too often
)

// VM is one VM of a request.
type VM struct {
	ID    string
	Phase Phase
	// Node is where it is, or where its suspended memory is; empty if it is on no host.
	Node string
	// Since is when the phase began. Until is when a phase of known length is expected to end:
	// Running when its Duration is up, Staging when its image is on the node; the caller moves a
	// late end. Any other late phase is expected to last as long again, and the VM keeps its
	// place until its phase changes. 0 means unknown.
	Since, Until span.Instant
	// Ran is how many seconds it ran before this phase.
	Ran int64
}

// Node is a host that accepts best-effort work. Free is its capacity less that of instances of
// unknown duration.
type Node struct {
	Name string
	Free resource.Vector
}

// Hold is what a reservation has on a node, and best-effort work must leave; the zero Vector is
// the whole node.
type Hold struct {
	Node      string
	Span      span.Span
	Resources resource.Vector
}

// Situation is what a plan depends on.
type Situation struct {
	Now      span.Instant
	Nodes    []Node    // the first is preferred, all else equal
	Holds    []Hold    // those that are not over
	Requests []Request // those that are not over, in any order
	Images   staging.Queue
}
