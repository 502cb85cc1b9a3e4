// SPDX-License-Identifier: Apache-2.0

// Command almanac-power is the agent that switches machines for Almanac. It runs where their
// BMCs are reachable, and carries out the orders that almanacd sends over AMQP.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/manual"
	"github.com/almanac-cloud/almanac/pkg/oslolog"
	"github.com/almanac-cloud/almanac/pkg/servicelog"
)

// version is set by the build of a release.
var version = "development"

// usualConfig is the configuration file without --config-file, if it exists.
const usualConfig = "/etc/almanac/almanac-power.conf"

// The exit codes of almanac.
const (
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3
	exitDenied   = 4
	exitConflict = 5
	exitTimedOut = 6
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := newCommand(&service{environment: config.Environment(os.Environ())})
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "almanac-power: %s\n", oslolog.Mask(err.Error()))
		os.Exit(codeOf(err))
	}
}

// codeOf returns the exit status for an error.
func codeOf(err error) int {
	if errors.Is(err, context.DeadlineExceeded) {
		return exitTimedOut
	}
	switch fault.Of(err).Kind {
	case fault.Invalid:
		return exitUsage
	case fault.NotFound:
		return exitNotFound
	case fault.Denied, fault.Unauthorized:
		return exitDenied
	case fault.Conflict, fault.Refused:
		return exitConflict
	}
	return exitFailed
}

// service holds the state that the commands share.
type service struct {
	files, dirs []string
	environment map[string]string
}

func newCommand(s *service) *cobra.Command {
	root := &cobra.Command{
		Use:   "almanac-power",
		Short: "Switch machines for Almanac",
		Long: "almanac-power runs where the BMCs of hosts are reachable. It reports to almanacd over AMQP which hosts it can\n" +
			"switch, and carries out the orders of almanacd.",
		Example:       "  almanac-power --config-file /etc/almanac/almanac-power.conf\n  almanac-power check cmp-017",
		Args:          cobra.NoArgs,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return s.run(c.Context(), c.ErrOrStderr()) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fault.New(fault.Invalid, "%v", err) })
	root.PersistentFlags().StringArrayVar(&s.files, "config-file", nil,
		"configuration file (repeatable: later files override earlier ones; default "+usualConfig+" if it exists)")
	root.PersistentFlags().StringArrayVar(&s.dirs, "config-dir", nil, "directory of *.conf files, read after the files")
	root.AddCommand(s.checkCommand(), s.testCommand(), s.benchmarkCommand(), s.configCommand(), manual.Command(theManual()))
	return root
}

// theManual returns the manual page of the program.
func theManual() manual.Program {
	return manual.Program{
		Name: "almanac-power", Version: version, Section: "8",
		Environment: []manual.Item{{Name: "OS_SECTION__OPTION", Purpose: "an option, such as OS_DEFAULT__TRANSPORT_URL; wins over the files"}},
		Files: []manual.Item{
			{Name: usualConfig, Purpose: "the configuration without --config-file; see almanac-power.conf(5)"},
			{Name: "/etc/almanac/power.yaml", Purpose: "the machines, unless [agent] machines_file names another file"},
		},
		Formats: []manual.Format{{
			Name: "almanac-power.conf", Purpose: "configuration of almanac-power", Sample: config.SamplePowerAgent,
			Description: "These are all options, each with its default.",
		}},
	}
}

// load reads the configuration.
func (s *service) load() (config.PowerAgent, error) {
	files := s.files
	if len(files) == 0 && len(s.dirs) == 0 {
		files = config.Usual(usualConfig)
	}
	cfg, err := config.LoadPowerAgent(files, s.dirs, s.environment)
	if err != nil {
		return cfg, fmt.Errorf("read the configuration:\n%w", err)
	}
	if cfg.Default.Host == "" {
		if cfg.Default.Host, err = os.Hostname(); err != nil {
			return cfg, fmt.Errorf("find this machine's name: %w", err)
		}
	}
	if cfg.Agent.Name == "" {
		cfg.Agent.Name = cfg.Default.Host
	}
	return cfg, nil
}

// machines reads the configuration and the machines file.
func (s *service) machines() (config.PowerAgent, *machines, error) {
	cfg, err := s.load()
	if err != nil {
		return cfg, nil, err
	}
	m, err := openMachines(cfg)
	return cfg, m, err
}

// configCommand returns `config`.
func (s *service) configCommand() *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Show and validate the configuration"}
	group.AddCommand(
		&cobra.Command{
			Use: "sample", Args: cobra.NoArgs, Short: "Print every option with its default and description",
			RunE: func(c *cobra.Command, _ []string) error { return config.SamplePowerAgent(c.OutOrStdout()) },
		},
		&cobra.Command{
			Use: "validate", Args: cobra.NoArgs, Short: "Validate the configuration and the machines file; nothing is contacted or started",
			RunE: func(c *cobra.Command, _ []string) error {
				cfg, machines, err := s.machines()
				if err = errors.Join(err, servicelog.Check(cfg.Default, "almanac-power")); err != nil {
					return err
				}
				if err := config.Tell(c.ErrOrStderr(), cfg.Ignored, cfg.Warnings); err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.ErrOrStderr(), "the configuration is valid; %s lists %d machines\n", cfg.Agent.MachinesFile, len(machines.driven))
				return err
			},
		},
	)
	return group
}
