package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
)

// presence is the prefix of the leases that show which replicas run.
const presence = "replica/"

// Present shows for another ttl of the database's time that Options.Holder runs, and returns
// the names of all that run.
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

// Leave shows that Options.Holder has stopped, so that nobody waits until its ttl is over.
func (s *Store) Leave(ctx context.Context) error {
	err := s.write(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE `leases` SET `expires_at` = "+s.engine.now+" WHERE `name` = ?", presence+s.options.Holder).Error
	})
	if err != nil {
		return fmt.Errorf("show that this replica has stopped: %w", err)
	}
	return nil
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
