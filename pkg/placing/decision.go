package placing

import "github.com/almanac-cloud/almanac/pkg/span"

// The values of Decision.HandledBy.
const (
	Interposed = "interposed" // narrowed by Almanac, decided by nova-scheduler
	Replaced   = "replaced"   // decided by Almanac
	PassedOn   = "passed on"  // narrowed by Almanac, decided by nova-scheduler because Almanac could not judge it
)

// Decision is the result of a placement request, with its reasons.
type Decision struct {
	RequestID, ProjectID string
	Instances            []string
	// Reservation is the one that the request named; empty is none.
	Reservation string
	HandledBy   string // Interposed, Replaced or PassedOn
	At          span.Instant
	// Took is the time until the answer, in microseconds.
	Took int64
	// Placements has one for each instance, in order; none where there is a Reason for none.
	Placements []Placement
	Reason     string
	// Considered is the number of hosts; Filters has how many were left after each filter, in
	// their order, for the first instance.
	Considered int
	Filters    []FilterCount
	// Refused lists the hosts that a filter refused, and Ranked the best of the others, the
	// best one first; both for the first instance.
	Refused []RefusedHost
	Ranked  []RankedHost
}

// Placement is where an instance goes.
type Placement struct {
	Instance, Host, Node string
	Alternates           []string // hosts that Nova tries next where that one fails
	Victims              []Victim // preemptible instances that are evicted for it, by ID
}

// Victim is an instance that makes room for another.
type Victim struct {
	ID, Name, ProjectID string
	Cost                int64
	Unit                string // of Cost
}

// FilterCount is the number of hosts left after a filter.
type FilterCount struct {
	Filter string
	Left   int
}

// RefusedHost is a host that a filter refused.
type RefusedHost struct {
	Host, Filter, Reason string
}

// RankedHost is the weight of a host: the sum of its Parts, each the normalized and multiplied
// result of a weigher.
type RankedHost struct {
	Host   string
	Weight float64
	Parts  map[string]float64
}
