// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// setting holds the parameters of the workload; each scan of the paper varies one of them.
type setting struct {
	Arrivals      string
	UMed          float64 // larger means larger jobs; 5 to 9
	ArrivalFactor float64 // larger means shorter gaps between jobs; 0.5 to 1.5
	// Flexibility is the paper's artime factor and also its deadline factor, 1 to 5: a job arrives
	// at most this many times its duration before its ready time, and may start at most this many
	// times its duration after it.
	Flexibility float64
}

// usual is the setting that all three scans of the paper contain.
var usual = setting{Lublin, 7, 1, 3}

// scan is a series of settings in which one parameter varies. The paper shows each scan in two
// figures, one for each measure.
type scan struct {
	figures  [2]int // of the paper: the acceptance rate, the average slowdown
	name     string
	axis     string
	settings []setting
	at       func(setting) float64 // along the axis
}

// The three scans of the paper, with one kind of arrivals.
func scanSizes(arrivals string) scan {
	return newScan(scan{figures: [2]int{2, 3}, name: "umed", axis: "UMed (log2 of hosts)", at: func(s setting) float64 { return s.UMed }},
		arrivals, func(s *setting, i int) { s.UMed = float64(5 + i) })
}

func scanArrivals(arrivals string) scan {
	return newScan(scan{figures: [2]int{4, 5}, name: "arrival-factor", axis: "arrival factor", at: func(s setting) float64 { return s.ArrivalFactor }},
		arrivals, func(s *setting, i int) { s.ArrivalFactor = 0.5 + float64(i)*0.25 })
}

func scanFlexibility(arrivals string) scan {
	return newScan(scan{figures: [2]int{6, 7}, name: "flexibility", axis: "artime factor and deadline factor", at: func(s setting) float64 { return s.Flexibility }},
		arrivals, func(s *setting, i int) { s.Flexibility = float64(1 + i) })
}

// newScan returns the scan with five settings; vary turns the usual setting into the i-th.
func newScan(s scan, arrivals string, vary func(s *setting, i int)) scan {
	for i := range 5 {
		step := usual
		step.Arrivals = arrivals
		vary(&step, i)
		s.settings = append(s.settings, step)
	}
	return s
}

// scans returns those of figures 2 to 7.
func (o Options) scans() []scan {
	return []scan{scanSizes(o.Arrivals), scanArrivals(o.Arrivals), scanFlexibility(o.Arrivals)}
}

// contrast returns the scan of figures 6 and 7 with the kind of arrivals that the options do not
// select.
func (o Options) contrast() scan {
	if o.Arrivals == Poisson {
		return scanFlexibility(Lublin)
	}
	return scanFlexibility(Poisson)
}

// distinct returns each setting of the scans once, in their order.
func distinct(scans ...scan) (all []setting) {
	for _, scan := range scans {
		for _, s := range scan.settings {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// String describes the setting for use in a sentence.
func (s setting) String() string {
	return fmt.Sprintf("UMed %v, arrival factor %v, {%v,%v}", s.UMed, s.ArrivalFactor, s.Flexibility, s.Flexibility)
}

// paperName is the name of a policy in the paper.
var paperName = map[calendar.Policy]string{
	calendar.PolicyFirstFit: "FF", calendar.PolicyPEBestFit: "PE_B", calendar.PolicyPEWorstFit: "PE_W", calendar.PolicyDurationBestFit: "Du_B",
	calendar.PolicyDurationWorstFit: "Du_W", calendar.PolicyPEDurationBestFit: "PEDu_B", calendar.PolicyPEDurationWorstFit: "PEDu_W",
}
