// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Size is the number of rows of a table.
type Size struct {
	Table string
	Rows  int64
}

// copied are all tables, each after those to which it refers.
var copied = []copying{
	copyingOf[reservationRow](), copyingOf[claimRow](), copyingOf[eventRow](), copyingOf[addressClaimRow](), copyingOf[leaseGroupRow](), copyingOf[seriesRow](),
	copyingOf[pastClaimRow](), copyingOf[pastUsageRow](), copyingOf[purgedRow](),
	copyingOf[changeRow](), copyingOf[webhookRow](), copyingOf[deliveryRow](), copyingOf[keyRow](), copyingOf[usageRow](), copyingOf[toldRow](), copyingOf[leaseRow](),
	copyingOf[hostRow](), copyingOf[hostNumberRow](), copyingOf[capabilitiesRow](), copyingOf[overrideRow](), copyingOf[hiddenRow](), copyingOf[enrolledRow](),
	copyingOf[decisionRow](), copyingOf[subjectRow](), copyingOf[instanceRecordRow](), copyingOf[evictionRow](),
	copyingOf[powerRow](), copyingOf[powerEntryRow](), copyingOf[energyRow](), copyingOf[demandRow](),
	copyingOf[imageRow](), copyingOf[imageTransferRow](), copyingOf[cachedImageRow](),
	copyingOf[bestEffortRow](), copyingOf[bestEffortVMRow](), copyingOf[packingRunRow](),
}

// numbered are the tables whose rows the database numbers. Their next numbers are copied too: a number
// is not used again, although its row may have been purged.
var numbered = []string{
	changeRow{}.TableName(), decisionRow{}.TableName(), powerEntryRow{}.TableName(), bestEffortRow{}.TableName(), packingRunRow{}.TableName(),
}

// copying copies a table.
type copying struct {
	table string
	// rows copies all rows and calls progress with the number of each part of them.
	rows func(from, to *gorm.DB, progress func(rows int)) error
}

func copyingOf[T interface{ TableName() string }]() copying {
	var row T
	return copying{row.TableName(), copyRows[T]}
}

// copyRows holds one part of the rows in memory.
func copyRows[T any](from, to *gorm.DB, progress func(rows int)) error {
	rows, err := from.Model(new(T)).Rows()
	if err != nil {
		return err
	}
	defer rows.Close()
	var part []T
	flush := func() error {
		err := insert(to.Omit(clause.Associations), part)
		progress(len(part))
		part = nil
		return err
	}
	for rows.Next() {
		var row T
		if err := from.ScanRows(rows, &row); err != nil {
			return err
		}
		if part = append(part, row); len(part) < entriesAtOnce {
			continue
		}
		if err := flush(); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return flush()
}

// Sizes returns the size of every table at one moment. It fails with a Conflict fault if the schema
// is that of a newer almanacd, and with an Unavailable fault if migrations are missing.
func (s *Store) Sizes(ctx context.Context) (sizes []Size, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		sizes, err = sizesOf(tx)
		return err
	})
	return sizes, fault.While(err, "count the rows")
}

func sizesOf(tx *gorm.DB) (sizes []Size, err error) {
	if err := known(tx); err != nil {
		return nil, err
	}
	for _, c := range copied {
		size := Size{Table: c.table}
		if err := tx.Table(c.table).Count(&size.Rows).Error; err != nil {
			return nil, err
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

// known refuses a schema that is not exactly that of this almanacd.
func known(tx *gorm.DB) error {
	list, err := status(tx)
	if err != nil {
		return err
	}
	if ids := missing(list); len(ids) > 0 {
		return fault.New(fault.Unavailable, "the database lacks the migration %s; run almanacd db sync", ids[0])
	}
	var applied []string
	if err := tx.Table(gormigrate.DefaultOptions.TableName).Pluck(gormigrate.DefaultOptions.IDColumnName, &applied).Error; err != nil {
		return err
	}
	for _, id := range applied {
		if !slices.ContainsFunc(migrations, func(m *gormigrate.Migration) bool { return m.ID == id }) {
			return fault.New(fault.Conflict, "a newer almanacd has applied the migration %s; use that almanacd", id)
		}
	}
	return nil
}

// CopyTo copies all rows, as they are at one moment and with their numbers, to a migrated store
// without rows: completely, or not at all. It calls progress with the number of rows so far, and
// returns the size of each table. It fails with a Conflict fault if the other store has rows, and
// with the faults of Sizes. A transaction that fails is not repeated.
func (s *Store) CopyTo(ctx context.Context, to *Store, progress func(done int64)) (sizes []Size, err error) {
	err = s.transact(s.reader.WithContext(ctx).Begin(&sql.TxOptions{ReadOnly: true}), func(from *gorm.DB) error {
		if err := from.Exec(s.engine.longRead).Error; err != nil {
			return err
		}
		if sizes, err = sizesOf(from); err != nil {
			return err
		}
		if err := s.copyNumbers(ctx, from, to); err != nil {
			return fmt.Errorf("copy the numbers of the next rows: %w", err)
		}
		return to.writeOnce(ctx, func(into *gorm.DB) error { return copyAll(from, into, sizes, progress) })
	})
	if err != nil {
		return nil, fmt.Errorf("copy the database: %w", to.plain(ctx, s.plain(ctx, err)))
	}
	return sizes, nil
}

// copyAll copies all tables, whose sizes are known.
func copyAll(from, into *gorm.DB, sizes []Size, progress func(done int64)) error {
	present, err := sizesOf(into)
	if err != nil {
		return err
	}
	if err := empty(present); err != nil {
		return err
	}
	// The migration of a server has left a lease.
	if err := into.Exec("DELETE FROM `leases`").Error; err != nil {
		return err
	}
	done := int64(0)
	for _, c := range copied {
		err := c.rows(from, into, func(rows int) {
			done += int64(rows)
			progress(done)
		})
		if err != nil {
			return fmt.Errorf("table %s: %w", c.table, err)
		}
	}
	if present, err = sizesOf(into); err != nil {
		return err
	}
	for i, size := range sizes {
		if present[i] != size {
			return fmt.Errorf("table %s: there are %d rows instead of %d", size.Table, present[i].Rows, size.Rows)
		}
	}
	return nil
}

// empty refuses a database with rows. Leases on work do not count: a migration has one.
func empty(sizes []Size) error {
	for _, size := range sizes {
		if size.Rows > 0 && size.Table != (leaseRow{}).TableName() {
			return fault.New(fault.Conflict, "the table %s of the database to copy to has rows; name an empty database", size.Table)
		}
	}
	return nil
}

// Unused returns a Conflict fault if the database has rows, or tables of another program.
func (s *Store) Unused(ctx context.Context) error {
	err := s.read(ctx, func(tx *gorm.DB) error {
		tables, err := tx.Migrator().GetTables()
		if err != nil {
			return err
		}
		if err := ours(tables); err != nil {
			return err
		}
		var sizes []Size
		for _, c := range copied {
			if !slices.Contains(tables, c.table) {
				continue
			}
			size := Size{Table: c.table}
			if err := tx.Table(c.table).Count(&size.Rows).Error; err != nil {
				return err
			}
			sizes = append(sizes, size)
		}
		return empty(sizes)
	})
	return fault.While(err, "look whether the database is empty")
}

// copyNumbers sets the next numbers of the rows of to, which is still empty. A server commits each
// of them separately.
func (s *Store) copyNumbers(ctx context.Context, from *gorm.DB, to *Store) error {
	if err := to.Unused(ctx); err != nil {
		return err
	}
	for _, table := range numbered {
		next, err := s.engine.nextNumber(from, table)
		if err != nil {
			return err
		}
		if err := to.engine.setNextNumber(to.writer.WithContext(ctx), table, next); err != nil {
			return err
		}
	}
	return nil
}

// nextNumber returns the number of the next row of an SQLite table; 1 if it has had no rows.
func nextNumber(tx *gorm.DB, table string) (next int64, err error) {
	err = tx.Raw("SELECT COALESCE(MAX(`seq`), 0) + 1 FROM `sqlite_sequence` WHERE `name` = ?", table).Scan(&next).Error
	return next, err
}

func setNextNumber(db *gorm.DB, table string, next int64) error {
	if err := db.Exec("DELETE FROM `sqlite_sequence` WHERE `name` = ?", table).Error; err != nil {
		return err
	}
	return db.Exec("INSERT INTO `sqlite_sequence` (`name`, `seq`) VALUES (?, ?)", table, next-1).Error
}

func nextNumberOfServer(tx *gorm.DB, table string) (next int64, err error) {
	err = tx.Raw("SELECT COALESCE(`auto_increment`, 1) FROM information_schema.tables WHERE `table_schema` = DATABASE() AND `table_name` = ?", table).Scan(&next).Error
	return next, err
}

func setNextNumberOfServer(db *gorm.DB, table string, next int64) error {
	return db.Exec(fmt.Sprintf("ALTER TABLE `%s` AUTO_INCREMENT = %d", table, next)).Error
}
