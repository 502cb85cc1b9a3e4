// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
)

var _ enforcement.Records = (*Store)(nil)

// toldRow is a lease on which the usage service counts.
type toldRow struct {
	LeaseID   string `gorm:"primaryKey;size:36"`
	Request   []byte `gorm:"size:16777215;not null"`
	AskedAt   int64  `gorm:"not null"`
	Withdrawn bool   `gorm:"not null"`
	Tries     int    `gorm:"not null"`
	NextAt    int64  `gorm:"not null"`
}

func (toldRow) TableName() string { return "usage_told" }

// addTold adds what the usage service was told.
func addTold(tx *gorm.DB) error { return createMissing(tx, &toldRow{}) }

// Tell implements enforcement.Records.
func (s *Store) Tell(ctx context.Context, told enforcement.Told) error {
	row := toldRow{
		LeaseID: told.LeaseID, Request: told.Request, AskedAt: int64(told.AskedAt), Withdrawn: told.Withdrawn,
		Tries: told.Tries, NextAt: int64(told.Next),
	}
	err := s.write(ctx, func(tx *gorm.DB) error { return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error })
	return fault.While(err, "store what the usage service was told of lease %s", told.LeaseID)
}

// Ended implements enforcement.Records. The statement looks reservations up by their ids and by
// their leases.
func (s *Store) Ended(ctx context.Context, now, before span.Instant, limit int) (list []enforcement.Told, err error) {
	const own, member = "`reservations`.`id` = `usage_told`.`lease_id`", "`reservations`.`lease_id` = `usage_told`.`lease_id`"
	exists := func(which string) string { return "EXISTS (SELECT 1 FROM `reservations` WHERE " + which + ")" }
	var rows []toldRow
	err = s.look(ctx, func(db *gorm.DB) error {
		return db.Where("next_at <= ?", int64(now)).
			Where("NOT "+exists(own+" AND `status` IN ?"), reservation.LiveStatuses).
			Where("NOT "+exists(member+" AND `status` IN ?"), reservation.LiveStatuses).
			Where("(withdrawn = ? OR asked_at < ? OR "+exists(own)+" OR "+exists(member)+")", true, int64(before)).
			Order("next_at, lease_id").Limit(limit).Find(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("read the leases that have ended for the usage service: %w", err)
	}
	for _, row := range rows {
		list = append(list, enforcement.Told{
			LeaseID: row.LeaseID, Request: row.Request, AskedAt: span.Instant(row.AskedAt), Withdrawn: row.Withdrawn,
			Tries: row.Tries, Next: span.Instant(row.NextAt),
		})
	}
	return list, nil
}

// Forget implements enforcement.Records.
func (s *Store) Forget(ctx context.Context, leaseID string) error {
	err := s.write(ctx, func(tx *gorm.DB) error { return tx.Where("lease_id = ?", leaseID).Delete(&toldRow{}).Error })
	return fault.While(err, "delete what the usage service was told of lease %s", leaseID)
}
