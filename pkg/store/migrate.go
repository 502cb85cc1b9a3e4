// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"slices"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// migrations are the steps from an empty database to the present tables, in order. The first one is
// the schema of the first release. A released migration never changes: a new one has its own copy
// of what it adds. Each only adds, so that the previous version of Almanac keeps working beside the
// new one. Each can be repeated after an interruption, since a server commits each change of a
// table separately.
var migrations = []*gormigrate.Migration{
	{ID: firstSchema, Migrate: func(tx *gorm.DB) error { return createMissing(tx, allRows...) }},
	{ID: "0002_leases", Migrate: addLeases},
	{ID: "0003_hosts", Migrate: addHosts},
	{ID: "0004_usage_told", Migrate: addTold},
	{ID: "0005_floating_ips", Migrate: addAddresses},
	{ID: "0006_maintenance", Migrate: addMaintenance},
	{ID: "0007_past", Migrate: addPast},
	{ID: "0008_together", Migrate: addTogether},
	{ID: "0009_movable", Migrate: addMovable},
	{ID: "0010_series", Migrate: addSeries},
	{ID: "0011_webhooks", Migrate: addWebhooks},
	{ID: "0012_waiting", Migrate: addWaiting},
}

const firstSchema = "0001_first_schema"

// allRows are the rows of all tables. A table comes after the tables to which it refers.
var allRows = []any{
	&reservationRow{}, &claimRow{}, &eventRow{}, &keyRow{}, &overrideRow{}, &hiddenRow{},
	&hostRow{}, &usageRow{}, &changeRow{}, &leaseRow{}, &decisionRow{}, &subjectRow{}, &instanceRecordRow{}, &evictionRow{},
	&powerRow{}, &powerEntryRow{}, &energyRow{}, &demandRow{},
	&imageRow{}, &imageTransferRow{}, &cachedImageRow{}, &bestEffortRow{}, &bestEffortVMRow{}, &packingRunRow{},
}

// MigrationStatus states whether a migration was applied to the database.
type MigrationStatus struct {
	ID      string
	Applied bool
}

// Migrate applies the missing migrations and returns their ids. If several processes migrate at the
// same time, the first one does the work and the others wait. SQLite applies all or none. Migrate
// fails with a Conflict fault if the database has tables of another program, or of an Almanac from
// before the first release.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
	if _, err := s.Status(ctx); err != nil { // before anything is written
		return nil, err
	}
	applied, err = s.engine.migrate(ctx)
	return applied, fault.While(err, "migrate the database")
}

// Status returns all migrations, in order, without those of a newer version. It fails with a
// Conflict fault if the database is from before the first release.
func (s *Store) Status(ctx context.Context) (list []MigrationStatus, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		list, err = status(tx)
		return err
	})
	return list, fault.While(err, "read the state of the database")
}

// Pending returns the ids of the missing migrations, in order. It fails as Status does.
func (s *Store) Pending(ctx context.Context) ([]string, error) {
	list, err := s.Status(ctx)
	return missing(list), err
}

func missing(list []MigrationStatus) (ids []string) {
	for _, m := range list {
		if !m.Applied {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// status returns which migrations the database has.
func status(tx *gorm.DB) ([]MigrationStatus, error) {
	tables, err := tx.Migrator().GetTables()
	if err != nil {
		return nil, err
	}
	var applied []string
	if table := gormigrate.DefaultOptions.TableName; slices.Contains(tables, table) {
		if err := tx.Table(table).Pluck(gormigrate.DefaultOptions.IDColumnName, &applied).Error; err != nil {
			return nil, err
		}
	}
	if len(applied) > 0 && !slices.Contains(applied, firstSchema) {
		return nil, fault.New(fault.Conflict, "the database was made by an Almanac from before the first release (its last migration is %s), and cannot be upgraded; "+
			"name an empty database in [database] connection, and export what you need with the almanac and almanacd that made this one", slices.Max(applied))
	}
	list := make([]MigrationStatus, len(migrations))
	for i, m := range migrations {
		list[i] = MigrationStatus{ID: m.ID, Applied: slices.Contains(applied, m.ID)}
	}
	return list, nil
}

// apply applies the missing migrations in tx.
func apply(tx *gorm.DB) ([]string, error) {
	before, err := status(tx)
	if err != nil {
		return nil, err
	}
	return missing(before), gormigrate.New(tx, gormigrate.DefaultOptions, migrations).Migrate()
}

// migrateWhole applies all migrations in one transaction, which holds SQLite's write lock.
func (s *Store) migrateWhole(ctx context.Context) (applied []string, err error) {
	err = s.write(ctx, func(tx *gorm.DB) error {
		applied, err = apply(tx)
		return err
	})
	return applied, err
}
