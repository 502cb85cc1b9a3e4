package booking

import (
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Change is what a reservation shall become; nil leaves a part as it is.
type Change struct {
	Name       *string
	Quantity   *int
	Start, End *span.Instant
}

// PlanChange decides on a change of r, whose claims the view's calendar and Held
// do not hold. What is kept stays on its hosts where it can: always once the
// reservation is active. What r holds already is never refused, by no limit and
// for no lack of room. Errors are as in NewPlan, and a Conflict fault where the
// state of r forbids the change.
func PlanChange(v View, r reservation.Reservation, c Change) (Plan, error) {
	plan := Plan{Terms: r.Terms, Span: r.Span, Claims: r.Claims, DelayedByBoot: r.DelayedByBoot}
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
	if err := checkChange(v.Now, r, c, plan); err != nil {
		return Plan{}, err
	}
	if plan.Span == r.Span && plan.Terms.Quantity == r.Quantity {
		return plan, nil
	}
	m, err := newMove(v, r, plan)
	if err != nil {
		return Plan{}, err
	}
	if refusal := m.limits(); refusal != nil {
		return Plan{}, refusal
	}
	claims, ok := m.claims()
	if !ok {
		return Plan{}, m.refuse()
	}
	if err := m.vacated(claims); err != nil {
		return Plan{}, err
	}
	if err := m.refuseImage(claims); err != nil {
		return Plan{}, err
	}
	plan.Claims, plan.Matched = claims, m.search.matched
	return plan, nil
}

func checkChange(now span.Instant, r reservation.Reservation, c Change, plan Plan) error {
	if r.Status != reservation.Pending && r.Status != reservation.Active {
		return fault.New(fault.Conflict, "the reservation is %s; only a pending or active one can be changed", r.Status)
	}
	if r.Span.End <= now {
		return fault.New(fault.Conflict, "the reservation is over since %v", r.Span.End)
	}
	if err := checkTerms(plan.Terms); err != nil {
		return err
	}
	moved := plan.Span.Start != r.Span.Start
	switch {
	case moved && r.Status == reservation.Active:
		return &fault.Error{Kind: fault.Conflict, Field: "start_time", Message: "the reservation has begun; its start cannot be changed"}
	case moved && plan.Span.Start < now:
		return fault.Field("start_time", "%v lies in the past; it is %v", plan.Span.Start, now)
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
