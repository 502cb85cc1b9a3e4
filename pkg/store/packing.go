// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"fmt"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

var (
	_ rebalance.Records = (*Store)(nil)
	_ rebalance.Archive = (*Store)(nil)
)

// packingRunsKept is the number of runs that are kept; older ones are deleted.
const packingRunsKept = 100

// AddPackingRun implements rebalance.Records. Runs are added one after the other, on the
// nodes of a cluster too.
func (s *Store) AddPackingRun(ctx context.Context, r rebalance.Run) error {
	state, err := encode(r)
	if err != nil {
		return fmt.Errorf("store packing run %s: %w", r.ID, err)
	}
	err = s.write(ctx, func(tx *gorm.DB) error {
		if err := s.inTurn(tx, "packing runs"); err != nil {
			return err
		}
		var under []string
		if err := tx.Model(&packingRunRow{}).Where("is_over = ?", false).Pluck("id", &under).Error; err != nil {
			return err
		}
		if len(under) > 0 {
			return fault.New(fault.Conflict, "run %s is not over; stop it, or wait", under[0])
		}
		var old []int64
		if err := tx.Model(&packingRunRow{}).Order("place DESC").Offset(packingRunsKept-1).Limit(1).Pluck("place", &old).Error; err != nil {
			return err
		}
		if len(old) > 0 {
			if err := tx.Where("place <= ?", old[0]).Delete(&packingRunRow{}).Error; err != nil {
				return err
			}
		}
		return tx.Create(&packingRunRow{ID: r.ID, Over: r.Over(), State: state}).Error
	})
	return fault.While(err, "store packing run %s", r.ID)
}

// ChangePackingRun implements rebalance.Records.
func (s *Store) ChangePackingRun(
	ctx context.Context, lease job.Lease, id string, change func(*rebalance.Run) error,
) (changed rebalance.Run, err error) {
	err = s.write(ctx, func(tx *gorm.DB) error {
		if err := guard(tx, lease); err != nil {
			return err
		}
		if err := s.inTurn(tx, "packing runs"); err != nil {
			return err
		}
		list, err := packingRuns(tx.Where("id = ?", id))
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return noPackingRun(id)
		}
		changed = list[0]
		if err := change(&changed); err != nil {
			return err
		}
		state, err := encode(changed)
		if err != nil {
			return err
		}
		return tx.Model(&packingRunRow{}).Where("id = ?", id).Updates(map[string]any{"is_over": changed.Over(), "state": state}).Error
	})
	return changed, fault.While(err, "store packing run %s", id)
}

func noPackingRun(id string) error {
	return fault.New(fault.NotFound, "there is no packing run %s", id)
}

// PackingRun implements rebalance.Archive.
func (s *Store) PackingRun(ctx context.Context, id string) (rebalance.Run, error) {
	var list []rebalance.Run
	err := s.look(ctx, func(db *gorm.DB) (err error) {
		list, err = packingRuns(db.Where("id = ?", id))
		return err
	})
	switch {
	case err != nil:
		return rebalance.Run{}, fmt.Errorf("read packing run %s: %w", id, err)
	case len(list) == 0:
		return rebalance.Run{}, noPackingRun(id)
	}
	return list[0], nil
}

// PackingRuns implements rebalance.Archive.
func (s *Store) PackingRuns(ctx context.Context, most int) (list []rebalance.Run, err error) {
	err = s.look(ctx, func(db *gorm.DB) (err error) {
		list, err = packingRuns(db.Order("place DESC").Limit(most))
		return err
	})
	return list, fault.While(err, "read the packing runs")
}

func packingRuns(scope *gorm.DB) ([]rebalance.Run, error) {
	var rows []packingRunRow
	if err := scope.Find(&rows).Error; err != nil {
		return nil, err
	}
	list := make([]rebalance.Run, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal(row.State, &list[i]); err != nil {
			return nil, fmt.Errorf("decode packing run %s: %w", row.ID, err)
		}
	}
	return list, nil
}

// PlacedByQueue returns the ids of the servers of best-effort work that are on hosts which the
// queue has chosen.
func (s *Store) PlacedByQueue(ctx context.Context) (servers []string, err error) {
	others := []besteffort.Phase{besteffort.Waiting, besteffort.Staging, besteffort.Done, besteffort.Failed}
	err = s.look(ctx, func(db *gorm.DB) error {
		servers = nil
		return db.Model(&bestEffortVMRow{}).Where("server_id <> '' AND phase NOT IN ?", others).Pluck("server_id", &servers).Error
	})
	return servers, fault.While(err, "read which servers are best-effort work")
}
