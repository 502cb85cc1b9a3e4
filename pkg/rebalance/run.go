package rebalance

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Status is how far a run is.
type Status string

// The statuses. The last three are for good.
const (
	Running  Status = "running"
	Stopping Status = "stopping" // the move under way is the last one
	Done     Status = "done"
	Stopped  Status = "stopped"
	Failed   Status = "failed"
)

// Statuses are all of them.
var Statuses = []Status{Running, Stopping, Done, Stopped, Failed}

// State is how far a move is.
type State string

// The states.
const (
	Waiting  State = "waiting"
	Moving   State = "moving"   // it is stored before Nova is told
	Aborting State = "aborting" // it took too long, and Nova was told to give it up
	Moved    State = "moved"
	Skipped  State = "skipped"
	Undone   State = "failed"
)

// Run is a plan that is carried out.
type Run struct {
	ID      string       `json:"id"`
	By      string       `json:"by"` // the id of the user
	Status  Status       `json:"status"`
	Reason  string       `json:"reason,omitempty"` // why it ended, or ends, as it does; a sentence
	Created span.Instant `json:"created"`
	Ended   span.Instant `json:"ended,omitempty"` // 0 is not yet
	Plan    Plan         `json:"plan"`
	// Progress is that of the moves of the plan, one by one.
	Progress []Progress `json:"progress"`
	// Yield is the smallest yield when the run had ended; 0 is not known.
	Yield float64 `json:"yield,omitempty"`
}

// Progress is how far one move is.
type Progress struct {
	State  State        `json:"state"`
	Reason string       `json:"reason,omitempty"` // why it was skipped, or has failed
	Begun  span.Instant `json:"begun,omitempty"`  // when Nova was told; 0 where it was not
	// Aborted is when Nova was first told to abort it; 0 where it was not.
	Aborted span.Instant `json:"aborted,omitempty"`
	Ended   span.Instant `json:"ended,omitempty"`
	// Before is the last migration that Nova knew of the instance when it was told: a later
	// one is ours. Told is how often it was.
	Before string `json:"before,omitempty"`
	Told   int    `json:"told,omitempty"`
}

// Over says that nothing more happens in the run.
func (r *Run) Over() bool { return r.Status != Running && r.Status != Stopping }

// next gives the place of the first move that is not over; false where all are.
func (r *Run) next() (int, bool) {
	i := slices.IndexFunc(r.Progress, func(p Progress) bool { return !p.over() })
	return i, i >= 0
}

func (p *Progress) over() bool { return p.State == Moved || p.State == Skipped || p.State == Undone }

// Count is how many moves have the state.
func (r *Run) Count(state State) (n int) {
	for _, p := range r.Progress {
		if p.State == state {
			n++
		}
	}
	return n
}

// Floor is the yield that the run is not to go under, where it empties hosts.
func (r *Run) Floor() float64 {
	if r.Plan.Options.Floor > 0 {
		return r.Plan.Options.Floor
	}
	return r.Plan.Before
}
