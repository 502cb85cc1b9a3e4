package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/store"
)

func (s *service) configCommand() *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Look at the configuration"}
	group.AddCommand(
		&cobra.Command{
			Use: "sample", Args: cobra.NoArgs,
			Short: "Print every option with its default and what it means",
			RunE:  func(c *cobra.Command, _ []string) error { return config.Sample(c.OutOrStdout()) },
		},
		&cobra.Command{
			Use: "validate", Args: cobra.NoArgs,
			Short: "Say what is wrong with the configuration and the hosts file; nothing is started",
			RunE:  s.validate,
		},
		&cobra.Command{
			Use: "show", Args: cobra.NoArgs,
			Short: "Print what is in effect, secrets masked",
			RunE: func(c *cobra.Command, _ []string) error {
				cfg, err := s.load()
				if err != nil {
					return err
				}
				return config.Show(c.OutOrStdout(), cfg)
			},
		},
	)
	return group
}

func (s *service) validate(c *cobra.Command, _ []string) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	if err := store.Check(cfg.Database.Connection); err != nil {
		return err
	}
	hosts, err := inventory.FileSource(cfg.Inventory.HostsFile).Hosts(c.Context())
	if err != nil {
		return err
	}
	if _, err := inventory.NewSnapshot(hosts, nil, nil); err != nil {
		return fmt.Errorf("%s: %w", cfg.Inventory.HostsFile, err)
	}
	_, err = fmt.Fprintf(c.ErrOrStderr(), "the configuration is valid; %s lists %d hosts\n", cfg.Inventory.HostsFile, len(hosts))
	return err
}

func (s *service) databaseCommand() *cobra.Command {
	group := &cobra.Command{Use: "db", Short: "Look after the database"}
	group.AddCommand(
		&cobra.Command{
			Use: "sync", Args: cobra.NoArgs,
			Short: "Bring the schema up to date; again does no harm",
			RunE:  s.sync,
		},
		&cobra.Command{
			Use: "status", Args: cobra.NoArgs,
			Short: "List the migrations and whether they are applied",
			RunE:  s.status,
		},
	)
	return group
}

// withStore opens the configured database for act.
func (s *service) withStore(c *cobra.Command, act func(db *store.Store) error) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	db, err := app.OpenStore(c.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer db.Close()
	return act(db)
}

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

func (s *service) status(c *cobra.Command, _ []string) error {
	return s.withStore(c, func(db *store.Store) error {
		migrations, err := db.Status(c.Context())
		if err != nil {
			return err
		}
		for _, m := range migrations {
			state := "missing"
			if m.Applied {
				state = "applied"
			}
			fmt.Fprintf(c.OutOrStdout(), "%s %s\n", m.ID, state)
		}
		return nil
	})
}
