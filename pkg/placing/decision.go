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
	RequestID, ProjectID string
	Instances            []string
	// Reservation is in which reservation they were to be; empty is none.
	Reservation string
	Way         string // Interposed, Replaced or PassedOn
	At          span.Instant
	// Took is how long it took until the answer, in microseconds.
	Took int64
	// Placements has one for each instance, in order; none where Reason says why not.
	Placements []Placement
	Reason     string
	// Considered is how many hosts there were, Filters how many each filter left, in
	// their order, for the first instance.
	Considered int
	Filters    []FilterCount
	// Refused says for each host that was refused which filter did it and why, and Ranked
	// has the best of the others, the first one first; both for the first instance.
	Refused []RefusedHost
	Ranked  []RankedHost
}

// Placement is where an instance goes.
type Placement struct {
	Instance, Host, Node string
	Alternates           []string // hosts that are tried where that one fails
	Victims              []Victim // preemptible instances that leave the host for it, by ID
}

// Victim is an instance that makes room for another.
type Victim struct {
	ID, Name, ProjectID string
	Cost                int64
	Unit                string // of Cost
}

// FilterCount is how many hosts a filter left.
type FilterCount struct {
	Filter string
	Left   int
}

// RefusedHost is why a host was not taken.
type RefusedHost struct {
	Host, Filter, Reason string
}

// RankedHost is how a host was weighed: Weight is the sum of Parts, which are by weigher,
// normalised and multiplied.
type RankedHost struct {
	Host   string
	Weight float64
	Parts  map[string]float64
}
