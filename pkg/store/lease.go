// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
)

// Take implements job.Leases. Options.Holder gets the lease for ttl on the database's clock, and
// must call Take again before that to keep it. The epoch grows with each change of holder. held is
// false if another process has the lease.
func (s *Store) Take(ctx context.Context, name string, ttl time.Duration) (lease job.Lease, held bool, err error) {
	lease, held, err = s.take(ctx, name, s.options.Holder, ttl)
	if err != nil {
		return job.Lease{}, false, fmt.Errorf("acquire lease %s: %w", name, err)
	}
	return lease, held, nil
}

// take takes or prolongs a job lease for holder; false if another holder has it.
func (s *Store) take(ctx context.Context, name, holder string, ttl time.Duration) (job.Lease, bool, error) {
	var found []struct {
		Holder string
		Epoch  int64
		Over   bool
	}
	err := s.look(ctx, func(db *gorm.DB) error {
		return db.Raw("SELECT `holder`, `epoch`, `expires_at` <= "+s.engine.now+" AS `over` FROM `leases` WHERE `name` = ?", name).Scan(&found).Error
	})
	if err != nil || len(found) > 0 && found[0].Holder != holder && !found[0].Over {
		return job.Lease{}, false, err
	}
	statement, epoch := s.engine.insertMissing+" `leases` (`holder`, `epoch`, `expires_at`, `name`) VALUES (?, ?, "+s.engine.now+" + ?, ?)", int64(1)
	values := []any{holder, epoch, ttl.Milliseconds(), name}
	if len(found) > 0 {
		epoch = found[0].Epoch
		if found[0].Holder != holder {
			epoch++
		}
		statement = "UPDATE `leases` SET `holder` = ?, `epoch` = ?, `expires_at` = " + s.engine.now + " + ?" +
			" WHERE `name` = ? AND `epoch` = ? AND (`holder` = ? OR `expires_at` <= " + s.engine.now + ")"
		values = []any{holder, epoch, ttl.Milliseconds(), name, found[0].Epoch, holder}
	}
	held := false
	err = s.write(ctx, func(tx *gorm.DB) error {
		done := tx.Exec(statement, values...)
		held = done.RowsAffected == 1
		return done.Error
	})
	if err != nil || !held {
		return job.Lease{}, false, err
	}
	return job.Lease{Name: name, Epoch: epoch}, true, nil
}

// Release ends a lease, so that the next holder need not wait. It does nothing if another process
// has acquired the lease.
func (s *Store) Release(ctx context.Context, lease job.Lease) error {
	err := s.write(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE `leases` SET `expires_at` = 0 WHERE `name` = ? AND `epoch` = ?", lease.Name, lease.Epoch).Error
	})
	return fault.While(err, "release lease %s", lease.Name)
}

// writeUnder is write, except that it fails with job.ErrLost if another process has acquired the
// lease.
func (s *Store) writeUnder(ctx context.Context, lease job.Lease, act func(tx *gorm.DB) error) error {
	return s.write(ctx, func(tx *gorm.DB) error {
		if err := guard(tx, lease); err != nil {
			return err
		}
		return act(tx)
	})
}

// guard fails with job.ErrLost if another process has acquired the lease. It changes the row of the
// lease: otherwise Galera does not notice that a change of holder on another node conflicts with
// the transaction. The zero lease guards nothing: it is for an operator's manual changes.
func guard(tx *gorm.DB, lease job.Lease) error {
	if lease == (job.Lease{}) {
		return nil
	}
	done := tx.Exec("UPDATE `leases` SET `writes` = `writes` + 1 WHERE `name` = ? AND `epoch` = ?", lease.Name, lease.Epoch)
	if done.Error == nil && done.RowsAffected == 0 {
		return job.ErrLost
	}
	return done.Error
}

// presence is the prefix of the names of the leases that show which replicas run.
const presence = "replica/"

// Present records that Options.Holder runs, for another ttl on the database's clock, and returns
// the names of all replicas that run.
func (s *Store) Present(ctx context.Context, ttl time.Duration) (replicas []string, err error) {
	if _, _, err := s.take(ctx, presence+s.options.Holder, s.options.Holder, ttl); err != nil {
		return nil, fmt.Errorf("show that this replica runs: %w", err)
	}
	var found []struct {
		Name           string
		There, LongAgo bool
	}
	err = s.look(ctx, func(db *gorm.DB) error {
		found = nil
		return db.Raw("SELECT `name`, `expires_at` > "+s.engine.now+" AS `there`, `expires_at` < "+s.engine.now+" - ? AS `long_ago`"+
			" FROM `leases` WHERE `name` LIKE ? ORDER BY `name`", remembered.Milliseconds(), presence+"%").Scan(&found).Error
	})
	if err != nil {
		return nil, fmt.Errorf("read which replicas run: %w", err)
	}
	for _, replica := range found {
		if replica.There {
			replicas = append(replicas, strings.TrimPrefix(replica.Name, presence))
		}
		if replica.LongAgo {
			if err := s.forget(ctx, replica.Name); err != nil {
				return nil, fmt.Errorf("forget replica %s: %w", replica.Name, err)
			}
		}
	}
	return replicas, nil
}

// Leave records that Options.Holder has stopped and ends all its leases, so that others need not
// wait until their time is over.
func (s *Store) Leave(ctx context.Context) error {
	err := s.write(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE `leases` SET `expires_at` = "+s.engine.now+" WHERE `holder` = ? AND `expires_at` > "+s.engine.now, s.options.Holder).Error
	})
	return fault.While(err, "show that this replica has stopped")
}

// remembered is how long a stopped replica stays in the table.
const remembered = 24 * time.Hour

func (s *Store) forget(ctx context.Context, name string) error {
	return s.write(ctx, func(tx *gorm.DB) error {
		return tx.Exec("DELETE FROM `leases` WHERE `name` = ? AND `expires_at` < "+s.engine.now, name).Error
	})
}

// Shared reports whether other processes may use the database at the same time.
func (s *Store) Shared() bool { return s.engine.passing != nil }
