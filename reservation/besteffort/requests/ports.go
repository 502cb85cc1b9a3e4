// SPDX-License-Identifier: Apache-2.0

// Package requests handles users' requests for best-effort work: it submits, cancels, lists and
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

// Catalogue finds the flavors and images that a caller may use.
type Catalogue interface {
	// Flavor returns the flavor that the caller named, and the resources of one instance of it. It
	// fails with an Invalid fault with the field flavor if there is none.
	Flavor(ctx context.Context, by Caller, named string) (state.Named, resource.Vector, error)
	// Image returns the image that the caller named. It fails with an Invalid fault with the field
	// image if there is none.
	Image(ctx context.Context, by Caller, named string) (state.Named, error)
}

// Trusts makes and ends the trusts with which servers are created in the caller's name.
type Trusts interface {
	Make(ctx context.Context, by Caller) (trust string, err error)
	// End deletes a trust. If it does not exist, End returns nil.
	End(ctx context.Context, trust string) error
}

// Query selects requests for a list, which is in the order of the queue.
type Query struct {
	ProjectID string // empty means every project
	// All includes requests that are over.
	All bool
	// Marker is the id of the last request of the previous page; empty means the first page.
	Marker string
	Limit  int
}

// RequestStore stores requests.
type RequestStore interface {
	OpenBestEffort(ctx context.Context) ([]state.Request, error)
	// AddBestEffort stores a new request, with its place in the queue and the user_data (base64) of
	// its servers, which lists do not contain. It fails if the project would have more than most
	// VMs that are not over; 0 means no limit. If the project has used its Key before,
	// AddBestEffort returns the request that was made with it.
	AddBestEffort(ctx context.Context, r state.Request, userData string, most int) (state.Request, error)
	// BestEffort returns a request. It fails with a NotFound fault if there is none.
	BestEffort(ctx context.Context, id string) (state.Request, error)
	ListBestEffort(ctx context.Context, q Query) ([]state.Request, error)
	// BestEffortOfKey returns the request that a project made with an Idempotency-Key; false means
	// that there is none.
	BestEffortOfKey(ctx context.Context, project, key string) (state.Request, bool, error)
	// CancelBestEffort stores that a request was canceled. It does not change a request that is
	// over or was canceled before.
	CancelBestEffort(ctx context.Context, id string, at span.Instant) error
}
