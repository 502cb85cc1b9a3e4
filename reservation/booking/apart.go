// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// namers lists, by the id of a reservation, the ids of the live ones that ask to lie apart from it.
type namers map[string]map[string]struct{}

func (n namers) add(r *reservation.Reservation) {
	for _, named := range r.Together.Apart() {
		if n[named] == nil {
			n[named] = make(map[string]struct{})
		}
		n[named][r.ID] = struct{}{}
	}
}

func (n namers) remove(r *reservation.Reservation) {
	for _, named := range r.Together.Apart() {
		if delete(n[named], r.ID); len(n[named]) == 0 {
			delete(n, named)
		}
	}
}

// neighbors implements planning.View.Apart. A reservation that is being changed has its old and its new hosts.
func (m *memory) neighbors(id string, from []string) (list []planning.Neighbor) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, named := range from {
		if e := m.live[named]; e != nil {
			list = append(list, neighbor(e, ""))
		}
	}
	for _, namer := range slices.Sorted(maps.Keys(m.namers[id])) {
		list = append(list, neighbor(m.live[namer], m.live[namer].r.Together.By))
	}
	return list
}

func neighbor(e *entry, by string) planning.Neighbor {
	claims := e.r.Claims
	if e.attempt != nil {
		claims = slices.Concat(claims, e.attempt.next.Claims)
	}
	of := e.r
	return planning.Neighbor{Of: &of, By: by, Claims: claims}
}

// Lies reports whether the hosts of a reservation lie as it asks, given where its neighbors are now.
func (m *memory) Lies(r reservation.Reservation) bool {
	if r.Together.ApartFrom == "" || !r.Status.Live() {
		return !r.Together.Broken
	}
	m.mu.RLock()
	hosts := m.hosts
	m.mu.RUnlock()
	return hosts.Lies(m.options.Now(), &r, m.neighbors("", r.Together.Apart()))
}
