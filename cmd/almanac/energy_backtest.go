package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
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

// trialAnswer is how one forecaster did, as it is printed.
type trialAnswer struct {
	Forecaster       string  `json:"forecaster"`
	MeanError        float64 `json:"mean_error"` // hosts
	MissedHostHours  float64 `json:"missed_host_hours"`
	SurplusHostHours float64 `json:"surplus_host_hours"`
	WorstMiss        int     `json:"worst_miss"` // hosts
	WorstAt          string  `json:"worst_at"`
	Score            float64 `json:"score"` // host-hours
}

// backtestAnswer is how all of them did, the best first, and on what.
type backtestAnswer struct {
	Forecasters []trialAnswer `json:"forecasters"`
	Winner      string        `json:"winner"`
	Weight      float64       `json:"weight"`
	From        string        `json:"from"`
	Until       string        `json:"until"`
	Samples     int           `json:"samples"`
	Hosts       int           `json:"hosts"`
	// AlwaysOn are the host-hours that are idle where nothing is ever switched off.
	AlwaysOn       float64        `json:"always_on_host_hours"`
	Rows           int            `json:"rows"`
	NotUsed        map[string]int `json:"not_used"`        // rows by reason
	NotUsedRows    []notUsed      `json:"not_used_rows"`   // all of them
	SyntheticSizes bool           `json:"synthetic_sizes"` // 1 + JobID mod 8
}

// notUsed is a row of the file that says nothing of the demand.
type notUsed struct {
	Row    string `json:"row"`
	Reason string `json:"reason"`
}

var trialColumns = []column[trialAnswer]{
	{"Forecaster", func(a trialAnswer) any { return a.Forecaster }, inLists},
	{"Mean Error", func(a trialAnswer) any { return a.MeanError }, inLists},
	{"Missed Host Hours", func(a trialAnswer) any { return a.MissedHostHours }, inLists},
	{"Surplus Host Hours", func(a trialAnswer) any { return a.SurplusHostHours }, inLists},
	{"Worst Miss", func(a trialAnswer) any { return a.WorstMiss }, inLists},
	{"Worst At", func(a trialAnswer) any { return a.WorstAt }, inLists},
	{"Score", func(a trialAnswer) any { return a.Score }, inLists},
}

func (p *process) energyBacktestCommand() *cobra.Command {
	b := &backtest{step: 300, ahead: 900}
	c := &cobra.Command{
		Use:   "backtest",
		Short: "Which forecaster would have done best",
		Long: `Which forecaster would have done best on what has been in use. Each is told of the
past step by step, and the plan keeps on as many hosts as it forecasts, or as are
reserved if these are more. What a plan asks for is on, and what it does not ask for
is off, --ahead later. Then

  missed   are the host-hours that were in use and not on: somebody waited for a boot
  surplus  are the host-hours that were on and not in use
  score    is --weight × missed + surplus; less is better
  error    is that of the forecast in hosts, against the most in use within --ahead

The demand is that which Almanac has recorded (--service), or a file (--trace),
compressed with gzip or not; - is standard input. It is one of

  time,in_use  a CSV file of measurements with that header; times in epoch seconds or
               RFC 3339
  any file that "reservation import" reads: each reservation is in use from its start
               to its end, as if nobody had known of it before. The table of Grid'5000
               has no sizes: each gets the synthetic size 1 + JobID mod 8

Rows that cannot be used are counted, and named in JSON and in the folder of --out,
which gets results.csv, unused.csv, and forecast.svg and .png: the busiest week, and the
scores with 0.3, 1 and 3 times the weight.`,
		Example: `  almanac energy backtest --service --days 28
  almanac energy backtest --trace grid5000_reservation_jobs.log.gz --weight 10 --out figures`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.backtest(c.Context(), b) },
	}
	flags := c.Flags()
	flags.StringVar(&b.trace, "trace", "", "file with what was in use, or with reservations")
	flags.BoolVar(&b.service, "service", false, "take what Almanac has recorded")
	flags.IntVar(&b.days, "days", 28, "of --service: how many days back")
	flags.IntVar(&b.hosts, "hosts", 0, "how many hosts there are; 0 is as many as were in use at most")
	flags.Var(&b.step, "step", "time between two measurements and plans")
	flags.Var(&b.ahead, "ahead", "how far is forecast, and how long a host takes until it is on")
	flags.Float64Var(&b.weight, "weight", 10, "how many idle host-hours a missed one costs")
	flags.StringVar(&b.out, "out", "", "folder for the picture and the tables; it is made")
	return c
}

func (p *process) backtest(ctx context.Context, b *backtest) error {
	out, err := newPrinter(p, trialColumns, inShows)
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
		rules.Hosts = slices.MaxFunc(demand.series, func(a, b energy.Demand) int { return a.InUse - b.InUse }).InUse
	}
	trials, err := rules.Run(demand.series, energy.Forecasters...)
	if err != nil {
		return err
	}
	answer := b.answer(demand, rules, trials)
	if b.out != "" {
		if err := b.write(demand, trials, answer); err != nil {
			return err
		}
	}
	p.judgedOn(answer)
	return out.list(answer.Forecasters, answer)
}

func (b *backtest) check() error {
	switch {
	case b.service == (b.trace != ""):
		return fault.New(fault.Invalid, "either --trace or --service says what was in use")
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

// demand reads what was in use.
func (p *process) demand(ctx context.Context, b *backtest) (measured, error) {
	if b.service {
		return p.recorded(ctx, b)
	}
	content, err := p.read(b.trace)
	if err != nil {
		return measured{}, err
	}
	found, err := readDemand(content, int64(b.step))
	if err == nil && len(found.series) == 0 {
		err = fault.Field("--trace", "none of the %d rows of the file can be used%s", found.rows, why(found.reasons()))
	}
	return found, err
}

// recorded asks Almanac.
func (p *process) recorded(ctx context.Context, b *backtest) (measured, error) {
	service, err := p.connect(ctx)
	if err != nil {
		return measured{}, err
	}
	found, err := service.EnergyDemand(ctx, p.now().Add(-time.Duration(b.days)*24*time.Hour))
	if err != nil {
		return measured{}, fmt.Errorf("ask for the demand: %w", err)
	}
	if len(found.Demand) == 0 {
		return measured{}, fault.New(fault.NotFound, "nothing is recorded yet; the demand is once the mode is observe, recommend or auto")
	}
	all := measured{rows: len(found.Demand)}
	for _, d := range found.Demand {
		all.series = append(all.series, energy.Demand{At: span.At(d.At), InUse: d.InUse, Reserved: d.Reserved})
	}
	all.series, err = sampled(all.series, int64(b.step))
	return all, err
}

func (b *backtest) answer(demand measured, rules energy.Backtest, trials []energy.Trial) backtestAnswer {
	series := demand.series
	a := backtestAnswer{
		Winner: trials[0].Forecaster, Weight: b.weight, Hosts: rules.Hosts, Samples: len(series),
		From: series[0].At.String(), Until: series[len(series)-1].At.String(),
		Rows: demand.rows, NotUsed: demand.reasons(), NotUsedRows: demand.unused, SyntheticSizes: demand.synthetic,
	}
	for i, d := range series[:len(series)-1] {
		if d.At >= series[0].At.Add(rules.Ahead) { // as the forecasters are judged
			a.AlwaysOn += float64(max(rules.Hosts-d.InUse, 0)) * float64(series[i+1].At-d.At) / 3600
		}
	}
	a.AlwaysOn = rounded(a.AlwaysOn)
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

// judgedOn says on what the forecasters were judged.
func (p *process) judgedOn(a backtestAnswer) {
	p.inform("%d samples from %s to %s, %d hosts; always on they would be idle for %.0f host-hours.", a.Samples, a.From, a.Until, a.Hosts, a.AlwaysOn)
	p.inform("A missed host-hour costs %g idle ones.", a.Weight)
	if unused := len(a.NotUsedRows); unused > 0 {
		p.inform("%d of %d rows are not used%s.", unused, a.Rows, why(a.NotUsed))
	}
	if a.SyntheticSizes {
		p.inform("The file has no sizes: each reservation has the synthetic size 1 + JobID mod 8.")
	}
}

// why lists reasons with how often each was given.
func why(reasons map[string]int) string {
	if len(reasons) == 0 {
		return ""
	}
	return ": " + strings.Join(each(slices.Sorted(maps.Keys(reasons)), func(reason string) string {
		return fmt.Sprintf("%d %s", reasons[reason], reason)
	}), ", ")
}
