// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
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
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// backtest has the flags of "energy backtest".
type backtest struct {
	trace       string
	service     bool
	days, hosts int
	step, ahead period
	weight      float64
	out         string
}

// trialAnswer is the printed result of one forecaster.
type trialAnswer struct {
	Forecaster       string  `json:"forecaster"`
	MeanError        float64 `json:"mean_error"` // hosts
	MissedHostHours  float64 `json:"missed_host_hours"`
	SurplusHostHours float64 `json:"surplus_host_hours"`
	WorstMiss        int     `json:"worst_miss"` // hosts
	WorstAt          string  `json:"worst_at"`
	Score            float64 `json:"score"` // host-hours
}

// backtestAnswer is the printed result of all forecasters, the best first.
type backtestAnswer struct {
	Forecasters []trialAnswer `json:"forecasters"`
	Winner      string        `json:"winner"`
	Weight      float64       `json:"weight"`
	From        string        `json:"from"`
	Until       string        `json:"until"`
	Samples     int           `json:"samples"`
	Hosts       int           `json:"hosts"`
	// AlwaysOn is the number of idle host-hours if no host is ever switched off.
	AlwaysOn       float64        `json:"always_on_host_hours"`
	Rows           int            `json:"rows"`
	NotUsed        map[string]int `json:"not_used"`        // rows by reason
	NotUsedRows    []notUsed      `json:"not_used_rows"`   // all of them
	SyntheticSizes bool           `json:"synthetic_sizes"` // 1 + JobID mod 8
}

// notUsed is a line of the file that was skipped.
type notUsed struct {
	Line   int64  `json:"line"`
	Reason string `json:"reason"`
}

func trialFields(a trialAnswer) []field {
	return []field{
		{"Forecaster", a.Forecaster, inLists}, {"Mean Error", a.MeanError, inLists}, {"Missed Host Hours", a.MissedHostHours, inLists},
		{"Surplus Host Hours", a.SurplusHostHours, inLists}, {"Worst Miss", a.WorstMiss, inLists}, {"Worst At", a.WorstAt, inLists},
		{"Score", a.Score, inLists},
	}
}

func (p *process) energyBacktestCommand() *cobra.Command {
	b := &backtest{step: 300, ahead: 900}
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

func (p *process) backtest(ctx context.Context, b *backtest) error {
	out, err := newPrinter(p, trialFields, inShows)
	if err != nil {
		return err
	}
	if err := b.check(); err != nil {
		return err
	}
	demand, err := p.demand(ctx, b)
	if err != nil {
		return err
	}
	rules := energy.Backtest{Ahead: int64(b.ahead), Hosts: b.hosts, Weight: b.weight}
	if rules.Hosts == 0 {
		rules.Hosts = energy.MostInUse(demand.series)
	}
	trials, err := rules.Run(demand.series, energy.Forecasters...)
	if err != nil {
		return err
	}
	answer := demand.answer(rules, trials)
	if b.out != "" {
		if err := b.write(demand, trials, answer); err != nil {
			return err
		}
	}
	p.describeBacktest(answer)
	return out.list(answer.Forecasters, answer)
}

func (b *backtest) check() error {
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

// measured is the demand, sorted by time, and the lines of its file that were skipped.
type measured struct {
	series    []energy.Demand
	rows      int
	unused    []notUsed
	synthetic bool
}

// reasons counts the lines that were skipped.
func (m *measured) reasons() map[string]int {
	count := map[string]int{}
	for _, line := range m.unused {
		count[line.Reason]++
	}
	return count
}

// demand returns the demand that the flags select, sampled.
func (p *process) demand(ctx context.Context, b *backtest) (m measured, err error) {
	if b.service {
		err = p.recorded(ctx, b, &m)
	} else {
		var content []byte
		if content, err = p.read(b.trace); err == nil {
			err = m.read(content, b.trace)
		}
	}
	if err != nil {
		return m, err
	}
	if len(m.series) == 0 {
		return m, fault.Field("--trace", "none of the %d rows of the file can be used%s", m.rows, counted(m.reasons()))
	}
	m.series, err = energy.Sample(m.series, int64(b.step))
	return m, err
}

// recorded requests the demand from Almanac.
func (p *process) recorded(ctx context.Context, b *backtest, m *measured) error {
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
	if m.rows = len(found.Demand); m.rows == 0 {
		return fault.New(fault.NotFound, "nothing is recorded yet; Almanac records the demand in the modes observe, recommend and auto")
	}
	for _, d := range found.Demand {
		m.series = append(m.series, energy.Demand{At: span.At(d.At), InUse: d.InUse, Reserved: d.Reserved})
	}
	return nil
}

// read reads a file of measurements, jobs or reservations.
func (m *measured) read(content []byte, name string) error {
	skipped := func(line int64, reason string) {
		if reason != workload.Blank {
			m.unused = append(m.unused, notUsed{line, reason})
		}
	}
	uses, found, err := workload.ReadUse(bytes.NewReader(content), skipped)
	if err != nil {
		return err
	}
	for _, u := range uses {
		m.series = append(m.series, energy.Demand{At: span.Instant(u.At), InUse: u.InUse})
	}
	if m.rows = len(uses) + len(m.unused); found {
		return nil
	}
	file, err := workload.Read(bytes.NewReader(content), name, workload.OpenOptions{MakeUp: true, FileOrder: true, Skipped: skipped})
	if err != nil {
		return err
	}
	var busy []energy.Use
	for {
		job, err := file.Next()
		switch {
		case errors.Is(err, io.EOF):
			m.series, m.rows, m.synthetic = energy.DemandOf(busy), len(busy)+len(m.unused), file.Header().MadeUp != ""
			return nil
		case err != nil:
			return err
		}
		start := span.Instant(job.Begin() + max(0, job.Waited))
		busy = append(busy, energy.Use{Span: span.Span{Start: start, End: start.Add(job.Runtime)}, Hosts: job.Size})
	}
}

func (m *measured) answer(rules energy.Backtest, trials []energy.Trial) backtestAnswer {
	a := backtestAnswer{
		Winner: trials[0].Forecaster, Weight: rules.Weight, Hosts: rules.Hosts, Samples: len(m.series),
		From: m.series[0].At.String(), Until: m.series[len(m.series)-1].At.String(), AlwaysOn: rounded(rules.AlwaysOn(m.series)),
		Rows: m.rows, NotUsed: m.reasons(), NotUsedRows: m.unused, SyntheticSizes: m.synthetic,
	}
	for _, t := range trials {
		one := trialAnswer{
			Forecaster: t.Forecaster, MeanError: rounded(t.MAE), MissedHostHours: rounded(t.Missed), SurplusHostHours: rounded(t.Surplus),
			WorstMiss: t.Worst, Score: rounded(t.Score),
		}
		if t.Worst > 0 {
			one.WorstAt = t.WorstAt.String()
		}
		a.Forecasters = append(a.Forecasters, one)
	}
	return a
}

func rounded(x float64) float64 { return math.Round(x*100) / 100 }

// describeBacktest prints the demand of a backtest.
func (p *process) describeBacktest(a backtestAnswer) {
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
func (b *backtest) write(demand measured, trials []energy.Trial, answer backtestAnswer) error {
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
	const day = 24 * 3600
	drawing := figure.Figure{Width: 9, Height: 11, Rows: [][]figure.Panel{
		{b.part("The busiest week, and what the best forecaster had switched on", 7*day, demand.series, trials[:1])},
		{b.part("The busiest day, and what each had switched on", day, demand.series, trials)},
		{b.scores(trials)},
	}}
	return drawing.WriteFiles(filepath.Join(b.out, "forecast"))
}

// part shows the hosts in use in the busiest period of a length, and the hosts that were on.
func (b *backtest) part(title string, long int64, series []energy.Demand, trials []energy.Trial) figure.Panel {
	first, last := energy.Busiest(series, long)
	inUse := figure.Line{Name: "in use", Step: true}
	for _, d := range series[first:last] {
		inUse.Points = append(inUse.Points, figure.Point{X: float64(d.At), Y: float64(d.InUse)})
	}
	panel := figure.Panel{
		Title: title, Lines: []figure.Line{inUse},
		X: figure.Axis{Label: "time, UTC", Time: true}, Y: figure.Axis{Label: "hosts", FromZero: true},
	}
	for _, t := range trials {
		on := figure.Line{Name: t.Forecaster, Step: true}
		for i, d := range series[first:last] {
			on.Points = append(on.Points, figure.Point{X: float64(d.At.Add(int64(b.ahead))), Y: float64(t.Required[first+i])})
		}
		panel.Lines = append(panel.Lines, on)
	}
	return panel
}

// scores shows the scores for 0.3, 1 and 3 times the weight.
func (b *backtest) scores(trials []energy.Trial) figure.Panel {
	panel := figure.Panel{
		Title: "Scores", X: figure.Axis{Label: "idle host-hours that a missed one costs"},
		Y: figure.Axis{Label: "host-hours (less is better)"},
	}
	weights := []float64{0.3 * b.weight, b.weight, 3 * b.weight}
	for _, weight := range weights {
		panel.Groups = append(panel.Groups, fmt.Sprintf("%.4g", weight))
	}
	for _, t := range trials {
		bars := figure.Bars{Name: t.Forecaster}
		for _, weight := range weights {
			bars.Values = append(bars.Values, weight*t.Missed+t.Surplus)
		}
		panel.Bars = append(panel.Bars, bars)
	}
	return panel
}
