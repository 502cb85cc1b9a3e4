// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/store"
)

// backupCommand returns `db backup`.
func (s *service) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Args: cobra.ExactArgs(1),
		Short: "Copy an SQLite database to a new file, also while almanacd runs",
		Long: "Copies the SQLite database of the configuration, as it is at one moment, to a file that does not exist, and checks\n" +
			"the copy. almanacd may run and write meanwhile. The file has mode 0640. A database server has tools of its own.",
		Example: "  almanacd db backup /var/backups/almanac.db",
		RunE:    s.backup,
	}
}

// backup copies the SQLite database of the configuration to a new file.
func (s *service) backup(c *cobra.Command, arguments []string) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	path, err := store.File(cfg.Database.Connection)
	if err != nil {
		return err
	}
	made, err := store.Backup(c.Context(), path, arguments[0], pages(c, "copying"))
	if err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s has %s\n", arguments[0], described(made))
	return nil
}

// restoreCommand returns `db restore`.
func (s *service) restoreCommand() *cobra.Command {
	var dryRun bool
	command := &cobra.Command{
		Use: "restore FILE", Args: cobra.ExactArgs(1),
		Short: "Replace the SQLite database by a backup; stop almanacd first",
		Long: "Checks a file that db backup has made, and replaces the SQLite database of the configuration by it. Changes since\n" +
			"the backup are lost; the file stays. Stop almanacd first: the command refuses a database that is in use. A dry run may run at\n" +
			"any time. The database keeps its owner. almanacd upgrades the schema when it starts, if the backup is of an older version.",
		Example: "  almanacd db restore /var/backups/almanac.db --dry-run\n  almanacd db restore /var/backups/almanac.db",
		RunE:    func(c *cobra.Command, arguments []string) error { return s.restore(c, arguments[0], dryRun) },
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "only check the file and compare it with the database")
	return command
}

// restore replaces the SQLite database of the configuration by a backup, or shows what would be lost.
func (s *service) restore(c *cobra.Command, from string, dryRun bool) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	done, err := app.Restore{From: from, DryRun: dryRun, Progress: pages(c, "restoring")}.Run(c.Context(), cfg)
	if err != nil {
		return err
	}
	before := described(done.Before)
	if done.BeforeFailed != nil {
		before = "no usable database"
		if _, err := os.Stat(done.Path); err == nil {
			before = fmt.Sprintf("no usable database (%v)", done.BeforeFailed)
		}
	}
	verb := "is replaced by"
	if dryRun {
		verb = "would be replaced by"
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s, with %s, %s %s, with %s\n", done.Path, before, verb, from, described(done.Backup))
	return nil
}

// described names the contents of a database.
func described(c store.Contents) string {
	if c.Changed.IsZero() {
		return fault.Counted(int(c.Reservations), "reservation")
	}
	return fmt.Sprintf("%s, the last change at %s", fault.Counted(int(c.Reservations), "reservation"), c.Changed.Format(time.RFC3339))
}

// pages returns a function that shows how many pages are done.
func pages(c *cobra.Command, what string) func(done, all int) {
	var bar *progressbar.ProgressBar
	return func(done, all int) {
		if bar == nil {
			bar = progress(c.ErrOrStderr(), what, all)
		}
		_ = bar.Set(done)
		if done == all {
			_ = bar.Finish()
		}
	}
}
