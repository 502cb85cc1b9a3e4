// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"slices"

	"github.com/almanac-cloud/almanac/reservation"
)

// differing returns the change of a lease without what is so already. Clients send back what they have
// read, and an answer must not depend on whether they leave it out.
func differing(l reservation.LeaseRecord, c reservation.LeaseChange) reservation.LeaseChange {
	drop(&c.Name, l.Name)
	drop(&c.Start, l.Span.Start)
	drop(&c.End, l.Span.End)
	if c.Start == nil && c.Deadline == nil && c.Duration == l.Span.Seconds() {
		c.Duration = 0
	}
	if c.Start == nil && c.End == nil && c.Duration == 0 && c.Deadline == nil {
		drop(&c.BeforeEnd, l.BeforeEnd) // with other times, it would move with them
		drop(&c.Warning, WarningBefore(l.Span, l.BeforeEnd))
	}
	other := func(r reservation.Reservation) bool { return r.Status.Live() && r.OnEnd != *c.OnEnd }
	if c.OnEnd != nil && !slices.ContainsFunc(l.Reservations, other) {
		c.OnEnd = nil
	}
	var members []reservation.MemberChange
	for _, m := range c.Members {
		i := slices.IndexFunc(l.Reservations, func(r reservation.Reservation) bool { return r.ID == m.ID })
		if i >= 0 {
			m = differingMember(&l.Reservations[i], m)
		}
		if i < 0 || m != (reservation.MemberChange{ID: m.ID}) {
			members = append(members, m)
		}
	}
	c.Members = members
	return c
}

// differingMember is differing for one reservation. The bounds are one value, and so is the filter in
// its three forms.
func differingMember(r *reservation.Reservation, m reservation.MemberChange) reservation.MemberChange {
	least, most := r.Membership.Min, r.Membership.Max
	if most == 0 {
		least, most = r.Quantity, r.Quantity
	}
	if same(m.Min, least) && same(m.Max, most) {
		m.Min, m.Max = nil, nil
	}
	if same(m.HostProperties, r.HostProperties) && same(m.HypervisorProperties, r.Membership.HypervisorProperties) &&
		same(m.ResourceProperties, r.Membership.ResourceProperties) {
		m.HostProperties, m.HypervisorProperties, m.ResourceProperties = nil, nil, nil
	}
	if m.Resources != nil && m.Resources.Equal(r.Resources) {
		m.Resources = nil
	}
	drop(&m.Affinity, r.Affinity)
	m.AnyAddress = m.AnyAddress && len(required(r.Addresses)) > 0
	return m
}

// same reports whether a change leaves a value as it is.
func same[T comparable](next *T, value T) bool { return next == nil || *next == value }

// drop sets next to nil if it is the value that is there.
func drop[T comparable](next **T, value T) {
	if same(*next, value) {
		*next = nil
	}
}
