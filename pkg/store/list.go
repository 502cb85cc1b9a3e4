// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Get implements reservation.Reader.
func (s *Store) Get(ctx context.Context, id string) (reservation.Reservation, error) {
	list, err := s.find(ctx, func(tx *gorm.DB) *gorm.DB { return tx.Where("id = ?", id) })
	if err != nil {
		return reservation.Reservation{}, fmt.Errorf("read reservation %s: %w", id, err)
	}
	if len(list) == 0 {
		return reservation.Reservation{}, booking.NotFound(id)
	}
	return list[0], nil
}

// List implements reservation.Reader. A marker remains valid as long as its reservation is stored
// and belongs to the project, whatever its status. A Limit of 0 means no limit.
func (s *Store) List(ctx context.Context, q reservation.Query) ([]reservation.Reservation, error) {
	list, err := s.find(ctx, func(tx *gorm.DB) *gorm.DB { return page(tx, q) })
	if err != nil {
		return nil, fmt.Errorf("list reservations: %w", err)
	}
	if q.Last {
		slices.Reverse(list)
	}
	return list, nil
}

// page returns the query for one page of a list of reservations.
func page(tx *gorm.DB, q reservation.Query) *gorm.DB {
	order := "start_at, id"
	if q.Last {
		order = "start_at DESC, id DESC"
	}
	found := tx.Order(order)
	if q.ProjectID != "" {
		found = owned(found, q.ProjectID)
	}
	if len(q.Statuses) > 0 {
		found = found.Where("status IN ?", q.Statuses)
	} else {
		found = found.Where("status <> ?", reservation.Canceled)
	}
	if len(q.IDs) > 0 {
		found = found.Where("id IN ?", q.IDs)
	}
	if q.Name != "" {
		found = found.Where("name = ?", q.Name)
	}
	if q.LeaseID != "" {
		found = found.Where("lease_id = ?", q.LeaseID)
	}
	if q.SeriesID != "" {
		found = found.Where("series_id = ?", q.SeriesID)
	}
	if q.Kind != "" {
		found = found.Where("kind = ?", q.Kind)
	}
	if q.Maintenance != nil {
		found = found.Where("maintenance = ?", *q.Maintenance)
	}
	if q.Overlaps != (span.Span{}) {
		found = found.Where("start_at < ? AND end_at > ?", q.Overlaps.End, q.Overlaps.Start)
	}
	if q.Marker != "" {
		found = after(tx, found, q)
	}
	if q.Limit > 0 {
		found = found.Limit(q.Limit)
	}
	return found
}

// after restricts found to the reservations that follow the marker.
func after(tx, found *gorm.DB, q reservation.Query) *gorm.DB {
	start, known, err := markedStart(tx, &reservationRow{}, q.Marker, q.ProjectID)
	if err == nil && !known {
		err = fault.Field("marker", "there is no reservation %s", q.Marker)
	}
	if err != nil {
		_ = found.AddError(err)
		return found
	}
	return following(found, start, q.Marker)
}

// markedStart returns the start of the row that a marker names; known is false if the table has none
// or another project owns it.
func markedStart(tx *gorm.DB, table any, marker, project string) (start int64, known bool, err error) {
	marked := tx.Model(table).Where("id = ?", marker)
	if project != "" {
		marked = owned(marked, project)
	}
	var starts []int64
	if err := marked.Pluck("start_at", &starts).Error; err != nil || len(starts) == 0 {
		return 0, false, err
	}
	return starts[0], true, nil
}

// following restricts found to the rows after a marker in the order of start and id.
func following(found *gorm.DB, start int64, marker string) *gorm.DB {
	return found.Where("(start_at > ? OR start_at = ? AND id > ?)", start, start, marker)
}

// find returns the reservations that scope selects.
func (s *Store) find(ctx context.Context, scope func(tx *gorm.DB) *gorm.DB) ([]reservation.Reservation, error) {
	var rows []*reservationRow
	err := s.read(ctx, func(tx *gorm.DB) error {
		if err := scope(tx).Find(&rows).Error; err != nil {
			return err
		}
		return loadParts(tx, rows)
	})
	if err != nil {
		return nil, err
	}
	return reservations(rows)
}
