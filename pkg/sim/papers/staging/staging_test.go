// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// brief returns the options of a single run.
func brief(experiments ...string) Options {
	o := Defaults()
	o.Experiments, o.Runs, o.MixRuns = experiments, 1, 1
	return o
}

func TestTheSameSeedGivesTheSameReportAndAnotherGivesAnother(t *testing.T) {
	o := brief(Accuracy, Disk, Reuse)
	written := func(o Options) string {
		report, err := sim.Perform(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		if err := report.Write(folder); err != nil {
			t.Fatal(err)
		}
		all := ""
		for _, name := range []string{"report.md", "results.csv", "accuracy.svg", "disk.svg", "reuse.svg"} {
			content, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			all += string(content)
		}
		return all
	}
	once := written(o)
	if written(o) != once {
		t.Error("the same options make another report")
	}
	if o.Seed++; written(o) == once {
		t.Error("another seed makes the same report")
	}
}

func TestOptionsThatCannotBeRunAreRefusedByName(t *testing.T) {
	for field, spoil := range map[string]func(*Options){
		"experiment":         func(o *Options) { o.Experiments = []string{"acuracy"} },
		"runs":               func(o *Options) { o.Runs = 0 },
		"mix_runs":           func(o *Options) { o.MixRuns = mostRuns + 1 },
		"nodes":              func(o *Options) { o.Nodes = 1 },
		"cpus":               func(o *Options) { o.CPUs = -1 },
		"rate":               func(o *Options) { o.Rate = math.NaN() },
		"image_size":         func(o *Options) { o.ImageSize = 0 },
		"pool_limit":         func(o *Options) { o.PoolLimit = o.ImageSize - 1 },
		"slowdown":           func(o *Options) { o.Slowdown = -0.1 },
		"boot":               func(o *Options) { o.Overheads.Boot = -1 },
		"shutdown":           func(o *Options) { o.Overheads.Shutdown = mostTime + 1 },
		"suspend_rate":       func(o *Options) { o.Overheads.SuspendRate = math.Inf(1) },
		"resume_rate":        func(o *Options) { o.Overheads.ResumeRate = -1 },
		"reservation_length": func(o *Options) { o.ReservationLength = 0 },
		"depth":              func(o *Options) { o.Depth = 0 },
		"cache":              func(o *Options) { o.Cache = 0 },
		"measured_rate":      func(o *Options) { o.Measured.Rate = 0 },
		"measured_spread":    func(o *Options) { o.Measured.Spread = 3 },
		"estimated_rate":     func(o *Options) { o.Measured.Estimate = 0 },
		"estimated_extra":    func(o *Options) { o.Measured.Extra = -1 },
		"copy_rate":          func(o *Options) { o.Measured.Copy = math.NaN() },
	} {
		o := Defaults()
		spoil(&o)
		_, err := sim.Perform(t.Context(), o, nil)
		if invalid, ok := errors.AsType[*fault.Error](err); !ok || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	o := Defaults()
	o.Rate, o.ImageSize = 1, mostLength+1
	if err := o.Check(); err == nil {
		t.Error("an image that takes more than ten hours is not refused")
	}
	if o := Defaults(); o.Check() != nil {
		t.Error("the defaults are refused")
	}
}

// Figures 8.2 and 8.3 of the thesis.
func TestScheduledTransfersGiveReservationsMoreOfTheirTimeThanOthers(t *testing.T) {
	o := brief(Accuracy)
	for run := range 3 {
		mean := map[plan]float64{}
		for _, trace := range accuracyTraces {
			errands := o.errands(trace, run)
			if len(errands) < 2*trace.requests {
				t.Fatalf("%s has %d images", trace.name, len(errands))
			}
			for _, p := range plans {
				mean[p] = o.serve(errands, p).mean
			}
			if mean[planEDF] <= mean[planAggressive] || mean[planAggressive] <= mean[planUnscheduled] || mean[planEDF] < 0.9 {
				t.Errorf("%s: %v", trace.name, mean)
			}
		}
		if mean[planAggressive] <= mean[planJustInTime] || mean[planJustInTime] <= mean[planUnscheduled] {
			t.Errorf("in windows: %v", mean)
		}
	}
}

func TestTransfersThatTakeWhatTheyAreReckonedWithAreAllInTime(t *testing.T) {
	o := brief(Accuracy)
	o.Measured = Measured{Rate: 10, Estimate: 10}
	errands := o.errands(accuracyTraces[0], 0)
	for i := range errands {
		errands[i].submitted = 0
	}
	for _, p := range []plan{planEDF, planEDFJIT} {
		if s := o.serve(errands, p); s.whole < 1-1e-9 {
			t.Errorf("%s: %v had all of their time", p, s.whole)
		}
	}
}

func TestTransfersThatShareTheChannelTakeTheirTimeTogether(t *testing.T) {
	errands := []errand{{wish: wish{start: 0}, seconds: 60}, {wish: wish{start: 0}, seconds: 60}, {wish: wish{start: 100}, seconds: 10}}
	together(errands, func(e *errand) float64 { return float64(e.start) })
	// The third one shares the channel with the other two from 100 on: its 10 s of the channel
	// take 30 s.
	if got := []span.Instant{errands[0].arrived, errands[1].arrived, errands[2].arrived}; !slices.Equal(got, []span.Instant{130, 130, 130}) {
		t.Errorf("they arrive at %v", got)
	}
}

// Figure 8.4 of the thesis.
func TestStagingLateTakesAFifthOfTheDiskAtMost(t *testing.T) {
	o := brief(Disk)
	for run := range 2 {
		early, err := o.keep(t.Context(), staging.EDF, run)
		if err != nil {
			t.Fatal(err)
		}
		late, err := o.keep(t.Context(), staging.JIT, run)
		if err != nil {
			t.Fatal(err)
		}
		if early.taken != late.taken || early.transfers != late.transfers {
			t.Errorf("EDF accepts %d reservations and EDF/JIT %d", early.taken, late.taken)
		}
		if late.peak*5 > early.peak || late.sent > late.peak || early.levels[len(early.levels)-1].bytes != 0 {
			t.Errorf("EDF has %d bytes at the peak, EDF/JIT %d", early.peak, late.peak)
		}
	}
}

// Figures 8.6 and 8.7 of the thesis.
func TestACacheShortensDeploymentsAndSkewedImagesMoreSo(t *testing.T) {
	o := brief(Reuse)
	for run := range 2 {
		plain, uniform, skewed := o.onTestbed(reuseTraces[0], false, run), o.onTestbed(reuseTraces[0], true, run), o.onTestbed(reuseTraces[1], true, run)
		if plain.mean <= uniform.mean || uniform.mean <= skewed.mean || len(plain.ready) != 144 || len(skewed.ready) != 144 {
			t.Errorf("on the testbed %.0f, %.0f and %.0f s", plain.mean, uniform.mean, skewed.mean)
		}
		var planned []deployed
		for _, c := range []struct {
			trace  reuseTrace
			cached bool
		}{{reuseTraces[0], false}, {reuseTraces[0], true}, {reuseTraces[1], true}} {
			d, err := o.deploy(t.Context(), c.trace, c.cached, run)
			if err != nil {
				t.Fatal(err)
			}
			planned = append(planned, d)
		}
		if planned[0].mean <= planned[1].mean || planned[0].sent <= planned[1].sent || planned[1].sent <= planned[2].sent || planned[1].sent > uniform.sent {
			t.Errorf("the planner: %.0f s and %d images, %.0f s and %d, %.0f s and %d", planned[0].mean, planned[0].sent, planned[1].mean, planned[1].sent, planned[2].mean, planned[2].sent)
		}
	}
}

func TestACacheForgetsWhatWasUsedLeastOften(t *testing.T) {
	c := cache{size: 2}
	for _, step := range []struct{ use, gone string }{{"a", ""}, {"b", ""}, {"a", ""}, {"c", "b"}, {"c", ""}, {"c", ""}, {"b", "a"}} {
		if gone := c.use(step.use); gone != step.gone {
			t.Errorf("for %q goes %q, not %q", step.use, gone, step.gone)
		}
	}
}

// Section 4 of the thesis.
func TestTheMixesNeedAsManyImagesAsTheThesisSays(t *testing.T) {
	o := Defaults()
	for m, printed := range imagesInThesis {
		var images []float64
		for run := range 20 {
			images = append(images, float64(o.workload(m, run).images()))
		}
		if mean := sim.Mean(images).Mean; !near(mean, float64(printed), nearTime) {
			t.Errorf("%v: %.0f images; %d in the thesis", m, mean, printed)
		}
	}
	if len(allMixes()) != 36 || len(inThesis) != 36 {
		t.Errorf("there are %d mixes, and %d in the thesis", len(allMixes()), len(inThesis))
	}
	for _, m := range allMixes() {
		if _, known := inThesis[m]; !known {
			t.Errorf("%v is not in the thesis", m)
		}
	}
}

func TestAMixComesToItsShareOfWork(t *testing.T) {
	o := Defaults()
	for _, m := range allMixes() {
		w := o.workload(m, 0)
		bestEffort, reserved := 0.0, 0.0
		for _, b := range w.works {
			bestEffort += float64(b.duration * int64(b.vms))
		}
		for _, r := range w.wishes {
			reserved += float64(r.duration * int64(r.vms))
		}
		hours := (bestEffort + reserved) / 3600 / float64(o.slots())
		if share := 100 * bestEffort / (bestEffort + reserved); math.Abs(share-float64(m.BestEffort)) > 5 || hours < 9.5 || hours > 11 {
			t.Errorf("%v: %.0f %% of %.1f hours are best-effort", m, share, hours)
		}
	}
}

// outcomes works through one mix in each setup.
func outcomes(t *testing.T, o Options, m mix) map[string]worked {
	t.Helper()
	all := map[string]worked{}
	for _, s := range m.setups() {
		w, err := o.work(context.Background(), m, s, 0)
		if err != nil {
			t.Fatal(err)
		}
		all[s.name] = w
	}
	return all
}

// Tables 4.1, 8.3 and 8.5 of the thesis.
func TestLongWorkGainsBySuspensionAndLosesLittleByImages(t *testing.T) {
	if testing.Short() {
		t.Skip("the test takes seconds; make test runs it")
	}
	all := outcomes(t, Defaults(), fewLong)
	plain, ready, sent, reused := all[plainSetup.name], all[predeployedSetup.name], all[prefetchedSetup.name], all[reusedSetup.name]
	if ready.finish >= plain.finish || ready.suspensions == 0 || plain.suspensions != 0 {
		t.Errorf("suspended %d s, backfilled %d s", ready.finish, plain.finish)
	}
	if float64(sent.finish) > 1.1*float64(ready.finish) || reused.finish > sent.finish {
		t.Errorf("in place %d s, sent %d s, reused %d s", ready.finish, sent.finish, reused.finish)
	}
	if reused.sent >= sent.sent || ready.sent != 0 || ready.peak != 0 {
		t.Errorf("sent %d images, with reuse %d, in place %d", sent.sent, reused.sent, ready.sent)
	}
	if early := all[earlySetup.name]; early.peak < 3*sent.peak {
		t.Errorf("EDF has %d bytes on a node, EDF/JIT %d", early.peak, sent.peak)
	}
	if a, b := all[backfilledSetup.name].finish, all[sentSetup.name].finish; a <= plain.finish || b <= a {
		t.Errorf("backfilled: %d s without virtual machines, %d s in place, %d s sent", plain.finish, a, b)
	}
	for name, w := range all {
		if w.utilization <= 0 || w.utilization > 1 {
			t.Errorf("%s: the nodes are used by %v", name, w.utilization)
		}
	}
}

// Tables 4.2 and 8.5 of the thesis: the required bandwidth is more than twice the available one.
func TestShortWorkTakesMuchLongerWithoutReuse(t *testing.T) {
	if testing.Short() {
		t.Skip("short work has many plans")
	}
	o := Defaults()
	o.Depth = 8
	finish := func(s setup) float64 {
		w, err := o.work(t.Context(), manyShort, s, 0)
		if err != nil {
			t.Fatal(err)
		}
		return float64(w.finish)
	}
	ready, sent, reused := finish(predeployedSetup), finish(prefetchedSetup), finish(reusedSetup)
	if sent < 1.5*ready || reused < 0.97*ready || reused > 1.15*ready {
		t.Errorf("in place %v s, sent %v s, reused %v s", ready, sent, reused)
	}
	o.Rate *= 10
	if sent := finish(prefetchedSetup); sent > 1.1*ready {
		t.Errorf("with ten times the bandwidth %v s, in place %v s", sent, ready)
	}
}

func TestOverheadsTakeTime(t *testing.T) {
	o := Defaults()
	before, err := o.work(t.Context(), fewLong, predeployedSetup, 0)
	if err != nil {
		t.Fatal(err)
	}
	o.Overheads.Boot, o.Overheads.Shutdown, o.Overheads.SuspendRate, o.Overheads.ResumeRate = 10, 10, 50, 50
	after, err := o.work(t.Context(), fewLong, predeployedSetup, 0)
	if err != nil {
		t.Fatal(err)
	}
	if after.finish <= before.finish {
		t.Errorf("%d s with overheads, %d s without", after.finish, before.finish)
	}
}

func TestARunEndsWhenItsContextDoes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := sim.Perform(ctx, Defaults(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestADifferenceOverTheRunsMustBeClear(t *testing.T) {
	for _, c := range []struct {
		larger, smaller []float64
		verdict         sim.Verdict
	}{
		{[]float64{3, 3.1, 2.9}, []float64{1, 1.1, 0.9}, sim.Held},
		{[]float64{1, 3, 2}, []float64{3, 1, 1.9}, sim.Undecided},
		{[]float64{1}, []float64{2}, sim.NotHeld},
	} {
		if got := apart(c.larger, c.smaller); got != c.verdict {
			t.Errorf("%v over %v is %q, not %q", c.larger, c.smaller, got, c.verdict)
		}
	}
}
