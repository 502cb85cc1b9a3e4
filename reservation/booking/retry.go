// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// retry controls whether a decision is repeated.
type retry struct {
	fresh bool  // memory is not older than the request
	seen  int64 // memory.adoptions when the decision was made
	count int
}

// decide records that a decision is about to be made.
func (t *retry) decide(d *decider) { t.seen = d.adoptions.Load() }

// after reads the records again if err may be due to outdated memory. It returns nil if the
// decision must be made again, and otherwise the error for the caller.
func (t *retry) after(ctx context.Context, d *decider, err error, q Recall) error {
	_, refused := errors.AsType[*reservation.Refusal](err)
	switch {
	case refused && !t.fresh:
		t.fresh = true
		if pollErr := d.Follow(ctx); pollErr != nil {
			return pollErr
		}
		if d.adoptions.Load() == t.seen {
			return err
		}
		return nil
	case fault.Is(err, fault.Precondition) && !t.fresh:
		t.fresh = true
		return d.poll(ctx, q) // the client may have read what another replica has stored
	case !errors.Is(err, reservation.ErrStale):
		return err
	}
	t.fresh = true
	if t.count++; t.count == tries {
		return inDemand(err)
	}
	if !d.limited() {
		q.Project = ""
	}
	return d.poll(ctx, q)
}
