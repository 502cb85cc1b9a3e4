// Package requests takes users' requests for best-effort work: it submits, cancels, lists and
// shows them.
package requests

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// Caller is the user who sent a request. Token is the user's own; it is neither stored nor
// logged.
type Caller struct {
	ProjectID, UserID string
	Roles             []string
	Token             string
}

// Catalogue finds what a caller may use.
type Catalogue interface {
	// Flavor returns the flavor that the caller named, with the resources of an instance of
	// it. It fails with an Invalid fault on field flavor where there is none.
	Flavor(ctx context.Context, by Caller, named string) (state.Named, resource.Vector, error)
	// Image returns the image that the caller named; the fault is on field image.
	Image(ctx context.Context, by Caller, named string) (state.Named, error)
}

// Trusts are the trusts with which servers are created in the caller's name.
type Trusts interface {
	Make(ctx context.Context, by Caller) (trust string, err error)
	// End deletes a trust. One that is gone already is no error.
	End(ctx context.Context, trust string) error
}

// Query selects requests for a list, by their place in the queue.
type Query struct {
	ProjectID string // empty is every project
	// All includes requests that are over.
	All bool
	// Marker is the id of the last request of the page before.
	Marker string
	Limit  int
}

// RequestStore stores requests.
type RequestStore interface {
	OpenBestEffort(ctx context.Context) ([]state.Request, error)
	// AddBestEffort stores a new request, with its place and the user_data (base64) of its
	// servers, which lists do not contain. It fails where the project would have more than
	// most VMs that are not over; 0 is any number. Where the project has used its Key before,
	// AddBestEffort returns the request of that instead.
	AddBestEffort(ctx context.Context, r state.Request, userData string, most int) (state.Request, error)
	// BestEffort returns a request, and a NotFound fault where there is none.
	BestEffort(ctx context.Context, id string) (state.Request, error)
	ListBestEffort(ctx context.Context, q Query) ([]state.Request, error)
	// BestEffortOfKey returns the request that a project made with an Idempotency-Key.
	BestEffortOfKey(ctx context.Context, project, key string) (state.Request, bool, error)
	// CancelBestEffort stores that a request was canceled. A request that is over, or was
	// canceled before, stays as it is.
	CancelBestEffort(ctx context.Context, id string, at span.Instant) error
}
