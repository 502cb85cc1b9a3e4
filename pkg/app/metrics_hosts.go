package app

import (
	"context"
	"math"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// poolStates are the states of a host of the pool; it is always in exactly one.
var poolStates = []string{"promised", "failed", "occupied", "free"}

// poolHosts counts the hosts of the pool by state. promised has the first claim from now on of
// each host.
func poolHosts(hosts *inventory.Snapshot, promised []reservation.Claim, now span.Instant) map[string]int {
	taken := make(map[string]bool, len(promised))
	for _, c := range promised {
		taken[c.Host] = c.Span.Start <= now
	}
	count := make(map[string]int, len(poolStates))
	for _, h := range hosts.Hosts() {
		switch {
		case !h.Reservable:
		case taken[h.Name]:
			count["promised"]++
		case h.Failure() != "":
			count["failed"]++
		case h.InstanceCount > 0:
			count["occupied"]++
		default:
			count["free"]++
		}
	}
	return count
}

// lateStarts counts the reservations whose start is overdue, and returns for how many seconds the
// first of them has waited.
func lateStarts(live []reservation.Reservation, now span.Instant) (count int, seconds int64) {
	for i := range live {
		at, due := lifecycle.Due(&live[i])
		if !due || live[i].Events[at].Type != reservation.StartEvent || live[i].Events[at].Time >= now {
			continue
		}
		count++
		seconds = max(seconds, int64(now-live[i].Events[at].Time))
	}
	return count, seconds
}

// measurePool registers the metrics of the pool and of late starts.
func (a *App) measurePool(m metrics) {
	for _, state := range poolStates {
		m.gauge("almanac_pool_hosts", "Hosts that may be reserved, by what keeps them: each is in one state.", prometheus.Labels{"state": state},
			func() float64 {
				now := a.clock.now()
				return float64(poolHosts(a.desk.Snapshot(), a.desk.Promised(now), now)[state])
			})
	}
	late := func() (int, int64) {
		return lateStarts(a.desk.Live(span.Span{Start: math.MinInt64, End: span.Forever}), a.clock.now())
	}
	m.gauge("almanac_starts_late", "Reservations whose start is due and not carried out.", nil,
		func() float64 { count, _ := late(); return float64(count) })
	m.gauge("almanac_starts_late_seconds", "For how long the first of them waits; 0 where none does.", nil,
		func() float64 { _, seconds := late(); return float64(seconds) })
}

// countedDoctor remembers the findings of the last examination.
type countedDoctor struct {
	*upkeep.Doctor
	now func() span.Instant

	mu    sync.Mutex
	found map[upkeep.FindingKind]int
	at    span.Instant // 0 before the first examination
}

func newCountedDoctor(d *upkeep.Doctor) *countedDoctor { return &countedDoctor{Doctor: d, now: d.Now} }

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
	d.found, d.at = found, d.now()
	return e, nil
}

func (d *countedDoctor) measure(m metrics) {
	for _, kind := range upkeep.FindingKinds {
		m.gauge("almanac_doctor_findings", "What the last examination found and did not mend, by kind; somebody has to ask for one.",
			prometheus.Labels{"kind": string(kind)}, func() float64 {
				d.mu.Lock()
				defer d.mu.Unlock()
				return float64(d.found[kind])
			})
	}
	m.gauge("almanac_doctor_last_examination_timestamp_seconds", "When this process examined last; 0 where it never did.", nil, func() float64 {
		d.mu.Lock()
		defer d.mu.Unlock()
		return float64(d.at)
	})
}
