// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// openDoctor returns the doctor. Without a cloud, enforced is nil.
func openDoctor(s shared, enforced *enforcement) (*countedDoctor, feature) {
	d := upkeep.Doctor{
		Promises: s.bookings, Records: s.db, Snapshot: s.hosts.Snapshot, Untrusted: s.doubt, Canceler: s.bookings, Now: s.clock.now,
	}
	d.Idle = func() map[string]upkeep.Ineffective { return withoutEffect(s.config, s.cloud) }
	if e := enforced; e != nil {
		d.Fence, d.Instances, d.Claims, d.Rules, d.Fill = e.backend, e.backend, e.backend, e.rules.Fence, e.rules.Fill
		d.Notices, d.Resting = e.notices, s.db.Resting
		if s.cloud.session != nil {
			d.Projects = keystone.Projects{Session: s.cloud.session}
		}
		if s.config.BestEffort.Enabled && !schedules(s.config) {
			d.Unpinned = "best-effort work is on, and Almanac does not answer Nova ([scheduler] mode = off): without Almanac's plugin in nova-scheduler, " +
				"Nova mostly chooses other hosts than planned, and never promised ones"
		}
	}
	counted, f := &countedDoctor{Doctor: d}, feature{}
	counted.measure(&f.metrics)
	return counted, f
}

// withoutEffect returns the options that have no effect: the configured mode excludes them, or the
// part that they configure has failed. A nil cloud means that the hosts come from a file.
func withoutEffect(c config.Config, cloud *cloud) map[string]upkeep.Ineffective {
	found := map[string]upkeep.Ineffective{}
	if floor, mode := c.Packing.Yield.Floor, c.Scheduler.Mode; floor != 0 && mode != config.ModeReplace {
		found["[packing] min_yield_floor"] = upkeep.Ineffective{
			Reason: fmt.Sprintf("the YieldFilter does not run although min_yield_floor is %g: it requires [scheduler] mode = replace, and the mode is %s", floor, mode),
			Remedy: "change the mode or remove the setting",
		}
	}
	if cloud == nil {
		return found
	}
	if why := cloud.unheard.Load(); why != nil {
		found["[nova] notifications"] = upkeep.Ineffective{
			Reason: "this almanacd no longer receives Nova's notifications, so it sees changes at its next reading of the cloud: " + *why,
			Remedy: "correct what the message names, and restart this almanacd",
		}
	}
	return found
}

// countedDoctor remembers the findings of the last examination.
type countedDoctor struct {
	upkeep.Doctor

	mu    sync.Mutex
	found map[upkeep.FindingKind]int
	at    span.Instant // 0 before the first examination
}

// Examine calls Doctor.Examine and counts the findings.
func (d *countedDoctor) Examine(ctx context.Context) (upkeep.Examination, error) {
	return d.counted(d.Doctor.Examine(ctx))
}

// Plan calls Doctor.Plan and counts the findings.
func (d *countedDoctor) Plan(ctx context.Context) (upkeep.Examination, error) {
	return d.counted(d.Doctor.Plan(ctx))
}

// Fix calls Doctor.Fix and counts the remaining findings.
func (d *countedDoctor) Fix(ctx context.Context, by booking.Caller) (upkeep.Examination, error) {
	return d.counted(d.Doctor.Fix(ctx, by))
}

// counted stores the number of findings that remain after an examination.
func (d *countedDoctor) counted(e upkeep.Examination, err error) (upkeep.Examination, error) {
	if err != nil {
		return e, err
	}
	found := map[upkeep.FindingKind]int{}
	for _, f := range e.Findings {
		if f.Outcome != upkeep.FixDone {
			found[f.Kind]++
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.found, d.at = found, d.Now()
	return e, nil
}

// measure registers the metrics of the doctor's last examination.
func (d *countedDoctor) measure(m *metrics) {
	for _, kind := range upkeep.FindingKinds {
		m.gauge("almanac_doctor_findings", "Findings of the last examination that it did not fix, by kind. Examinations run only on request.",
			prometheus.Labels{"kind": string(kind)}, func() float64 {
				d.mu.Lock()
				defer d.mu.Unlock()
				return float64(d.found[kind])
			})
	}
	m.gauge("almanac_doctor_last_examination_timestamp_seconds", "Time of this process's last examination; 0 if there was none.", nil, func() float64 {
		d.mu.Lock()
		defer d.mu.Unlock()
		return float64(d.at)
	})
}
