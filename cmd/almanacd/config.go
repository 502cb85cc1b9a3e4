// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/servicelog"
)

// configCommand returns `config`.
func (s *service) configCommand() *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Show and validate the configuration"}
	group.AddCommand(
		newSampleCommand(),
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

func newSampleCommand() *cobra.Command {
	var minimal bool
	sample := &cobra.Command{
		Use: "sample [SECTION]", Args: cobra.MaximumNArgs(1),
		Short:   "Print every option, or those of a section, with default and description",
		Example: "  almanacd config sample energy\n  almanacd config sample --minimal",
		RunE: func(c *cobra.Command, arguments []string) error {
			out := c.OutOrStdout()
			switch {
			case minimal && len(arguments) > 0:
				return fault.Field("--minimal", "prints sections of its own; leave out either --minimal or %s", arguments[0])
			case minimal:
				_, err := io.WriteString(out, config.MinimalSample)
				return err
			case len(arguments) > 0:
				return config.SampleSection(out, arguments[0])
			}
			return config.Sample(out)
		},
	}
	sample.Flags().BoolVar(&minimal, "minimal", false, "print a short configuration beside OpenStack to fill in")
	return sample
}

// validate checks the configuration, the policy and the hosts file, and connects to nothing.
func (s *service) validate(c *cobra.Command, _ []string) error {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	if err := errors.Join(app.Check(cfg), servicelog.Check(cfg.Default, "almanacd")); err != nil {
		return err
	}
	if err := config.Tell(c.ErrOrStderr(), cfg.Ignored, app.Warnings(cfg)); err != nil {
		return err
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
