// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"context"
	"log/slog"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

// API is what users call for best-effort work. It is safe for concurrent use.
type API struct {
	Store     RequestStore
	Catalogue Catalogue
	Trusts    Trusts
	// View returns the present hosts and reservations; nil means that no plan can be made in this
	// process.
	View    func() state.ClusterView
	Planner state.Planner
	// Off is the reason why nothing can be submitted; "" if requests can be.
	Off string
	// MostVMs is the largest number of a project's VMs that are not over; 0 means no limit.
	MostVMs int
	// Changed is called when something was stored.
	Changed func()
	Now     func() span.Instant
	NewID   func() string
	Log     *slog.Logger
	// Planned returns the expectations of the last plan of this process's controller; known is
	// false if it has not made one recently. A nil function means that there is no controller in
	// this process.
	Planned func() (expected map[string]besteffort.Expectation, known bool)

	mu      sync.Mutex
	guess   map[string]besteffort.Expectation // of the last plan made here
	guessed span.Instant
}

// Submit adds a request to the queue. It makes a trust with the caller's token, so that servers can
// be created in the caller's name later.
func (a *API) Submit(ctx context.Context, by Caller, s Submission) (state.Request, error) {
	if a.Off != "" {
		return state.Request{}, fault.New(fault.Conflict, "%s", a.Off)
	}
	if err := s.check(); err != nil {
		return state.Request{}, err
	}
	if s.Key != "" {
		known, used, err := a.Store.BestEffortOfKey(ctx, by.ProjectID, s.Key)
		if err != nil || used {
			return sameBody(known, s, err)
		}
	}
	r := state.Request{
		ID: a.NewID(), ProjectID: by.ProjectID, UserID: by.UserID, Name: s.Name, Created: a.Now(), Duration: s.Duration,
		Parallel: s.Parallel, Networks: s.Networks, KeyName: s.KeyName, Metadata: s.Metadata,
		Key: s.Key, BodyHash: s.BodyHash,
	}
	if len(r.Networks) == 0 {
		r.Networks = []string{"auto"}
	}
	var err error
	if r.Flavor, r.Shape, err = a.Catalogue.Flavor(ctx, by, s.Flavor); err != nil {
		return state.Request{}, err
	}
	if r.Image, err = a.Catalogue.Image(ctx, by, s.Image); err != nil {
		return state.Request{}, err
	}
	for n := range s.VMs {
		r.VMs = append(r.VMs, state.VM{ID: a.NewID(), Number: n, Phase: besteffort.Waiting, Since: r.Created})
	}
	if r.Trust, err = a.Trusts.Make(ctx, by); err != nil {
		return state.Request{}, err
	}
	return a.store(ctx, r, s)
}

// store stores the request. If the request does not need the trust after all, store deletes it.
func (a *API) store(ctx context.Context, r state.Request, s Submission) (state.Request, error) {
	stored, err := a.Store.AddBestEffort(ctx, r, s.UserData, a.MostVMs)
	if stored.ID != r.ID && !fault.Is(err, fault.Unavailable) {
		if ended := a.Trusts.End(context.WithoutCancel(ctx), r.Trust); ended != nil {
			a.Log.WarnContext(ctx, "could not delete a trust that is not needed", "trust", r.Trust, "error", ended)
		}
	}
	if err != nil {
		return state.Request{}, err
	}
	if stored.ID != r.ID {
		return sameBody(stored, s, nil)
	}
	a.Changed()
	return stored, nil
}

// sameBody returns a fault if the Idempotency-Key was used before with a different body.
func sameBody(known state.Request, s Submission, err error) (state.Request, error) {
	if err == nil && known.BodyHash != s.BodyHash {
		err = fault.New(fault.Unprocessable, "the Idempotency-Key was used for another request; use a new one")
	}
	if err != nil {
		return state.Request{}, err
	}
	return known, nil
}

// Cancel cancels a request; its servers are deleted soon after. It does not change a request that
// is over or was canceled before.
func (a *API) Cancel(ctx context.Context, id string) error {
	err := a.Store.CancelBestEffort(ctx, id, a.Now())
	if err == nil {
		a.Changed()
	}
	return err
}

// Get returns a request. It fails with a NotFound fault if there is none.
func (a *API) Get(ctx context.Context, id string) (state.Request, error) {
	return a.Store.BestEffort(ctx, id)
}

// List returns the requests that the query selects.
func (a *API) List(ctx context.Context, q Query) ([]state.Request, error) {
	return a.Store.ListBestEffort(ctx, q)
}
