// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
)

// This file has what is special about reservations of kind address. They claim addresses of a pool
// in place of hosts. Memory does not contain the pool: each decision reads it from the records, with
// the claims of all live reservations, and its commit names the version of the pool.

// NetworksOf returns the networks of the floating IPs of reservations.
func NetworksOf(list []reservation.Reservation) map[string]bool {
	networks := map[string]bool{}
	for i := range list {
		if n := NetworkOf(&list[i]); n != "" {
			networks[n] = true
		}
	}
	return networks
}

// RequestedNetworks returns the networks of the floating IPs in a request.
func RequestedNetworks(req reservation.LeaseRequest) map[string]bool {
	networks := map[string]bool{}
	for _, m := range req.Members {
		if m.Kind == reservation.Addresses {
			networks[m.Network] = true
		}
	}
	return networks
}

// addresses decides on a reservation of floating IPs of a new lease.
func (t *leaseTry) addresses(v View, m reservation.MemberRequest, spared []string) (Plan, error) {
	terms, w := m.Terms, span.Span{Start: max(t.span.Start, v.Now), End: t.span.End}
	terms.Name, terms.Quantity, terms.BeforeEnd = t.Name, m.Max, WarningBefore(t.span, t.warning)
	terms.Policy = cmp.Or(terms.Policy, v.Defaults.Policy)
	want := address.Want{Amount: m.Max, Required: m.RequiredAddresses, Spared: spared, Span: w}
	return chooseAddresses(v, Plan{Terms: terms, Span: w}, m.Network, want)
}

// chooseAddresses returns the plan with the addresses that are wanted for its span.
func chooseAddresses(v View, p Plan, network string, want address.Want) (Plan, error) {
	if len(want.Required) > want.Amount {
		return Plan{}, fault.New(fault.Invalid,
			"Invalid values for required_floatingips and amount. The amount must be equal to or longer than length of required_floatingips.")
	}
	if constraint, why := v.Limits.exceeded(v.Now, Held{}, 0, p.Span.Start, p.Span.Seconds()); constraint != "" {
		return Plan{}, &reservation.Refusal{Constraint: constraint, Message: why}
	}
	want.Latest = v.Limits.horizon(v.Now)
	claims, short := address.Choose(v.Pools[network], want)
	if short != nil {
		return Plan{}, refuseAddresses(want, short)
	}
	p.Addresses = claims
	return p, nil
}

func refuseAddresses(want address.Want, short *address.Shortage) *reservation.Refusal {
	r := &reservation.Refusal{
		Constraint: reservation.FloatingIPsFree, Matched: short.Enrolled, Free: short.Free, EarliestStart: short.Earliest,
	}
	const begins = "not enough floating IPs available: "
	switch {
	case len(short.Lacking) > 0:
		r.Message = begins + strings.Join(short.Lacking, ", ") + " cannot be reserved on this network"
	case len(short.Taken) > 0:
		r.Message = begins + strings.Join(short.Taken, ", ") + " is reserved by others in this time"
	default:
		r.Message = fmt.Sprintf("%s%d requested, %d of the %d of the network are free in this time", begins, want.Amount, short.Free, short.Enrolled)
		r.LargestQuantity = short.Free
	}
	return r
}

// addresses plans the change of a reservation of floating IPs, without whose claims the view is. An
// active one keeps its addresses.
func (p *leaseChange) addresses(v View, r *reservation.Reservation, m *reservation.MemberChange) (Plan, reservation.Membership, error) {
	part := r.Membership
	if m != nil {
		set(&part.Min, m.Min)
		set(&part.Max, m.Max)
	}
	plan := Plan{Terms: r.Terms, Span: span.Span{Start: r.Span.Start, End: p.to.End}}
	plan.Terms.Quantity = part.Max
	if p.moved {
		plan.Span.Start = max(p.to.Start, p.now)
	}
	// It may start seconds later than its lease, and the clock may have been set back since.
	if plan.Span.Empty() {
		return plan, part, fault.Field("end_date", "End date must be later than current and start date")
	}
	asked := required(r.Addresses)
	if m != nil && m.AnyAddress {
		asked = nil
	}
	want := address.Want{Amount: part.Max, Required: asked, Kept: addressesOf(r.Addresses), Span: plan.Span}
	if r.Status == reservation.Active {
		if part.Max < len(r.Addresses) {
			return plan, part, fault.New(fault.Invalid,
				"Floating IP reservation cannot be updated with requested parameters. Cannot remove allocations from an active reservation")
		}
		want.Required = want.Kept
		want.Span.Start = max(want.Span.Start, v.Now)
	}
	plan, err := chooseAddresses(v.changing(r, plan.Span), plan, NetworkOf(r), want)
	if refusal, is := errors.AsType[*reservation.Refusal](err); is && r.Status == reservation.Active {
		refusal.EarliestStart = 0 // its start stays
	}
	for i := range plan.Addresses {
		plan.Addresses[i].Required = slices.Contains(asked, plan.Addresses[i].Address)
	}
	return plan, part, err
}

// EndedNow returns an active reservation of floating IPs whose end is due now. It holds its addresses
// until they are deleted in the cloud.
func EndedNow(r reservation.Reservation, now span.Instant) reservation.Reservation {
	plan := Plan{Terms: r.Terms, Span: span.Span{Start: r.Span.Start, End: max(now, r.Span.Start+1)}, Addresses: r.Addresses}
	return Changed(r, plan, r.Membership, now)
}
