package app

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/store"
)

// database opens the store. It locks and migrates a SQLite database for this process; a database
// server is shared by all replicas, and its operator migrates it.
func (a *App) database(ctx context.Context) (*store.Store, error) {
	release, err := store.Own(a.config.Database.Connection)
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, release)
	db, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, db.Close)
	if db.Shared() {
		return db, upToDate(ctx, db)
	}
	applied, err := db.Migrate(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate the database: %w", err)
	}
	for _, id := range applied {
		a.log.Info("database migrated", "migration", id)
	}
	return db, nil
}

// upToDate refuses a schema with pending migrations.
func upToDate(ctx context.Context, db *store.Store) error {
	missing, err := db.Pending(ctx)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fault.New(fault.Unavailable, "the database misses %s; run almanacd db sync", strings.Join(missing, ", "))
	}
	return nil
}

// connect opens the database, and tries again while it does not answer.
func (a *App) connect(ctx context.Context) (*store.Store, error) {
	c, said := a.config.Database, ""
	for n := 0; ; n++ {
		db, err := OpenStore(ctx, a.config, a.replica, a.log)
		if err == nil || !fault.Is(err, fault.Unavailable) || n == c.MaxRetries {
			return db, err
		}
		if err.Error() != said { // each error once
			said = err.Error()
			a.log.Error("the database cannot be used; trying again", "every", c.RetryInterval, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(c.RetryInterval):
		}
	}
}

// OpenStore opens the configured database without migrating it. replica names this process among
// those that share it.
func OpenStore(ctx context.Context, cfg config.Config, replica string, log *slog.Logger) (*store.Store, error) {
	c := cfg.Database
	return store.Open(ctx, store.Options{
		Connection: c.Connection, BusyTimeout: c.BusyTimeout,
		PoolSize: c.MaxPoolSize, Overflow: c.MaxOverflow, Recycle: c.ConnectionRecycleTime,
		Patience: c.TransactionTimeout, Retries: c.DBMaxRetries, LongestWait: c.DBMaxRetryInterval,
		NewToken: uuid.NewString, Random: rand.Float64,
		Holder: replica, Outbox: notifies(cfg),
		Logger: log.With("component", "database"),
	})
}
