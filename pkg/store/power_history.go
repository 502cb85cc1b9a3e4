// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// mostText is the largest number of characters of an entry's text. At four bytes each they fit into
// the column.
const mostText = 16000

func entryRow(e energy.Entry, token string) powerEntryRow {
	return powerEntryRow{
		At: int64(e.At), Host: e.Host, Kind: string(e.Kind), By: fitting(e.By, 255), Operation: fitting(e.Operation, 255),
		Text: fitting(e.Text, mostText), Token: token,
	}
}

func (row powerEntryRow) entry() energy.Entry {
	return energy.Entry{
		ID: row.ID, At: span.Instant(row.At), Host: row.Host, Kind: energy.EntryKind(row.Kind), By: row.By, Operation: row.Operation, Text: row.Text,
	}
}

func rowOfDemand(d energy.Demand) *demandRow {
	return &demandRow{At: int64(d.At), InUse: d.InUse, Reserved: d.Reserved}
}

func (row demandRow) demand() energy.Demand {
	return energy.Demand{At: span.Instant(row.At), InUse: row.InUse, Reserved: row.Reserved}
}

// Audit implements controller.History; a limit of 0 means no limit.
func (s *Store) Audit(ctx context.Context, host string, before int64, limit int) ([]energy.Entry, error) {
	var rows []powerEntryRow
	err := s.look(ctx, func(db *gorm.DB) error { return entries(db, host, before, limit).Find(&rows).Error })
	return converted(rows, powerEntryRow.entry), fault.While(err, "read the audit of power")
}

// entries selects what Audit returns.
func entries(db *gorm.DB, host string, before int64, limit int) *gorm.DB {
	if host != "" {
		db = db.Where("host = ?", host)
	}
	if before > 0 {
		db = db.Where("id < ?", before)
	}
	if limit > 0 {
		db = db.Limit(limit)
	}
	return db.Order("id DESC")
}

// Phases implements api.History.
func (s *Store) Phases(ctx context.Context, from span.Instant, limit int) ([]energy.Entry, error) {
	var rows []powerEntryRow
	err := s.look(ctx, func(db *gorm.DB) error {
		return db.Where("kind = ? AND entered_at >= ?", energy.EntryPhase, from).Order("id").Limit(limit).Find(&rows).Error
	})
	return converted(rows, powerEntryRow.entry), fault.While(err, "read the audit of power")
}

// PhasesBefore implements api.History.
func (s *Store) PhasesBefore(ctx context.Context, from span.Instant) ([]energy.Entry, error) {
	var rows []powerEntryRow
	err := s.look(ctx, func(db *gorm.DB) error {
		later := db.Model(&powerEntryRow{}).Where("kind = ? AND entered_at >= ?", energy.EntryPhase, from).Select("host")
		last := db.Model(&powerEntryRow{}).Where("kind = ? AND entered_at < ? AND host IN (?)", energy.EntryPhase, from, later).
			Group("host").Select("MAX(id)")
		return db.Where("id IN (?)", last).Order("id").Find(&rows).Error
	})
	return converted(rows, powerEntryRow.entry), fault.While(err, "read the audit of power")
}

// PurgeAudit deletes the entries of the audit before an instant, one batch in each transaction, and
// returns how many. It fails with job.ErrLost if another process has acquired the lease.
func (s *Store) PurgeAudit(ctx context.Context, lease job.Lease, before span.Instant) (n int, err error) {
	return s.purgeOldest(ctx, lease, "the audit of power", &powerEntryRow{}, "id", "entered_at", before)
}

// Demand implements controller.History.
func (s *Store) Demand(ctx context.Context, from span.Instant) ([]energy.Demand, error) {
	var rows []demandRow
	err := s.look(ctx, func(db *gorm.DB) error {
		return db.Where("measured_at >= ?", from).Order("measured_at").Find(&rows).Error
	})
	return converted(rows, demandRow.demand), fault.While(err, "read how many hosts were in use")
}

// AddDemand implements controller.History. Of two measurements at the same instant it keeps the
// later one.
func (s *Store) AddDemand(ctx context.Context, lease job.Lease, d energy.Demand, keep span.Instant) error {
	err := s.writeUnder(ctx, lease, func(tx *gorm.DB) error {
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(rowOfDemand(d)).Error; err != nil {
			return err
		}
		return tx.Where("measured_at < ?", keep).Delete(&demandRow{}).Error
	})
	return fault.While(err, "store how many hosts are in use")
}
