package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/keystone"
)

// process is one run of the program: what it has from outside, and its global
// flags.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string
	now            func() time.Time
	// pause waits for a time, or until the context ends.
	pause func(context.Context, time.Duration) error

	// interactive reports whether somebody can be asked; nil is whether stdin is a terminal.
	interactive func() bool
	lines       *bufio.Reader // stdin, once a line was read of it

	format  format
	columns []string
	url     string
	choice  keystone.Choice
	timeout period
	debug   bool
}

// run carries out a command line and gives its exit code. Data goes to stdout,
// messages to stderr.
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
	prepare(root, &begun)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if !begun { // cobra did not accept the command line
		err = &outcome{exitUsage, fmt.Sprintf("%v; see '%s --help'", err, command.CommandPath())}
	}
	p.report(command, err)
	return codeOf(err)
}

func (p *process) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "almanac",
		Short: "Reserve servers ahead of time",
		Long: `Reserve servers of a cloud ahead of time, see when and where there is room, and
change or cancel what is reserved.

Almanac is found, and you are known to it, in one of three ways:
  --os-cloud, OS_CLOUD     a cloud of clouds.yaml, with what secure.yaml adds to it
  OS_AUTH_URL and so on    the variables that an openrc file sets: a user and a
                           password, an application credential or a token
  --url, ALMANAC_URL       an Almanac without Keystone; beside one of the others,
                           where Almanac is instead of where the catalog says
Without any of them it is http://127.0.0.1:1234, without a user.

Times are written "now", "+2h" (from now), or with their zone:
2026-12-01T10:00+01:00, "2026-12-01 10:00Z". They are printed in UTC.
Durations are written in seconds, or as 90m, 2h30m, 3d, 1w.

Data is printed on standard output, messages on standard error. Exit codes:
  0 done                 1 failed            2 usage, or a request that makes no sense
  3 not found            4 denied            5 no capacity, or a conflict
  6 timed out`,
		Example: `  almanac availability --quantity 2 --duration 2h
  almanac reservation create training --quantity 2 --duration 2h --start +1d
  almanac reservation list -f json`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	p.format, p.timeout = "table", 30
	flags.VarP(&p.format, "format", "f", "how to print data: "+strings.Join(formats, ", "))
	flags.StringArrayVarP(&p.columns, "column", "c", nil, "print only this column (repeatable)")
	flags.StringVar(&p.url, "url", "", "where Almanac answers (default: ALMANAC_URL, or what the catalog says, or "+defaultURL+")")
	flags.StringVar(&p.choice.Cloud, "os-cloud", "", "cloud of clouds.yaml to log in to (default: OS_CLOUD)")
	flags.StringVar(&p.choice.Region, "os-region-name", "", "region of Almanac (default: OS_REGION_NAME)")
	flags.StringVar(&p.choice.Interface, "os-interface", "", "public, internal or admin endpoint (default: OS_INTERFACE, or public)")
	flags.Var(&p.timeout, "timeout", "how long to wait for each answer; 0 is without end")
	flags.BoolVar(&p.debug, "debug", false, "print requests and answers on standard error")
	completeFlag(root, "format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(
		p.reservationCommand(),
		p.availabilityCommand(),
		p.calendarCommand(),
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
		p.doctorCommand(),
		p.readinessCommand(),
		p.versionCommand(),
	)
	return root
}

// prepare makes a command that only has others fail where none of them is named,
// and sets begun when a command's own work begins.
func prepare(c *cobra.Command, begun *bool) {
	for _, sub := range c.Commands() {
		prepare(sub, begun)
	}
	if !c.Runnable() {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error { return unknownCommand(c, args) }
	}
	if work := c.RunE; work != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			*begun = true
			return work(c, args)
		}
	}
}

// unknownCommand says what c could be followed by.
func unknownCommand(c *cobra.Command, args []string) error {
	var known []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	if len(args) == 0 {
		return fault.New(fault.Invalid, "%[1]s needs a command: %[2]s; see '%[1]s --help'", c.CommandPath(), strings.Join(known, ", "))
	}
	return fault.New(fault.Invalid, "%s", unknown("command", args[0], known))
}

// unknown says that a name is none of known: which one is near, or which there are.
func unknown(what, name string, known []string) string {
	text := fault.Unknown(what, name, known)
	if fault.Nearest(name, known) == "" {
		text += "; there are " + strings.Join(known, ", ")
	}
	return text
}

// needsOne accepts one argument.
func needsOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("needs one %s, got %d; put one with blanks in quotes", what, len(args))
		}
		return nil
	}
}

// inform prints a message for people.
func (p *process) inform(format string, args ...any) {
	fmt.Fprintf(p.stderr, format+"\n", args...)
}
