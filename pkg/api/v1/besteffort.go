// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// BestEffortRequest is the body of POST /v1/besteffort. Absent fields have their defaults.
type BestEffortRequest struct {
	Name     string            `json:"name,omitempty"`
	VMs      *int              `json:"vms,omitempty"`
	Flavor   string            `json:"flavor,omitempty"` // id or name
	Image    string            `json:"image,omitempty"`  // id or name
	Duration *Duration         `json:"duration,omitempty"`
	Parallel bool              `json:"parallel,omitempty"`
	Networks Networks          `json:"networks,omitempty"`
	KeyName  string            `json:"key_name,omitempty"`
	UserData string            `json:"user_data,omitempty"` // base64
	Metadata map[string]string `json:"metadata,omitempty"`
}

// BestEffort is a best-effort request. Position is its place in the queue, counted from 1, and
// ExpectedStart the time when its first waiting VM is expected to start or resume; both are absent
// if no VM waits, and ExpectedStart also if it is unknown.
type BestEffort struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	ProjectID string         `json:"project_id"`
	UserID    string         `json:"user_id"`
	Status    string         `json:"status"` // a Status of package reservation/besteffort/state
	Flavor    string         `json:"flavor"`
	Image     string         `json:"image"`
	Duration  Duration       `json:"duration"`
	Parallel  bool           `json:"parallel"`
	Networks  Networks       `json:"networks"`
	VMs       []BestEffortVM `json:"vms"`

	Position      *int       `json:"position,omitempty"`
	ExpectedStart *time.Time `json:"expected_start,omitempty"`
	CreatedAt     time.Time  `json:"created_at"`
	EndedAt       *time.Time `json:"ended_at,omitempty"`
}

// BestEffortVM is one virtual machine of a request.
type BestEffortVM struct {
	ID       string `json:"id"`
	Status   string `json:"status"` // a phase: waiting, starting, running, suspending, suspended, …
	ServerID string `json:"server_id,omitempty"`
	Host     string `json:"host,omitempty"` // for admins; else empty
	// Ran is the time for which the VM has run.
	Ran           Duration   `json:"ran"`
	ExpectedStart *time.Time `json:"expected_start,omitempty"`
	Reason        string     `json:"reason,omitempty"`
}

// BestEfforts is one page of a list; Next is the marker of the next page.
type BestEfforts struct {
	Requests []BestEffort `json:"besteffort"`
	Next     Marker       `json:"next"`
}
