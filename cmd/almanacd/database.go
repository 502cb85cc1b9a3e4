// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
)

// databaseCommand returns `db`.
func (s *service) databaseCommand() *cobra.Command {
	group := &cobra.Command{Use: "db", Short: "Maintain the database"}
	group.AddCommand(
		&cobra.Command{
			Use: "sync", Args: cobra.NoArgs,
			Short: "Update the schema, also while almanacd runs; safe to repeat",
			RunE:  s.sync,
		},
		s.statusCommand(),
		&cobra.Command{
			Use: "trail RESERVATION", Args: cobra.ExactArgs(1),
			Short: "List every change of a reservation with its time, user and request",
			RunE:  s.trail,
		},
		s.purgeCommand(),
		s.copyCommand(),
		s.backupCommand(),
		s.restoreCommand(),
	)
	return group
}

// withStore opens the configured database for act.
func (s *service) withStore(c *cobra.Command, act func(db *store.Store) error) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	db, err := app.OpenStore(c.Context(), cfg, "almanacd db", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer db.Close()
	return act(db)
}

// sync applies the missing migrations and prints them.
func (s *service) sync(c *cobra.Command, _ []string) error {
	return s.withStore(c, func(db *store.Store) error {
		applied, err := db.Migrate(c.Context())
		if err != nil {
			return fmt.Errorf("migrate the database: %w", err)
		}
		for _, id := range applied {
			fmt.Fprintf(c.ErrOrStderr(), "applied %s\n", id)
		}
		if len(applied) == 0 {
			fmt.Fprintln(c.ErrOrStderr(), "the schema is up to date")
		}
		return nil
	})
}

// statusCommand returns `db status`.
func (s *service) statusCommand() *cobra.Command {
	var check bool
	status := &cobra.Command{
		Use: "status", Args: cobra.NoArgs,
		Short: "List the migrations and whether they are applied",
		RunE:  func(c *cobra.Command, _ []string) error { return s.status(c, check) },
	}
	status.Flags().BoolVar(&check, "check", false, "fail if one is missing")
	return status
}

// status prints which migrations the database has. With check it fails if one is missing.
func (s *service) status(c *cobra.Command, check bool) error {
	return s.withStore(c, func(db *store.Store) error {
		migrations, err := db.Status(c.Context())
		if err != nil {
			return err
		}
		missing := 0
		for _, m := range migrations {
			state := "applied"
			if !m.Applied {
				state = "missing"
				missing++
			}
			fmt.Fprintf(c.OutOrStdout(), "%s %s\n", m.ID, state)
		}
		if check && missing > 0 {
			return fault.New(fault.Unavailable, "%d migrations are missing; run almanacd db sync", missing)
		}
		return nil
	})
}

// trail prints all changes of a reservation.
func (s *service) trail(c *cobra.Command, arguments []string) error {
	return s.withStore(c, func(db *store.Store) error {
		changes, err := db.Trail(c.Context(), arguments[0], 0)
		if err != nil {
			return err
		}
		if len(changes) == 0 {
			return fault.New(fault.NotFound, "there is no reservation %s, or it was purged", arguments[0])
		}
		out := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(out, "VERSION\tTIME\tACTION\tSTATUS\tUSER\tREQUEST\tDETAIL")
		for _, change := range changes {
			fmt.Fprintf(out, "%d\t%v\t%s\t%s\t%s\t%s\t%s\n", change.Reservation.Version, change.At, change.Action,
				change.Reservation.Status, cmp.Or(change.UserID, "-"), cmp.Or(change.RequestID, "-"), change.Detail)
		}
		return out.Flush()
	})
}

// purgeCommand returns `db purge`.
func (s *service) purgeCommand() *cobra.Command {
	var olderThan string
	var dryRun bool
	purge := &cobra.Command{
		Use: "purge", Args: cobra.NoArgs,
		Short: "Delete old reservations with their history",
		Long: "Deletes reservations that ended, failed or were canceled longer ago than the age, with their claims,\n" +
			"events and audit trail. First it adds the time that they held to sums by day, project and host, so that usage\n" +
			"keeps its totals. It uses small transactions, so that almanacd may run at the same time.\n" +
			"Notifications that are not sent yet stay. Make a backup first, or use --dry-run.",
		Example: "  almanacd db purge --older-than 90d --dry-run",
		RunE: func(c *cobra.Command, _ []string) error {
			// Replicas may not know yet that a reservation has just ended.
			age, err := span.ParseDuration(olderThan)
			if err != nil || age < 3600 {
				return fault.Field("--older-than", "must be at least an hour, such as 90d, not %q", olderThan)
			}
			return s.purge(c, span.At(time.Now()).Add(-age), dryRun)
		},
	}
	purge.Flags().StringVar(&olderThan, "older-than", "", "minimum age of the reservations to delete, such as 90d")
	purge.Flags().BoolVar(&dryRun, "dry-run", false, "only show how many there are")
	_ = purge.MarkFlagRequired("older-than") // fails only for a flag that does not exist
	return purge
}

// purgeBatch is how many reservations are deleted in one transaction.
const purgeBatch = 200

// purge deletes reservations that ended before that time, or counts them.
func (s *service) purge(c *cobra.Command, before span.Instant, dryRun bool) error {
	return s.withStore(c, func(db *store.Store) error {
		// A manual purge needs no lease: several at once only share the work.
		count, err := db.Purge(c.Context(), job.Lease{}, before, true, purgeBatch, nil)
		if err != nil {
			return err
		}
		if dryRun || count == 0 {
			done := "deleted %d reservations that were over by %v\n"
			if dryRun {
				done = "%d reservations that were over by %v would be deleted\n"
			}
			fmt.Fprintf(c.ErrOrStderr(), done, count, before)
			return nil
		}
		bar := progress(c.ErrOrStderr(), "deleting", count)
		done, err := db.Purge(c.Context(), job.Lease{}, before, false, purgeBatch, func(done int) { _ = bar.Set(done) })
		err = errors.Join(err, bar.Finish())
		fmt.Fprintf(c.ErrOrStderr(), "deleted %d reservations that were over by %v\n", done, before)
		return err
	})
}

// copyCommand returns `db copy`.
func (s *service) copyCommand() *cobra.Command {
	var to app.Copy
	command := &cobra.Command{
		Use: "copy", Args: cobra.NoArgs,
		Short: "Copy everything to an empty database, also from SQLite to MariaDB or back",
		Long: "Copies all rows of all tables with their ids and places in the log of changes, as they are at one moment:\n" +
			"completely, or not at all. It creates the schema there, refuses a database that has rows, and compares the\n" +
			"number of rows at the end. The database of the configuration stays as it is. Stop almanacd first; a dry run\n" +
			"does not need that.",
		Example: "  almanacd db copy --to - --dry-run < new-database.url\n" +
			"  almanacd db copy --to sqlite:////var/lib/almanac/almanac.db",
		RunE: func(c *cobra.Command, _ []string) error { return s.copy(c, to) },
	}
	flags := command.Flags()
	flags.StringVar(&to.To, "to", "", "URL of the other database; - reads it from standard input, so that no other user sees the password")
	flags.BoolVar(&to.DryRun, "dry-run", false, "only count the rows, and look whether the other database is empty")
	_ = command.MarkFlagRequired("to") // fails only for a flag that does not exist
	return command
}

// copy copies the database of the configuration to another one, or counts its rows.
func (s *service) copy(c *cobra.Command, to app.Copy) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	if to.To, err = databaseURL(c, "--to", to.To); err != nil {
		return err
	}
	to.Begin = func(rows int64) func(int64) {
		bar := progress(c.ErrOrStderr(), "copying", int(rows))
		return func(done int64) { _ = bar.Set64(done) }
	}
	sizes, err := to.Run(c.Context(), cfg)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "TABLE\tROWS")
	rows := int64(0)
	for _, size := range sizes {
		fmt.Fprintf(out, "%s\t%d\n", size.Table, size.Rows)
		rows += size.Rows
	}
	done := "copied %d rows; set [database] connection to the copy\n"
	if to.DryRun {
		done = "%d rows would be copied\n"
	}
	fmt.Fprintf(c.ErrOrStderr(), done, rows)
	return out.Flush()
}

// progress returns a bar, which is silent if w is not a terminal.
func progress(w io.Writer, what string, count int) *progressbar.ProgressBar {
	file, ok := w.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return progressbar.DefaultSilent(int64(count))
	}
	return progressbar.NewOptions(count, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what), progressbar.OptionClearOnFinish())
}
