package store

import (
	"context"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
)

// The rows of energy_settings.
const (
	settingsOfEnergy = "settings"
	reportOfEnergy   = "report"
)

// EnergySettings implements controller.Settings.
func (s *Store) EnergySettings(ctx context.Context) (settings energy.Settings, err error) {
	err = s.look(ctx, func(db *gorm.DB) error { return readEnergy(db, settingsOfEnergy, &settings) })
	if err != nil {
		return energy.Settings{}, fmt.Errorf("read the settings of the energy controller: %w", err)
	}
	return settings, nil
}

// ChangeEnergySettings implements controller.Settings.
func (s *Store) ChangeEnergySettings(
	ctx context.Context, lease job.Lease, change func(stored *energy.Settings) ([]energy.Entry, error),
) error {
	err := s.changeEnergy(ctx, lease, func(tx *gorm.DB) ([]energy.Entry, error) {
		var settings energy.Settings
		if err := readEnergy(tx, settingsOfEnergy, &settings); err != nil {
			return nil, err
		}
		entries, err := change(&settings)
		if err != nil {
			return nil, err
		}
		return entries, saveEnergy(tx, settingsOfEnergy, settings)
	})
	if err != nil {
		return fmt.Errorf("store the settings of the energy controller: %w", err)
	}
	return nil
}

// EnergyReport returns the last stored report; the zero Report where there is none.
func (s *Store) EnergyReport(ctx context.Context) (report energy.Report, err error) {
	err = s.look(ctx, func(db *gorm.DB) error { return readEnergy(db, reportOfEnergy, &report) })
	if err != nil {
		return energy.Report{}, fmt.Errorf("read the report of the energy controller: %w", err)
	}
	return report, nil
}

// SaveEnergyReport replaces the stored report. It fails with job.ErrLost where the lease
// has moved on.
func (s *Store) SaveEnergyReport(ctx context.Context, lease job.Lease, r energy.Report) error {
	err := s.writeUnder(ctx, lease, func(tx *gorm.DB) error { return saveEnergy(tx, reportOfEnergy, r) })
	if err != nil {
		return fmt.Errorf("store the report of the energy controller: %w", err)
	}
	return nil
}

// readEnergy reads the row with that name into document; it sets nothing where there is none.
func readEnergy(db *gorm.DB, name string, document any) error {
	var rows []energyRow
	if err := db.Where("name = ?", name).Find(&rows).Error; err != nil || len(rows) == 0 {
		return err
	}
	return decompress(rows[0].Value, document)
}

func saveEnergy(tx *gorm.DB, name string, document any) error {
	text, err := encode(document)
	if err != nil {
		return err
	}
	row := energyRow{Name: name}
	if row.Value, err = compressed(text); err != nil {
		return err
	}
	return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
}
