// Package besteffort puts work that has no start time into what reservations leave free
// (paper 000, "Best-Effort and AR scheduling"): a queue of virtual machines, first come,
// first served, that are backfilled, or suspended before a reservation and resumed after
// it. A plan is a pure function of the situation.
package besteffort

import (
	"maps"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Request asks for virtual machines of one shape, each for at most Duration seconds.
type Request struct {
	ID        string
	Submitted span.Instant
	Place     int64 // in the queue; smaller is earlier, and stays so when it is suspended
	Shape     resource.Vector
	Duration  int64
	Image     staging.Image // the zero Image is none
	// Parallel says that all of them run at the same time (HPDC'08); else each runs as soon
	// as it can, by itself (the paper).
	Parallel bool
	VMs      []VM
}

// Phase is how far a virtual machine is.
type Phase string

// The phases. In those that end in -ing something is under way that takes time.
const (
	Waiting    Phase = "waiting"    // it has not run, or must begin anew
	Staging    Phase = "staging"    // its image is on the way to its node
	Starting   Phase = "starting"   // it is made, or boots
	Running    Phase = "running"    // its time counts
	Suspending Phase = "suspending" // its memory is written
	Suspended  Phase = "suspended"  // it has run, and waits
	Moving     Phase = "moving"     // its memory and its disk go to another node
	Resuming   Phase = "resuming"   // its memory is read
	Stopping   Phase = "stopping"   // it is shut down
	Done       Phase = "done"       // it has run
	Failed     Phase = "failed"     // it was given up
)

// VM is one virtual machine of a request.
type VM struct {
	ID    string
	Phase Phase
	// Node is where it is, or its suspended memory is; empty where it is nowhere.
	Node string
	// Since is when the phase began, and Until when it is expected to be over, of a phase
	// that takes a time that is known: of Running when its Duration is up, of Staging when its
	// image is on the node, for it at least; whoever sees that it is late moves it. What else
	// is late is expected to take as long again, and keeps what it has until it is seen to be
	// over. 0 is not known.
	Since, Until span.Instant
	// Ran is how many seconds it ran before this phase.
	Ran int64
}

// Node is a host that takes best-effort work. Free is what is left on it beside what
// others have there for good: its capacity less instances of unknown duration.
type Node struct {
	Name string
	Free resource.Vector
}

// Hold is what a reservation has of a node, which best-effort work must leave; the zero
// Vector is the whole node.
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

// Backfilling says how many of those that wait are promised a start in the future, which
// those behind them may not delay (Haizea, scheduling backfilling).
type Backfilling string

// The kinds of backfilling.
const (
	None         Backfilling = "none"         // nobody overtakes
	Aggressive   Backfilling = "aggressive"   // one is promised: EASY
	Intermediate Backfilling = "intermediate" // Rules.Promises are promised
	Conservative Backfilling = "conservative" // all are promised
)

// Rules say how the queue is worked off.
type Rules struct {
	// Suspend lets a virtual machine run up to a reservation, be suspended and resumed
	// after it; else it starts only where it ends before. With Backfilling None and without
	// Suspend a node is drained before a reservation.
	Suspend     bool
	Backfilling Backfilling
	Promises    int // of Intermediate
	// Migrate lets what is suspended be resumed on another node.
	Migrate bool
	// Worthwhile is how many times as long as its suspension and its resumption take
	// something must be able to run, to be started before a reservation; 0 is any time.
	Worthwhile float64
	Overheads  Overheads
}

// Overheads are what it takes to handle virtual machines, in seconds, and MB a second; 0
// is no time.
type Overheads struct {
	Boot, Shutdown int64
	// Operation is what each suspension, resumption and shutdown takes beside, for each
	// virtual machine that is handled at once (Haizea, enactment-overhead).
	Operation               int64
	SuspendRate, ResumeRate float64 // MB of memory a second; 0 is at once
	MoveRate                float64 // MB a second; 0 is at once
}

// Action is what is done to a virtual machine now.
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

// Act is one of a plan. Until is when it is expected to be over.
type Act struct {
	Action  Action
	Request string
	VM      string
	Node    string
	Until   span.Instant
	Reason  string // a sentence
}

// Expectation is when and where a virtual machine that does not run is expected to go on.
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
	// Transfers are those to enter into the queue of images now.
	Transfers []staging.Transfer
	Expected  map[string]Expectation // by VM
	// Next is when something is due by the plan; Forever is never.
	Next span.Instant
}

// Expectations returns what a plan of now expects, also of the VMs that it starts or resumes at
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
