// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// small returns the options of a short run.
func small() Options {
	return Options{Hosts: smallest, Jobs: 60, Runs: 2, Seed: 7, Arrivals: Lublin}
}

// Check A003-9, on the smallest machine, which is the paper's in another unit.
func TestThePoliciesComeInThePapersOrder(t *testing.T) {
	o := Options{Hosts: smallest, Jobs: 10_000, Runs: 1, Seed: 1, Arrivals: Lublin}
	if testing.Short() {
		o.Arrivals, o.Load, o.Jobs = Poisson, 0.8, 3000 // with less variance, so that fewer jobs show the order
	}
	larger := []setting{{o.Arrivals, 5, 1, 3}, {o.Arrivals, 7, 1, 3}, {o.Arrivals, 9, 1, 3}}
	denser := []setting{larger[1], {o.Arrivals, 7, 1.5, 3}}
	r, err := o.run(t.Context(), append(slices.Clone(larger), denser[1]), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range larger {
		most := func(m measure, policies ...calendar.Policy) float64 {
			v := math.Inf(-1)
			for _, p := range policies {
				v = max(v, r.mean(m, s, p).Mean)
			}
			return v
		}
		of := func(p calendar.Policy) float64 { return most(acceptance, p) }
		if of(calendar.PolicyPEWorstFit) < of(calendar.PolicyDurationBestFit)-0.005 {
			t.Errorf("%v: PE_W accepts %v, Du_B %v", s, of(calendar.PolicyPEWorstFit), of(calendar.PolicyDurationBestFit))
		}
		high, mid := min(of(calendar.PolicyPEWorstFit), of(calendar.PolicyDurationBestFit)), most(acceptance, middle...)
		if low := most(acceptance, append(slices.Clone(lower), calendar.PolicyFirstFit)...); high <= mid || mid <= low {
			t.Errorf("%v: the groups accept %v, %v and %v", s, high, mid, low)
		}
		for _, p := range others(calendar.PolicyFirstFit) {
			if most(slowdown, calendar.PolicyFirstFit) >= most(slowdown, p) {
				t.Errorf("%v: the slowdown of FF is %v, that of %s %v", s, most(slowdown, calendar.PolicyFirstFit), p, most(slowdown, p))
			}
		}
	}
	for _, steps := range [][]setting{larger, denser} {
		if f := r.along("acceptance falls", acceptance, scan{settings: steps, at: func(s setting) float64 { return s.UMed }}, -1, calendar.PaperPolicies...); !f.Verdict.Holds() {
			t.Errorf("%s: %s, %s", f.Claim, f.Verdict, f.Seen)
		}
	}
}

// All sizes of the paper are multiples of 32, so one host of the smallest machine stands for 32
// of the paper's.
func TestTheSmallestMachineGivesWhatThePapersGives(t *testing.T) {
	for _, p := range calendar.PaperPolicies {
		var outcomes []outcome
		for _, hosts := range []int{smallest, 8 * smallest} {
			o := Options{Hosts: hosts, Jobs: 400, Runs: 1, Seed: 3, Arrivals: Poisson, Load: 2}
			result, err := trial(t.Context(), hosts, p, 0, o.requests(setting{Poisson, 7, 1, 3}, 0))
			if err != nil {
				t.Fatal(err)
			}
			outcomes = append(outcomes, result)
		}
		if outcomes[0] != outcomes[1] || outcomes[0].Acceptance == 1 {
			t.Errorf("%s: %v", p, outcomes)
		}
	}
}

func TestSlowdownCountsTheWaitOfWhatWasAccepted(t *testing.T) {
	requests := []request{
		{arrival: 0, ready: 100, duration: 50, latestEnd: 150, hosts: 2},  // starts at 100
		{arrival: 1, ready: 100, duration: 100, latestEnd: 300, hosts: 1}, // waits until 150: 1.5
		{arrival: 2, ready: 100, duration: 50, latestEnd: 199, hosts: 2},  // has no room
		{arrival: 3, ready: 150, duration: 20, latestEnd: 170, hosts: 1},  // starts at 150, beside the second
	}
	got, err := trial(t.Context(), 2, calendar.PolicyFirstFit, 0, requests)
	if err != nil {
		t.Fatal(err)
	}
	if want := (outcome{Acceptance: 0.75, Slowdown: (1 + 1.5 + 1) / 3.0, Work: 220.0 / 320}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestTheSameSeedGivesTheSameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("the test takes some seconds")
	}
	written := func(o Options) map[string][]byte {
		report, err := sim.Perform(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		folder, files := t.TempDir(), map[string][]byte{}
		if err := report.Write(folder); err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
		return files
	}
	first, again := written(small()), written(small())
	if len(first) != 2+2*7 {
		t.Errorf("%d files; want the report, the results, six figures of the paper and one more, each twice", len(first))
	}
	for name, content := range first {
		if !bytes.Equal(content, again[name]) {
			t.Errorf("%s differs", name)
		}
	}
	other := small()
	other.Seed++
	if bytes.Equal(first["results.csv"], written(other)["results.csv"]) {
		t.Error("another seed makes the same results")
	}
	for n := 2; n <= 7; n++ {
		if figure := "![figure-" + string(rune('0'+n)); !strings.Contains(string(first["report.md"]), figure) {
			t.Errorf("the report lacks figure %d", n)
		}
	}
	// 13 settings of the paper and 5 more, each with seven policies and two measures.
	if rows := bytes.Count(first["results.csv"], []byte("\n")) - 1; rows != 18*7*2 {
		t.Errorf("results.csv has %d rows", rows)
	}
}

func TestWhatCannotBeRunIsRefusedBefore(t *testing.T) {
	if err := Defaults().Check(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for _, c := range []struct {
		field  string
		change func(*Options)
	}{
		{"hosts", func(o *Options) { o.Hosts = 16 }},
		{"hosts", func(o *Options) { o.Hosts = 1000 }},
		{"hosts", func(o *Options) { o.Hosts = 1 << 20 }},
		{"jobs", func(o *Options) { o.Jobs = 0 }},
		{"runs", func(o *Options) { o.Runs = -1 }},
		{"arrivals", func(o *Options) { o.Arrivals = "poison" }},
		{"load", func(o *Options) { o.Load = -0.5 }},
		{"load", func(o *Options) { o.Load = math.NaN() }},
		{"load", func(o *Options) { o.Load = 1e-300 }},
	} {
		o := small()
		c.change(&o)
		started := func(int, int) { t.Errorf("%s: the run has started", c.field) }
		if _, err := sim.Perform(t.Context(), o, started); !fault.Is(err, fault.Invalid) || fault.Of(err).Field != c.field {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

func TestAnUnknownKindOfArrivalsIsToldWhichThereAre(t *testing.T) {
	o := small()
	o.Arrivals = "bursts"
	if err := o.Check(); !strings.Contains(err.Error(), "the kinds are lublin, poisson") {
		t.Error(err)
	}
}

func TestWhetherTheRiseDependsOnArrivalsIsSaidOnlyWhereRunsShowIt(t *testing.T) {
	const depends, explainsNot, open = "So the rise in figure 6", "does not explain", "These runs do not tell"
	for _, tc := range []struct {
		name            string
		lublin, poisson []float64 // what PE_W gains, by run
		want            string
	}{
		{"one run", []float64{0.3}, []float64{0}, open},
		{"a clear rise with one kind only", []float64{0.30, 0.31, 0.32}, []float64{0.01, 0, 0.01}, depends},
		{"wide intervals, and clear run by run", []float64{0.1, 0.3, 0.5}, []float64{0, 0.201, 0.399}, open},
		{"a rise in both, clear run by run", []float64{0.3, 0.4, 0.5}, []float64{0.2, 0.301, 0.399}, depends},
		{"no clear difference", []float64{0.1, 0.3, 0.2}, []float64{0.2, 0.1, 0.2}, open},
		{"more with the other kind", []float64{0, 0.01, 0}, []float64{0.2, 0.21, 0.2}, explainsNot},
		{"the same", []float64{0, 0}, []float64{0, 0}, open},
	} {
		o := small()
		o.Runs = len(tc.lublin)
		r := &results{Options: o, outcomes: map[key][]outcome{}}
		for _, s := range distinct(append(o.scans(), o.contrast())...) {
			for _, p := range calendar.PaperPolicies {
				for run := range o.Runs {
					gain := tc.lublin[run]
					if s.Arrivals == Poisson {
						gain = tc.poisson[run]
					}
					r.outcomes[key{s, p}] = append(r.outcomes[key{s, p}], outcome{Acceptance: 0.1 + gain*(s.Flexibility-1)/4, Slowdown: 1})
				}
			}
		}
		report := sim.NewReport("")
		r.tellArrivals(report)
		for _, sentence := range []string{depends, explainsNot, open} {
			if strings.Contains(report.Markdown(), sentence) != (sentence == tc.want) {
				t.Errorf("%s: the report should contain %q, and not the others:\n%s", tc.name, tc.want, report.Markdown())
			}
		}
	}
}

func TestFindingsFollowFromTheResults(t *testing.T) {
	o := small()
	r := &results{Options: o, outcomes: map[key][]outcome{}}
	accept := func(by map[calendar.Policy]float64) {
		for _, s := range distinct(append(o.scans(), o.contrast())...) {
			for _, p := range calendar.PaperPolicies {
				r.outcomes[key{s, p}] = []outcome{{Acceptance: by[p], Slowdown: 1}, {Acceptance: by[p] + 0.01, Slowdown: 1}}
			}
		}
	}
	asThePaper := map[calendar.Policy]float64{
		calendar.PolicyFirstFit: 0.5, calendar.PolicyPEBestFit: 0.4, calendar.PolicyPEWorstFit: 0.9, calendar.PolicyDurationBestFit: 0.89,
		calendar.PolicyDurationWorstFit: 0.4, calendar.PolicyPEDurationBestFit: 0.7, calendar.PolicyPEDurationWorstFit: 0.69,
	}
	accept(asThePaper)
	for _, f := range r.findings()[:1] {
		if f.Verdict != sim.Counted(78, 78) || !strings.Contains(f.Seen, "78 by more than") || !strings.Contains(f.Seen, "0.0100") {
			t.Errorf("%s: %s, %s", f.Claim, f.Verdict, f.Seen)
		}
	}
	asThePaper[calendar.PolicyFirstFit] = 1
	accept(asThePaper)
	if f := r.findings()[0]; f.Verdict != sim.Counted(65, 78) {
		t.Errorf("%s: %s", f.Claim, f.Verdict)
	}
	if f := r.findings()[4]; f.Verdict != sim.Counted(0, 52) {
		t.Errorf("%s: %s", f.Claim, f.Verdict)
	}
}
