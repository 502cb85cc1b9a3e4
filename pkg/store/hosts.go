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
	"github.com/almanac-cloud/almanac/pkg/span"
)

// hostNumberRow is the number that identifies a host in Blazar's API. Rows are never deleted, so
// that no number is used again.
type hostNumberRow struct {
	Host   string `gorm:"primaryKey;size:255"`
	Number int64  `gorm:"not null;uniqueIndex:idx_host_numbers_number"`
}

type capabilitiesRow struct {
	Host    string `gorm:"primaryKey;size:255"`
	Texts   string `gorm:"size:1048576;not null"` // a JSON object of strings, or empty
	Created int64  `gorm:"column:created_at;not null"`
	Updated int64  `gorm:"column:updated_at;not null"` // 0 means never
}

func (hostNumberRow) TableName() string   { return "host_numbers" }
func (capabilitiesRow) TableName() string { return "host_capabilities" }

// addHosts adds what Blazar's API stores about hosts.
func addHosts(tx *gorm.DB) error { return createMissing(tx, &hostNumberRow{}, &capabilitiesRow{}) }

// HostNumbers implements inventory.HostNumbers. A number is one more than the largest so far.
func (s *Store) HostNumbers(ctx context.Context, hosts []string) (numbers map[string]int64, err error) {
	err = s.look(ctx, func(db *gorm.DB) (err error) { numbers, _, err = hostNumbers(db); return err })
	if err == nil && slices.ContainsFunc(hosts, func(host string) bool { return numbers[host] == 0 }) {
		numbers, err = s.numberHosts(ctx, hosts)
	}
	return numbers, fault.While(err, "read the numbers of the hosts")
}

// numberHosts returns the number of each host, and numbers those that have none.
func (s *Store) numberHosts(ctx context.Context, hosts []string) (numbers map[string]int64, err error) {
	err = s.write(ctx, func(tx *gorm.DB) error {
		if err := s.inTurn(tx, "host numbers"); err != nil {
			return err
		}
		var last int64
		if numbers, last, err = hostNumbers(tx); err != nil {
			return err
		}
		var rows []hostNumberRow
		for _, host := range hosts {
			if numbers[host] == 0 {
				last++
				numbers[host] = last
				rows = append(rows, hostNumberRow{host, last})
			}
		}
		return tx.CreateInBatches(rows, batch).Error
	})
	return numbers, err
}

// hostNumbers returns the numbers of all hosts, and the largest one.
func hostNumbers(db *gorm.DB) (numbers map[string]int64, last int64, err error) {
	var rows []hostNumberRow
	if err := db.Find(&rows).Error; err != nil {
		return nil, 0, err
	}
	numbers = make(map[string]int64, len(rows))
	for _, row := range rows {
		numbers[row.Host] = row.Number
		last = max(last, row.Number)
	}
	return numbers, last, nil
}

// addCapabilities adds the capabilities of the hosts to all, which has the other overrides.
func addCapabilities(db *gorm.DB, all map[string]inventory.Override) error {
	var rows []capabilitiesRow
	if err := db.Find(&rows).Error; err != nil {
		return err
	}
	for _, row := range rows {
		texts, err := decodeMap[string](row.Texts)
		if err != nil {
			return fmt.Errorf("decode the capabilities of host %s: %w", row.Host, err)
		}
		o := all[row.Host]
		o.Capabilities = &inventory.Capabilities{Texts: texts, Created: span.Instant(row.Created), Updated: span.Instant(row.Updated)}
		all[row.Host] = o
	}
	return nil
}

func saveCapabilities(tx *gorm.DB, host string, c *inventory.Capabilities) error {
	if c == nil {
		return tx.Where("host = ?", host).Delete(&capabilitiesRow{}).Error
	}
	texts, err := encodeMap(c.Texts)
	if err != nil {
		return err
	}
	row := capabilitiesRow{Host: host, Texts: texts, Created: int64(c.Created), Updated: int64(c.Updated)}
	return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
}
