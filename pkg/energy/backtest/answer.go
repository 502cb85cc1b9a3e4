// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"fmt"
	"math"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/figure"
)

// Trial is the printed result of one forecaster.
type Trial struct {
	Forecaster       string  `json:"forecaster"`
	MeanError        float64 `json:"mean_error"` // hosts
	MissedHostHours  float64 `json:"missed_host_hours"`
	SurplusHostHours float64 `json:"surplus_host_hours"`
	WorstMiss        int     `json:"worst_miss"` // hosts
	WorstAt          string  `json:"worst_at"`
	Score            float64 `json:"score"` // host-hours
}

// Answer is the printed result of all forecasters, the best first.
type Answer struct {
	Forecasters []Trial `json:"forecasters"`
	Winner      string  `json:"winner"`
	Weight      float64 `json:"weight"`
	From        string  `json:"from"`
	Until       string  `json:"until"`
	Samples     int     `json:"samples"`
	Hosts       int     `json:"hosts"`
	// AlwaysOn is the number of idle host-hours if no host is ever switched off.
	AlwaysOn       float64        `json:"always_on_host_hours"`
	Rows           int            `json:"rows"`
	NotUsed        map[string]int `json:"not_used"`        // rows by reason
	NotUsedRows    []NotUsed      `json:"not_used_rows"`   // all of them
	SyntheticSizes bool           `json:"synthetic_sizes"` // 1 + JobID mod 8
}

// NotUsed is a line of the file that was skipped.
type NotUsed struct {
	Line   int64  `json:"line"`
	Reason string `json:"reason"`
}

// Answer returns the results of the trials of rules.
func (m *Past) Answer(rules energy.Backtest, trials []energy.Trial) Answer {
	a := Answer{
		Winner: trials[0].Forecaster, Weight: rules.Weight, Hosts: rules.Hosts, Samples: len(m.Series),
		From: m.Series[0].At.String(), Until: m.Series[len(m.Series)-1].At.String(), AlwaysOn: rounded(rules.AlwaysOn(m.Series)),
		Rows: m.Rows, NotUsed: m.Reasons(), NotUsedRows: m.Unused, SyntheticSizes: m.Synthetic,
	}
	for _, t := range trials {
		one := Trial{
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

// Figure shows the busiest week and day of the demand with the hosts that each trial had switched on,
// and the scores for 0.3, 1 and 3 times the weight of the rules. The first trial is the best.
func (m *Past) Figure(rules energy.Backtest, trials []energy.Trial) figure.Figure {
	const day = 24 * 3600
	return figure.Figure{Width: 9, Height: 11, Rows: [][]figure.Panel{
		{part("The busiest week, and what the best forecaster had switched on", 7*day, rules.Ahead, m.Series, trials[:1])},
		{part("The busiest day, and what each had switched on", day, rules.Ahead, m.Series, trials)},
		{scores(rules.Weight, trials)},
	}}
}

// part shows the hosts in use in the busiest period of a length, and the hosts that were on.
func part(title string, long, ahead int64, series []energy.Demand, trials []energy.Trial) figure.Panel {
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
			on.Points = append(on.Points, figure.Point{X: float64(d.At.Add(ahead)), Y: float64(t.Required[first+i])})
		}
		panel.Lines = append(panel.Lines, on)
	}
	return panel
}

// scores shows the scores for 0.3, 1 and 3 times the weight.
func scores(weight float64, trials []energy.Trial) figure.Panel {
	panel := figure.Panel{
		Title: "Scores", X: figure.Axis{Label: "idle host-hours that a missed one costs"},
		Y: figure.Axis{Label: "host-hours (less is better)"},
	}
	weights := []float64{0.3 * weight, weight, 3 * weight}
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
