// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// WebhookRequest is the body of POST /v1/webhooks.
type WebhookRequest struct {
	Name string `json:"name,omitempty"`
	URL  string `json:"url,omitempty"`
	// EventTypes are the types of the events to send; empty means all.
	EventTypes []string `json:"event_types,omitempty"`
	// Secret signs what is sent, as whsec_ and base64; empty lets Almanac make one.
	Secret string `json:"secret,omitempty"`
	// AllProjects is for admins: the events are about the reservations of all projects.
	AllProjects bool `json:"all_projects,omitempty"`
}

// Webhook is an address that is told of changes of reservations.
type Webhook struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	ProjectID   string    `json:"project_id"`
	UserID      string    `json:"user_id"`
	URL         string    `json:"url"`
	EventTypes  []string  `json:"event_types"` // empty means all
	AllProjects bool      `json:"all_projects"`
	CreatedAt   time.Time `json:"created_at"`
	// Waiting is how many deliveries wait, and NextTry when the first of them is tried.
	Waiting int        `json:"waiting"`
	NextTry *time.Time `json:"next_try"`
	// Failures is how many tries have failed since the last one that succeeded.
	Failures    int        `json:"failures"`
	LastSuccess *time.Time `json:"last_success"`
	LastFailure *time.Time `json:"last_failure"`
	LastError   string     `json:"last_error"` // of the last try that failed
	// Disabled is why nothing is sent any more; empty if it is.
	Disabled string `json:"disabled"`
	// Dropped is how many deliveries were given up.
	Dropped int64 `json:"dropped"`
	// Secret signs the deliveries. Only the answer to POST /v1/webhooks has it.
	Secret string `json:"secret,omitempty"`
}

// Webhooks is one page of a list, sorted by creation, then id; Next is the marker of the next page.
type Webhooks struct {
	Webhooks []Webhook `json:"webhooks"`
	Next     Marker    `json:"next"`
}
