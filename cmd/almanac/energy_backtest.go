// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/backtest"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// backtestFlags are the flags of "energy backtest".
type backtestFlags struct {
	trace       string
	service     bool
	days, hosts int
	step, ahead period
	weight      float64
	out         string
}

func trialFields(a backtest.Trial) []field {
	return []field{
		{"Forecaster", a.Forecaster, inLists}, {"Mean Error", a.MeanError, inLists}, {"Missed Host Hours", a.MissedHostHours, inLists},
		{"Surplus Host Hours", a.SurplusHostHours, inLists}, {"Worst Miss", a.WorstMiss, inLists}, {"Worst At", a.WorstAt, inLists},
		{"Score", a.Score, inLists},
	}
}

func (p *process) energyBacktestCommand() *cobra.Command {
	b := &backtestFlags{step: 300, ahead: 900}
	c := &cobra.Command{
		Use:   "backtest",
		Short: "Compare forecasters on past demand",
		Long: `Compare forecasters on past demand. Each forecaster receives the past step by step, and
the plan keeps on as many hosts as it forecasts, or as are reserved if that is more. A
host is on --ahead after a plan requires it, and off if the plan does not. Then

  missed   is the host-hours that were in use and not on: users waited for a boot
  surplus  is the host-hours that were on and not in use
  score    is --weight × missed + surplus; less is better
  error    is the mean error of the forecast in hosts, against the largest number of
           hosts in use within --ahead

The demand is what Almanac has recorded (--service), or a file (--trace), compressed
with gzip or not; - is standard input. The file is

  time,in_use  a CSV file of measurements with these columns; times in epoch seconds or
               RFC 3339
  or any file that "reservation import" reads: each job or reservation is in use from
               its start to its end, as if it had not been known before. The
               reservations of oar receive the synthetic size 1 + JobID mod 8

The command counts lines that it cannot use, and lists them in JSON and in the folder of
--out. That folder receives results.csv, unused.csv, and forecast.svg and .png with the
busiest week, and the scores for 0.3, 1 and 3 times the weight.`,
		Example: `  almanac energy backtest --service --days 28
  almanac energy backtest --trace grid5000_reservation_jobs.log.gz --weight 10 --out figures`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return flagged(c.LocalNonPersistentFlags(), p.backtest(c.Context(), b))
		},
	}
	flags := c.Flags()
	flags.StringVar(&b.trace, "trace", "", "file with measurements, jobs or reservations")
	flags.BoolVar(&b.service, "service", false, "use the demand that Almanac has recorded")
	flags.IntVar(&b.days, "days", 28, "with --service: number of days back")
	flags.IntVar(&b.hosts, "hosts", 0, "number of hosts; 0 is the largest number in use")
	flags.Var(&b.step, "step", "time between two measurements and plans")
	flags.Var(&b.ahead, "ahead", "forecast horizon, and the time until a host is on")
	flags.Float64Var(&b.weight, "weight", 10, "cost of a missed host-hour, in idle host-hours")
	flags.StringVar(&b.out, "out", "", "folder for the figure and the tables; it is created")
	return c
}

func (p *process) backtest(ctx context.Context, b *backtestFlags) error {
	out, err := newPrinter(p, trialFields, inShows)
	if err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	past, err := p.pastDemand(ctx, b)
	if err != nil {
		return err
	}
	rules := energy.Backtest{Ahead: int64(b.ahead), Hosts: b.hosts, Weight: b.weight}
	if rules.Hosts == 0 {
		rules.Hosts = energy.MostInUse(past.Series)
	}
	trials, err := rules.Run(past.Series, energy.Forecasters...)
	if err != nil {
		return err
	}
	answer := past.Answer(rules, trials)
	if b.out != "" {
		if err := b.write(past, rules, trials, answer); err != nil {
			return err
		}
	}
	p.describeBacktest(answer)
	return out.list(answer.Forecasters, answer)
}

func (b *backtestFlags) check() error {
	switch {
	case b.service == (b.trace != ""):
		return fault.New(fault.Invalid, "either --trace or --service selects the demand")
	case b.step < 1:
		return fault.Field("--step", "must be 1 second or more")
	case b.ahead < 1:
		return fault.Field("--ahead", "must be 1 second or more")
	case b.hosts < 0:
		return fault.Field("--hosts", "must be 0 or more")
	case b.days < 1 || b.days > 3660:
		return fault.Field("--days", "must be from 1 to 3660")
	case !(b.weight >= 0) || math.IsInf(b.weight, 0):
		return fault.Field("--weight", "must be 0 or more")
	}
	return nil
}

// pastDemand returns the demand that the flags select, sampled.
func (p *process) pastDemand(ctx context.Context, b *backtestFlags) (m backtest.Past, err error) {
	if b.service {
		err = p.recorded(ctx, b, &m)
	} else {
		var content []byte
		if content, err = p.read(b.trace); err == nil {
			m, err = backtest.Read(content, b.trace)
		}
	}
	if err != nil {
		return m, err
	}
	if len(m.Series) == 0 {
		return m, fault.Field("--trace", "none of the %d rows of the file can be used%s", m.Rows, counted(m.Reasons()))
	}
	m.Series, err = energy.Sample(m.Series, int64(b.step))
	return m, err
}

// recorded requests the demand from Almanac.
func (p *process) recorded(ctx context.Context, b *backtestFlags, m *backtest.Past) error {
	almanac, err := p.connect(ctx)
	if err != nil {
		return err
	}
	now, err := almanac.Now(ctx)
	if err != nil {
		return err
	}
	found, err := almanac.EnergyDemand(ctx, now.Add(-time.Duration(b.days)*24*time.Hour))
	if err != nil {
		return fmt.Errorf("request the demand: %w", err)
	}
	if m.Rows = len(found.Demand); m.Rows == 0 {
		return fault.New(fault.NotFound, "nothing is recorded yet; Almanac records the demand in the modes observe, recommend and auto")
	}
	for _, d := range found.Demand {
		m.Series = append(m.Series, energy.Demand{At: span.At(d.At), InUse: d.InUse, Reserved: d.Reserved})
	}
	return nil
}

// describeBacktest prints the demand of a backtest.
func (p *process) describeBacktest(a backtest.Answer) {
	p.inform("%d samples from %s to %s, %d hosts; always on they would be idle for %.0f host-hours.", a.Samples, a.From, a.Until, a.Hosts, a.AlwaysOn)
	p.inform("A missed host-hour costs %g idle ones.", a.Weight)
	if unused := len(a.NotUsedRows); unused > 0 {
		p.inform("%d of %d rows are not used%s.", unused, a.Rows, counted(a.NotUsed))
	}
	if a.SyntheticSizes {
		p.inform("The file has no sizes: each reservation has the synthetic size 1 + JobID mod 8.")
	}
}

// counted lists reasons with their counts.
func counted(reasons map[string]int) string {
	if len(reasons) == 0 {
		return ""
	}
	return ": " + strings.Join(each(slices.Sorted(maps.Keys(reasons)), func(reason string) string {
		return fmt.Sprintf("%s (%d)", reason, reasons[reason])
	}), ", ")
}

// write writes the figure and the tables to the folder.
func (b *backtestFlags) write(past backtest.Past, rules energy.Backtest, trials []energy.Trial, answer backtest.Answer) error {
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return fmt.Errorf("create the folder of --out: %w", err)
	}
	results := [][]string{{"forecaster", "mean_error_hosts", "missed_host_hours", "surplus_host_hours", "worst_miss_hosts", "worst_at", "score_host_hours"}}
	for _, t := range answer.Forecasters {
		results = append(results, each(trialFields(t), func(f field) string { return cell(f.value, false) }))
	}
	unused := [][]string{{"line", "reason"}}
	for _, row := range answer.NotUsedRows {
		unused = append(unused, []string{strconv.FormatInt(row.Line, 10), row.Reason})
	}
	for name, table := range map[string][][]string{"results.csv": results, "unused.csv": unused} {
		file, err := os.Create(filepath.Join(b.out, name))
		if err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
		if err := errors.Join(csv.NewWriter(file).WriteAll(table), file.Close()); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	drawing := past.Figure(rules, trials)
	return drawing.WriteFiles(filepath.Join(b.out, "forecast"))
}
