// SPDX-License-Identifier: Apache-2.0

// Package webhook decides about webhooks: which addresses they may have, which changes each is told of, which of them are
// tried now, and what follows from an answer.
//
// Deliveries wait in the database, and only the first one of a webhook is tried, so that its receiver gets
// the changes in their order. A receiver that fails is tried again after a growing wait.
package webhook

import (
	"slices"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Webhook is an address that is told of changes of reservations.
type Webhook struct {
	ID string
	// ProjectID is the project whose user has made it. The receiver learns the changes of that project, or with AllProjects
	// those of all.
	ProjectID   string
	AllProjects bool
	UserID      string
	Name        string
	URL         string
	// Types are the types of the events that are sent; empty means all.
	Types   []string
	Secret  Secret
	Created span.Instant
	Standing
}

// Standing is what has become of the deliveries of a webhook.
type Standing struct {
	// NextTry is when the first of the waiting deliveries is tried; 0 if none waits.
	NextTry span.Instant
	// Failures is how many tries have failed since the last one that succeeded.
	Failures int
	// Succeeded and Failed are when the last try did; 0 means never.
	Succeeded, Failed span.Instant
	// LastError is why the last failed try failed.
	LastError string
	// Disabled is why nothing is sent any more; empty if it is.
	Disabled string
	// Dropped is how many deliveries were given up.
	Dropped int64
	// Waiting is how many deliveries wait.
	Waiting int
}

// Settings are what an operator decides about webhooks.
type Settings struct {
	// Allowed are the receivers; see ParseAllowed. Empty means that there are no webhooks.
	Allowed []string
	// MostPerProject is the largest number of webhooks of a project.
	MostPerProject int
	// GiveUpAfter is for how many seconds after a change a webhook is told of it.
	GiveUpAfter int64
	// Source is the source of the CloudEvents.
	Source string
}

// The bounds of what a user writes.
const (
	longestName = 255
	longestURL  = 2000
)

// Check returns an Invalid fault for texts that a webhook cannot have; types are all types of events.
func (w *Webhook) Check(types []string) error {
	switch {
	case w.Name == "":
		return fault.Field("name", "is required")
	case utf8.RuneCountInString(w.Name) > longestName:
		return fault.Field("name", "has more than %d characters", longestName)
	case utf8.RuneCountInString(w.URL) > longestURL:
		return fault.Field("url", "has more than %d characters", longestURL)
	}
	for _, t := range w.Types {
		if !slices.Contains(types, t) {
			return fault.Field("event_types", "%s", fault.Unknown("type", t, types))
		}
	}
	return nil
}

// BelongsTo reports whether a webhook is one of a project's own, as for a reservation.
func (w *Webhook) BelongsTo(project string) bool { return w.ProjectID == project }

// Wants reports whether a webhook is told of an event of a type about a reservation.
func (w *Webhook) Wants(eventType string, r *reservation.Reservation) bool {
	return w.Disabled == "" && (w.AllProjects || r.BelongsTo(w.ProjectID)) && (len(w.Types) == 0 || slices.Contains(w.Types, eventType))
}

// Delivery is a change that waits to be told to a webhook.
type Delivery struct {
	WebhookID string
	Place     int64        // of the change in the log
	Changed   span.Instant // when the change was made
}

// Query selects webhooks, sorted by their creation, then id.
type Query struct {
	ProjectID string // empty selects those of all projects
	Marker    string // the id of the webhook before the first one
	Limit     int
}

// NotFound returns the error about a webhook that does not exist.
func NotFound(id string) error { return fault.New(fault.NotFound, "there is no webhook %s", id) }
