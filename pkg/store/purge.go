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

// Purge deletes the reservations that were over before an instant, with their claims, events, keys
// and changes, at most one batch in each transaction, and returns how many. It adds what they held to
// sums by day, project and host in the same transaction. It keeps a reservation with a
// change that is not yet sent, or whose deliveries to webhooks are not stored. Then it deletes the groups that were deleted or over before the
// instant, and the series from before it, that have no reservation any more. A dry run only counts. Purge calls progress with the
// sum of the reservations after each batch; it may be nil. It fails with job.ErrLost if another
// process has acquired the lease.
func (s *Store) Purge(ctx context.Context, lease job.Lease, before span.Instant, dryRun bool, batch int, progress func(done int)) (n int, err error) {
	if dryRun {
		var count int64
		err := s.look(ctx, func(db *gorm.DB) error { return over(db, before).Count(&count).Error })
		if err != nil {
			return 0, fmt.Errorf("count the reservations to purge: %w", err)
		}
		return int(count), nil
	}
	n, err = s.inBatches(ctx, lease, "reservations", batch, progress, func(tx *gorm.DB) (int, int, error) {
		return s.purge(tx, before, batch)
	})
	if err != nil {
		return n, err
	}
	_, err = s.inBatches(ctx, lease, "leases", batch, nil, func(tx *gorm.DB) (int, int, error) {
		purged, err := purgeLeases(tx, before, batch)
		return purged, purged, err
	})
	if err != nil {
		return n, err
	}
	_, err = s.inBatches(ctx, lease, "series", batch, nil, func(tx *gorm.DB) (int, int, error) {
		purged, err := purgeSeries(tx, before, batch)
		return purged, purged, err
	})
	return n, err
}

// inBatches purges in one transaction after another until one finds less than a batch. It returns
// the number of rows removed, and calls progress, unless it is nil, with the sum so far. It fails
// with job.ErrLost if another process has acquired the lease.
func (s *Store) inBatches(
	ctx context.Context, lease job.Lease, what string, batch int, progress func(done int), purge func(tx *gorm.DB) (found, removed int, err error),
) (n int, err error) {
	for {
		var found, removed int
		err := s.writeUnder(ctx, lease, func(tx *gorm.DB) (err error) {
			found, removed, err = purge(tx)
			return err
		})
		if err != nil {
			return n, fmt.Errorf("purge %s: %w", what, err)
		}
		if n += removed; progress != nil && removed > 0 {
			progress(n)
		}
		if found < batch {
			return n, nil
		}
	}
}

// purgeOldest removes the rows of a table that are older than an instant, the oldest first; key and
// at are the columns of their primary key and their time. Rows that refer to them go with them.
func (s *Store) purgeOldest(ctx context.Context, lease job.Lease, what string, table any, key, at string, before span.Instant) (n int, err error) {
	return s.inBatches(ctx, lease, what, batch, nil, func(tx *gorm.DB) (int, int, error) {
		var old []int64
		err := tx.Model(table).Where(at+" < ?", before).Order(at).Limit(batch).Pluck(key, &old).Error
		if err != nil || len(old) == 0 {
			return 0, 0, err
		}
		return len(old), len(old), tx.Where(key+" IN ?", old).Delete(table).Error
	})
}

// over selects the reservations that Purge deletes.
func over(tx *gorm.DB, before span.Instant) *gorm.DB {
	return tx.Model(&reservationRow{}).
		Where("status NOT IN ? AND updated_at < ?", reservation.LiveStatuses, before).
		Where("NOT EXISTS (SELECT 1 FROM `changes` WHERE `changes`.`reservation_id` = `reservations`.`id` AND (`changes`.`sent` = ? OR `changes`.`hooked` = ?))", false, false)
}

// mostPurgedClaims is the largest number of claims that one transaction deletes, unless one
// reservation alone has more.
const mostPurgedClaims = 20_000

// purge deletes one batch, after it has added what the reservations held to the sums of their days.
func (s *Store) purge(tx *gorm.DB, before span.Instant, batch int) (found, removed int, err error) {
	if err := s.inTurn(tx, "purge"); err != nil { // or another purge would add the same to the sums
		return 0, 0, err
	}
	var ids []string
	if err := over(tx, before).Order("updated_at").Limit(batch).Pluck("id", &ids).Error; err != nil || len(ids) == 0 {
		return 0, 0, err
	}
	few, err := fewClaims(tx, ids, mostPurgedClaims)
	if err != nil {
		return 0, 0, err
	}
	if few < len(ids) {
		ids, found = ids[:few], batch
	}
	if err := s.keepSums(tx, ids); err != nil {
		return 0, 0, err
	}
	for _, row := range []any{&keyRow{}, &changeRow{}, &pastClaimRow{}} {
		if err := tx.Where("reservation_id IN ?", ids).Delete(row).Error; err != nil {
			return 0, 0, err
		}
	}
	// The database deletes claims and events with their reservation.
	return max(found, len(ids)), len(ids), tx.Where("id IN ?", ids).Delete(&reservationRow{}).Error
}

// purgeLeases deletes groups of reservations that have none. A deleted group also hides a
// reservation of the same id, as long as this is stored.
func purgeLeases(tx *gorm.DB, before span.Instant, batch int) (int, error) {
	var ids []string
	err := tx.Model(&leaseGroupRow{}).
		Where("updated_at < ? AND (removed_at > 0 OR end_at < ?)", before, before).
		Where("NOT EXISTS (SELECT 1 FROM `reservations` WHERE `reservations`.`lease_id` = `lease_groups`.`id`)").
		Where("NOT EXISTS (SELECT 1 FROM `reservations` WHERE `reservations`.`id` = `lease_groups`.`id`)").
		Limit(batch).Pluck("id", &ids).Error
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	return len(ids), tx.Where("id IN ?", ids).Delete(&leaseGroupRow{}).Error
}
