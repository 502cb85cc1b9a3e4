// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Lease implements reservation.LeaseReader.
func (m *Records) Lease(_ context.Context, id string) (reservation.LeaseRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.shownLeases() {
		if l.ID == id {
			return l, nil
		}
	}
	return reservation.LeaseRecord{}, booking.NoLease(id)
}

// LeaseStates implements reservation.LeaseReader.
func (m *Records) LeaseStates(_ context.Context, q reservation.LeaseQuery) (states []reservation.LeaseState, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.DeleteFunc(m.shownLeases(), func(l reservation.LeaseRecord) bool {
		return q.ProjectID != "" && !l.BelongsTo(q.ProjectID) || q.Stored && m.leases[l.ID].ID == ""
	})
	if q.Marker != "" {
		at := slices.IndexFunc(list, func(l reservation.LeaseRecord) bool { return l.ID == q.Marker })
		if at < 0 {
			return nil, fault.Field("marker", "there is no lease %s", q.Marker)
		}
		list = list[at+1:]
	}
	list = slices.DeleteFunc(list, func(l reservation.LeaseRecord) bool {
		return q.ID != "" && l.ID != q.ID || q.Name != "" && l.Name != q.Name
	})
	if q.Limit > 0 && len(list) > q.Limit {
		list = list[:q.Limit]
	}
	for i := range list {
		states = append(states, list[i].State())
	}
	return states, nil
}

// LeasesOf implements reservation.LeaseReader.
func (m *Records) LeasesOf(_ context.Context, ids []string) ([]reservation.LeaseRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(m.shownLeases(), func(l reservation.LeaseRecord) bool { return !slices.Contains(ids, l.ID) }), nil
}

// shownLeases returns the leases that are not deleted, with each reservation without a lease as one
// unless it waits, was canceled or is maintenance, sorted by start, then id. The caller holds mu.
func (m *Records) shownLeases() (list []reservation.LeaseRecord) {
	members := make(map[string][]reservation.Reservation)
	for _, r := range m.reservations {
		if id := r.Membership.LeaseID; id != "" {
			members[id] = append(members[id], r)
		} else if _, hidden := m.leases[r.ID]; !hidden && !slices.Contains(reservation.NoLease, r.Status) && !r.Maintenance {
			list = append(list, reservation.OwnLease(r))
		}
	}
	for _, l := range m.leases {
		if l.Deleted == 0 {
			of := members[l.ID]
			slices.SortFunc(of, func(a, b reservation.Reservation) int { return cmp.Compare(a.ID, b.ID) })
			list = append(list, reservation.LeaseRecord{Lease: l, Reservations: of})
		}
	}
	slices.SortFunc(list, func(a, b reservation.LeaseRecord) int {
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.ID, b.ID))
	})
	return list
}
