// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/store"
)

// Copy copies the database to another one, of the same or another kind.
type Copy struct {
	// To is the connection to the other database, in a form of store.Options.Connection.
	To string
	// DryRun only counts the rows and looks whether the other database is empty.
	DryRun bool
	// Begin is called with the number of rows, and returns a function that is called with the number
	// of those copied so far.
	Begin func(rows int64) (progress func(done int64))
}

// Run copies the configured database and returns the size of each table. It fails with a Conflict
// fault if almanacd runs on the database, which a dry run does not mind, or if the other database has
// rows.
func (c Copy) Run(ctx context.Context, cfg config.Config) (sizes []store.Size, err error) {
	if c.To == cfg.Database.Connection {
		return nil, fault.Field("--to", "is [database] connection itself; name an empty database")
	}
	if err := store.Check(c.To); err != nil {
		return nil, fmt.Errorf("--to: %w", err)
	}
	there := cfg
	there.Database.Connection = c.To
	if c.DryRun {
		return c.look(ctx, cfg, there)
	}
	from, here, err := openAlone(ctx, cfg)
	defer here.close()
	if err != nil {
		return nil, err
	}
	to, other, err := openAlone(ctx, there)
	defer other.close()
	if err == nil {
		err = to.Unused(ctx)
	}
	if err == nil {
		_, err = to.Migrate(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("--to: %w", err)
	}
	if sizes, err = from.Sizes(ctx); err != nil {
		return nil, err
	}
	return from.CopyTo(ctx, to, c.Begin(rowsOf(sizes)))
}

func rowsOf(sizes []store.Size) (rows int64) {
	for _, size := range sizes {
		rows += size.Rows
	}
	return rows
}

// look carries out a dry run.
func (c Copy) look(ctx context.Context, here, there config.Config) ([]store.Size, error) {
	from, err := openToCopy(ctx, here)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	sizes, err := from.Sizes(ctx)
	if err != nil {
		return nil, err
	}
	if exists, err := store.Exists(c.To); err != nil || !exists {
		return sizes, err
	}
	to, err := openToCopy(ctx, there)
	if err != nil {
		return nil, fmt.Errorf("--to: %w", err)
	}
	defer to.Close()
	return sizes, to.Unused(ctx)
}

const copier = "almanacd db copy"

// openToCopy opens a database for transactions of any length. A transaction that fails is not repeated.
func openToCopy(ctx context.Context, cfg config.Config) (*store.Store, error) {
	cfg.Database.TransactionTimeout, cfg.Database.DBMaxRetries = 0, 0
	return OpenStore(ctx, cfg, copier, slog.New(slog.DiscardHandler))
}

// openAlone is openToCopy for a database that no almanacd uses; until it is closed, none can use one
// in a file.
func openAlone(ctx context.Context, cfg config.Config) (db *store.Store, f feature, err error) {
	release, err := store.Own(cfg.Database.Connection)
	if err != nil {
		return nil, f, err
	}
	f.closers = append(f.closers, release)
	if db, err = openToCopy(ctx, cfg); err != nil {
		return nil, f, err
	}
	f.closers = append(f.closers, db.Close)
	if missing, err := db.Pending(ctx); err != nil || len(missing) > 0 { // none has run on it
		return db, f, err
	}
	other, err := otherReplica(ctx, db, copier)
	if err == nil && other != "" {
		err = fault.New(fault.Conflict, "almanacd runs (%s); stop it on all machines, so that nothing changes meanwhile", other)
	}
	return db, f, err
}
