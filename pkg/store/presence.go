package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
)

// presence begins the names of the leases by which replicas show that they are there.
const presence = "replica/"

// Present says that Options.Holder is there for another ttl of the database's time,
// and names all that are.
func (s *Store) Present(ctx context.Context, ttl time.Duration) (replicas []string, err error) {
	if _, _, err := s.take(ctx, presence+s.options.Holder, s.options.Holder, ttl); err != nil {
		return nil, fmt.Errorf("show that this replica is there: %w", err)
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
		return nil, fmt.Errorf("read which replicas are there: %w", err)
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

// Leave says that Options.Holder is gone, so that nobody waits until its time is over.
func (s *Store) Leave(ctx context.Context) error {
	err := s.write(ctx, func(tx *gorm.DB) error {
		return tx.Exec("UPDATE `leases` SET `expires_at` = "+s.engine.now+" WHERE `name` = ?", presence+s.options.Holder).Error
	})
	if err != nil {
		return fmt.Errorf("show that this replica is gone: %w", err)
	}
	return nil
}

// remembered is how long a replica that is gone stays in the table.
const remembered = 24 * time.Hour

func (s *Store) forget(ctx context.Context, name string) error {
	return s.write(ctx, func(tx *gorm.DB) error {
		return tx.Exec("DELETE FROM `leases` WHERE `name` = ? AND `expires_at` < "+s.engine.now, name).Error
	})
}

// Shared says that other processes may use the database at the same time.
func (s *Store) Shared() bool { return s.engine.passing != nil }
