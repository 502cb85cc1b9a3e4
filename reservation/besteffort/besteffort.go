// Package besteffort plans work without a start time into the gaps between reservations (paper
// 000, "Best-Effort and AR scheduling"): a queue of VMs, first come, first served, that are
// backfilled, or suspended before a reservation and resumed after it. A plan is a pure function
// of the situation.
package besteffort

import (
	"maps"

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
	// Node is where it is, or where its suspended memory is; empty where it is nowhere.
	Node string
	// Since is when the phase began. Until is when a phase of known length is expected to end:
	// Running when its Duration is up, Staging when its image is on the node; the caller moves a
	// late end. Any other late phase is expected to last as long again, and the VM keeps its
	// place until its phase changes. 0 is not known.
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

// Backfilling is how many of the waiting units are promised a start in the future, which those
// behind them may not delay (Haizea, scheduling backfilling).
type Backfilling string

// The kinds of backfilling.
const (
	None         Backfilling = "none"         // no unit overtakes another
	Aggressive   Backfilling = "aggressive"   // one is promised a start: EASY
	Intermediate Backfilling = "intermediate" // Rules.Promises are promised a start
	Conservative Backfilling = "conservative" // all are promised a start
)

// Rules configure the plans.
type Rules struct {
	// Suspend lets a VM run up to a reservation, be suspended and be resumed after it; otherwise
	// it starts only where it ends before. With Backfilling None and without Suspend a node is
	// drained before a reservation.
	Suspend     bool
	Backfilling Backfilling
	Promises    int // of Intermediate
	// Migrate lets a suspended VM resume on another node.
	Migrate bool
	// Worthwhile is the least run time before a reservation for which a VM is started, as a
	// multiple of the time that its suspension and resumption take; 0 is any time.
	Worthwhile float64
	Overheads  Overheads
}

// Overheads are how long operations on VMs take, in seconds, and transfer rates in MB a second; 0
// is no time.
type Overheads struct {
	Boot, Shutdown int64
	// Operation is what each suspension, resumption and shutdown takes in addition, for each VM
	// that is handled at once (Haizea, enactment-overhead).
	Operation               int64
	SuspendRate, ResumeRate float64 // MB of memory a second; 0 is at once
	MoveRate                float64 // MB a second; 0 is at once
}

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
	Start, End span.Instant // End is the latest; Forever is not known
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
	// Next is when something is due by the plan; Forever is never.
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
