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

// Series implements reservation.SeriesReader.
func (m *Records) Series(_ context.Context, id string) (reservation.SeriesRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.series[id]
	if !known {
		return reservation.SeriesRecord{}, booking.NoSeries(id)
	}
	record := reservation.SeriesRecord{Series: s}
	for _, r := range m.reservations {
		if r.Occurrence.SeriesID == id {
			record.Reservations = append(record.Reservations, r)
		}
	}
	slices.SortFunc(record.Reservations, func(a, b reservation.Reservation) int { return cmp.Compare(a.Occurrence.Local, b.Occurrence.Local) })
	return record, nil
}

// SeriesList implements reservation.SeriesReader.
func (m *Records) SeriesList(_ context.Context, q reservation.SeriesQuery) (list []reservation.Series, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.series {
		if q.ProjectID == "" || s.BelongsTo(q.ProjectID) {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b reservation.Series) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), cmp.Compare(a.ID, b.ID))
	})
	if q.Marker != "" {
		at := slices.IndexFunc(list, func(s reservation.Series) bool { return s.ID == q.Marker })
		if at < 0 {
			return nil, fault.Field("marker", "there is no series %s", q.Marker)
		}
		list = list[at+1:]
	}
	if q.Limit > 0 && len(list) > q.Limit {
		list = list[:q.Limit]
	}
	return list, nil
}

// LiveInSeries implements reservation.SeriesReader.
func (m *Records) LiveInSeries(_ context.Context, ids []string) (map[string]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := make(map[string]int)
	for _, r := range m.reservations {
		if r.Status.Live() && slices.Contains(ids, r.Occurrence.SeriesID) {
			live[r.Occurrence.SeriesID]++
		}
	}
	return live, nil
}
