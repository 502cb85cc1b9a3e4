// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Overrides implements inventory.HostSettings.
func (s *Store) Overrides(ctx context.Context) (all map[string]inventory.Override, err error) {
	err = s.read(ctx, func(tx *gorm.DB) (err error) {
		all, err = overrides(tx)
		return err
	})
	return all, fault.While(err, "read host overrides")
}

func overrides(db *gorm.DB) (map[string]inventory.Override, error) {
	var rows []overrideRow
	if err := db.Find(&rows).Error; err != nil {
		return nil, err
	}
	all := make(map[string]inventory.Override, len(rows))
	for _, row := range rows {
		properties, err := decodeMap[*inventory.Value](row.Properties)
		if err != nil {
			return nil, fmt.Errorf("decode the override of host %s: %w", row.Host, err)
		}
		all[row.Host] = inventory.Override{
			Reservable: row.Reservable, Properties: properties, Power: (*inventory.Power)(row.Power),
		}
	}
	return all, addCapabilities(db, all)
}

// ChangeOverride implements inventory.HostSettings. An override that sets nothing is deleted. All
// changes update the same row, so that they follow each other, on the nodes of a cluster too.
func (s *Store) ChangeOverride(
	ctx context.Context, host string, change func(stored map[string]inventory.Override) (inventory.Override, error),
) error {
	err := s.write(ctx, func(tx *gorm.DB) error {
		if err := s.inTurn(tx, "settings"); err != nil {
			return err
		}
		stored, err := overrides(tx)
		if err != nil {
			return err
		}
		o, err := change(stored)
		if err != nil {
			return err
		}
		return saveOverride(tx, host, o)
	})
	return fault.While(err, "store the override of host %s", host)
}

// inTurn makes transactions with the same name follow each other.
func (s *Store) inTurn(tx *gorm.DB, name string) error {
	turn := "UPDATE `leases` SET `writes` = `writes` + 1 WHERE `name` = ?"
	done := tx.Exec(turn, name)
	if done.Error == nil && done.RowsAffected == 0 {
		missing := s.engine.insertMissing + " `leases` (`name`, `holder`, `epoch`, `expires_at`) VALUES (?, '', 0, 0)"
		if err := tx.Exec(missing, name).Error; err != nil {
			return err
		}
		done = tx.Exec(turn, name)
	}
	return done.Error
}

func saveOverride(tx *gorm.DB, host string, o inventory.Override) error {
	if err := saveCapabilities(tx, host, o.Capabilities); err != nil {
		return err
	}
	if o.Capabilities = nil; o.IsZero() {
		return tx.Where("host = ?", host).Delete(&overrideRow{}).Error
	}
	properties, err := encodeMap(o.Properties)
	if err != nil {
		return err
	}
	row := overrideRow{Host: host, Reservable: o.Reservable, Properties: properties, Power: (*string)(o.Power)}
	return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
}

// Hidden returns the properties that only admins may use, as a set of names.
func (s *Store) Hidden(ctx context.Context) (map[string]bool, error) {
	var rows []hiddenRow
	if err := s.look(ctx, func(db *gorm.DB) error { return db.Find(&rows).Error }); err != nil {
		return nil, fmt.Errorf("read hidden properties: %w", err)
	}
	hidden := make(map[string]bool, len(rows))
	for _, row := range rows {
		hidden[row.Property] = true
	}
	return hidden, nil
}

// SaveHidden hides a property from everybody except admins, or shows it.
func (s *Store) SaveHidden(ctx context.Context, property string, hidden bool) error {
	err := s.write(ctx, func(tx *gorm.DB) error {
		if hidden {
			return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&hiddenRow{property}).Error
		}
		return tx.Where("property = ?", property).Delete(&hiddenRow{}).Error
	})
	return fault.While(err, "store whether property %s is hidden", property)
}
