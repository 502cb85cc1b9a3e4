// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/besteffort/controller"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	"github.com/almanac-cloud/almanac/reservation/besteffort/state"
)

var (
	_ controller.Records    = (*Store)(nil)
	_ requests.RequestStore = (*Store)(nil)
	_ requests.Pins         = (*Store)(nil)
)

// OpenBestEffort implements controller.Records.
func (s *Store) OpenBestEffort(ctx context.Context) ([]state.Request, error) {
	list, err := s.bestEffort(ctx, func(tx *gorm.DB) *gorm.DB { return tx.Where("over_at = 0").Order("place") })
	return list, fault.While(err, "read the best-effort work")
}

// AddBestEffort implements requests.RequestStore.
func (s *Store) AddBestEffort(ctx context.Context, r state.Request, userData string, most int) (state.Request, error) {
	row, err := rowOfBestEffort(r, userData)
	if err != nil {
		return state.Request{}, fmt.Errorf("store best-effort request %s: %w", r.ID, err)
	}
	vms, err := rowsOfVMs(r.ID, r.VMs)
	if err != nil {
		return state.Request{}, fmt.Errorf("store best-effort request %s: %w", r.ID, err)
	}
	err = s.write(ctx, func(tx *gorm.DB) error {
		// An earlier attempt whose outcome is unknown may have stored it.
		var there int64
		if err := tx.Model(&bestEffortRow{}).Where("id = ?", r.ID).Count(&there).Error; err != nil || there > 0 {
			return err
		}
		if err := s.within(tx, r, most); err != nil {
			return err
		}
		fresh := row
		if err := tx.Create(&fresh).Error; err != nil {
			return err
		}
		return insert(tx, vms)
	})
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		known, _, err := s.BestEffortOfKey(ctx, r.ProjectID, r.Key)
		return known, err
	}
	if err != nil {
		return state.Request{}, fmt.Errorf("store best-effort request %s: %w", r.ID, err)
	}
	return s.BestEffort(ctx, r.ID)
}

// within returns a fault if, with the request, the project would have more VMs than most. Requests
// are counted one after the other, on the nodes of a cluster too.
func (s *Store) within(tx *gorm.DB, r state.Request, most int) error {
	if most <= 0 {
		return nil
	}
	if err := s.inTurn(tx, "best-effort requests"); err != nil {
		return err
	}
	var open int64
	err := tx.Model(&bestEffortVMRow{}).
		Where("phase NOT IN ?", []besteffort.Phase{besteffort.Done, besteffort.Failed}).
		Where("request_id IN (?)", tx.Model(&bestEffortRow{}).Select("id").Where("project_id = ? AND over_at = 0", r.ProjectID)).
		Count(&open).Error
	if err == nil && open+int64(len(r.VMs)) > int64(most) {
		err = fault.New(fault.Refused, "the project would have %d unfinished VMs of best-effort work, and may have %d", open+int64(len(r.VMs)), most)
	}
	return err
}

// BestEffort implements requests.RequestStore.
func (s *Store) BestEffort(ctx context.Context, id string) (state.Request, error) {
	list, err := s.bestEffort(ctx, func(tx *gorm.DB) *gorm.DB { return tx.Where("id = ?", id) })
	if err != nil {
		return state.Request{}, fmt.Errorf("read best-effort request %s: %w", id, err)
	}
	if len(list) == 0 {
		return state.Request{}, fault.New(fault.NotFound, "there is no best-effort request %s", id)
	}
	return list[0], nil
}

// BestEffortOfKey implements requests.RequestStore.
func (s *Store) BestEffortOfKey(ctx context.Context, project, key string) (state.Request, bool, error) {
	list, err := s.bestEffort(ctx, func(tx *gorm.DB) *gorm.DB { return tx.Where("project_id = ? AND request_key = ?", project, key) })
	if err != nil {
		return state.Request{}, false, fmt.Errorf("read the best-effort request of an idempotency key: %w", err)
	}
	if len(list) == 0 {
		return state.Request{}, false, nil
	}
	return list[0], true, nil
}

// ListBestEffort implements requests.RequestStore.
func (s *Store) ListBestEffort(ctx context.Context, q requests.Query) ([]state.Request, error) {
	list, err := s.bestEffort(ctx, func(tx *gorm.DB) *gorm.DB {
		found := tx.Order("place")
		if q.ProjectID != "" {
			found = found.Where("project_id = ?", q.ProjectID)
		}
		if !q.All {
			found = found.Where("over_at = 0")
		}
		if q.Limit > 0 {
			found = found.Limit(q.Limit)
		}
		if q.Marker == "" {
			return found
		}
		marked := tx.Model(&bestEffortRow{}).Where("id = ?", q.Marker)
		if q.ProjectID != "" {
			marked = marked.Where("project_id = ?", q.ProjectID)
		}
		var places []int64
		if err := marked.Pluck("place", &places).Error; err != nil {
			_ = found.AddError(err)
		} else if len(places) == 0 {
			_ = found.AddError(fault.Field("marker", "there is no best-effort request %s", q.Marker))
		} else {
			found = found.Where("place > ?", places[0])
		}
		return found
	})
	return list, fault.While(err, "list the best-effort work")
}

// CancelBestEffort implements requests.RequestStore.
func (s *Store) CancelBestEffort(ctx context.Context, id string, at span.Instant) error {
	err := s.write(ctx, func(tx *gorm.DB) error {
		return tx.Model(&bestEffortRow{}).Where("id = ? AND canceled_at = 0 AND over_at = 0", id).Update("canceled_at", int64(at)).Error
	})
	return fault.While(err, "cancel best-effort request %s", id)
}

// SaveBestEffortVMs implements controller.Records.
func (s *Store) SaveBestEffortVMs(ctx context.Context, lease job.Lease, vms []state.VM) error {
	rows, err := rowsOfVMs("", vms)
	if err == nil {
		err = s.writeUnder(ctx, lease, func(tx *gorm.DB) error {
			// The rows exist already, with the request that they belong to.
			update := clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"phase", "server_id", "state"})}
			for part := range slices.Chunk(rows, batch) {
				if err := tx.Clauses(update).Create(&part).Error; err != nil {
					return err
				}
			}
			return nil
		})
	}
	return fault.While(err, "store %d VMs of best-effort work", len(vms))
}

// CloseBestEffort implements controller.Records.
func (s *Store) CloseBestEffort(ctx context.Context, lease job.Lease, id string, at span.Instant) error {
	err := s.writeUnder(ctx, lease, func(tx *gorm.DB) error {
		return tx.Model(&bestEffortRow{}).Where("id = ? AND over_at = 0", id).Update("over_at", int64(at)).Error
	})
	return fault.While(err, "close best-effort request %s", id)
}

// BestEffortUserData returns the user_data of a request's servers, in base64.
func (s *Store) BestEffortUserData(ctx context.Context, id string) (string, error) {
	var found []string
	err := s.look(ctx, func(db *gorm.DB) error {
		found = nil
		return db.Model(&bestEffortRow{}).Where("id = ?", id).Pluck("user_data", &found).Error
	})
	if err != nil {
		return "", fmt.Errorf("read the user_data of best-effort request %s: %w", id, err)
	}
	if len(found) == 0 {
		return "", fault.New(fault.NotFound, "there is no best-effort request %s", id)
	}
	return found[0], nil
}

// BestEffortPin implements requests.Pins.
func (s *Store) BestEffortPin(ctx context.Context, vm string) (requests.Pinned, bool, error) {
	var vms []bestEffortVMRow
	var rows []bestEffortRow
	err := s.read(ctx, func(tx *gorm.DB) error {
		vms, rows = nil, nil
		if err := tx.Where("id = ?", vm).Find(&vms).Error; err != nil || len(vms) == 0 {
			return err
		}
		return tx.Select("project_id").Where("id = ?", vms[0].RequestID).Find(&rows).Error
	})
	if err != nil {
		return requests.Pinned{}, false, fmt.Errorf("read VM %s of best-effort work: %w", vm, err)
	}
	if len(vms) == 0 || len(rows) == 0 {
		return requests.Pinned{}, false, nil
	}
	v, err := vms[0].vm()
	return requests.Pinned{ProjectID: rows[0].ProjectID, Server: v.Server, Node: v.Node, Phase: v.Phase}, err == nil, err
}

// Resting returns those of the servers that best-effort work has suspended and whose allocations it
// has released, as a set of ids.
func (s *Store) Resting(ctx context.Context, servers ...string) (map[string]bool, error) {
	resting := map[string]bool{}
	for part := range slices.Chunk(servers, batch) {
		var ids []string
		err := s.look(ctx, func(db *gorm.DB) error {
			return db.Model(&bestEffortVMRow{}).Where("server_id IN ? AND phase = ?", part, besteffort.Suspended).Pluck("server_id", &ids).Error
		})
		if err != nil {
			return nil, fmt.Errorf("read which servers best-effort work has suspended: %w", err)
		}
		for _, id := range ids {
			resting[id] = true
		}
	}
	return resting, nil
}

// Departing returns those of the servers that belong to best-effort VMs in any phase except done
// and failed, each with the deadline for its suspension; 0 means that no suspension is under way.
func (s *Store) Departing(ctx context.Context, servers ...string) (map[string]span.Instant, error) {
	departing := map[string]span.Instant{}
	for part := range slices.Chunk(servers, batch) {
		var rows []bestEffortVMRow
		err := s.look(ctx, func(db *gorm.DB) error {
			rows = nil
			return db.Where("server_id IN ? AND phase NOT IN ?", part, []besteffort.Phase{besteffort.Done, besteffort.Failed}).Find(&rows).Error
		})
		if err != nil {
			return nil, fmt.Errorf("read which servers are best-effort work: %w", err)
		}
		for i := range rows {
			v, err := rows[i].vm()
			if err != nil {
				return nil, err
			}
			departing[v.Server] = v.Deadline
		}
	}
	return departing, nil
}

// PurgeBestEffort deletes the requests that were over before an instant, one batch in each
// transaction, and returns how many. It fails with job.ErrLost if another process has acquired the
// lease.
func (s *Store) PurgeBestEffort(ctx context.Context, lease job.Lease, before span.Instant) (n int, err error) {
	return s.inBatches(ctx, lease, "best-effort work", batch, nil, func(tx *gorm.DB) (int, int, error) {
		var ids []string
		err := tx.Model(&bestEffortRow{}).Where("over_at > 0 AND over_at < ?", int64(before)).Order("over_at").Limit(batch).Pluck("id", &ids).Error
		if err != nil || len(ids) == 0 {
			return 0, 0, err
		}
		if err := tx.Where("request_id IN ?", ids).Delete(&bestEffortVMRow{}).Error; err != nil {
			return 0, 0, err
		}
		return len(ids), len(ids), tx.Where("id IN ?", ids).Delete(&bestEffortRow{}).Error
	})
}

// bestEffort returns the requests that scope selects, with their VMs but without user_data, which
// may be long and is needed only for the creation of a server.
func (s *Store) bestEffort(ctx context.Context, scope func(tx *gorm.DB) *gorm.DB) (list []state.Request, err error) {
	var rows []bestEffortRow
	vms := map[string][]state.VM{}
	err = s.read(ctx, func(tx *gorm.DB) error {
		rows = nil
		clear(vms)
		if err := scope(tx).Omit("user_data").Find(&rows).Error; err != nil {
			return err
		}
		for part := range slices.Chunk(rows, batch) {
			var found []bestEffortVMRow
			ids := converted(part, func(row bestEffortRow) string { return row.ID })
			if err := tx.Where("request_id IN ?", ids).Order("request_id, number").Find(&found).Error; err != nil {
				return err
			}
			for _, row := range found {
				v, err := row.vm()
				if err != nil {
					return err
				}
				vms[row.RequestID] = append(vms[row.RequestID], v)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		r, err := row.request()
		if err != nil {
			return nil, err
		}
		r.VMs = vms[r.ID]
		list = append(list, r)
	}
	return list, nil
}
