package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/config"
)

func (s *service) configCommand() *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Show and validate the configuration"}
	group.AddCommand(
		&cobra.Command{
			Use: "sample", Args: cobra.NoArgs,
			Short: "Print every option with its default and description",
			RunE:  func(c *cobra.Command, _ []string) error { return config.Sample(c.OutOrStdout()) },
		},
		&cobra.Command{
			Use: "validate", Args: cobra.NoArgs,
			Short: "Validate the configuration and the hosts file; nothing is started",
			RunE:  s.validate,
		},
		&cobra.Command{
			Use: "show", Args: cobra.NoArgs,
			Short: "Print the options in effect, with masked secrets",
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
	if err := app.Check(cfg); err != nil {
		return err
	}
	for _, warning := range app.Warnings(cfg) {
		if _, err := fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", warning); err != nil {
			return err
		}
	}
	if cfg.Inventory.Source == config.SourceOpenStack {
		_, err := fmt.Fprintln(c.ErrOrStderr(), "the configuration is valid")
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
