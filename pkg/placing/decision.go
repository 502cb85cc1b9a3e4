// SPDX-License-Identifier: Apache-2.0

package placing

import "github.com/almanac-cloud/almanac/pkg/span"

// The values of Decision.HandledBy.
const (
	Interposed = "interposed" // narrowed by Almanac, decided by nova-scheduler
	Replaced   = "replaced"   // decided by Almanac
	PassedOn   = "passed on"  // narrowed by Almanac, decided by nova-scheduler because Almanac could not judge it
)

// Decision is the result of a placement request, with the reasons.
type Decision struct {
	RequestID string   `json:"request_id"`
	ProjectID string   `json:"project_id"`
	Instances []string `json:"instances,omitempty"`
	// Reservation is the id of the reservation that the request named; empty means none.
	Reservation string       `json:"reservation,omitempty"`
	HandledBy   string       `json:"handled_by"` // Interposed, Replaced or PassedOn
	At          span.Instant `json:"at"`
	// Took is the time until the answer, in microseconds.
	Took int64 `json:"took"`
	// Placements contains one placement for each instance, in order. It is empty if Reason states
	// why there is none.
	Placements []Placement `json:"placements,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	// Considered is the number of hosts. Filters contains, for the first instance, the number of
	// hosts left after each filter, in the order of the filters.
	Considered int           `json:"considered"`
	Filters    []FilterCount `json:"filters,omitempty"`
	// Refused lists the hosts that a filter refused, and Ranked the best of the others, the best
	// one first; both for the first instance.
	Refused []RefusedHost `json:"refused,omitempty"`
	Ranked  []RankedHost  `json:"ranked,omitempty"`
}

// Placement is the host of an instance, and the alternates.
type Placement struct {
	Instance   string   `json:"instance"`
	Host       string   `json:"host"`
	Node       string   `json:"node"`
	Alternates []string `json:"alternates,omitempty"` // hosts that Nova tries next where that one fails
	Victims    []Victim `json:"victims,omitempty"`    // preemptible instances that are evicted for it, sorted by ID
}

// Victim is an instance that makes room for another.
type Victim struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	ProjectID string `json:"project_id"`
	Cost      int64  `json:"cost"`
	Unit      string `json:"unit"` // of Cost
}

// FilterCount is the number of hosts left after a filter.
type FilterCount struct {
	Filter string `json:"filter"`
	Left   int    `json:"left"`
}

// RefusedHost is a host that a filter refused.
type RefusedHost struct {
	Host   string `json:"host"`
	Filter string `json:"filter"`
	Reason string `json:"reason"`
}

// RankedHost is the weight of a host: the sum of its Parts. A part is the normalized result of a
// weigher times its multiplier.
type RankedHost struct {
	Host   string             `json:"host"`
	Weight float64            `json:"weight"`
	Parts  map[string]float64 `json:"parts,omitempty"`
}
