// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/store"
)

// Restore replaces the configured SQLite database by a backup.
type Restore struct {
	From string // a file that store.Backup made
	// DryRun only checks and compares the files.
	DryRun   bool
	Progress func(done, pages int)
}

// Restored is what Restore found, and did unless it was a dry run.
type Restored struct {
	Path         string
	Backup       store.Contents
	Before       store.Contents
	BeforeFailed error // why Before is unknown, such as that the file is broken or missing
}

// Run restores the database of the configuration. It fails with a Conflict fault if almanacd runs on it, which a dry run
// does not mind.
func (r Restore) Run(ctx context.Context, cfg config.Config) (done Restored, err error) {
	if done.Path, err = store.File(cfg.Database.Connection); err != nil {
		return done, err
	}
	if done.Backup, err = store.Look(ctx, r.From); err != nil {
		return done, err
	}
	if r.DryRun {
		done.Before, done.BeforeFailed = store.Look(ctx, done.Path)
		return done, nil
	}
	release, err := store.Own(cfg.Database.Connection)
	if err != nil {
		return done, err
	}
	done.Before, done.BeforeFailed = store.Look(ctx, done.Path)
	_, err = store.Restore(ctx, done.Path, r.From, r.Progress)
	return done, errors.Join(err, release())
}
