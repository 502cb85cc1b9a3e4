// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/figure"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// accuracyFigure draws the mean share of time over the starts of the first run, as in figures 8.2
// and 8.3 of the thesis.
func (r *results) accuracyFigure() figure.Figure {
	f := figure.Figure{Width: 9, Height: 8}
	for _, t := range accuracyTraces {
		panel := figure.Panel{Title: t.name, X: figure.Axis{Label: "start, s"}, Y: figure.Axis{Label: "share of the time asked for, mean so far"}, LegendBeside: true}
		for _, p := range plans {
			panel.Lines = append(panel.Lines, figure.Line{Name: string(p), Points: soFar(r.accuracy[accuracyKey{t.name, p}][0].errands)})
		}
		f.Rows = append(f.Rows, []figure.Panel{panel})
	}
	return f
}

// soFar returns, for each start, the mean share of time of all virtual machines that start by then.
func soFar(errands []errand) (points []figure.Point) {
	errands = slices.SortedStableFunc(slices.Values(errands), func(a, b errand) int { return cmp.Compare(a.start, b.start) })
	sum := 0.0
	for i := range errands {
		sum += errands[i].share()
		if i+1 == len(errands) || errands[i+1].start != errands[i].start {
			points = append(points, figure.Point{X: float64(errands[i].start), Y: sum / float64(i+1)})
		}
	}
	return points
}

// diskFigure draws the size of the images on the fullest node over time, in the first run.
func (r *results) diskFigure() figure.Figure {
	panel := figure.Panel{X: figure.Axis{Label: "time, hours", FromZero: true}, Y: figure.Axis{Label: "images on the fullest node, GB", FromZero: true}}
	names := map[staging.Strategy]string{staging.EDF: "EDF", staging.JIT: "EDF/JIT"}
	for _, s := range staging.Strategies {
		line := figure.Line{Name: names[s], Step: true, Points: []figure.Point{{}}}
		for _, l := range r.disk[s][0].levels {
			if y := float64(l.bytes) / gigabyte; y != line.Points[len(line.Points)-1].Y {
				line.Points = append(line.Points, figure.Point{X: float64(l.seconds) / 3600, Y: y})
			}
		}
		panel.Lines = append(panel.Lines, line)
	}
	return figure.Figure{Width: 8, Height: 4.5, Rows: [][]figure.Panel{{panel}}}
}

// reuseFigure draws how much has been deployed over time, in the first run, as in figures 8.6 and
// 8.7.
func (r *results) reuseFigure() figure.Figure {
	f := figure.Figure{Width: 12, Height: 4.5, Rows: [][]figure.Panel{nil}}
	for _, t := range reuseTraces {
		panel := figure.Panel{Title: t.name, X: figure.Axis{Label: "time, s", FromZero: true}, Y: figure.Axis{Label: "deployed, GB", FromZero: true}}
		for _, c := range []struct {
			name            string
			planner, cached bool
		}{{"testbed, no cache", false, false}, {"testbed, cache", false, true}, {"planner, cache", true, true}} {
			line := figure.Line{Name: c.name, Step: true, Points: []figure.Point{{}}}
			for i, at := range r.reuse[reuseKey{t.name, c.planner, c.cached}][0].ready {
				line.Points = append(line.Points, figure.Point{X: float64(at), Y: float64(int64(i+1)*r.ImageSize) * megabyte / gigabyte})
			}
			panel.Lines = append(panel.Lines, line)
		}
		f.Rows[0] = append(f.Rows[0], panel)
	}
	return f
}

// mixFigure draws the times of the mixes, in the thesis and here.
func (r *results) mixFigure() figure.Figure {
	setups := []setup{plainSetup, predeployedSetup, prefetchedSetup, reusedSetup}
	f := figure.Figure{Width: 14, Height: 13}
	for _, l := range []length{long, medium, short} {
		here := figure.Panel{Title: string(l) + ", here", Y: figure.Axis{Label: "hours until all is done", FromZero: true}}
		there := figure.Panel{Title: string(l) + ", in the thesis", Y: here.Y}
		for i, s := range setups {
			ours, theirs := figure.Bars{Name: s.name}, figure.Bars{Name: s.name}
			for _, m := range allMixes() {
				if m.Length != l {
					continue
				}
				if i == 0 {
					name := fmt.Sprintf("%d\n%s", m.BestEffort, map[bool]string{true: m.Width}[m.BestEffort == 50])
					here.Groups, there.Groups = append(here.Groups, name), append(there.Groups, name)
				}
				p := inThesis[m]
				ours.Values = append(ours.Values, r.finish(m, s).Mean/3600)
				theirs.Values = append(theirs.Values, float64([]int64{p.plain, p.predeployed, p.prefetched, p.reused}[i])/3600)
			}
			here.Bars, there.Bars = append(here.Bars, ours), append(there.Bars, theirs)
		}
		f.Rows = append(f.Rows, []figure.Panel{there, here})
	}
	return f
}
