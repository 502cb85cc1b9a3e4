// SPDX-License-Identifier: Apache-2.0

package site

import (
	"cmp"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// stepping schedules the steps of the controller: at multiples of the step interval since the
// beginning, but only when something has changed or is due.
type stepping struct {
	first, last span.Instant
	next        span.Instant // the expected step; 0 means none
	always      bool         // no multiple is skipped

	wake  span.Instant // the result of firstWake for these inputs
	since wakeInputs
}

// wakeInputs are the revisions of all that firstWake depends on.
type wakeInputs struct {
	known                 bool
	records, reservations uint64
}

// expectStep schedules a step of the controller at its first possible time at or after an instant.
func (s *Site) expectStep(at span.Instant) {
	if s.step == nil {
		return
	}
	every := span.Instant(s.options.Power.StepEvery)
	at = max(at, s.steps.last+1)
	at = s.steps.first + (at-s.steps.first+every-1)/every*every
	if s.steps.next != 0 && s.steps.next <= at {
		return
	}
	s.steps.next = at
	s.timeline.At(at, sim.Looking, func() error {
		if s.steps.next != at {
			return nil // an earlier step has replaced it
		}
		s.steps.next = 0
		return s.takeStep()
	})
}

// takeStep runs a step of the controller, and then lets the machines obey its orders.
func (s *Site) takeStep() error {
	now := s.timeline.Now()
	if err := s.refresh(s.ctx); err != nil {
		return err
	}
	s.steps.last = now
	s.totals.Steps++
	before := s.ledger.revision
	if err := s.step(s.ctx); err != nil {
		return fmt.Errorf("step of the energy controller: %w", err)
	}
	if err := s.obey(); err != nil {
		return err
	}
	s.showPower(s.ledger.fresh)
	s.fleet.touched = append(s.fleet.touched, s.ledger.fresh...)
	if err := s.admit(); err != nil {
		return err
	}
	s.show()
	if s.ledger.revision != before || s.steps.always {
		s.expectStep(now + 1)
	}
	measure := span.Instant(s.options.Power.MeasureEvery)
	s.expectStep(s.steps.first + ((now-s.steps.first)/measure+1)*measure)
	s.expectWake()
	return nil
}

// expectWake schedules a step for what depends on the clock alone: a host that has been stopping or
// booting for too long, or one that drains or sleeps and will be needed.
func (s *Site) expectWake() {
	if s.step == nil {
		return
	}
	if now := (wakeInputs{true, s.ledger.revision, s.bookings.Revision()}); s.steps.since != now {
		s.steps.wake, s.steps.since = s.firstWake(), now
	}
	if s.steps.wake != span.Forever {
		s.expectStep(s.steps.wake)
	}
}

// firstWake returns the first instant at which a host is due because of the clock alone; span.Forever if none is.
func (s *Site) firstWake() span.Instant {
	p := s.options.Power
	first := span.Forever
	var claimed map[string]span.Instant
	for host, r := range s.ledger.records {
		switch r.Phase {
		case energy.Draining, energy.Asleep:
			if claimed == nil {
				claimed = s.claimed()
			}
			if at, is := claimed[host]; is {
				first = min(first, p.Rules.WakeAt(&energy.Machine{Claimed: at, BootSeconds: r.BootSeconds(cmp.Or(s.list[s.fleet.places[host]].BootSeconds, p.BootTime))}))
			}
			if r.Phase == energy.Draining {
				first = min(first, r.Closed.Add(p.Switching.Settle))
			}
		case energy.Waking, energy.Failed:
			if r.RetryAt != 0 {
				first = min(first, r.RetryAt)
			}
		}
	}
	return first
}

// claimed returns the start of the first claim of each host that has one, by the name of the host.
func (s *Site) claimed() map[string]span.Instant {
	first := map[string]span.Instant{}
	for _, c := range s.bookings.Promised(s.timeline.Now()) {
		first[c.Host] = c.Span.Start
	}
	return first
}
