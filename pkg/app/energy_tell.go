// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/notice"
)

// switchNotices sends notifications about hosts that are switched.
type switchNotices struct {
	notifier *notice.Notifier
	now      func() span.Instant
}

// Switched implements controller.Notices.
func (n switchNotices) Switched(ctx context.Context, s controller.Switched) error {
	return n.notifier.Power(ctx, notice.Power{
		Host: s.Host, To: s.To, Moment: moments[s.Stage], Reason: s.Reason, Operation: s.Operation, Urgent: s.Urgent,
		Since: s.Since.Time(), At: s.At.Time(),
	})
}

var moments = map[controller.Stage]notice.Moment{controller.Starts: notice.Start, controller.Ends: notice.End, controller.Fails: notice.Failed}

// Alarm implements controller.Notices.
func (n switchNotices) Alarm(ctx context.Context, a energy.Alarm, ended bool) error {
	return n.notifier.Alarm(ctx, notice.Alarm{Alarm: a, Over: ended, At: n.now().Time()})
}

// trials answers requests for wake tests over the message broker, from peers with access to
// Almanac's own topics.
type trials struct{ admin *controller.Admin }

// Test implements power.Trials.
func (t trials) Test(ctx context.Context, host, by string) error {
	_, err := t.admin.Order(ctx, by, host, energy.Hold{Action: energy.Test, Reason: "a wake test"})
	return err
}

// HostRecord implements power.Trials.
func (t trials) HostRecord(ctx context.Context, host string) (energy.Record, error) {
	status, err := t.admin.Host(ctx, host)
	return status.Record, err
}

// seen caches the status of the energy controller: a scrape of metrics must not wait for the
// database.
type seen struct {
	mu     sync.Mutex
	status controller.Status
}

// seenEvery is how often seen reads the status of the energy controller.
const seenEvery = 15 * time.Second

func (s *seen) job(admin *controller.Admin) job.Job {
	return job.Job{Name: "energy status", Every: seenEvery, Step: func(ctx context.Context) error {
		status, err := admin.Status(ctx)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.status = status
		return nil
	}}
}

func (s *seen) get() controller.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// measure adds the metrics of the energy controller.
func (s *seen) measure(m *metrics) {
	for _, name := range energy.PhaseWords {
		m.gauge("almanac_energy_hosts", "Hosts by phase of power management.", prometheus.Labels{"phase": name}, func() (n float64) {
			for _, h := range s.get().Report.Hosts {
				n += oneIf(h.Machine.Phase.Word() == name)
			}
			return n
		})
	}
	for _, kind := range energy.AlarmKinds {
		m.gauge("almanac_energy_alarms", "Alarms of the energy controller, by kind.", prometheus.Labels{"kind": string(kind)}, func() (n float64) {
			for _, a := range s.get().Report.Alarms {
				n += oneIf(a.Kind == kind)
			}
			return n
		})
	}
	m.gauge("almanac_energy_report_stale", "1 if no process measures which hosts are idle, or if the one that does is behind.", nil,
		func() float64 { return oneIf(s.get().Stale != "") })
	m.gauge("almanac_energy_halted", "1 if Almanac switches no host off at present.", nil, func() float64 { return oneIf(s.get().Report.Halt != "") })
	savings := func(read func(s energy.Savings) float64) func() float64 {
		return func() float64 { return read(s.get().Settings.Savings) }
	}
	m.counter("almanac_energy_host_seconds_off_total", "Total time that hosts were off or in standby.", nil,
		savings(func(s energy.Savings) float64 { return float64(s.HostSeconds) }))
	m.counter("almanac_energy_core_seconds_off_total", "The same time multiplied by the number of cores.", nil,
		savings(func(s energy.Savings) float64 { return float64(s.CoreSeconds) }))
	m.counter("almanac_energy_core_seconds_idle_total", "Core time of hosts that were on and idle.", nil,
		savings(func(s energy.Savings) float64 { return float64(s.IdleCoreSeconds) }))
	m.gauge("almanac_energy_saved_joules", "Energy saved compared with idle hosts that stay on, minus the energy of boots, for hosts with known power.", nil,
		savings(func(s energy.Savings) float64 { return s.Joules }))
	m.counter("almanac_energy_boots_total", "Boots of hosts that Almanac has switched on.", nil, savings(func(s energy.Savings) float64 { return float64(s.Boots) }))
}
