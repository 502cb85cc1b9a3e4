// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Change is a change of a reservation; nil fields stay as they are.
type Change struct {
	Name       *string
	Quantity   *int
	Start, End *span.Instant
	// HostProperties is the new filter that hosts must pass, as JSON; one that is empty, or "" as JSON, matches every host.
	HostProperties *string
	// OnEnd is what happens to the instances of the reservation at its end.
	OnEnd *reservation.OnEnd
	// BeforeEnd is how many seconds before the end the owner is warned; 0 means never.
	BeforeEnd *int64
	// Resources and Affinity apply to kind instance. They take the place of all that the reservation has of them.
	Resources *resource.Vector
	Affinity  *calendar.Affinity
	// Notice is another notice of a movable reservation; 0 fixes its time. A change of its start or end fixes it too.
	Notice *int64
	// Hold is 0 for a confirmation, and no other number is accepted.
	Hold *int64
}

// PlanChange decides on a change of r. The view's calendar and Held must not contain the claims of
// r. Claims that stay keep their hosts if possible, and always once the reservation is active. A
// change is never refused because of what r holds already, neither by a limit nor for lack of room.
// A new filter applies to all hosts of r, also to those that it has: others replace those that do not pass it, and an
// active reservation is refused one that its hosts do not pass.
// Errors are those of NewPlan, and a Conflict fault if the status of r does not allow the change.
func PlanChange(v View, r reservation.Reservation, c Change) (Plan, error) {
	plan := Plan{Terms: r.Terms, Span: r.Span, HeldUntil: r.HeldUntil(), WaitsUntil: r.WaitsUntil(), Claims: r.Claims, Addresses: r.Addresses, DelayedByBoot: r.DelayedByBoot}
	if r.Status == reservation.Waiting && c.Hold != nil {
		return Plan{}, waitsForRoom()
	}
	c = c.differing(&r)
	if c == (Change{}) {
		return matchedBy(v, r, plan), nil // a client sends back what it has read
	}
	set(&plan.Terms.Name, c.Name)
	set(&plan.Terms.Quantity, c.Quantity)
	set(&plan.Terms.HostProperties, c.HostProperties)
	set(&plan.Terms.OnEnd, c.OnEnd)
	set(&plan.Terms.BeforeEnd, c.BeforeEnd)
	set(&plan.Terms.Resources, c.Resources)
	set(&plan.Terms.Affinity, c.Affinity)
	set(&plan.Terms.Notice, c.Notice)
	if c.Hold != nil {
		plan.HeldUntil, plan.Confirmed = 0, true
	}
	set(&plan.Span.Start, c.Start)
	set(&plan.Span.End, c.End)
	if c.Start != nil && !tooLongAgo(*c.Start, v.Now) {
		plan.Span.Start = max(*c.Start, v.Now)
	}
	if r.Kind == reservation.Addresses {
		return Plan{}, fault.New(fault.Conflict, "floating IPs are reserved in leases; change the lease")
	}
	if err := cmp.Or(checkChange(v.Now, r, c, plan), checkNewTerms(v, r, c)); err != nil {
		return Plan{}, err
	}
	if plan.Span == r.Span && c.Quantity == nil && c.HostProperties == nil && c.Resources == nil && c.Affinity == nil {
		return matchedBy(v, r, plan), nil
	}
	p, err := newChangePlan(v, r, plan)
	if err != nil {
		return Plan{}, err
	}
	if plan.Claims, err = p.decide(); err != nil {
		return Plan{}, err
	}
	plan.Matched, plan.Terms.Together.Broken = p.search.matched, !p.search.ruled().kept(plan.Claims)
	return plan, nil
}

// decide returns the claims of the changed reservation, or why there are none.
func (p *changePlan) decide() ([]reservation.Claim, error) {
	if refusal := p.limits(); refusal != nil {
		return nil, refusal
	}
	options := p.ruled().options()
	for _, o := range options {
		if claims, ok := o.possible(); ok {
			return claims, nil
		}
	}
	claims, ok := options[0].claims()
	if !ok || !p.ruled().lies(claims) {
		return nil, p.refuse()
	}
	if err := p.checkInstances(claims); err != nil {
		return nil, err
	}
	return nil, options[0].refuseImage(claims)
}

// differing returns the change without what is so already.
func (c Change) differing(r *reservation.Reservation) Change {
	drop(&c.Name, r.Name)
	drop(&c.Quantity, r.Quantity)
	drop(&c.Start, r.Span.Start)
	drop(&c.End, r.Span.End)
	drop(&c.OnEnd, r.OnEnd)
	drop(&c.BeforeEnd, r.BeforeEnd)
	drop(&c.Affinity, r.Affinity)
	drop(&c.Notice, r.Notice)
	if r.HeldUntil() == 0 {
		drop(&c.Hold, 0) // it is confirmed already
	}
	if c.Resources != nil {
		if c.Resources = new(c.Resources.WithoutZeros()); c.Resources.Equal(r.Resources) {
			c.Resources = nil
		}
	}
	if c.HostProperties == nil {
		return c
	}
	switch written := []byte(*c.HostProperties); {
	case inventory.SameFilter(written, []byte(r.HostProperties)):
		c.HostProperties = nil
	case inventory.SameFilter(written, nil):
		c.HostProperties = new("")
	}
	return c
}

// matchedBy returns a plan that changes neither time, quantity nor filter with the number of hosts that match; 0 if the filter cannot be read any more.
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
	if r.Status == reservation.Waiting {
		return waitsForRoom()
	}
	if r.Status != reservation.Pending && r.Status != reservation.Active {
		return fault.New(fault.Conflict, "the reservation is %s; only a pending or active one can be changed", r.Status)
	}
	if r.Span.End <= now {
		return fault.New(fault.Conflict, "the reservation ended at %v", r.Span.End)
	}
	if err := cmp.Or(checkHeld(now, &r, c), checkTerms(plan.Terms)); err != nil {
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

// checkNewTerms checks the filter, the instances and what happens at the end, which differ from those of r.
func checkNewTerms(v View, r reservation.Reservation, c Change) error {
	if c.Resources != nil || c.Affinity != nil {
		if err := checkNewInstances(v, r, c); err != nil {
			return err
		}
	}
	switch {
	case c.OnEnd != nil && r.Maintenance:
		return noInstances()
	case c.Notice != nil && r.Notice == 0:
		return &fault.Error{Kind: fault.Conflict, Field: "notice", Message: "the time of the reservation is fixed; book another one with a notice and a window"}
	case c.OnEnd != nil:
		if err := v.Defaults.mayEnd(*c.OnEnd); err != nil {
			return err
		}
	}
	if c.HostProperties != nil && r.Membership.Flavor != "" {
		return &fault.Error{
			Kind: fault.Conflict, Field: "host_properties", Message: "the flavor of the reservation decides which hosts match; book another reservation for another filter",
		}
	}
	return nil
}

// checkNewInstances checks the size and the affinity of instances. One of them differs from that of r.
func checkNewInstances(v View, r reservation.Reservation, c Change) error {
	field := "affinity"
	if c.Resources != nil {
		field = "resources"
		if err := checkClasses(c.Resources.Custom, v.Hosts.snapshot.Classes()); err != nil {
			return err
		}
	}
	switch {
	case r.Status == reservation.Active:
		return &fault.Error{Kind: fault.Conflict, Field: field, Message: "the reservation has started; the size and the affinity of its instances cannot be changed"}
	case r.Membership.Flavor != "":
		return &fault.Error{Kind: fault.Conflict, Field: field, Message: "the reservation is for a flavor, which decides its instances; book another reservation"}
	case c.Affinity != nil && r.Membership.ServerGroup != "":
		return &fault.Error{Kind: fault.Conflict, Field: field, Message: "the reservation has a server group, whose affinity cannot be changed; book another reservation"}
	}
	return nil
}

// Shared reports whether the change names what all reservations of a lease have in common: times, warning, and what
// happens at the end.
func (c Change) Shared() bool {
	return c.Start != nil || c.End != nil || c.OnEnd != nil || c.BeforeEnd != nil
}

// CheckLease fails with a Conflict fault if r would differ after the change from other reservations of its lease in what
// they have in common.
func (c Change) CheckLease(l reservation.LeaseRecord, r *reservation.Reservation) error {
	if c.differing(r).Shared() {
		return together(l, r, "change")
	}
	return nil
}

// CheckAlone fails with a Conflict fault unless r can be canceled without others, since it is the only reservation of its
// lease.
func CheckAlone(l reservation.LeaseRecord, r *reservation.Reservation) error {
	return together(l, r, "delete")
}

// together returns a Conflict fault, which names the command for the whole group, if r is one of several reservations of a
// lease.
func together(l reservation.LeaseRecord, r *reservation.Reservation, command string) error {
	if len(l.Reservations) < 2 {
		return nil
	}
	return fault.New(fault.Conflict, "reservation %q is one of the %d parts of group %q, which begin, end and are canceled together; %s the group with 'almanac group %s %s'",
		r.Name, len(l.Reservations), l.Name, command, command, l.ID)
}
