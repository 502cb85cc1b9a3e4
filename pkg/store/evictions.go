// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"fmt"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

var _ eviction.Records = (*Store)(nil)

// BeginEviction implements eviction.Records.
func (s *Store) BeginEviction(ctx context.Context, e eviction.Record) error {
	e.NoticeFor = e.NoticeFor.UTC()
	state, err := encode(e)
	if err == nil {
		err = s.write(ctx, func(tx *gorm.DB) error {
			return tx.Create(&evictionRow{ID: e.ID, Replica: s.options.Holder, State: state}).Error
		})
	}
	return fault.While(err, "store eviction %s", e.ID)
}

// EndEviction implements eviction.Records.
func (s *Store) EndEviction(ctx context.Context, id string) error {
	ended := false
	err := s.write(ctx, func(tx *gorm.DB) error {
		done := tx.Where("id = ? AND replica = ?", id, s.options.Holder).Delete(&evictionRow{})
		ended = done.RowsAffected == 1
		return done.Error
	})
	if err == nil && !ended {
		err = fault.New(fault.Conflict, "another replica has taken it over")
	}
	return fault.While(err, "end eviction %s", id)
}

// TakeEvictions implements eviction.Records.
func (s *Store) TakeEvictions(ctx context.Context) (list []eviction.Record, err error) {
	var rows []evictionRow
	err = s.look(ctx, func(db *gorm.DB) error {
		rows = nil
		return db.Where("replica <> ? AND replica NOT IN (SELECT SUBSTR(name, ?) FROM leases WHERE name LIKE ? AND expires_at > "+s.engine.now+")",
			s.options.Holder, len(presence)+1, presence+"%").Order("id").Find(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("read the evictions of replicas that are gone: %w", err)
	}
	for _, row := range rows {
		mine := false
		err := s.write(ctx, func(tx *gorm.DB) error {
			done := tx.Model(&evictionRow{}).Where("id = ? AND replica = ?", row.ID, row.Replica).Update("replica", s.options.Holder)
			mine = done.RowsAffected == 1
			return done.Error
		})
		if err != nil {
			return list, fmt.Errorf("take over eviction %s: %w", row.ID, err)
		}
		if !mine {
			continue
		}
		var e eviction.Record
		if err := json.Unmarshal(row.State, &e); err != nil {
			return list, fmt.Errorf("decode eviction %s: %w", row.ID, err)
		}
		list = append(list, e)
	}
	return list, nil
}
