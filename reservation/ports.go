// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"errors"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Key is the use of an idempotency key. The same key of the same project identifies the same
// request.
type Key struct {
	ProjectID, Key string
	BodyHash       string // of the request that used the key
	ReservationID  string // the reservation that this request made
	Created        span.Instant
}

// ErrKeyUsed is the error for an idempotency key that the project has used before.
var ErrKeyUsed = errors.New("the idempotency key is used")

// ErrStale is the error if the records have changed since a decision was made. The decision must be
// made again with the current records.
var ErrStale = errors.New("the records have changed since the decision was made")

// Action is the kind of a stored change.
type Action string

// The actions. ActionBeginEvent and ActionPutOff are the steps of an event that requires work
// in the cloud: a replica begins it, or puts it off after a failure. If a reservation is
// failed after ActionStart or ActionEnd, that event failed.
const (
	ActionCreate     Action = "create"
	ActionModify     Action = "modify"
	ActionCancel     Action = "cancel"
	ActionStart      Action = "start"
	ActionWarnOfEnd  Action = "before_end"
	ActionEnd        Action = "end"
	ActionHeal       Action = "heal"    // other hosts replace failed ones
	ActionDegrade    Action = "degrade" // hosts are missing
	ActionRestore    Action = "restore" // no host is missing any more
	ActionMove       Action = "move"    // it has other times within its window, so that others have room
	ActionBook       Action = "book"    // there was room for what had waited
	ActionExpire     Action = "expire"  // its hold ended, and nobody confirmed it, or its wait ended, and there was no room
	ActionBeginEvent Action = "begin"
	ActionPutOff     Action = "put_off"
	// ActionRemark adds a sentence about the image to the log, for the owner.
	ActionRemark Action = "image"
)

// Cause states why a reservation changed. UserID and RequestID are empty if no request caused the
// change.
type Cause struct {
	Action            Action
	UserID, RequestID string
	Detail            string // the difference, in words; may be empty
}

// Change is a stored change: an entry in the audit trail.
type Change struct {
	Place int64 // position in the change log
	At    span.Instant
	Cause
	// Reservation is the reservation after the change.
	Reservation Reservation
}

// Query selects reservations for a list.
type Query struct {
	ProjectID string   // empty selects every project
	IDs       []string // empty selects every id
	Statuses  []Status // empty selects every status except Canceled
	Name      string   // exact; empty selects every name
	LeaseID   string   // empty selects those of every lease and of none
	SeriesID  string   // empty selects those of every series and of none
	Kind      Kind     // empty selects every kind
	// Maintenance selects only maintenance, or only what is none; nil selects both.
	Maintenance *bool
	// Overlaps selects reservations that overlap it; the zero Span selects all.
	Overlaps span.Span
	// Marker is the id of the last reservation of the previous page; empty means the first page.
	// Limit is the maximum length of the list. Lists are sorted by start, then id.
	Marker string
	Limit  int
	// Last selects the last Limit reservations of the list instead of the first. It goes without a
	// Marker.
	Last bool
}

// Reader reads stored reservations.
type Reader interface {
	// Get returns one reservation in any status; it fails with a NotFound fault if there is none.
	Get(ctx context.Context, id string) (Reservation, error)
	// List returns the reservations that q selects. An unknown marker is an Invalid fault with the
	// field marker.
	List(ctx context.Context, q Query) ([]Reservation, error)
}
