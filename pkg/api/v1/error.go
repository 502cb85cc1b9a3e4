package v1

import "time"

// ErrorAnswer is the body of every answer from 400 on.
type ErrorAnswer struct {
	Error   Error    `json:"error"`
	Refusal *Refusal `json:"refusal,omitempty"`
}

// Error says what is wrong. Kind is one of those of package fault.
type Error struct {
	Kind      string `json:"kind"`
	Field     string `json:"field"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
}

// Refusal says why a request cannot be met, and what could be.
type Refusal struct {
	Constraint      string     `json:"constraint"`
	Matched         int        `json:"matched"`
	Free            int        `json:"free"`
	BlockedBy       []Block    `json:"blocked_by"`
	EarliestStart   *time.Time `json:"earliest_start"`
	LargestQuantity int        `json:"largest_quantity"`
}

// Block is a time in which a host is held by others.
type Block struct {
	Host  string    `json:"host"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}
