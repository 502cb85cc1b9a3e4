// SPDX-License-Identifier: Apache-2.0

package main

import (
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

// experiment is the command of a simulation with options O.
type experiment[O sim.Experiment] struct {
	use, short, long, example string
	options                   O
	flags                     func(f *pflag.FlagSet, o *O)
}

func (p *process) simulateCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "simulate",
		Short: "Simulate the service on a virtual clock",
		Long: `Simulate the service on a virtual clock, with the code that serves the cloud. "replay"
runs your own workload, so that you can compare settings before you use them; the other
commands reproduce the evaluations of the papers that Almanac is based on.

Each command writes a report (report.md), all results (results.csv) and figures (SVG and
PNG) to the folder of --out, and replaces those of an earlier run. The same command with
the same --seed writes the same bytes.`,
	}
	group.AddCommand(p.simulateDeadlineCommand(), p.simulateMovableCommand(), p.simulateEnergyCommand(), p.simulatePreemptionCommand(), p.simulatePackingCommand(), p.simulateStagingCommand(), p.simulateReplayCommand(), p.simulateTariffCommand())
	return group
}

// simulation returns the command of an experiment.
func simulation[O sim.Experiment](p *process, e experiment[O]) *cobra.Command {
	out := ""
	c := &cobra.Command{Use: e.use, Short: e.short, Long: e.long, Example: e.example, Args: cobra.NoArgs}
	c.RunE = func(c *cobra.Command, _ []string) error {
		if out == "" {
			return fault.Field("--out", "is required: the folder for the report, the results and the figures")
		}
		if err := e.options.Check(); err != nil {
			return flagged(c.LocalNonPersistentFlags(), err)
		}
		if err := writable(out); err != nil {
			return err
		}
		if p.env("GOGC") == "" {
			// A simulation allocates much and keeps little.
			defer debug.SetGCPercent(debug.SetGCPercent(400))
		}
		report, err := sim.Perform(c.Context(), e.options, p.steps())
		if err != nil {
			_ = os.Remove(out) // if it is empty
			return flagged(c.LocalNonPersistentFlags(), err)
		}
		if err := report.Write(out); err != nil {
			return err
		}
		p.inform("The report is %s.", filepath.Join(out, "report.md"))
		return nil
	}
	c.Flags().StringVar(&out, "out", "", "folder for the report, the results and the figures; it is created")
	e.flags(c.Flags(), &e.options)
	return c
}

// writable creates the folder of --out and returns an error if a report cannot be written
// there, before a run of hours.
func writable(folder string) error {
	err := os.MkdirAll(folder, 0o755)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(folder, ".report-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return &fault.Error{Kind: fault.Invalid, Field: "--out", Message: "the folder is not writable", Err: err}
	}
	return nil
}

// flagged replaces the name of an option in an error by the flag that sets it.
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

// steps shows the progress of a simulation.
func (p *process) steps() sim.Progress {
	s := &stepped{process: p}
	return s.done
}
