// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Decisions is the answer to GET /v1/decisions/{id}, newest first.
type Decisions struct {
	Decisions []Decision `json:"decisions"`
}

// Decision is the record of a placement: the hosts of one request's instances, with the reasons.
// Refused and Ranked are absent for callers that may not see the hosts.
type Decision struct {
	RequestID     string    `json:"request_id"`
	ProjectID     string    `json:"project_id"`
	Instances     []string  `json:"instances"`
	ReservationID string    `json:"reservation_id,omitempty"`
	HandledBy     string    `json:"handled_by"`
	At            time.Time `json:"at"`
	TookMS        float64   `json:"took_ms"`
	// Placements has one entry for each instance; it is empty if Reason is set.
	Placements []Placement `json:"placements"`
	// Evicted are instances that made room for another project's. Their owner sees nothing else of
	// the decision.
	Evicted    []Victim      `json:"evicted,omitzero"`
	Reason     string        `json:"reason,omitempty"`
	Considered int           `json:"considered"`
	Filters    []FilterCount `json:"filters"`
	Refused    []RefusedHost `json:"refused,omitzero"`
	Ranked     []RankedHost  `json:"ranked,omitzero"`
}

// Placement is the host of an instance; callers that may not see hosts see only the instance.
// Victims are the preemptible instances that were evicted for it, of the projects that the caller
// may see.
type Placement struct {
	Instance   string   `json:"instance"`
	Host       string   `json:"host,omitempty"`
	Node       string   `json:"node,omitempty"`
	Alternates []string `json:"alternates,omitzero"`
	Victims    []Victim `json:"victims,omitempty"`
}

// FilterCount is the number of hosts that remain after a filter.
type FilterCount struct {
	Filter string `json:"filter"`
	Left   int    `json:"left"`
}

// RefusedHost is a host that a filter removed.
type RefusedHost struct {
	Host   string `json:"host"`
	Filter string `json:"filter"`
	Reason string `json:"reason"`
}

// RankedHost is a host that passed every filter. Weight is the sum of Parts, whose keys are the
// names of the weighers.
type RankedHost struct {
	Host   string             `json:"host"`
	Weight float64            `json:"weight"`
	Parts  map[string]float64 `json:"parts"`
}
