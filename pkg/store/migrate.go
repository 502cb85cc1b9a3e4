package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/gorm"
)

// migrations are all steps from an empty database to the rows as they are now, in
// order. A step that was ever released stays as it is. Each only adds, so that the
// version before it works on beside the new one; and each may be run again after it
// was broken off, since a server carries out changes of tables one by one.
var migrations = []*gormigrate.Migration{
	{ID: "0001_reservations", Migrate: createReservations},
	{ID: "0002_replicas", Migrate: addReplicas},
	{ID: "0003_power", Migrate: addPower},
	{ID: "0004_decisions", Migrate: addDecisions},
	{ID: "0005_guests", Migrate: addGuests},
	{ID: "0006_evictions", Migrate: addEvictions},
	{ID: "0007_energy", Migrate: addEnergy},
	{ID: "0008_images", Migrate: addImages},
	{ID: "0009_besteffort", Migrate: addBestEffort},
	{ID: "0010_packing", Migrate: addPacking},
	{ID: "0011_limits", Migrate: addLimits},
}

// MigrationStatus says whether a migration was applied to the database.
type MigrationStatus struct {
	ID      string
	Applied bool
}

// Migrate applies the migrations that are missing and gives their ids. Of several
// that migrate at once the first does the work, and the others wait. SQLite applies
// all or none.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
	applied, err = s.engine.migrate(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate the database: %w", err)
	}
	return applied, nil
}

// Status gives all migrations, in order. Those of a newer version are not among them.
func (s *Store) Status(ctx context.Context) (list []MigrationStatus, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		list, err = status(tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the state of the database: %w", err)
	}
	return list, nil
}

// Pending gives the ids of the migrations that are missing, in order.
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
	list := make([]MigrationStatus, len(migrations))
	for i, m := range migrations {
		list[i] = MigrationStatus{ID: m.ID, Applied: slices.Contains(applied, m.ID)}
	}
	return list, nil
}

// apply applies the migrations that are missing in tx.
func apply(tx *gorm.DB) ([]string, error) {
	before, err := status(tx)
	if err != nil {
		return nil, err
	}
	return missing(before), gormigrate.New(tx, gormigrate.DefaultOptions, migrations).Migrate()
}

// migrateWhole applies all in one transaction, which holds SQLite's write lock.
func (s *Store) migrateWhole(ctx context.Context) (applied []string, err error) {
	err = s.write(ctx, func(tx *gorm.DB) error {
		applied, err = apply(tx)
		return err
	})
	return applied, err
}
