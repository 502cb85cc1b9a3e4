// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// PackingRequest is the body of POST /v1/packing and, with Plan, of POST /v1/packing/runs.
// Migrations and MemoryMB limit the migrations and the memory that they move; 0 means no limit.
// Absent fields have their configured values.
type PackingRequest struct {
	Migrations *int   `json:"migrations,omitempty"`
	MemoryMB   *int64 `json:"memory_mb,omitempty"`
	// Algorithm is "adapt" or "exact"; if it is absent, exact for small problems, otherwise adapt.
	Algorithm string `json:"algorithm,omitempty"`
	// Consolidate is the number of hosts that the plan should empty, instead of raising the yield;
	// Empty means as many as possible. Floor is the minimum yield that such a plan keeps; if it is
	// absent, the present one.
	Consolidate *int     `json:"consolidate,omitempty"`
	Empty       bool     `json:"empty,omitempty"`
	Floor       *float64 `json:"floor,omitempty"`
	// Plan is the id of the expected plan: if the plan is a different one now, nothing is done.
	Plan string `json:"plan,omitempty"`
}

// PackingPlan is the answer to POST /v1/packing. All yields are the minimum over all instances.
type PackingPlan struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	Algorithm string    `json:"algorithm"`
	// CPUNeed is the source of needs: "flavor", or "diagnostics" for the Measured instances.
	CPUNeed   string `json:"cpu_need"`
	Hosts     int    `json:"hosts"`
	Instances int    `json:"instances"`
	Movable   int    `json:"movable"`
	Measured  int    `json:"measured"`
	// MinYield is the present minimum yield, PlannedYield the one after the moves, UpperBound a
	// yield that no placement exceeds.
	MinYield     float64           `json:"min_yield"`
	PlannedYield float64           `json:"planned_yield"`
	UpperBound   float64           `json:"upper_bound"`
	MemoryMB     int64             `json:"memory_mb"` // moved by the plan
	Moves        []PackingMove     `json:"moves"`
	Emptied      []string          `json:"emptied"`
	Kept         []PackingStay     `json:"kept"`
	Stays        []PackingStay     `json:"stays"`
	Excluded     []PackingExcluded `json:"excluded"`
	Reasons      []string          `json:"reasons"`
}

// PackingMove is a live migration. State, Reason, Begun and Ended are only set in a run, as it proceeds.
type PackingMove struct {
	Instance  string  `json:"instance"`
	Name      string  `json:"name"`
	ProjectID string  `json:"project_id"`
	From      string  `json:"from"`
	To        string  `json:"to"`
	VCPUs     int64   `json:"vcpus"`
	MemoryMB  int64   `json:"memory_mb"`
	Need      float64 `json:"need"`      // of the instance, in cores
	MinYield  float64 `json:"min_yield"` // the least yield on all hosts after this move
	// Between is true if the instance moves on to another host later.
	Between bool       `json:"between"`
	State   string     `json:"state,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Begun   *time.Time `json:"begun,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
}

// PackingStay is an instance that cannot be moved, or a host that cannot become empty.
type PackingStay struct {
	Instance string `json:"instance,omitempty"`
	Host     string `json:"host"`
	Reason   string `json:"reason"`
}

// PackingExcluded is a host whose yield no move can change; 0 means unknown.
type PackingExcluded struct {
	Host     string  `json:"host"`
	MinYield float64 `json:"min_yield"`
	Reason   string  `json:"reason"`
}

// PackingRun is a plan that is carried out. Status is "running", "stopping", "done", "stopped" or
// "failed".
type PackingRun struct {
	ID      string      `json:"id"`
	Status  string      `json:"status"`
	Reason  string      `json:"reason"`
	By      string      `json:"by"`
	Created time.Time   `json:"created"`
	Ended   *time.Time  `json:"ended"`
	Moved   int         `json:"moved"`
	Skipped int         `json:"skipped"`
	Failed  int         `json:"failed"`
	Left    int         `json:"left"`
	Plan    PackingPlan `json:"plan"`
	// MinYield is the minimum yield at the end of the run; null before, and if it is unknown.
	MinYield *float64 `json:"min_yield"`
}

// PackingRuns is the answer to GET /v1/packing/runs.
type PackingRuns struct {
	Runs []PackingRun `json:"runs"`
}
