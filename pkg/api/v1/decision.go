package v1

import "time"

// Decisions is the answer to GET /v1/decisions/{id}, the newest first.
type Decisions struct {
	Decisions []Decision `json:"decisions"`
}

// Decision is where the instances of one request were placed, and why there. Who may
// not see its hosts gets neither Refused nor Ranked.
type Decision struct {
	RequestID     string    `json:"request_id"`
	ProjectID     string    `json:"project_id"`
	Instances     []string  `json:"instances"`
	ReservationID string    `json:"reservation_id,omitempty"`
	Way           string    `json:"way"`
	At            time.Time `json:"at"`
	TookMS        float64   `json:"took_ms"`
	// Placements has one for each instance; none where Reason says why not.
	Placements []Placement `json:"placements"`
	// Evicted are the instances that left for those of another project: then the decision
	// is shown to their owner, who sees nothing else of it.
	Evicted    []Victim      `json:"evicted,omitzero"`
	Reason     string        `json:"reason,omitempty"`
	Considered int           `json:"considered"`
	Filters    []FilterCount `json:"filters"`
	Refused    []RefusedHost `json:"refused,omitzero"`
	Ranked     []RankedHost  `json:"ranked,omitzero"`
}

// Placement is where an instance goes; only the instance to those who may not see hosts.
// Victims are the preemptible instances that left for it, of projects that one may see.
type Placement struct {
	Instance   string   `json:"instance"`
	Host       string   `json:"host,omitempty"`
	Node       string   `json:"node,omitempty"`
	Alternates []string `json:"alternates,omitzero"`
	Victims    []Victim `json:"victims,omitempty"`
}

// FilterCount is how many hosts a filter left.
type FilterCount struct {
	Filter string `json:"filter"`
	Left   int    `json:"left"`
}

// RefusedHost is a host that a filter took out.
type RefusedHost struct {
	Host   string `json:"host"`
	Filter string `json:"filter"`
	Reason string `json:"reason"`
}

// RankedHost is a host that would do. Weight is the sum of Parts, which are by weigher.
type RankedHost struct {
	Host   string             `json:"host"`
	Weight float64            `json:"weight"`
	Parts  map[string]float64 `json:"parts"`
}
