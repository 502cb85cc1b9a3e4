// SPDX-License-Identifier: Apache-2.0

package besteffort

import (
	"maps"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Action is what is done to a VM now.
type Action string

// The actions.
const (
	Stage   Action = "stage"   // its image is sent to the node
	Start   Action = "start"   // on the node
	Suspend Action = "suspend" // where it is
	Move    Action = "move"    // what is suspended, to the node
	Resume  Action = "resume"  // on the node
	Stop    Action = "stop"    // its time is up
)

// Act is one act of a plan. Until is when it is expected to end.
type Act struct {
	Action  Action
	Request string
	VM      string
	Node    string
	Until   span.Instant
	Reason  string // a sentence
}

// Expectation is when and where a VM that does not run is expected to continue.
type Expectation struct {
	Start, End span.Instant // End is the latest end; Forever means unknown
	Node       string
	// Position is its request's place among those that wait, from 1 on.
	Position int
	Reason   string // why not now, in a sentence
}

// Plan is what is done now, and what is expected.
type Plan struct {
	Acts []Act
	// Transfers are the image transfers to queue now.
	Transfers []staging.Transfer
	Expected  map[string]Expectation // by VM
	// Next is when something is due by the plan; Forever means never.
	Next span.Instant
}

// Expectations returns what a plan of now expects, including the VMs that it starts or resumes at
// once: they are next in the queue.
func (p Plan) Expectations(now span.Instant) map[string]Expectation {
	expected := map[string]Expectation{}
	maps.Copy(expected, p.Expected)
	for _, act := range p.Acts {
		if act.Action == Start || act.Action == Resume {
			expected[act.VM] = Expectation{Start: now, Node: act.Node, Position: 1}
		}
	}
	return expected
}
