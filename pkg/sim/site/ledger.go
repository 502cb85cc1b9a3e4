// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// ledger keeps in memory what the controller stores. It keeps no history: there is one controller,
// which lives as long as the site, and the site itself counts what is read from a history
// otherwise.
type ledger struct {
	mu       sync.Mutex
	records  map[string]*energy.Record // each is replaced when it changes
	copy     map[string]energy.Record  // of records, apart from those of fresh
	fresh    []string                  // the hosts whose records have changed since they were copied
	revision uint64                    // increases with each change of a record
	settings energy.Settings
	now      func() span.Instant
	halt     span.Instant // the instant since which no host may be switched off; 0 if hosts may be
	halted   int64        // seconds of earlier periods in which no host could be switched off
	ids      atomic.Int64
}

// PowerRecords returns the same map each time, brought up to date: the controller writes into it only what it has just
// stored.
func (l *ledger) PowerRecords(context.Context) (map[string]energy.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, host := range l.fresh {
		if r, kept := l.records[host]; kept {
			l.copy[host] = *r
		} else {
			delete(l.copy, host)
		}
	}
	l.fresh = l.fresh[:0]
	return l.copy, nil
}

func (l *ledger) ChangePower(_ context.Context, _ job.Lease, hosts []string, change func(map[string]energy.Record) ([]energy.Entry, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored := make(map[string]energy.Record, len(hosts))
	for _, host := range hosts {
		r := energy.Record{Host: host}
		if before, known := l.records[host]; known {
			r = *before
		}
		stored[host] = r
	}
	if _, err := change(stored); err != nil {
		return err
	}
	for _, host := range hosts {
		r, kept := stored[host]
		if !kept {
			delete(l.records, host)
			continue
		}
		l.records[host] = &r
	}
	if len(hosts) > 0 {
		l.fresh = append(l.fresh, hosts...)
		l.revision++
	}
	return nil
}

func (l *ledger) EnergySettings(context.Context) (energy.Settings, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settings, nil
}

func (l *ledger) ChangeEnergySettings(_ context.Context, _ job.Lease, change func(*energy.Settings) ([]energy.Entry, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := change(&l.settings)
	return err
}

func (l *ledger) Audit(context.Context, string, int64, int) ([]energy.Entry, error) { return nil, nil }

func (l *ledger) Demand(context.Context, span.Instant) ([]energy.Demand, error) { return nil, nil }

func (l *ledger) AddDemand(context.Context, job.Lease, energy.Demand, span.Instant) error { return nil }

// Switched implements controller.Notices.
func (l *ledger) Switched(context.Context, controller.Switched) error { return nil }

// Alarm implements controller.Notices. It adds up how long an AlarmHalted lasts, while no host may
// be switched off, and ignores other alarms.
func (l *ledger) Alarm(_ context.Context, a energy.Alarm, ended bool) error {
	if a.Kind != energy.AlarmHalted {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.halt = a.Since; ended {
		l.halted += int64(l.now() - a.Since)
		l.halt = 0
	}
	return nil
}

// haltedUntil returns for how many seconds before an instant no host could be switched off.
func (l *ledger) haltedUntil(now span.Instant) int64 {
	if l.halt == 0 {
		return l.halted
	}
	return l.halted + int64(now-l.halt)
}

func (l *ledger) newID() string { return strconv.FormatInt(l.ids.Add(1), 36) }

// Take grants the lease always, since there is only one controller.
func (l *ledger) Take(_ context.Context, name string, _ time.Duration) (job.Lease, bool, error) {
	return job.Lease{Name: name, Epoch: 1}, true, nil
}

// Overrides, ChangeOverride, Hidden and SaveHidden implement ports of the inventory. There are no
// manual settings.
func (l *ledger) Overrides(context.Context) (map[string]inventory.Override, error) { return nil, nil }

func (l *ledger) ChangeOverride(context.Context, string, func(map[string]inventory.Override) (inventory.Override, error)) error {
	return nil
}

func (l *ledger) Hidden(context.Context) (map[string]bool, error) { return nil, nil }

func (l *ledger) SaveHidden(context.Context, string, bool) error { return nil }
