// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// tries is how often a decision is made again because the commit of another replica came first.
// Each time one of these commits was stored.
const tries = 20

// retry controls whether a decision is repeated.
type retry struct {
	fresh bool  // memory is not older than the request
	seen  int64 // Service.adoptions when the decision was made
	count int
}

// decide records that a decision is about to be made.
func (t *retry) decide(d *Service) { t.seen = d.adoptions.Load() }

// after reads the records again if err may be due to outdated memory. It returns nil if the
// decision must be made again, and otherwise the error for the caller.
func (t *retry) after(ctx context.Context, d *Service, err error, q Recall) error {
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

func inDemand(err error) error {
	return &fault.Error{
		Kind: fault.Unavailable, Message: "the hosts asked for are in great demand; try again in a moment",
		RetryAfter: time.Second, Err: err,
	}
}

// limited reports whether there is a limit on the sum of what a project holds.
func (d *Service) limited() bool {
	l := d.limits()
	return l.Hosts > 0 || l.HostSeconds > 0
}

// errOvertaken is the error of a decision if memory has changed since the state on which it was
// made, so that it no longer holds.
var errOvertaken = errors.New("memory has changed since the decision was made")
