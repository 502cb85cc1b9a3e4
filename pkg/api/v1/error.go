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
}

// Block is a span in which another reservation holds a host.
type Block struct {
	Host  string    `json:"host"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}
