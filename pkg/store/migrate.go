package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/gorm"
)

// migrations are all steps from an empty database to the rows as they are now, in
// order. A step that was ever released stays as it is.
var migrations = []*gormigrate.Migration{
	{ID: "0001_reservations", Migrate: createReservations},
}

// MigrationStatus says whether a migration was applied to the database.
type MigrationStatus struct {
	ID      string
	Applied bool
}

// Migrate applies the migrations that are missing, all or none, and gives their
// ids. Of several that migrate at once the first does the work.
func (s *Store) Migrate(ctx context.Context) (applied []string, err error) {
	err = s.write(ctx, func(tx *gorm.DB) error {
		before, err := status(tx)
		if err != nil {
			return err
		}
		for _, m := range before {
			if !m.Applied {
				applied = append(applied, m.ID)
			}
		}
		return gormigrate.New(tx, gormigrate.DefaultOptions, migrations).Migrate()
	})
	if err != nil {
		return nil, err
	}
	return applied, nil
}

// Status gives all migrations, in order.
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
