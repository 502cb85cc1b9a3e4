// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Status is the status of a run.
type Status string

// The statuses. The last three are final.
const (
	RunActive   Status = "running"
	RunStopping Status = "stopping" // the current move is the last one
	RunDone     Status = "done"
	RunStopped  Status = "stopped"
	RunFailed   Status = "failed"
)

// Statuses are all statuses of a run.
var Statuses = []Status{RunActive, RunStopping, RunDone, RunStopped, RunFailed}

// State is the state of a move.
type State string

// The states of a move. The last three are final.
const (
	MoveWaiting  State = "waiting"
	MoveUnderway State = "moving"   // stored before Nova receives the order
	MoveAborting State = "aborting" // it took too long, and Nova was ordered to abort it
	MoveDone     State = "moved"
	MoveSkipped  State = "skipped"
	MoveFailed   State = "failed"
)

// Run is a plan that an operator has applied.
type Run struct {
	ID      string       `json:"id"`
	By      string       `json:"by"` // id of the user
	Status  Status       `json:"status"`
	Reason  string       `json:"reason,omitempty"` // why it ended, or will end, as a sentence
	Created span.Instant `json:"created"`
	Ended   span.Instant `json:"ended,omitempty"` // 0 until it has ended
	Plan    Plan         `json:"plan"`
	// Progress contains the progress of each move of the plan, in the order of the plan.
	Progress []Progress `json:"progress"`
	// Yield is the smallest yield at the end of the run; 0 means unknown.
	Yield float64 `json:"yield,omitempty"`
}

// Progress is the progress of one move.
type Progress struct {
	State  State        `json:"state"`
	Reason string       `json:"reason,omitempty"` // why it was skipped or has failed
	Begun  span.Instant `json:"begun,omitempty"`  // when Nova was last ordered to move it; 0 if it was not
	// Aborted is when Nova was first ordered to abort the move; 0 means never.
	Aborted span.Instant `json:"aborted,omitempty"`
	Ended   span.Instant `json:"ended,omitempty"`
	// Before is the id of the last migration that the instance had before the order: a later one
	// belongs to this move. Told is the number of orders sent for the move.
	Before string `json:"before,omitempty"`
	Told   int    `json:"told,omitempty"`
}

// Over reports whether the run has ended.
func (r *Run) Over() bool { return r.Status != RunActive && r.Status != RunStopping }

// next returns the index of the first move that has not ended; false if all have.
func (r *Run) next() (int, bool) {
	i := slices.IndexFunc(r.Progress, func(p Progress) bool { return !p.over() })
	return i, i >= 0
}

func (p *Progress) over() bool {
	return p.State == MoveDone || p.State == MoveSkipped || p.State == MoveFailed
}

// Count returns the number of moves in the state.
func (r *Run) Count(state State) (n int) {
	for _, p := range r.Progress {
		if p.State == state {
			n++
		}
	}
	return n
}

// Floor returns the yield below which a run that empties hosts must not bring the smallest yield.
func (r *Run) Floor() float64 {
	if r.Plan.Options.Floor > 0 {
		return r.Plan.Options.Floor
	}
	return r.Plan.Before
}
