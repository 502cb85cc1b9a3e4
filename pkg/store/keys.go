// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Key implements booking.Keys.
func (s *Store) Key(ctx context.Context, projectID, key string) (use reservation.Key, ok bool, err error) {
	var rows []keyRow
	err = s.look(ctx, func(db *gorm.DB) error {
		return db.Where("project_id = ? AND idempotency_key = ?", projectID, key).Find(&rows).Error
	})
	if err != nil {
		return reservation.Key{}, false, fmt.Errorf("read an idempotency key: %w", err)
	}
	if len(rows) == 0 {
		return reservation.Key{}, false, nil
	}
	return rows[0].key(), true, nil
}

// PurgeKeys deletes the idempotency keys that were created before an instant, one batch in each
// transaction, and returns how many it deleted. It fails with job.ErrLost if another process has
// acquired the lease.
func (s *Store) PurgeKeys(ctx context.Context, lease job.Lease, before span.Instant) (n int, err error) {
	return s.inBatches(ctx, lease, "idempotency keys", batch, nil, func(tx *gorm.DB) (int, int, error) {
		old := tx.Where("created_at < ?", before).Session(&gorm.Session{})
		// A key belongs to one reservation.
		var ids []string
		err := old.Model(&keyRow{}).Order("created_at").Limit(batch).Pluck("reservation_id", &ids).Error
		if err != nil || len(ids) == 0 {
			return 0, 0, err
		}
		done := old.Where("reservation_id IN ?", ids).Delete(&keyRow{})
		return len(ids), int(done.RowsAffected), done.Error
	})
}

func rowOfKey(k reservation.Key) *keyRow {
	return &keyRow{k.ProjectID, k.Key, k.BodyHash, k.ReservationID, int64(k.Created)}
}

func (row keyRow) key() reservation.Key {
	return reservation.Key{
		ProjectID: row.ProjectID, Key: row.IdempotencyKey, BodyHash: row.BodyHash,
		ReservationID: row.ReservationID, Created: span.Instant(row.Created),
	}
}
