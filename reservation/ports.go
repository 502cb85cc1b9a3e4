package reservation

import (
	"context"
	"errors"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Key is the use of an idempotency key: the same key of the same project stands
// for the same request.
type Key struct {
	ProjectID, Key string
	BodyHash       string // of the request that came with it
	ReservationID  string // what it made
	Created        span.Instant
}

// ErrKeyUsed says that a project has used an idempotency key before.
var ErrKeyUsed = errors.New("the idempotency key is used")

// ErrStale says that the records have moved on since the decision that should be
// stored was made: it must be made again on what they hold now.
var ErrStale = errors.New("the records have changed since the decision was made")

// Action names a stored change.
type Action string

// The actions: those of an owner, those of time, those of healing, and the two steps
// of an event that takes work on the cloud: begun, and put off after it failed. A
// reservation that has failed after Start or End failed there.
const (
	Create     Action = "create"
	Modify     Action = "modify"
	Cancel     Action = "cancel"
	Start      Action = "start"
	WarnOfEnd  Action = "before_end"
	End        Action = "end"
	Heal       Action = "heal"    // other hosts for failed ones
	Degrade    Action = "degrade" // hosts are missing
	Restore    Action = "restore" // none is missing any more
	BeginEvent Action = "begin"
	PutOff     Action = "put_off"
	// TellOfImage is that the owner was told something of the image on the hosts.
	TellOfImage Action = "image"
)

// Cause says why a reservation changed: what was done, by whom, and in answer to
// which request; the last two are empty where time alone is the cause.
type Cause struct {
	Action            Action
	UserID, RequestID string
	Detail            string // what is different, in words; may be empty
}

// Change is a stored change: an entry in the audit trail.
type Change struct {
	Place int64 // in the log
	At    span.Instant
	Cause
	// Reservation is what the change made of it.
	Reservation Reservation
}

// Query selects reservations for a list.
type Query struct {
	ProjectID string   // empty is every project
	Statuses  []Status // empty is every state but Cancelled
	Name      string   // exactly; empty is every name
	Kind      Kind     // empty is every kind
	// Overlaps keeps those that share an instant with it; the zero Span is all time.
	Overlaps span.Span
	// Marker is the id of the last reservation of the page before; Limit is the
	// most to give. Lists are by start, then id.
	Marker string
	Limit  int
}

// Reader finds stored reservations.
type Reader interface {
	// Get returns one reservation, in whatever state, and a NotFound fault where there
	// is none.
	Get(ctx context.Context, id string) (Reservation, error)
	// List gives what the query selects; an unknown marker is an Invalid fault on
	// field marker.
	List(ctx context.Context, q Query) ([]Reservation, error)
}
