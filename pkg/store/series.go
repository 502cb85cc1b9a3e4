// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// seriesRow is a series of reservations.
type seriesRow struct {
	ID        string `gorm:"primaryKey;size:36;index:idx_series_project,priority:3"`
	ProjectID string `gorm:"size:255;not null;index:idx_series_project,priority:1"`
	UserID    string `gorm:"size:255;not null"`
	Name      string `gorm:"size:255;not null"`
	Pattern   string `gorm:"size:1048576;not null"` // a reservation.Pattern as JSON
	Duration  int64  `gorm:"not null"`
	Created   int64  `gorm:"column:created_at;not null;index:idx_series_project,priority:2"`
}

func (seriesRow) TableName() string { return "series" }

// occurrenceColumns are the columns of reservations that refer to a series.
type occurrenceColumns struct {
	SeriesID   string `gorm:"size:36;not null;default:'';index:idx_reservations_series"`
	Occurrence string `gorm:"size:32;not null;default:''"`
}

func (occurrenceColumns) TableName() string { return "reservations" }

// addSeries adds series.
func addSeries(tx *gorm.DB) error {
	if err := createMissing(tx, &seriesRow{}); err != nil {
		return err
	}
	if err := addColumns(tx, &occurrenceColumns{}, "SeriesID", "Occurrence"); err != nil {
		return err
	}
	schema := tx.Migrator()
	if schema.HasIndex(&occurrenceColumns{}, "idx_reservations_series") {
		return nil
	}
	return schema.CreateIndex(&occurrenceColumns{}, "idx_reservations_series")
}

// rowOfSeries returns nil for nil.
func rowOfSeries(s *reservation.Series) (*seriesRow, error) {
	if s == nil {
		return nil, nil
	}
	pattern, err := json.Marshal(s.Pattern)
	if err != nil {
		return nil, err
	}
	return &seriesRow{
		ID: s.ID, ProjectID: s.ProjectID, UserID: s.UserID, Name: s.Name,
		Pattern: string(pattern), Duration: s.Duration, Created: int64(s.Created),
	}, nil
}

func (row *seriesRow) series() (reservation.Series, error) {
	var pattern reservation.Pattern
	if err := json.Unmarshal([]byte(row.Pattern), &pattern); err != nil {
		return reservation.Series{}, fmt.Errorf("decode the pattern of series %s: %w", row.ID, err)
	}
	return reservation.Series{
		ID: row.ID, ProjectID: row.ProjectID, UserID: row.UserID, Name: row.Name,
		Pattern: pattern, Duration: row.Duration, Created: span.Instant(row.Created),
	}, nil
}

// Series implements reservation.SeriesReader.
func (s *Store) Series(ctx context.Context, id string) (record reservation.SeriesRecord, err error) {
	var found []seriesRow
	var rows []*reservationRow
	err = s.read(ctx, func(tx *gorm.DB) error {
		found, rows = nil, nil
		if err := tx.Where("id = ?", id).Find(&found).Error; err != nil || len(found) == 0 {
			return err
		}
		if err := tx.Where("series_id = ?", id).Find(&rows).Error; err != nil {
			return err
		}
		return loadParts(tx, rows)
	})
	if err == nil && len(found) == 0 {
		return record, booking.NoSeries(id)
	}
	if err == nil {
		record.Series, err = found[0].series()
	}
	if err == nil {
		record.Reservations, err = reservations(rows)
	}
	if err != nil {
		return record, fmt.Errorf("read series %s: %w", id, err)
	}
	slices.SortFunc(record.Reservations, func(a, b reservation.Reservation) int { return strings.Compare(a.Occurrence.Local, b.Occurrence.Local) })
	return record, nil
}

// SeriesList implements reservation.SeriesReader.
func (s *Store) SeriesList(ctx context.Context, q reservation.SeriesQuery) (list []reservation.Series, err error) {
	var rows []seriesRow
	err = s.read(ctx, func(tx *gorm.DB) error {
		rows = nil
		found := tx.Order("created_at DESC, id")
		if q.ProjectID != "" {
			found = owned(found, q.ProjectID)
		}
		if q.Marker != "" {
			var marked []seriesRow
			of := tx.Where("id = ?", q.Marker)
			if q.ProjectID != "" {
				of = owned(of, q.ProjectID)
			}
			if err := of.Find(&marked).Error; err != nil {
				return err
			}
			if len(marked) == 0 {
				return fault.Field("marker", "there is no series %s", q.Marker)
			}
			found = found.Where("(created_at < ? OR created_at = ? AND id > ?)", marked[0].Created, marked[0].Created, q.Marker)
		}
		if q.Limit > 0 {
			found = found.Limit(q.Limit)
		}
		return found.Find(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("list series: %w", err)
	}
	for i := range rows {
		one, err := rows[i].series()
		if err != nil {
			return nil, fmt.Errorf("list series: %w", err)
		}
		list = append(list, one)
	}
	return list, nil
}

// LiveInSeries implements reservation.SeriesReader.
func (s *Store) LiveInSeries(ctx context.Context, ids []string) (map[string]int, error) {
	live := make(map[string]int, len(ids))
	err := s.read(ctx, func(tx *gorm.DB) error {
		for chunk := range slices.Chunk(ids, batch) {
			var found []struct {
				SeriesID string
				Live     int
			}
			of := tx.Table("reservations").Where("series_id IN ? AND status IN ?", chunk, reservation.LiveStatuses)
			if err := of.Select("series_id, COUNT(*) AS live").Group("series_id").Find(&found).Error; err != nil {
				return err
			}
			for _, row := range found {
				live[row.SeriesID] = row.Live
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count the reservations of series: %w", err)
	}
	return live, nil
}

// purgeSeries deletes series from before an instant that have no reservation any more.
func purgeSeries(tx *gorm.DB, before span.Instant, batch int) (int, error) {
	var ids []string
	err := tx.Model(&seriesRow{}).Where("created_at < ?", before).
		Where("NOT EXISTS (SELECT 1 FROM `reservations` WHERE `reservations`.`series_id` = `series`.`id`)").
		Limit(batch).Pluck("id", &ids).Error
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return len(ids), tx.Where("id IN ?", ids).Delete(&seriesRow{}).Error
}
