// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// errUntrusted is the cause of a refusal to remove something while the inventory is untrusted.
var errUntrusted = errors.New("the inventory is untrusted")

// mend fixes one finding. It stops at the first failure, and does not undo the steps before.
func (d *Doctor) mend(ctx context.Context, by booking.Caller, t *diagnosis) error {
	if ctx.Err() != nil {
		return fault.New(fault.Unavailable, "there was no time left for this; run the fix again")
	}
	for _, step := range t.steps {
		if !step.Adds() {
			if err := d.requireTrusted(); err != nil {
				return err
			}
		}
		if err := d.Fence.Carry(ctx, step); err != nil {
			return wrapForUser(err, "%s", step.Action)
		}
	}
	for _, r := range t.cancel {
		if err := d.cancel(ctx, by, r); err != nil {
			return err
		}
	}
	if t.notice != nil {
		if err := d.Notices.Withdraw(ctx, *t.notice); err != nil {
			return wrapForUser(err, "withdraw the notice of instance %s", t.notice.ID)
		}
	}
	if t.claims != "" {
		if err := d.Claims.Release(ctx, t.claims); err != nil {
			return wrapForUser(err, "release the allocations of instance %s", t.claims)
		}
	}
	if t.order != nil {
		return d.sendOrder(ctx, *t.order)
	}
	return nil
}

// requireTrusted fails while the inventory is untrusted.
func (d *Doctor) requireTrusted() error {
	if untrusted := d.Untrusted(); untrusted != "" {
		err := fault.New(fault.Unavailable, "nothing is removed while the inventory is untrusted: %s", untrusted)
		err.Err = errUntrusted
		return err
	}
	return nil
}

// cancel cancels a reservation, with all those of its lease if it belongs to one.
func (d *Doctor) cancel(ctx context.Context, by booking.Caller, r reservation.Reservation) error {
	err := d.requireTrusted()
	switch lease := r.Membership.LeaseID; {
	case err != nil:
		return err
	case lease != "":
		_, err = d.Canceler.CancelLease(ctx, by, lease)
	default:
		_, err = d.Canceler.Cancel(ctx, by, r.ID)
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return fmt.Errorf("cancel reservation %s: %w", r.ID, err)
	}
	return nil
}

// sendOrder sends an order to an instance of an ended reservation, if the instance is still on
// its host and still belongs to that reservation.
func (d *Doctor) sendOrder(ctx context.Context, do instanceOrder) error {
	if err := d.requireTrusted(); err != nil {
		return err
	}
	there, err := d.Instances.On(ctx, do.instance.Host)
	if err != nil {
		return wrapForUser(err, "read the instances on host %s", do.instance.Host)
	}
	same := func(i inventory.Instance) bool {
		return i.ID == do.instance.ID && i.ReservationID() == do.instance.ReservationID()
	}
	if at := slices.IndexFunc(there, same); at >= 0 {
		if err := d.Instances.Order(ctx, there[at], do.order); err != nil {
			return wrapForUser(err, "%s instance %s", do.order, do.instance.ID)
		}
	}
	return nil
}

// removes reports whether the fix removes anything.
func (t *diagnosis) removes() bool {
	takes := func(s fence.Step) bool { return !s.Adds() }
	return len(t.cancel) > 0 || t.order != nil || slices.ContainsFunc(t.steps, takes)
}

// recordFailure records a failure as the outcome.
func (t *diagnosis) recordFailure(err error) {
	if err == nil {
		return
	}
	t.Outcome, t.Detail = FixFailed, fault.Of(err).Message
	if errors.Is(err, errUntrusted) {
		t.Outcome = FixRefused
	}
}
