// SPDX-License-Identifier: Apache-2.0

// Command almanacd is the service.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/template"
	_ "time/tzdata" // reservations recur in time zones, also on a machine without their files

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/app"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/manual"
	"github.com/almanac-cloud/almanac/pkg/oslolog"
	"github.com/almanac-cloud/almanac/pkg/servicelog"
)

// version is set by the build of a release.
var version = "development"

// usualConfig is the configuration file without --config-file, if it exists.
const usualConfig = "/etc/almanac/almanac.conf"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := newCommand(&service{environment: config.Environment(os.Environ())})
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "almanacd: %s\n", oslolog.Mask(err.Error()))
		os.Exit(1)
	}
}

// service holds the state that the commands share.
type service struct {
	files, dirs []string
	roles       []string // replace the roles of the configuration
	environment map[string]string
}

func newCommand(s *service) *cobra.Command {
	root := &cobra.Command{
		Use:   "almanacd",
		Short: "Almanac: reserve servers in advance",
		Long: "almanacd serves the reservation API and carries out reservations.\n\n" +
			"Without a configuration it uses the embedded default: SQLite below var/, the hosts of\n" +
			"etc/almanac/hosts.yaml, no Keystone, and only the address http://127.0.0.1:1234.",
		Example:       "  almanacd\n  almanacd --config-file /etc/almanac/almanac.conf",
		Args:          cobra.NoArgs,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			return s.serve(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	root.PersistentFlags().StringArrayVar(&s.files, "config-file", nil,
		"configuration file (repeatable: later files override earlier ones; default "+usualConfig+" if it exists)")
	root.PersistentFlags().StringArrayVar(&s.dirs, "config-dir", nil, "directory of *.conf files, read after the files")
	root.Flags().StringSliceVar(&s.roles, "role", nil, "roles of this process, instead of [DEFAULT] roles: "+strings.Join(config.Roles, ", "))
	root.AddCommand(s.configCommand(), s.databaseCommand(), s.removal(newBootstrapCommand(s.load, s.environment)), newPolicyCommand(s.rules, s.identify), newNovaCommand(s.lookAtNova), newImportCommand(s.takeOver),
		s.healthcheckCommand(), s.demoCommand(), manual.Command(theManual()))
	return root
}

// theManual returns the manual pages of the program.
func theManual() manual.Program {
	return manual.Program{
		Name: "almanacd", Version: version, Section: "8",
		Environment: []manual.Item{
			{Name: "OS_SECTION__OPTION", Purpose: "an option, such as OS_DATABASE__CONNECTION; wins over the files"},
			{Name: "CREDENTIALS_DIRECTORY", Purpose: "a folder with a file SECTION.OPTION for each secret; systemd sets it"},
			{Name: "OS_AUTH_URL, OS_USERNAME and others", Purpose: "the admin for bootstrap, as an openrc file sets them"},
		},
		Files: []manual.Item{
			{Name: usualConfig, Purpose: "the configuration without --config-file; see almanac.conf(5)"},
			{Name: "/etc/almanac/hosts.yaml", Purpose: "the hosts, if [inventory] hosts_file names it"},
			{Name: "/etc/almanac/policy.yaml", Purpose: "rules that replace the default ones"},
			{Name: "/var/lib/almanac", Purpose: "the working folder of the service"},
		},
		Formats: []manual.Format{{
			Name: "almanac.conf", Purpose: "configuration of almanacd", Sample: config.Sample,
			Description: "These are all options, each with its default.",
		}},
	}
}

// load reads the configuration.
func (s *service) load() (config.Config, error) {
	return config.Load(s.readFiles(), s.dirs, s.environment)
}

// readFiles returns the configuration files of the command line, or the usual one.
func (s *service) readFiles() []string {
	if len(s.files) == 0 && len(s.dirs) == 0 {
		return config.Usual(usualConfig)
	}
	return s.files
}

// serve runs the service until ctx ends.
func (s *service) serve(ctx context.Context, stdout, stderr io.Writer) error {
	cfg, err := s.load()
	if err != nil {
		return fmt.Errorf("read the configuration:\n%w", err)
	}
	log, err := servicelog.Open(cfg.Default, "almanacd", stderr, serving.LogHandler)
	if err != nil {
		return err
	}
	defer log.Close()
	log.TellConfiguration(cfg.Origin, app.Warnings(cfg))
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	inEffect := cfg
	if len(s.roles) > 0 {
		inEffect.Default.Roles = s.roles
	}
	a, err := app.Open(ctx, inEffect, app.Pace{}, version, log.Logger)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := s.greet(stdout, inEffect, a.URL()); err != nil {
		return err
	}
	go s.reloads(ctx, hangup, a, log, cfg)
	return a.Run(ctx)
}

// greet tells who starts almanacd without any configuration file where it is and what to try.
func (s *service) greet(stdout io.Writer, cfg config.Config, url string) error {
	if len(s.readFiles())+len(s.dirs) > 0 || !slices.Contains(cfg.Default.Roles, config.RoleAPI) {
		return nil
	}
	return greeting.Execute(stdout, map[string]any{"URL": url, "Page": cfg.API.Dashboard, "Hosts": cfg.Inventory.HostsFile, "Almanac": besideUs(os.Args[0])})
}

// besideUs returns the command almanac as the user has to type it who has typed the given name of
// almanacd: both are in one folder.
func besideUs(almanacd string) string { return filepath.Join(filepath.Dir(almanacd), "almanac") }

var greeting = template.Must(template.New("").Parse(`Almanac serves the hosts of {{.Hosts}}.
{{if .Page}}
  page: {{.URL}}/dashboard/{{end}}
  API:  {{.URL}}/v1

In another terminal, in the same folder:

  export ALMANAC_URL={{.URL}}
  {{.Almanac}} host list
  {{.Almanac}} reservation create first --quantity 2 --duration 1h

README.md goes on from there. Ctrl-C stops Almanac.
`))

// reloads reloads the configuration at each signal.
func (s *service) reloads(ctx context.Context, hangup <-chan os.Signal, a *app.App, log *servicelog.Log, cfg config.Config) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
		}
		cfg = s.reload(a, log, cfg)
	}
}

// reload reopens the log, reads the configuration again, and applies the options that have changed
// since cfg; none if anything of this fails. It returns the configuration that is then in effect.
func (s *service) reload(a *app.App, log *servicelog.Log, cfg config.Config) config.Config {
	unopened := log.Reopen() // even if the configuration is wrong: the open file may have been rotated
	after, changed, ignored, err := config.Reload(cfg, s.readFiles(), s.dirs, s.environment)
	if err = errors.Join(unopened, err); err == nil {
		err = a.Reload(after)
	}
	if err != nil {
		log.Error("could not apply the configuration; the previous one stays in effect", "error", err)
		return cfg
	}
	log.SetLevel(after.Default)
	log.Info("configuration read again", "changed", strings.Join(changed, ", "), "needs_a_restart", strings.Join(ignored, ", "))
	return after
}
