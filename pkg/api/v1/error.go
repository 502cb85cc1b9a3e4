// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// ErrorAnswer is the body of every answer with a status of 400 or above.
type ErrorAnswer struct {
	Error   Error    `json:"error"`
	Refusal *Refusal `json:"refusal,omitempty"`
}

// Error describes a fault. Kind is one of the kinds of package fault.
type Error struct {
	Kind      string `json:"kind"`
	Field     string `json:"field"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
}

// Refusal is why a request has no room, with the alternatives.
type Refusal struct {
	Constraint      string     `json:"constraint"`
	Matched         int        `json:"matched"`
	Free            int        `json:"free"`
	BlockedBy       []Block    `json:"blocked_by"`
	EarliestStart   *time.Time `json:"earliest_start"`
	LargestQuantity int        `json:"largest_quantity"`
	LatestEnd       *time.Time `json:"latest_end,omitempty"` // of an extension; nil if no later end is possible
	// Occurrences are those of a series that are refused, at most 100.
	Occurrences []RefusedOccurrence `json:"occurrences,omitempty"`
}

// Block is a span in which other reservations hold a host.
type Block struct {
	Host  string    `json:"host"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// Reservations are the first ten of them that the caller may see, sorted by start; empty in Blazar's
	// form.
	Reservations []Blocker `json:"reservations,omitempty"`
}

// Blocker is a reservation that is in the way of a request.
type Blocker struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	ProjectID string `json:"project_id"`
}
