package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// experiment is one of the simulations, with its options O.
type experiment[O any] struct {
	use, short, long, example string
	options                   O
	flags                     func(f *pflag.FlagSet, o *O)
	// check refuses, before anything runs, what cannot be met.
	check func(o O) error
	run   func(ctx context.Context, o O, progress sim.Progress) (*sim.Report, error)
}

func (p *process) simulateCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "simulate",
		Short: "Try out on a virtual clock what the service would do",
		Long: `Try out on a virtual clock what the service would do, with the code that serves the
cloud. "replay" runs a workload of yours, to choose settings before you switch them on;
the others reproduce the evaluations of the papers that Almanac is built on.

Each writes a report (report.md), all results (results.csv) and figures (SVG and PNG)
into the folder of --out, over those of an earlier run there. The same command with the
same --seed writes the same bytes.`,
	}
	group.AddCommand(p.simulateDeadlineCommand(), p.simulateEnergyCommand(), p.simulatePreemptionCommand(), p.simulatePackingCommand(), p.simulateStagingCommand(), p.simulateReplayCommand())
	return group
}

// simulation makes a command of an experiment.
func simulation[O any](p *process, e experiment[O]) *cobra.Command {
	out := ""
	c := &cobra.Command{Use: e.use, Short: e.short, Long: e.long, Example: e.example, Args: cobra.NoArgs}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if out == "" {
			return fault.Field("--out", "is needed: the folder for the report, the results and the figures")
		}
		if err := e.check(e.options); err != nil {
			return flagged(c.LocalNonPersistentFlags(), err)
		}
		if err := writable(out); err != nil {
			return err
		}
		if p.env("GOGC") == "" {
			// Most of what a simulation makes is garbage soon, and little is live.
			defer debug.SetGCPercent(debug.SetGCPercent(400))
		}
		report, err := e.run(c.Context(), e.options, p.steps())
		if err != nil {
			_ = os.Remove(out) // where it is empty
			return flagged(c.LocalNonPersistentFlags(), err)
		}
		if err := report.Write(out); err != nil {
			return err
		}
		p.inform("The report is %s.", filepath.Join(out, "report.md"))
		return nil
	}
	c.Flags().StringVar(&out, "out", "", "folder for the report, the results and the figures; it is made")
	e.flags(c.Flags(), &e.options)
	return c
}

// writable makes the folder of --out and says whether a report can be written there, before
// a run of hours.
func writable(folder string) error {
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(folder, ".report-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return &fault.Error{Kind: fault.Invalid, Field: "--out", Message: "nothing can be written there", Err: err}
	}
	return nil
}

// flagged names the flag where an error names the option that it sets.
func flagged(flags *pflag.FlagSet, err error) error {
	invalid, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	name := strings.ReplaceAll(invalid.Field, "_", "-")
	if flags.Lookup(name) == nil {
		return err
	}
	named := *invalid
	named.Field = "--" + name
	return &named
}

// steps shows how many steps of a simulation are done.
func (p *process) steps() sim.Progress {
	s := &stepped{process: p}
	return s.done
}
