// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/manual"
)

// process is one run of the program: its environment and its global flags.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	now            func() time.Time
	// pause waits for a duration, or until the context ends.
	pause func(context.Context, time.Duration) error

	// interactive reports whether a user can answer questions; nil checks whether stdin is a
	// terminal.
	interactive func() bool
	lines       *bufio.Reader // reads stdin after the first line

	format  format
	columns []string
	url     string
	choice  keystone.Choice
	timeout period
	debug   bool

	// length is how long the reservation would last after the change that was asked for; 0 if none was.
	length time.Duration
}

// run executes a command line and returns its exit code. Data goes to stdout, messages to
// stderr.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string, now func() time.Time) int {
	p := &process{stdin: stdin, stdout: stdout, stderr: stderr, env: env, now: now, pause: job.Pause}
	return p.run(ctx, args)
}

func (p *process) run(ctx context.Context, args []string) int {
	if p.interactive == nil {
		p.interactive = p.onTerminal
	}
	root := p.rootCommand()
	root.SetArgs(args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.InitDefaultCompletionCmd(args...)
	begun := false
	p.prepare(root, &begun)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if !begun { // cobra did not accept the command line
		err = &outcome{exitUsage, fmt.Sprintf("%s; see '%s --help'", mistake(err), command.CommandPath())}
	}
	p.report(command, err)
	return codeOf(err)
}

func (p *process) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "almanac",
		Short: "Reserve servers ahead of time",
		Long: `Reserve servers of a cloud ahead of time, find free capacity, and change or cancel
reservations.

There are three ways to set the address of Almanac and your credentials:
  --os-cloud, OS_CLOUD     a cloud of clouds.yaml and secure.yaml
  OS_AUTH_URL and others   the variables that an openrc file sets: a user and a
                           password, an application credential or a token; also
                           OS_CACERT, and OS_INSECURE=true
  --url, ALMANAC_URL       an Almanac without Keystone; with one of the others, the
                           address to use instead of the one in the catalog
The default is http://127.0.0.1:1234, without a user.

Write times as "now", "+2h" (from now, by the clock of the service), or with their
zone: 2026-12-01T10:00+01:00, "2026-12-01 10:00Z". All times are printed in UTC. Write
durations in seconds, or as 90m, 2h30m, 3d, 1w.

Lists have a row for each element, as those of openstack: -f json and -f yaml print the
columns of the table, and -f shell one line of assignments each. 'show' and others that
print one resource print all of its fields, by their names in the API. -f api prints
the whole answer of the API as JSON.

Data is printed to standard output, messages to standard error. Exit codes:
  0 done                 1 failed            2 usage, or a request that makes no sense
  3 not found            4 denied            5 no capacity, or a conflict
  6 timed out`,
		Example: `  almanac availability --quantity 2 --duration 2h
  almanac reservation create training --quantity 2 --duration 2h --start +1d
  almanac reservation list -f json`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(wrongVerb)
	flags := root.PersistentFlags()
	p.format, p.timeout = "table", 30
	flags.VarP(&p.format, "format", "f", "output format: "+strings.Join(formats, ", "))
	flags.StringArrayVarP(&p.columns, "column", "c", nil, "print only this column (repeatable)")
	flags.StringVar(&p.url, "url", "", "address of Almanac (default: ALMANAC_URL, or the address in the catalog, or "+defaultURL+")")
	flags.StringVar(&p.choice.Cloud, "os-cloud", "", "cloud of clouds.yaml to log in to (default: OS_CLOUD)")
	flags.StringVar(&p.choice.Region, "os-region-name", "", "region of Almanac (default: OS_REGION_NAME)")
	flags.StringVar(&p.choice.Interface, "os-interface", "", "public, internal or admin endpoint (default: OS_INTERFACE, or public)")
	flags.Var(&p.timeout, "timeout", "maximum time to wait for each answer; 0 is unlimited")
	flags.BoolVar(&p.debug, "debug", false, "print requests and answers to standard error")
	completeFlag(root, "format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(
		p.reservationCommand(),
		p.groupCommand(),
		p.seriesCommand(), p.webhookCommand(),
		p.availabilityCommand(),
		p.offersCommand(),
		p.calendarCommand(),
		p.limitsCommand(),
		p.usageCommand(),
		p.eventsCommand(),
		p.hostCommand(),
		p.propertiesCommand(),
		p.whatIfCommand(),
		p.simulateCommand(),
		p.decisionCommand(),
		p.preemptibleCommand(),
		p.imageCommand(),
		p.energyCommand(),
		p.packCommand(),
		p.bestEffortCommand(),
		p.demoCommand(),
		p.doctorCommand(),
		p.readinessCommand(),
		p.versionCommand(),
		manual.Command(theManual()),
	)
	return root
}

func theManual() manual.Program {
	return manual.Program{
		Name: "almanac", Version: version, Section: "1",
		Environment: []manual.Item{
			{Name: "ALMANAC_URL", Purpose: "the address of Almanac, as --url"},
			{Name: "OS_CLOUD", Purpose: "a cloud of clouds.yaml, as --os-cloud"},
			{Name: "OS_AUTH_URL", Purpose: "the address of Keystone"},
			{Name: "OS_AUTH_TYPE", Purpose: "password, v3applicationcredential or token, if the other variables do not tell"},
			{Name: "OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME", Purpose: "a user and their project, with OS_USER_DOMAIN_NAME and OS_PROJECT_DOMAIN_NAME, or the same with _ID"},
			{Name: "OS_APPLICATION_CREDENTIAL_ID, OS_APPLICATION_CREDENTIAL_SECRET", Purpose: "an application credential"},
			{Name: "OS_TOKEN", Purpose: "a token"},
			{Name: "OS_REGION_NAME, OS_INTERFACE", Purpose: "which endpoint of the catalog, as --os-region-name and --os-interface"},
			{Name: "OS_CACERT", Purpose: "a file with the certificates of the authorities to trust"},
			{Name: "OS_INSECURE", Purpose: "true does not check certificates"},
		},
		Files: []manual.Item{{Name: "clouds.yaml, secure.yaml", Purpose: "the clouds and their secrets: in the file that OS_CLIENT_CONFIG_FILE names, in the present folder, ~/.config/openstack or /etc/openstack"}},
	}
}

// prepare makes a command that only groups others fail without one of them, sets begun when the
// work of a command starts, and settles its times before.
func (p *process) prepare(c *cobra.Command, begun *bool) {
	for _, sub := range c.Commands() {
		p.prepare(sub, begun)
	}
	if !c.Runnable() {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error { return unknownCommand(c, args) }
	}
	if work := c.RunE; work != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			*begun = true
			if err := p.settle(c); err != nil {
				return err
			}
			return work(c, args)
		}
	}
}

// needsOne accepts one argument.
func needsOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("needs one %s, got %d; put values with blanks in quotes", what, len(args))
		}
		return nil
	}
}

// inform prints a message.
func (p *process) inform(format string, args ...any) {
	fmt.Fprintf(p.stderr, format+"\n", args...)
}
