// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Change is a change of a reservation; nil fields stay as they are.
type Change struct {
	Name       *string
	Quantity   *int
	Start, End *span.Instant
}

// PlanChange decides on a change of r. The view's calendar and Held must not contain the claims of
// r. Claims that stay keep their hosts if possible, and always once the reservation is active. A
// change is never refused because of what r holds already, neither by a limit nor for lack of room.
// Errors are those of NewPlan, and a Conflict fault if the status of r does not allow the change.
func PlanChange(v View, r reservation.Reservation, c Change) (Plan, error) {
	plan := Plan{Terms: r.Terms, Span: r.Span, Claims: r.Claims, Addresses: r.Addresses, DelayedByBoot: r.DelayedByBoot}
	if c.Name != nil {
		plan.Terms.Name = *c.Name
	}
	if c.Quantity != nil {
		plan.Terms.Quantity = *c.Quantity
	}
	if c.Start != nil {
		plan.Span.Start = *c.Start
	}
	if c.End != nil {
		plan.Span.End = *c.End
	}
	if same(c.Name, r.Name) && same(c.Quantity, r.Quantity) && same(c.Start, r.Span.Start) && same(c.End, r.Span.End) {
		return matchedBy(v, r, plan), nil // a client sends back what it has read
	}
	if c.Start != nil && *c.Start != r.Span.Start && !tooLongAgo(*c.Start, v.Now) {
		plan.Span.Start = max(*c.Start, v.Now)
	}
	if r.Kind == reservation.Addresses {
		return Plan{}, fault.New(fault.Conflict, "floating IPs are reserved in leases; change the lease")
	}
	if err := checkChange(v.Now, r, c, plan); err != nil {
		return Plan{}, err
	}
	if plan.Span == r.Span && plan.Terms.Quantity == r.Quantity {
		return matchedBy(v, r, plan), nil
	}
	p, err := newChangePlan(v, r, plan)
	if err != nil {
		return Plan{}, err
	}
	if refusal := p.limits(); refusal != nil {
		return Plan{}, refusal
	}
	claims, ok := p.claims()
	if !ok {
		return Plan{}, p.refuse()
	}
	if err := p.checkInstances(claims); err != nil {
		return Plan{}, err
	}
	imaged, ok := p.withImage(claims)
	if !ok {
		return Plan{}, p.refuseImage(claims)
	}
	plan.Claims, plan.Matched = imaged, p.search.matched
	return plan, nil
}

// matchedBy returns a plan that changes neither time nor quantity with the number of hosts that match; 0 if the filter cannot be read any more.
func matchedBy(v View, r reservation.Reservation, plan Plan) Plan {
	if r.Kind == reservation.Addresses || plan.Span.End <= v.Now {
		return plan
	}
	if p, err := newChangePlan(v, r, plan); err == nil {
		plan.Matched = p.search.matched
	}
	return plan
}

func checkChange(now span.Instant, r reservation.Reservation, c Change, plan Plan) error {
	if r.Status != reservation.Pending && r.Status != reservation.Active {
		return fault.New(fault.Conflict, "the reservation is %s; only a pending or active one can be changed", r.Status)
	}
	if r.Span.End <= now {
		return fault.New(fault.Conflict, "the reservation ended at %v", r.Span.End)
	}
	if err := checkTerms(plan.Terms); err != nil {
		return err
	}
	moved := plan.Span.Start != r.Span.Start
	switch {
	case r.Maintenance && plan.Terms.Quantity != r.Quantity:
		return fault.Field("quantity", "the hosts of maintenance cannot be changed; cancel it and plan it again")
	case moved && r.Status == reservation.Active:
		return &fault.Error{Kind: fault.Conflict, Field: "start_time", Message: "the reservation has started; its start cannot be changed"}
	case moved && plan.Span.Start < now:
		return fault.Field("start_time", "%v lies in the past; it is now %v", plan.Span.Start, now)
	case plan.Span.Empty() && c.End == nil:
		return fault.Field("start_time", "%v is not before the end, %v", plan.Span.Start, plan.Span.End)
	case plan.Span.Empty():
		return fault.Field("end_time", "%v is not after the start, %v", plan.Span.End, plan.Span.Start)
	case plan.Span.End <= now:
		return fault.Field("end_time", "%v lies in the past; delete the reservation to end it now", plan.Span.End)
	case plan.Span.End > lastInstant:
		return fault.Field("end_time", "must lie before %v", lastInstant)
	case plan.Span.Seconds() > longestDuration:
		return fault.Field("end_time", "%v is more than 100 years after the start", plan.Span.End)
	}
	return nil
}

// CheckLease fails with a Conflict fault if r would have other times than other reservations of its
// lease after the change.
func (c Change) CheckLease(l reservation.LeaseRecord, r *reservation.Reservation) error {
	moves := c.Start != nil && *c.Start != r.Span.Start || c.End != nil && *c.End != r.Span.End
	if moves && len(l.Reservations) > 1 {
		return Together(l)
	}
	return nil
}

// Together returns the error for a change of one reservation that concerns all those of its lease.
func Together(l reservation.LeaseRecord) error {
	return fault.New(fault.Conflict, "the reservation is one of %d of lease %s, which begin and end together; change the lease", len(l.Reservations), l.ID)
}
