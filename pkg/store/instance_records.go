// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// SaveInstanceRecords stores g for instances that are about to be placed, with one statement for
// each batch. It replaces earlier records of them.
func (s *Store) SaveInstanceRecords(ctx context.Context, instances []string, g inventory.InstanceRecord, at span.Instant) error {
	rows := make([]instanceRecordRow, len(instances))
	for i, id := range instances {
		rows[i] = instanceRecordRow{Instance: id, Reservation: g.Reservation, Preemptible: g.Preemptible, At: int64(at)}
	}
	err := s.write(ctx, func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{UpdateAll: true}).CreateInBatches(rows, batch).Error
	})
	return fault.While(err, "store what %d instances are placed for", len(instances))
}

// InstanceRecords implements inventory.InstanceRecords.
func (s *Store) InstanceRecords(ctx context.Context, instances ...string) (map[string]inventory.InstanceRecord, error) {
	parts := slices.Collect(slices.Chunk(instances, batch))
	if len(instances) == 0 {
		parts = [][]string{nil}
	}
	known := map[string]inventory.InstanceRecord{}
	for _, part := range parts {
		var rows []instanceRecordRow
		err := s.look(ctx, func(db *gorm.DB) error {
			if part != nil {
				db = db.Where("instance_id IN ?", part)
			}
			return db.Find(&rows).Error
		})
		if err != nil {
			return nil, fmt.Errorf("read what instances were placed for: %w", err)
		}
		for _, row := range rows {
			known[row.Instance] = inventory.InstanceRecord{Reservation: row.Reservation, Preemptible: row.Preemptible}
		}
	}
	return known, nil
}

// OldInstanceRecords returns the ids of the instances whose last request was before an instant, the
// oldest request first.
func (s *Store) OldInstanceRecords(ctx context.Context, before span.Instant) (instances []string, err error) {
	err = s.look(ctx, func(db *gorm.DB) error {
		return db.Model(&instanceRecordRow{}).Where("placed_at < ?", before).Order("placed_at, instance_id").Pluck("instance_id", &instances).Error
	})
	return instances, fault.While(err, "read which instances were placed long ago")
}

// ForgetInstanceRecords deletes what is stored of instances, except those that were requested again
// at an instant or later. It fails with job.ErrLost if another process has acquired the lease.
func (s *Store) ForgetInstanceRecords(ctx context.Context, lease job.Lease, instances []string, before span.Instant) error {
	err := s.writeUnder(ctx, lease, func(tx *gorm.DB) error {
		for part := range slices.Chunk(instances, batch) {
			if err := tx.Where("instance_id IN ? AND placed_at < ?", part, before).Delete(&instanceRecordRow{}).Error; err != nil {
				return err
			}
		}
		return nil
	})
	return fault.While(err, "forget %d instances", len(instances))
}
