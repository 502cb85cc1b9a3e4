// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/almanac-cloud/almanac/pkg/api"
)

// watchJobs returns the jobs of all features, watched. They run at the pace of the process.
func (a *App) watchJobs() (all []*watchedJob) {
	for _, f := range a.features {
		for _, j := range f.jobs {
			j.Every = a.pace.interval(j.Every)
			all = append(all, watch(j))
		}
	}
	return all
}

// registry returns the metrics of the process, its features and their jobs.
func (a *App) registry() *prometheus.Registry {
	var m metrics
	m.gauge("almanac_build_info", "1, with the versions of Almanac and of Go.",
		prometheus.Labels{"version": a.version, "go_version": runtime.Version()}, func() float64 { return 1 })
	for _, w := range a.jobs {
		m.job(w)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(m...)
	for _, f := range a.features {
		registry.MustRegister(f.metrics...)
	}
	return registry
}

func (m *metrics) job(w *watchedJob) {
	labels := prometheus.Labels{"name": w.Name}
	m.gauge("almanac_job_failing", "1 if the last run of periodic work failed, or a run does not end.", labels,
		func() float64 { return oneIf(w.trouble() != nil) })
	m.gauge("almanac_job_last_success_timestamp_seconds", "Time at which periodic work last succeeded; 0 if it never did.", labels,
		func() float64 {
			if at := w.lastSuccess(); !at.IsZero() {
				return float64(at.UnixMilli()) / 1000
			}
			return 0
		})
}

// probes returns the probes of the features and of their jobs.
func (a *App) probes() (all []api.Probe) {
	var jobs feature
	for _, w := range a.jobs {
		jobs.probe(w.Name, w.trouble)
	}
	for _, f := range append(a.features, jobs) {
		all = append(all, f.probes...)
	}
	return all
}

// answers measures how long Nova waited for hosts.
type answers struct{ took *prometheus.HistogramVec }

func newAnswers() answers {
	a := answers{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "almanac_placement_duration_seconds", Help: "How long Nova waited for hosts for the instances of a request, by outcome.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
	}, []string{"outcome"})}
	for _, placed := range []bool{true, false} {
		a.took.WithLabelValues(outcome(placed))
	}
	return a
}

func (a answers) given(took time.Duration, placed bool) {
	a.took.WithLabelValues(outcome(placed)).Observe(took.Seconds())
}

func outcome(placed bool) string {
	if placed {
		return "placed"
	}
	return "no_host"
}
