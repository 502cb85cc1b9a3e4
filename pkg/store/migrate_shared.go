// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-gormigrate/gormigrate/v2"
	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
)

const (
	schemaLease = "schema"
	schemaTTL   = 30 * time.Second
	tableExists = 1050
)

// migrateShared applies the migrations to a server, where each change of a table commits
// separately. A lease keeps other processes from migrating at the same time: unlike GET_LOCK it
// applies on every node of a Galera cluster, and unlike a transaction it outlasts such a commit. If
// the process ends, another one continues after schemaTTL.
func (s *Store) migrateShared(ctx context.Context, t server, session []string) (applied []string, err error) {
	t.config = t.config.Clone()
	t.config.ReadTimeout = 0 // a change of a large table may take long
	migrator, pool, err := s.openServer(ctx, t, 1, session...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if err := s.prepare(migrator.WithContext(ctx)); err != nil {
		return nil, s.plain(ctx, err)
	}
	err = s.hold(ctx, func(ctx context.Context) error {
		applied, err = apply(s.withOptions(migrator.WithContext(ctx)))
		return s.plain(ctx, err)
	})
	return applied, err
}

// prepare creates the table of leases, unless the database has tables of another program.
func (s *Store) prepare(db *gorm.DB) error {
	tables, err := db.Migrator().GetTables()
	if err != nil || slices.Contains(tables, leaseRow{}.TableName()) {
		return err
	}
	if err := ours(tables); err != nil {
		return err
	}
	err = s.withOptions(db).Migrator().CreateTable(&leaseRow{})
	if number(err) == tableExists {
		return nil // another process has created it in between
	}
	return err
}

// ours refuses the tables of another program.
func ours(tables []string) error {
	if begun := slices.Contains(tables, gormigrate.DefaultOptions.TableName); !begun && len(tables) > 0 {
		return fault.New(fault.Conflict, "the database has tables that are not Almanac's, such as %s; create a database for Almanac alone", tables[0])
	}
	return nil
}

// withOptions returns db with the engine's options for new tables.
func (s *Store) withOptions(db *gorm.DB) *gorm.DB {
	return db.Set("gorm:table_options", s.engine.tableOptions).Session(&gorm.Session{})
}

// hold runs act under the lease on the schema, which it renews while act runs.
func (s *Store) hold(ctx context.Context, act func(ctx context.Context) error) error {
	holder := s.options.NewToken()
	lease, err := s.await(ctx, holder)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var renewal sync.WaitGroup
	renewal.Go(func() {
		for job.Pause(ctx, schemaTTL/3) == nil {
			if _, held, err := s.take(ctx, schemaLease, holder, schemaTTL); err == nil && !held {
				cancel(job.ErrLost)
			}
		}
	})
	err = act(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, job.ErrLost) {
		err = cause
	}
	cancel(nil)
	renewal.Wait()
	return errors.Join(err, s.Release(context.WithoutCancel(ctx), lease))
}

// await waits for the lease on the schema and acquires it.
func (s *Store) await(ctx context.Context, holder string) (job.Lease, error) {
	for n := 0; ; n++ {
		lease, held, err := s.take(ctx, schemaLease, holder, schemaTTL)
		if err != nil || held {
			return lease, err
		}
		if !s.pause(ctx, n) {
			return job.Lease{}, fmt.Errorf("wait for another migration: %w", ctx.Err())
		}
	}
}

// createMissing creates tables. A server may already have some of them from a migration
// that was interrupted; they stay. SQLite migrates in one transaction, so a table that
// exists there belongs to another program, and is an error.
func createMissing(tx *gorm.DB, tables ...any) error {
	schema, resume := tx.Migrator(), tx.Name() == "mysql"
	for _, table := range tables {
		if resume && schema.HasTable(table) {
			continue
		}
		if err := schema.CreateTable(table); err != nil {
			return err
		}
	}
	return nil
}

// addColumns adds columns to the table of a row. Those that an interrupted migration has added stay.
func addColumns(tx *gorm.DB, row any, fields ...string) error {
	schema := tx.Migrator()
	for _, field := range fields {
		if schema.HasColumn(row, field) {
			continue
		}
		if err := schema.AddColumn(row, field); err != nil {
			return err
		}
	}
	return nil
}
