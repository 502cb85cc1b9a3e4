package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/figure"
)

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
