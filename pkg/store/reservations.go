package store

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// batch is the most rows that one statement inserts or asks for. Databases take
// some ten thousand values in a statement.
const batch = 1000

// Create implements booking.Records.
func (s *Store) Create(ctx context.Context, r reservation.Reservation, key *reservation.Key) error {
	row, err := rowOf(r)
	if err != nil {
		return fmt.Errorf("store reservation %s: %w", r.ID, err)
	}
	err = s.write(ctx, func(tx *gorm.DB) error {
		if key != nil {
			if err := useKey(tx, *key); err != nil {
				return err
			}
		}
		if err := tx.Omit(clause.Associations).Create(&row).Error; err != nil {
			return err
		}
		if err := insert(tx, row.Claims); err != nil {
			return err
		}
		return insert(tx, row.Events)
	})
	if err != nil {
		return fmt.Errorf("store reservation %s: %w", r.ID, err)
	}
	return nil
}

// useKey stores the use of a key. It comes first, so that a repeated request
// writes nothing else.
func useKey(tx *gorm.DB, key reservation.Key) error {
	err := tx.Create(rowOfKey(key)).Error
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		return reservation.ErrKeyUsed
	}
	return err
}

// Update implements booking.Records. Claims and events are written from the first
// on that is not as it was.
func (s *Store) Update(ctx context.Context, r reservation.Reservation) error {
	row, err := rowOf(r)
	if err != nil {
		return fmt.Errorf("store the change of reservation %s: %w", r.ID, err)
	}
	err = s.write(ctx, func(tx *gorm.DB) error {
		done := tx.Where("version = ?", r.Version-1).Select("*").Omit("id", clause.Associations).Updates(&row)
		if done.Error != nil {
			return done.Error
		}
		if done.RowsAffected == 0 {
			return fault.New(fault.Conflict, "the reservation was changed meanwhile; look at it and try again")
		}
		stored := []reservationRow{{ID: r.ID}}
		if err := loadParts(tx, stored); err != nil {
			return err
		}
		if err := replace(tx, r.ID, stored[0].Claims, row.Claims); err != nil {
			return err
		}
		return replace(tx, r.ID, stored[0].Events, row.Events)
	})
	if err != nil {
		return fmt.Errorf("store the change of reservation %s: %w", r.ID, err)
	}
	return nil
}

// replace makes what is stored of a reservation's claims or events into wanted.
func replace[T comparable](tx *gorm.DB, id string, stored, wanted []T) error {
	same := 0
	for same < min(len(stored), len(wanted)) && stored[same] == wanted[same] {
		same++
	}
	if same < len(stored) {
		if err := tx.Where("reservation_id = ? AND seq >= ?", id, same).Delete(new(T)).Error; err != nil {
			return err
		}
	}
	return insert(tx, wanted[same:])
}

func insert[T any](tx *gorm.DB, rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	return tx.CreateInBatches(rows, batch).Error
}

// Live implements booking.Records; by start, then id.
func (s *Store) Live(ctx context.Context) ([]reservation.Reservation, error) {
	var live []reservation.Status
	for _, status := range reservation.Statuses {
		if status.Live() {
			live = append(live, status)
		}
	}
	list, err := s.find(ctx, func(tx *gorm.DB) *gorm.DB { return tx.Where("status IN ?", live).Order("start_at, id") })
	if err != nil {
		return nil, fmt.Errorf("read live reservations: %w", err)
	}
	return list, nil
}
