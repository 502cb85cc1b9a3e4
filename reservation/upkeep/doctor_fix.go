package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// errDoubt says that something was not taken away because the inventory is in doubt.
var errDoubt = errors.New("in doubt")

// treat mends one trouble. It stops at the first thing that fails: what is done
// already stays.
func (d *Doctor) treat(ctx context.Context, by booking.Caller, t *trouble) error {
	if ctx.Err() != nil {
		return fault.New(fault.Unavailable, "there was no time left for it; fix again")
	}
	for _, step := range t.steps {
		if !step.Adds() {
			if err := d.certain(); err != nil {
				return err
			}
		}
		if err := d.Ground.Carry(ctx, step); err != nil {
			return told(err, "%s", step.Action)
		}
	}
	for _, id := range t.cancel {
		if err := d.cancel(ctx, by, id); err != nil {
			return err
		}
	}
	if t.notice != nil {
		if err := d.Notices.Withdraw(ctx, *t.notice); err != nil {
			return told(err, "withdraw the notice of instance %s", t.notice.ID)
		}
	}
	if t.claims != "" {
		if err := d.Claims.Release(ctx, t.claims); err != nil {
			return told(err, "release what instance %s has in Placement", t.claims)
		}
	}
	if t.errand != nil {
		return d.dismiss(ctx, *t.errand)
	}
	return nil
}

// certain fails where the inventory is in doubt.
func (d *Doctor) certain() error {
	if doubt := d.Doubt(); doubt != "" {
		err := fault.New(fault.Unavailable, "nothing is taken away while the inventory is in doubt: %s", doubt)
		err.Err = errDoubt
		return err
	}
	return nil
}

func (d *Doctor) cancel(ctx context.Context, by booking.Caller, id string) error {
	if err := d.certain(); err != nil {
		return err
	}
	_, err := d.Canceller.Cancel(ctx, by, id)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cancel reservation %s: %w", id, err)
	}
	return nil
}

// dismiss gives an order to an instance of a reservation that is over, if it still is
// as it was.
func (d *Doctor) dismiss(ctx context.Context, do errand) error {
	if err := d.certain(); err != nil {
		return err
	}
	there, err := d.Guests.On(ctx, do.instance.Host)
	if err != nil {
		return told(err, "look who is on host %s", do.instance.Host)
	}
	same := func(i inventory.Instance) bool {
		return i.ID == do.instance.ID && i.ReservationID() == do.instance.ReservationID()
	}
	if at := slices.IndexFunc(there, same); at >= 0 {
		if err := d.Guests.Order(ctx, there[at], do.order); err != nil {
			return told(err, "%s instance %s", do.order, do.instance.ID)
		}
	}
	return nil
}

// takes says that mending it takes something away.
func (t *trouble) takes() bool {
	takes := func(s fence.Step) bool { return !s.Adds() }
	return len(t.cancel) > 0 || t.errand != nil || slices.ContainsFunc(t.steps, takes)
}

// settle notes how it ended where it did not end well.
func (t *trouble) settle(err error) {
	if err == nil {
		return
	}
	t.Outcome, t.Detail = Undone, fault.Of(err).Message
	if errors.Is(err, errDoubt) {
		t.Outcome = Refused
	}
}
