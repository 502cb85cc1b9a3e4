package placing

import "github.com/almanac-cloud/almanac/pkg/span"

// The ways in which a decision comes about.
const (
	Interposed = "interposed" // narrowed here, decided by nova-scheduler
	Replaced   = "replaced"   // decided here
	PassedOn   = "passed on"  // narrowed here, decided by nova-scheduler, since it could not be judged here
)

// Decision is what was decided of a request, and why.
type Decision struct {
	RequestID string   `json:"request_id"`
	ProjectID string   `json:"project_id"`
	Instances []string `json:"instances,omitempty"`
	// Reservation is the reservation that they were requested for; empty is none.
	Reservation string       `json:"reservation,omitempty"`
	Way         string       `json:"way"` // Interposed, Replaced or PassedOn
	At          span.Instant `json:"at"`
	// Took is the time until the answer, in microseconds.
	Took int64 `json:"took"`
	// Placements has one for each instance, in order; none where Reason is why not.
	Placements []Placement `json:"placements,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	// Considered is how many hosts there were, Filters how many each filter left, in
	// their order, for the first instance.
	Considered int           `json:"considered"`
	Filters    []FilterCount `json:"filters,omitempty"`
	// Refused has for each refused host the filter and its reason, and Ranked the best of
	// the others, the first one first; both for the first instance.
	Refused []RefusedHost `json:"refused,omitempty"`
	Ranked  []RankedHost  `json:"ranked,omitempty"`
}

// Placement is where an instance goes.
type Placement struct {
	Instance   string   `json:"instance"`
	Host       string   `json:"host"`
	Node       string   `json:"node"`
	Alternates []string `json:"alternates,omitempty"` // hosts that are tried where that one fails
	Victims    []Victim `json:"victims,omitempty"`    // preemptible instances that leave the host for it, by ID
}

// Victim is an instance that makes room for another.
type Victim struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	ProjectID string `json:"project_id"`
	Cost      int64  `json:"cost"`
	Unit      string `json:"unit"` // of Cost
}

// FilterCount is how many hosts a filter left.
type FilterCount struct {
	Filter string `json:"filter"`
	Left   int    `json:"left"`
}

// RefusedHost is why a host was not taken.
type RefusedHost struct {
	Host   string `json:"host"`
	Filter string `json:"filter"`
	Reason string `json:"reason"`
}

// RankedHost is how a host was weighed: Weight is the sum of Parts, which are by weigher,
// normalized and multiplied.
type RankedHost struct {
	Host   string             `json:"host"`
	Weight float64            `json:"weight"`
	Parts  map[string]float64 `json:"parts,omitempty"`
}
