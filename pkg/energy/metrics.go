// SPDX-License-Identifier: Apache-2.0

package energy

import "github.com/almanac-cloud/almanac/pkg/span"

// Level is the number of cores from an instant until the next level.
type Level struct {
	From  span.Instant
	Cores int64
}

// Area returns the sum of the levels, which are sorted by time, until an instant, in core-seconds.
// For the cores that are off this is e_savings of paper 004.
func Area(levels []Level, until span.Instant) (area int64) {
	for i, l := range levels {
		end := until
		if i+1 < len(levels) {
			end = min(end, levels[i+1].From)
		}
		area += l.Cores * max(int64(end-l.From), 0)
	}
	return area
}

// ResIdle returns res_idle of paper 004: the core-seconds that are available and not in use.
// Savings cannot exceed it.
func ResIdle(total, used []Level, until span.Instant) int64 {
	return Area(total, until) - Area(used, until)
}

// Delayed is a request that waited until the last of its hosts had booted. Times are in
// seconds; Boot is 0 if it did not wait.
type Delayed struct{ Cores, Boot, Duration int64 }

// DelayReq returns delay_req of paper 004: the sum of cores × boot time / duration.
// Requests without a duration do not count.
func DelayReq(requests []Delayed) (delay float64) {
	for _, r := range requests {
		if r.Duration > 0 {
			delay += float64(r.Cores) * float64(r.Boot) / float64(r.Duration)
		}
	}
	return delay
}

// Spell is the state of a machine between two measurements.
type Spell struct {
	Machine *Machine
	State   State // its power state
	Booted  bool  // a boot of it began in that time
}

// Add counts the interval from Until to now, or only most seconds of it if it is longer, because
// nothing observed the rest. The first call only starts the count.
func (s *Savings) Add(now span.Instant, most int64, spells []Spell) {
	if s.Since == 0 {
		s.Since, s.Until = now, now
	}
	took := max(0, min(int64(now-s.Until), most))
	s.Until = max(s.Until, now)
	for i := range spells {
		s.add(&spells[i], took)
	}
}

// add counts took seconds of a machine in one state: boots, time and energy while it was off, and time
// while it was idle.
func (s *Savings) add(one *Spell, took int64) {
	m := one.Machine
	if one.Booted {
		s.Boots++
		if m.Draw.Idle > 0 && m.Draw.Off > 0 { // without a known power no saving is counted either
			s.Joules -= m.Draw.BootJoules
		}
	}
	switch {
	case m.Phase == Asleep && (one.State == Off || one.State == Standby):
		s.HostSeconds += took
		s.CoreSeconds += took * m.Capacity.VCPUs
		if watts, known := m.Draw.saved(one.State); known {
			s.Joules += watts * float64(took)
		} else {
			s.Unknown += took
		}
	case m.Phase != Asleep && m.Phase != Failed && !m.Busy:
		s.IdleCoreSeconds += took * m.Capacity.VCPUs
	}
}

// saved returns how many watts less than an idle machine a machine in the state uses; known is
// false if its power is unknown.
func (d *Draw) saved(in State) (watts float64, known bool) {
	rest := d.Off
	if in == Standby {
		rest = d.Standby
	}
	return d.Idle - rest, d.Idle > 0 && rest > 0
}
