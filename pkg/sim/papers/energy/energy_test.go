// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
)

// small returns the options of an evaluation that takes seconds.
func small() Options {
	o := Defaults()
	o.Processors, o.PerDay, o.Days, o.Runs, o.Sweeps = 8, 40, 1, 2, nil
	return o
}

func TestTheOrderingsOfThePaperComeOut(t *testing.T) {
	o := small()
	o.Sweeps = []string{Share}
	r, err := run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.findings() {
		if !f.Verdict.Holds() {
			t.Errorf("it did not hold: %s %s", f.Claim, f.Seen)
		}
	}
	before := -1.0
	for _, v := range r.variantsOf(Share) {
		waits := delay.estimate(r.of(Reservations, v.Setting)).Mean
		if v.Share == 0 && waits != delay.estimate(r.of(SwitchOff, o.Base)).Mean {
			t.Error("where nothing is known ahead, reservations are not like switch-off")
		}
		if before >= 0 && waits > before {
			t.Errorf("delay_req rises to %v at a share of %v", waits, v.Share)
		}
		before = waits
	}
	if before != 0 {
		t.Errorf("where all is known ahead, delay_req is %v", before)
	}
}

func TestALongerIdleTimeSavesLess(t *testing.T) {
	if testing.Short() {
		t.Skip("the test takes some seconds")
	}
	before := map[Strategy]float64{}
	for _, idle := range []int{5, 60} {
		o := small()
		o.Runs, o.Base.Idle = 1, idle
		r, err := run(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range Strategies[1:] {
			now := savings.estimate(r.of(s, o.Base)).Mean
			if idle > 5 && now >= before[s] {
				t.Errorf("%s: %v core-hours are saved after 5 min of idling, and %v after %d", s, before[s], now, idle)
			}
			before[s] = now
		}
	}
}

func TestTheSameSeedGivesTheSameBytesAndAnotherOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("the test takes some seconds")
	}
	text := func(seed uint64) string {
		o := small()
		o.Seed, o.Runs = seed, 1
		report, err := sim.Perform(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		if err := report.Write(folder); err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, name := range []string{"report.md", "results.csv", "energy-strategies.svg", "energy-week.svg"} {
			content, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			all.Write(content)
		}
		return all.String()
	}
	first := text(1)
	if first != text(1) {
		t.Error("the same seed makes other bytes")
	}
	if first == text(2) {
		t.Error("another seed makes the same bytes")
	}
	if !strings.Contains(first, "made up") {
		t.Error("the report does not state that the workload is made up")
	}
}

// The adaptation rule and the invented numbers depend on the log's format. Small logs in each
// format stand for the real ones.
func TestTracesAreRead(t *testing.T) {
	if testing.Short() {
		t.Skip("the test takes some seconds")
	}
	folder := t.TempDir()
	swf, oar := []string{"; UnixStartTime: 0", "; Acknowledge: Somebody"}, []string{"# JobID StartTime StopTime"}
	for i := range 60 {
		swf = append(swf, fmt.Sprintf("%d %d 10 %d %d -1 -1 %d 4000 -1 1 1 1 -1 -1 -1 -1 -1", i+1, i*3000, 600+i*37, 1+i%5, 1+i%5))
		start := 1_100_000_000 + i*3000
		oar = append(oar, fmt.Sprintf("%d\t%d\t%d", 1000+i*7, start, start+1800))
	}
	for name, lines := range map[string][]string{"log.swf": swf, "log.oar": oar} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		o := small()
		o.Trace, o.Days, o.Runs = path, 0, 1
		r, err := run(t.Context(), o, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := r.demands[0]; len(d.requests) != 60 || d.requests[0].start < 0 || d.requests[0].start >= 3*day {
			t.Errorf("%s: %d requests, the first at %d", name, len(d.requests), d.requests[0].start)
		}
		text := r.report().Markdown()
		if oar := name == "log.oar"; strings.Contains(text, "1 + (JobID mod 8)") != oar || strings.Contains(text, "Somebody") == oar {
			t.Errorf("%s: the report does not state the log's origin, or which numbers are made up:\n%s", name, text)
		}
	}
}

func TestWhatCannotBeRunIsRefused(t *testing.T) {
	for field, change := range map[string]func(o *Options){
		"runs":           func(o *Options) { o.Runs = 0 },
		"days":           func(o *Options) { o.Days = 0 },
		"from":           func(o *Options) { o.From = -1 },
		"processors":     func(o *Options) { o.Processors = 1 },
		"per_day":        func(o *Options) { o.PerDay = 0 },
		"working_hours":  func(o *Options) { o.Hours = Hours{18, 9} },
		"zone":           func(o *Options) { o.Zone = 24 },
		"safety":         func(o *Options) { o.Safety = -1 },
		"ahead":          func(o *Options) { o.Ahead = Range{2, 1} },
		"share":          func(o *Options) { o.Base.Share = 1.5 },
		"horizon":        func(o *Options) { o.Base.Horizon = -1 },
		"idle_intervals": func(o *Options) { o.Base.Idle = 0 },
		"boot":           func(o *Options) { o.Base.Boot = -1 },
		"forecaster":     func(o *Options) { o.Base.Forecaster = "tea leaves" },
		"sweeps":         func(o *Options) { o.Sweeps = []string{"weather"} },
		"boot_spread":    func(o *Options) { o.Machines.Spread = 9 },
		"idle_watts":     func(o *Options) { o.Machines.Draw.Idle = -5 },
		"boot_watts":     func(o *Options) { o.BootWatts = -5 },
		"procs_per_host": func(o *Options) { o.ProcsPerHost = 0 },
		"trace":          func(o *Options) { o.Trace = "/nowhere/at/all.swf" },
	} {
		o := small()
		change(&o)
		_, err := sim.Perform(t.Context(), o, nil)
		if f := fault.Of(err); err == nil || f.Kind != fault.Invalid || f.Field != field {
			t.Errorf("%s: the error is %v", field, err)
		}
	}
}

func TestARunThatIsGivenUpStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := sim.Perform(ctx, small(), nil); err == nil {
		t.Error("the run did not end")
	}
}

func TestARealLogComesOutAsThePaperSays(t *testing.T) {
	folder := os.Getenv("ALMANAC_DATA")
	if folder == "" {
		t.Skip("ALMANAC_DATA names no folder with real logs")
	}
	if testing.Short() {
		t.Skip("the test takes some seconds")
	}
	for path, c := range map[string]struct{ from, procs int }{
		"pwa/KTH-SP2-1996-2.swf.gz":                 {22, 8},
		"grid5000/grid5000_reservation_jobs.log.gz": {702, 1},
	} {
		o := small()
		o.Trace, o.From, o.Days, o.Runs, o.ProcsPerHost, o.Base.Share = filepath.Join(folder, path), c.from, 1, 1, c.procs, 1
		r, err := run(t.Context(), o, nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, f := range r.findings() {
			if !f.Verdict.Holds() {
				t.Errorf("%s: it did not hold: %s %s", path, f.Claim, f.Seen)
			}
		}
		t.Logf("%s: %d requests on %d hosts", path, len(r.demands[0].requests), r.demands[0].hosts)
	}
}
