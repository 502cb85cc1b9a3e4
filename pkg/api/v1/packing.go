package v1

import "time"

// PackingRequest is the body of POST /v1/packing and, with Plan, of POST /v1/packing/runs:
// how many migrations there may be and how much memory they may move, 0 being any. What is
// absent is as configured.
type PackingRequest struct {
	Migrations *int   `json:"migrations,omitempty"`
	MemoryMB   *int64 `json:"memory_mb,omitempty"`
	// Algorithm is "adapt" or "exact"; absent is exact where that is quick, else adapt.
	Algorithm string `json:"algorithm,omitempty"`
	// Consolidate is how many hosts shall become empty instead of a larger yield, Empty as
	// many as can be, and Floor the yield that is kept then; absent is the one that is now.
	Consolidate *int     `json:"consolidate,omitempty"`
	Empty       bool     `json:"empty,omitempty"`
	Floor       *float64 `json:"floor,omitempty"`
	// Plan is the id of the plan that is meant: nothing is done where another one is made.
	Plan string `json:"plan,omitempty"`
}

// PackingPlan is the answer to POST /v1/packing. Yields are the smallest of all instances.
type PackingPlan struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	Algorithm string    `json:"algorithm"`
	// CPUNeed says where needs come from: "flavor", or "diagnostics" for the Measured ones.
	CPUNeed   string `json:"cpu_need"`
	Hosts     int    `json:"hosts"`
	Instances int    `json:"instances"`
	Movable   int    `json:"movable"`
	Measured  int    `json:"measured"`
	// MinYield is that of now, PlannedYield that after the moves, UpperBound one that no
	// placement exceeds.
	MinYield     float64         `json:"min_yield"`
	PlannedYield float64         `json:"planned_yield"`
	UpperBound   float64         `json:"upper_bound"`
	MemoryMB     int64           `json:"memory_mb"` // that is moved
	Moves        []PackingMove   `json:"moves"`
	Emptied      []string        `json:"emptied"`
	Kept         []PackingStay   `json:"kept"`
	Stays        []PackingStay   `json:"stays"`
	Beyond       []PackingBeyond `json:"beyond"`
	Reasons      []string        `json:"reasons"`
}

// PackingMove is a live migration. In a run it has a State.
type PackingMove struct {
	Instance  string  `json:"instance"`
	Name      string  `json:"name"`
	ProjectID string  `json:"project_id"`
	From      string  `json:"from"`
	To        string  `json:"to"`
	VCPUs     int64   `json:"vcpus"`
	MemoryMB  int64   `json:"memory_mb"`
	Need      float64 `json:"need"` // in cores
	MinYield  float64 `json:"min_yield"`
	// Between says that the instance goes on to another host later.
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

// PackingBeyond is a host whose yield no move can change; 0 is not known.
type PackingBeyond struct {
	Host     string  `json:"host"`
	MinYield float64 `json:"min_yield"`
	Reason   string  `json:"reason"`
}

// PackingRun is a plan that is carried out: "running", "stopping", "done", "stopped" or
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
	// MinYield is the smallest yield when the run had ended; null before, and where it is not
	// known.
	MinYield *float64 `json:"min_yield"`
}

// PackingRuns is the answer to GET /v1/packing/runs.
type PackingRuns struct {
	Runs []PackingRun `json:"runs"`
}
