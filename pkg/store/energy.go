package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
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
func (s *Store) EnergySettings(ctx context.Context) (energy.Settings, error) {
	var stored energySettings
	err := s.look(ctx, func(db *gorm.DB) error { return readEnergy(db, settingsOfEnergy, &stored) })
	if err != nil {
		return energy.Settings{}, fmt.Errorf("read the settings of the energy controller: %w", err)
	}
	return stored.settings(), nil
}

// ChangeEnergySettings implements controller.Settings.
func (s *Store) ChangeEnergySettings(
	ctx context.Context, lease job.Lease, change func(stored *energy.Settings) ([]energy.Entry, error),
) error {
	err := s.changeEnergy(ctx, lease, func(tx *gorm.DB) ([]energy.Entry, error) {
		var stored energySettings
		if err := readEnergy(tx, settingsOfEnergy, &stored); err != nil {
			return nil, err
		}
		settings := stored.settings()
		entries, err := change(&settings)
		if err != nil {
			return nil, err
		}
		return entries, saveEnergy(tx, settingsOfEnergy, energySettingsOf(settings))
	})
	if err != nil {
		return fmt.Errorf("store the settings of the energy controller: %w", err)
	}
	return nil
}

// EnergyReport gives the report that was stored last; the zero Report where there is none.
func (s *Store) EnergyReport(ctx context.Context) (energy.Report, error) {
	var stored energyReport
	err := s.look(ctx, func(db *gorm.DB) error { return readEnergy(db, reportOfEnergy, &stored) })
	if err != nil {
		return energy.Report{}, fmt.Errorf("read the report of the energy controller: %w", err)
	}
	return stored.report(), nil
}

// SaveEnergyReport stores a report instead of the one before. It fails with ErrLeaseLost
// where the lease has moved on.
func (s *Store) SaveEnergyReport(ctx context.Context, lease job.Lease, r energy.Report) error {
	err := s.writeUnder(ctx, lease, func(tx *gorm.DB) error { return saveEnergy(tx, reportOfEnergy, energyReportOf(r)) })
	if err != nil {
		return fmt.Errorf("store the report of the energy controller: %w", err)
	}
	return nil
}

// readEnergy reads the row with that name into value; where there is none it sets nothing.
func readEnergy(db *gorm.DB, name string, value any) error {
	var rows []energyRow
	if err := db.Where("name = ?", name).Find(&rows).Error; err != nil || len(rows) == 0 {
		return err
	}
	unpack, err := gzip.NewReader(bytes.NewReader(rows[0].Value))
	if err != nil {
		return err
	}
	return json.NewDecoder(unpack).Decode(value)
}

func saveEnergy(tx *gorm.DB, name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	pack, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		return err
	}
	row := energyRow{Name: name}
	if row.Value, err = compressed(pack, text); err != nil {
		return err
	}
	return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
}
