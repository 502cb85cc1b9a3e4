// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// TariffOptions describe the workload and the tariffs under which it is replayed: with the policy first-fit, and with
// cheapest.
type TariffOptions struct {
	Options // without Settings
	// Runs is the number of tariffs that are drawn.
	Runs int
}

// TariffDefaults returns the options for an operator who only names a trace.
func TariffDefaults() TariffOptions { return TariffOptions{Defaults(), 5} }

const mostRuns = 1000

// Check returns a fault that names the first option outside its range.
func (o TariffOptions) Check() error {
	if o.Runs < 2 || o.Runs > mostRuns {
		return fault.Field("runs", "is %d; it must be from 2 to %d", o.Runs, mostRuns)
	}
	return o.Options.Check()
}

// windows are the longest waits that the jobs are given, in seconds.
var windows = []int64{6 * 3600, daySeconds, 3 * daySeconds}

// manners are the ways in which starts are chosen.
var manners = []struct {
	name   string
	policy calendar.Policy
	ahead  bool
}{
	{"first fit", calendar.PolicyFirstFit, false},
	{"cheapest, day-ahead prices", calendar.PolicyCheapest, true},
	{"cheapest, all prices known", calendar.PolicyCheapest, false},
}

// Run replays the traces with each window, each manner and each drawn tariff. progress receives the number of replays; it
// may be nil.
func (o TariffOptions) Run(ctx context.Context, progress sim.Progress) (*sim.Report, error) {
	hosts, in, err := o.prepare(ctx)
	if err != nil {
		return nil, err
	}
	each := len(manners) * o.Runs
	results, err := sim.Runs(ctx, len(windows)*each, progress, func(ctx context.Context, i int) (result, error) {
		manner := &manners[i%each/o.Runs]
		s := DefaultSetting()
		s.Name, s.Policy, s.Patience = manner.name, manner.policy, windows[i/each]
		t := newTrial(ctx, &o.Options, &s, in, hosts)
		t.market = newMarket(in.zero().Add(in.first), sim.Chance(o.Seed, "tariff", i%o.Runs), manner.ahead)
		return t.perform(ctx, func() {})
	})
	if err != nil {
		return nil, err
	}
	return o.report(in, hosts, results), nil
}

// priced is a measure of a replay with a tariff.
type priced struct {
	key, name, unit string
	digits          int
	of              func(r *result) float64
}

var pricedMeasures = []priced{
	{"price", "price of a host-hour", "", 2, func(r *result) float64 { return r.tally.paid / 100 / (r.tally.inUse / hour) }},
	{"mean_wait", "mean wait", "h", 2, func(r *result) float64 { mean, _ := r.tally.waits.mean(); return mean / hour }},
	{"acceptance", "accepted", "%", 2, func(r *result) float64 { share, _ := r.tally.others.share(); return 100 * share }},
	{"fallbacks", "begun by first fit after all", "%", 1, func(r *result) float64 {
		return 100 * float64(r.tally.fallbacks) / float64(max(1, r.accepted()))
	}},
}

func (o TariffOptions) report(in *survey, hosts []inventory.Host, results []result) *sim.Report {
	r := sim.NewReport("Savings of the policy cheapest on " + baseNames(o.Traces)[0])
	r.Results.Columns = []string{"window", "manner", "run", "measure", "unit", "value"}
	t := sim.Table{Columns: []string{"longest wait", "starts"}}
	for _, m := range pricedMeasures {
		name := m.name
		if m.unit != "" {
			name += " (" + m.unit + ")"
		}
		t.Columns = append(t.Columns, name)
	}
	t.Columns = append(t.Columns, "saved (%)")
	for w, window := range windows {
		for m, manner := range manners {
			runs := results[(w*len(manners)+m)*o.Runs:][:o.Runs]
			row := []any{lasting(window), manner.name}
			for _, measure := range pricedMeasures {
				values := sim.Each(runs, func(r result) float64 { return measure.of(&r) })
				row = append(row, sim.Mean(values).Format(measure.digits))
				for run, value := range values {
					r.Results.Add(lasting(window), manner.name, run, measure.key, measure.unit, value)
				}
			}
			saved := "–"
			if m > 0 {
				saved = sim.Mean(o.saved(results, w, m)).Format(1)
			}
			t.Add(append(row, saved)...)
		}
	}
	r.Table(t)
	r.Text("Means over %d drawn tariffs with 95 %% intervals (Student's t). Saved is what a host-hour of work costs less than with first fit under the same tariff. "+
		"A job pays for the time for which it really ran; its start was chosen for the estimate of its user, which is longer.", o.Runs)
	r.Heading(2, "How it was done")
	r.List(
		fmt.Sprintf("%d jobs of %s on %s. Each is a request to the booking code of the service, at the time of its submission, which waits no longer than its row says.",
			in.jobs, baseNames(o.Traces)[0], fault.Counted(len(hosts), "host")),
		"The tariffs are made up: the price of an hour is 80 in the mean, follows a curve with a peak in the evening at twice the prices of the night and of noon, and differs by day "+
			fmt.Sprintf("(a lognormal level with a deviation of %g) and by hour (a noise of %g of it).", dayDeviation, hourNoise),
		"Day-ahead prices are known until midnight, and from 13:00 on until the next midnight. A request whose window is longer begins by first fit, as in the service.",
		fmt.Sprintf("The tariffs follow from seed %d. The same trace and seed produce the same report.", o.Seed),
	)
	return r
}

// saved returns how much less a host-hour costs in a manner than with first fit, in percent, for each tariff.
func (o TariffOptions) saved(results []result, window, manner int) []float64 {
	price := func(m, run int) float64 { return pricedMeasures[0].of(&results[(window*len(manners)+m)*o.Runs+run]) }
	values := make([]float64, o.Runs)
	for run := range values {
		values[run] = 100 * (1 - price(manner, run)/price(0, run))
	}
	return values
}
