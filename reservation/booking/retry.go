package booking

import (
	"context"
	"errors"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// tries bounds how often a decision is made anew because others were faster. Each
// time somebody else's was stored.
const tries = 20

// retry decides whether a decision is made again.
type retry struct {
	fresh bool  // memory is not older than the request
	seen  int64 // how often memory had learned something when the decision was made
	count int
}

// decide notes that a decision is about to be made.
func (t *retry) decide(d *Desk) { t.seen = d.adoptions.Load() }

// after reads what has changed where err may come from what memory did not know.
// It gives nil where the decision is to be made again, else what to answer.
func (t *retry) after(ctx context.Context, d *Desk, err error, q Recall) error {
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

// limited says that a limit counts what a project holds together.
func (d *Desk) limited() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.options.Limits.Hosts > 0 || d.options.Limits.HostSeconds > 0
}
