// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"slices"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Pool implements Addresses.
func (m *Records) Pool(_ context.Context, network string) (address.Pool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pool(network), nil
}

// pool returns the pool of a network; the caller holds mu.
func (m *Records) pool(network string) address.Pool {
	p := address.Pool{Network: network, Version: m.hosts[address.VersionKey(network)]}
	for _, a := range m.enrolled {
		if a.Network == network {
			p.Addresses = append(p.Addresses, a.Address)
		}
	}
	var live []reservation.Reservation
	for _, r := range m.reservations {
		if r.Status.Live() && planning.NetworkOf(&r) == network {
			live = append(live, r)
		}
	}
	slices.SortFunc(live, byStart)
	for _, r := range live {
		p = p.With(r.ID, r.Span, r.Addresses)
	}
	return p
}

// Enrolled returns the addresses of the pool of all networks, sorted by network, then address.
func (m *Records) Enrolled(context.Context) ([]address.Enrolled, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.enrolled), nil
}

// Enroll adds an address to the pool. It fails with a Conflict fault if the pool has it already, or is
// full.
func (m *Records) Enroll(_ context.Context, a address.Enrolled) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch there := m.pool(a.Network).Addresses; {
	case slices.Contains(there, a.Address):
		return address.AlreadyEnrolled(a.Address)
	case len(there) >= address.MostEnrolled:
		return address.Full(a.Network)
	}
	m.enrolled = append(m.enrolled, a)
	slices.SortFunc(m.enrolled, address.CompareEnrolled)
	return nil
}

// Withdraw removes an address from the pool. It fails with a NotFound fault if the pool has none of
// that id, and with a Conflict fault while a live reservation claims it.
func (m *Records) Withdraw(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.enrolled, func(a address.Enrolled) bool { return a.ID == id })
	if i < 0 {
		return address.NotEnrolled(id)
	}
	a := m.enrolled[i]
	if slices.ContainsFunc(m.pool(a.Network).Booked, func(b address.Booked) bool { return b.Address == a.Address }) {
		return address.StillClaimed(id)
	}
	m.enrolled = slices.Delete(m.enrolled, i, i+1)
	m.hosts[address.VersionKey(a.Network)]++
	return nil
}
