// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/accounting"
)

// pastUsageRow is what purged reservations of a project held on a host on one day, in one shape.
type pastUsageRow struct {
	Day             int64  `gorm:"primaryKey;autoIncrement:false"` // its beginning
	ProjectID       string `gorm:"primaryKey;size:255"`
	Host            string `gorm:"primaryKey;size:255"`
	Shape           string `gorm:"primaryKey;size:64"` // the hash of the columns that follow, up to the sums
	Maintenance     bool   `gorm:"not null"`
	Slices          int    `gorm:"not null"`
	VCPUs           int64  `gorm:"column:vcpus;not null"`
	MemoryMB        int64  `gorm:"column:memory_mb;not null"`
	DiskGB          int64  `gorm:"column:disk_gb;not null"`
	CustomResources string `gorm:"type:text;not null"` // a JSON object, or empty
	Held            int64  `gorm:"not null"`           // in seconds
	Used            int64  `gorm:"not null"`
}

// purgedRow is the only row of its table.
type purgedRow struct {
	ID       int   `gorm:"primaryKey;autoIncrement:false"`
	KeptFrom int64 `gorm:"not null"` // when the last claim that was purged ended
	Purges   int64 `gorm:"not null"`
}

func (pastUsageRow) TableName() string { return "past_usage" }
func (purgedRow) TableName() string    { return "purged" }

func rowOfDay(d accounting.DaySum) (pastUsageRow, error) {
	hash := sha256.Sum256([]byte(d.Of.Key()))
	custom, err := encodeMap(d.Of.Size.Custom)
	return pastUsageRow{
		Day: int64(d.Day), ProjectID: d.ProjectID, Host: d.Host, Shape: hex.EncodeToString(hash[:]), Maintenance: d.Of.Maintenance, Slices: d.Of.Slices,
		VCPUs: d.Of.Size.VCPUs, MemoryMB: d.Of.Size.MemoryMB, DiskGB: d.Of.Size.DiskGB, CustomResources: custom, Held: d.Held, Used: d.Used,
	}, err
}

func (row *pastUsageRow) sum() (accounting.DaySum, error) {
	custom, err := decodeMap[int64](row.CustomResources)
	size := resource.Vector{VCPUs: row.VCPUs, MemoryMB: row.MemoryMB, DiskGB: row.DiskGB, Custom: custom}
	return accounting.DaySum{
		Day: span.Instant(row.Day), ProjectID: row.ProjectID, Host: row.Host,
		Of: accounting.Shape{Maintenance: row.Maintenance, Slices: row.Slices, Size: size}, Held: row.Held, Used: row.Used,
	}, err
}

// keepSums adds what reservations that are about to be purged held to the sums of their days.
func (s *Store) keepSums(tx *gorm.DB, ids []string) error {
	var rows []*reservationRow
	if err := tx.Where("id IN ?", ids).Find(&rows).Error; err != nil {
		return err
	}
	claims, err := heldBy(tx, ids)
	if err != nil {
		return err
	}
	list, err := pastOf(tx, rows, claims)
	if err != nil {
		return err
	}
	type key struct {
		day                  int64
		project, host, shape string
	}
	sums, until := make(map[key]pastUsageRow), span.Instant(0)
	for i := range list {
		held := accounting.AllClaims(&list[i])
		for _, c := range held {
			until = max(until, c.Span.End)
		}
		for day := range accounting.Days(&list[i].Reservation, held) {
			row, err := rowOfDay(day)
			if err != nil {
				return fmt.Errorf("encode custom resources: %w", err)
			}
			k := key{row.Day, row.ProjectID, row.Host, row.Shape}
			row.Held, row.Used = row.Held+sums[k].Held, row.Used+sums[k].Used
			sums[k] = row
		}
	}
	if until == 0 { // they held nothing
		return nil
	}
	add := clause.OnConflict{DoUpdates: clause.Assignments(map[string]any{
		"held": gorm.Expr("`held` + " + s.engine.inserted("held")), "used": gorm.Expr("`used` + " + s.engine.inserted("used")),
	})}
	if err := insert(tx.Clauses(add), slices.Collect(maps.Values(sums))); err != nil {
		return err
	}
	return s.notePurge(tx, until)
}

// notePurge stores that nothing before an instant is kept in full.
func (s *Store) notePurge(tx *gorm.DB, until span.Instant) error {
	var rows []purgedRow
	if err := tx.Limit(1).Find(&rows).Error; err != nil {
		return err
	}
	row := purgedRow{ID: 1}
	if len(rows) > 0 {
		row = rows[0]
	}
	row.KeptFrom, row.Purges = max(row.KeptFrom, int64(until)), row.Purges+1
	return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
}

// PastUsage implements api.History.
func (s *Store) PastUsage(ctx context.Context, w span.Span, project string, after accounting.DaySum, limit int) (list []accounting.DaySum, err error) {
	var rows []pastUsageRow
	err = s.look(ctx, func(db *gorm.DB) error {
		found := db.Where("day > ? AND day < ?", w.Start.Add(-accounting.Day), w.End).Order("day, project_id, host, shape").Limit(limit)
		if project != "" {
			found = found.Where("project_id = ?", project)
		}
		if after.Day != 0 {
			last, err := rowOfDay(after)
			if err != nil {
				return err
			}
			found = found.Where("(day, project_id, host, shape) > (?, ?, ?, ?)", last.Day, last.ProjectID, last.Host, last.Shape)
		}
		return found.Find(&rows).Error
	})
	if err == nil {
		list = make([]accounting.DaySum, len(rows))
		for i := range rows {
			if list[i], err = rows[i].sum(); err != nil {
				break
			}
		}
	}
	return list, fault.While(err, "read the sums of purged reservations")
}
