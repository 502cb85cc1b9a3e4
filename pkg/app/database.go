// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/store"
)

// openDatabase opens the store. It locks and migrates a SQLite database for this process; a database
// server is shared by all replicas, and its operator migrates it.
func openDatabase(ctx context.Context, p process) (db *store.Store, f feature, err error) {
	release, err := store.Own(p.config.Database.Connection)
	if err != nil {
		return nil, f, err
	}
	f.closers = append(f.closers, release)
	if db, err = connect(ctx, p); err != nil {
		return nil, f, err
	}
	f.closers = append(f.closers, db.Close)
	for reason := range db.Retries() {
		f.metrics.counter("almanac_database_retries_total", "Repeated transactions, by reason.",
			prometheus.Labels{"reason": reason}, func() float64 { return float64(db.Retries()[reason]) })
	}
	f.probe("database writable", db.Writable)
	f.metrics.gauge("almanac_database_read_only", "1 if the database is read-only: it refused the last change.", nil,
		func() float64 { return oneIf(db.Writable() != nil) })
	if db.Shared() {
		return db, f, upToDate(ctx, db)
	}
	applied, err := db.Migrate(ctx)
	if err != nil {
		return nil, f, fmt.Errorf("migrate the database: %w", err)
	}
	for _, id := range applied {
		p.log.Info("migrated the database", "migration", id)
	}
	return db, f, nil
}

// upToDate refuses a schema with pending migrations.
func upToDate(ctx context.Context, db *store.Store) error {
	missing, err := db.Pending(ctx)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fault.New(fault.Unavailable, "the database lacks the migrations %s; run almanacd db sync", strings.Join(missing, ", "))
	}
	return nil
}

// connect opens the database, and tries again while it does not answer.
func connect(ctx context.Context, p process) (*store.Store, error) {
	c, said := p.config.Database, ""
	for n := 0; ; n++ {
		db, err := OpenStore(ctx, p.config, p.replica, p.log)
		if err == nil || !fault.Is(err, fault.Unavailable) || n == c.MaxRetries {
			return db, err
		}
		if err.Error() != said { // each error once
			said = err.Error()
			p.log.Error("could not open the database; retrying", "every", c.RetryInterval, "error", err)
		}
		if err := job.Pause(ctx, c.RetryInterval); err != nil {
			return nil, err
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
		Holder: replica, Outbox: notifies(cfg), Webhooks: len(cfg.Webhooks.Allowed) > 0,
		Logger: log.With("component", "database"),
	})
}
