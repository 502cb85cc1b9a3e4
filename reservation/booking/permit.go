// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"errors"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
)

// permit is what the checks of package enforcement have allowed to one request; nil if there are no
// checks.
type permit struct {
	checker *enforcement.Checker
	// before and asked are the lease of the last question; nil if there was none, before also if the
	// lease is new.
	before, asked *reservation.LeaseRecord
}

// unasked is the error of a decision on a lease that the checks must allow first.
type unasked struct{ before, next *reservation.LeaseRecord }

func (*unasked) Error() string { return "the checks have not allowed this yet" }

// mostAsked is how often the checks are asked for one request. They are asked again if, after their
// answer, the hosts that are left have other resources.
const mostAsked = 3

// permitted runs do, which decides with the permit and stores the decision. Where do finds that the
// checks must allow its decision, permitted asks them, while no lock or turn is held, and runs do
// again. It withdraws what was allowed but not stored.
func (d *decider) permitted(ctx context.Context, do func(p *permit) error) error {
	if d.options.Enforcement == nil {
		return do(nil)
	}
	p := &permit{checker: d.options.Enforcement}
	for range 2 * mostAsked {
		err := do(p)
		question, open := errors.AsType[*unasked](err)
		switch {
		case err == nil:
			return nil
		case p.asked != nil: // the next question about a new lease has other ids
			p.withdraw(ctx, err)
		case open:
			if err := p.checker.Ask(ctx, question.before, question.next); err != nil {
				return err
			}
			p.before, p.asked = question.before, question.next
		}
		if !open {
			return err
		}
	}
	return inDemand(errOvertaken)
}

// permitting is permitted for a function with a result.
func permitting[T any](ctx context.Context, d *decider, do func(p *permit) (T, error)) (result T, err error) {
	err = d.permitted(ctx, func(p *permit) (err error) {
		result, err = do(p)
		return err
	})
	return result, err
}

// withdraw tells the checks that what they allowed was not stored because of err. If it is unknown
// whether a change was stored, it stays allowed.
func (p *permit) withdraw(ctx context.Context, err error) {
	if p.before == nil || !inDoubt(err) {
		p.checker.Withdraw(ctx, p.before, p.asked)
	}
	p.before, p.asked = nil, nil
}

// inDoubt reports whether the change that failed with err may have been stored.
func inDoubt(err error) bool {
	_, open := errors.AsType[*unasked](err)
	_, refused := errors.AsType[*reservation.Refusal](err)
	sent := !errors.Is(err, errNotSent) && !errors.Is(err, reservation.ErrStale) && !errors.Is(err, reservation.ErrKeyUsed)
	return !open && !refused && sent && (fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Internal))
}

// check returns an *unasked if the checks must allow the lease next first; before is nil if it is
// new.
func (p *permit) check(before, next *reservation.LeaseRecord) error {
	if p == nil || !p.checker.Concerns(before, next) || p.asked != nil && p.checker.Covers(p.asked, next) {
		return nil
	}
	return &unasked{before, next}
}

// checkOwn is check for the change of a reservation that belongs to no lease.
func (p *permit) checkOwn(before, next reservation.Reservation) error {
	if p == nil {
		return nil
	}
	return p.check(new(reservation.OwnLease(before)), new(reservation.OwnLease(next)))
}

// name sets the ids of a new lease and its reservations to those in the question to the checks.
func (p *permit) name(l *reservation.LeaseRecord) {
	if p == nil || p.asked == nil {
		return
	}
	l.ID = p.asked.ID
	for i := range l.Reservations {
		r := &l.Reservations[i]
		r.ID = p.asked.Reservations[i].ID
		r.Membership.LeaseID = p.asked.Reservations[i].Membership.LeaseID
	}
}
