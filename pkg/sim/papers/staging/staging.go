// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// results are the results of all experiments; each list has one element for each run.
type results struct {
	Options
	accuracy map[accuracyKey][]served
	disk     map[staging.Strategy][]kept
	reuse    map[reuseKey][]deployed
	mixes    map[mixKey][]worked
}

type accuracyKey struct {
	trace string
	plan  plan
}

// reuseKey identifies the runs of one setting of the reuse experiment: a trace, planned by the
// service's planner or served like the testbed, with a cache of images or without.
type reuseKey struct {
	trace           string
	planner, cached bool
}

type mixKey struct {
	mix   mix
	setup string
}

// task is one run of one setting.
type task func(ctx context.Context) error

// Run implements sim.Experiment.
func (o Options) Run(ctx context.Context, progress sim.Progress) (*sim.Report, error) {
	r := &results{Options: o, accuracy: map[accuracyKey][]served{}, disk: map[staging.Strategy][]kept{}, reuse: map[reuseKey][]deployed{}, mixes: map[mixKey][]worked{}}
	var tasks []task
	for _, experiment := range []struct {
		name  string
		tasks func() []task
	}{{Mixes, r.mixTasks}, {Accuracy, r.accuracyTasks}, {Disk, r.diskTasks}, {Reuse, r.reuseTasks}} {
		if o.has(experiment.name) {
			tasks = append(tasks, experiment.tasks()...)
		}
	}
	_, err := sim.Runs(ctx, len(tasks), progress, func(ctx context.Context, i int) (struct{}, error) {
		return struct{}{}, tasks[i](ctx)
	})
	if err != nil {
		return nil, err
	}
	return r.report(), nil
}

// fill returns one task for each run of a setting; the i-th task stores its result in the i-th
// element of into.
func fill[T any](runs int, into *[]T, do func(ctx context.Context, run int) (T, error)) (tasks []task) {
	places := make([]T, runs)
	*into = places
	for i := range places {
		tasks = append(tasks, func(ctx context.Context) (err error) {
			places[i], err = do(ctx, i)
			return fault.While(err, "run %d", i)
		})
	}
	return tasks
}

func (r *results) accuracyTasks() (tasks []task) {
	for _, t := range accuracyTraces {
		for _, p := range plans {
			var all []served
			tasks = append(tasks, fill(r.Runs, &all, func(_ context.Context, run int) (served, error) {
				return r.serve(r.errands(t, run), p), nil
			})...)
			r.accuracy[accuracyKey{t.name, p}] = all
		}
	}
	return tasks
}

func (r *results) diskTasks() (tasks []task) {
	for _, s := range staging.Strategies {
		var all []kept
		tasks = append(tasks, fill(r.Runs, &all, func(ctx context.Context, run int) (kept, error) { return r.keep(ctx, s, run) })...)
		r.disk[s] = all
	}
	return tasks
}

func (r *results) reuseTasks() (tasks []task) {
	for _, t := range reuseTraces {
		for _, cached := range []bool{false, true} {
			var planned, onTestbed []deployed
			tasks = append(tasks, fill(r.Runs, &planned, func(ctx context.Context, run int) (deployed, error) { return r.deploy(ctx, t, cached, run) })...)
			tasks = append(tasks, fill(r.Runs, &onTestbed, func(_ context.Context, run int) (deployed, error) { return r.onTestbed(t, cached, run), nil })...)
			r.reuse[reuseKey{t.name, true, cached}], r.reuse[reuseKey{t.name, false, cached}] = planned, onTestbed
		}
	}
	return tasks
}

// mixTasks returns the runs of all mixes with all of their set-ups. They store their results in r.mixes.
func (r *results) mixTasks() (tasks []task) {
	for _, m := range allMixes() {
		for _, s := range m.setups() {
			var all []worked
			tasks = append(tasks, fill(r.MixRuns, &all, func(ctx context.Context, run int) (worked, error) { return r.work(ctx, m, s, run) })...)
			r.mixes[mixKey{m, s.name}] = all
		}
	}
	return tasks
}

// estimate estimates a measure from its runs.
func estimate[T any](runs []T, of func(T) float64) sim.Estimate { return sim.Mean(sim.Each(runs, of)) }

// The measures of the experiments.
func meanShare(s served) float64    { return s.mean }
func worstShare(s served) float64   { return s.worst }
func wholeShare(s served) float64   { return s.whole }
func diskPeak(k kept) float64       { return float64(k.peak) / gigabyte }
func diskSent(k kept) float64       { return float64(k.sent) / gigabyte }
func deployTime(d deployed) float64 { return d.mean }
func deploySent(d deployed) float64 { return float64(d.sent) }
func finish(w worked) float64       { return float64(w.finish) }
func mixPeak(w worked) float64      { return float64(w.peak) / gigabyte }
func mixImages(w worked) float64    { return float64(w.images) }
func mixSent(w worked) float64      { return float64(w.sent) }
func utilization(w worked) float64  { return w.utilization }
func refusedShare(w worked) float64 { return float64(w.refused) / float64(max(1, w.taken+w.refused)) }
func suspensions(w worked) float64  { return float64(w.suspensions) }

const gigabyte = 1e9

// of returns the results of a mix in a setup.
func (r *results) of(m mix, s setup) []worked { return r.mixes[mixKey{m, s.name}] }

// finish estimates when all best-effort work of a mix is done, in seconds.
func (r *results) finish(m mix, s setup) sim.Estimate { return estimate(r.of(m, s), finish) }

// lead returns, for each run, how many GB more are deployed with a cache than without, at the time
// that the thesis states.
func (r *results) lead(trace string, planner bool) []float64 {
	without, with := r.reuse[reuseKey{trace, planner, false}], r.reuse[reuseKey{trace, planner, true}]
	values := make([]float64, len(with))
	for i := range with {
		values[i] = float64(int64(with[i].by(leadAt)-without[i].by(leadAt))*r.ImageSize) * megabyte / gigabyte
	}
	return values
}
