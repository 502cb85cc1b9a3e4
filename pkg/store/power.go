// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
)

var (
	_ controller.Records  = (*Store)(nil)
	_ controller.Settings = (*Store)(nil)
	_ controller.History  = (*Store)(nil)
)

// PowerRecords implements controller.Records.
func (s *Store) PowerRecords(ctx context.Context) (map[string]energy.Record, error) {
	var rows []powerRow
	if err := s.look(ctx, func(db *gorm.DB) error { return db.Find(&rows).Error }); err != nil {
		return nil, fmt.Errorf("read the power records of hosts: %w", err)
	}
	return recordsOf(rows)
}

// ChangePower implements controller.Records. It deletes the record of a host that change removes
// from the map, and does not store hosts that are not named. All changes update the same row, so
// that they follow each other, on the nodes of a cluster too.
func (s *Store) ChangePower(
	ctx context.Context, lease job.Lease, hosts []string, change func(stored map[string]energy.Record) ([]energy.Entry, error),
) error {
	hosts = slices.Compact(slices.Sorted(slices.Values(hosts)))
	err := s.changeEnergy(ctx, lease, func(tx *gorm.DB) ([]energy.Entry, error) {
		rows, err := powerRows(tx, hosts)
		if err != nil {
			return nil, err
		}
		records, err := recordsOf(rows)
		if err != nil {
			return nil, err
		}
		for _, host := range hosts {
			if _, stored := records[host]; !stored {
				records[host] = energy.Record{Host: host}
			}
		}
		entries, err := change(records)
		if err != nil {
			return nil, err
		}
		return entries, savePower(tx, hosts, rows, records)
	})
	return fault.While(err, "store the power records of %d hosts", len(hosts))
}

// changeEnergy runs act in a transaction of its own, under the lease and after other such changes,
// and adds the entries that act returns to the audit. They are added once, also if the connection
// is lost at COMMIT.
func (s *Store) changeEnergy(ctx context.Context, lease job.Lease, act func(tx *gorm.DB) ([]energy.Entry, error)) error {
	token, doubtful := "", false
	if s.options.NewToken != nil {
		token = s.options.NewToken()
	}
	return s.persist(ctx, func(ctx context.Context) error {
		if doubtful {
			var found []int64
			err := s.reader.WithContext(ctx).Model(&powerEntryRow{}).Where("token = ?", token).Limit(1).Pluck("id", &found).Error
			if err != nil || len(found) > 0 {
				return err
			}
		}
		err := s.writeOnce(ctx, func(tx *gorm.DB) error {
			if err := guard(tx, lease); err != nil {
				return err
			}
			if err := s.inTurn(tx, "energy changes"); err != nil {
				return err
			}
			entries, err := act(tx)
			if err != nil {
				return err
			}
			return insert(tx, converted(entries, func(e energy.Entry) powerEntryRow { return entryRow(e, token) }))
		})
		if _, doubt := errors.AsType[*inDoubt](err); doubt {
			doubtful = true
		}
		return err
	})
}

func powerRows(tx *gorm.DB, hosts []string) (all []powerRow, err error) {
	for part := range slices.Chunk(hosts, batch) {
		var rows []powerRow
		if err := tx.Where("host IN ?", part).Find(&rows).Error; err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

func recordsOf(rows []powerRow) (map[string]energy.Record, error) {
	records := make(map[string]energy.Record, len(rows))
	for _, row := range rows {
		var record energy.Record
		if err := json.Unmarshal(row.State, &record); err != nil {
			return nil, fmt.Errorf("decode the power record of host %s: %w", row.Host, err)
		}
		records[row.Host] = record
	}
	return records, nil
}

// savePower stores the records that differ from the stored rows.
func savePower(tx *gorm.DB, hosts []string, stored []powerRow, records map[string]energy.Record) error {
	before := make(map[string][]byte, len(stored))
	for _, row := range stored {
		before[row.Host] = row.State
	}
	var changed []powerRow
	var gone []string
	for _, host := range hosts {
		r, left := records[host]
		if !left {
			gone = append(gone, host)
			continue
		}
		state, err := encode(r)
		if err != nil {
			return fmt.Errorf("encode the power record of host %s: %w", host, err)
		}
		if !bytes.Equal(before[host], state) {
			changed = append(changed, powerRow{host, state})
		}
	}
	for part := range slices.Chunk(gone, batch) {
		if err := tx.Where("host IN ?", part).Delete(&powerRow{}).Error; err != nil {
			return err
		}
	}
	return insert(tx.Clauses(clause.OnConflict{UpdateAll: true}), changed)
}

// The rows of energy_settings.
const (
	settingsOfEnergy = "settings"
	reportOfEnergy   = "report"
)

// EnergySettings implements controller.Settings.
func (s *Store) EnergySettings(ctx context.Context) (settings energy.Settings, err error) {
	err = s.look(ctx, func(db *gorm.DB) error { return readEnergy(db, settingsOfEnergy, &settings) })
	return settings, fault.While(err, "read the settings of the energy controller")
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
	return fault.While(err, "store the settings of the energy controller")
}

// EnergyReport returns the last stored report; the zero Report if there is none.
func (s *Store) EnergyReport(ctx context.Context) (report energy.Report, err error) {
	err = s.look(ctx, func(db *gorm.DB) error { return readEnergy(db, reportOfEnergy, &report) })
	return report, fault.While(err, "read the report of the energy controller")
}

// SaveEnergyReport replaces the stored report. It fails with job.ErrLost if another process has
// acquired the lease.
func (s *Store) SaveEnergyReport(ctx context.Context, lease job.Lease, r energy.Report) error {
	err := s.writeUnder(ctx, lease, func(tx *gorm.DB) error { return saveEnergy(tx, reportOfEnergy, r) })
	return fault.While(err, "store the report of the energy controller")
}

// readEnergy reads the row with a name into document; it changes nothing if there is no such row.
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
