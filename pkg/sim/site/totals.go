// SPDX-License-Identifier: Apache-2.0

package site

import (
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Cores is the number of cores of hosts in each state.
type Cores [states]int64

// InUse returns the cores of hosts with instances.
func (c *Cores) InUse() int64 { return c[busy] }

// Off returns the cores of hosts that are off.
func (c *Cores) Off() int64 { return c[off] }

// On returns the cores of all other hosts; hosts that stop or boot count as on.
func (c *Cores) On() int64 { return c[idle] + c[busy] + c[stopping] + c[booting] }

// All returns the cores of all hosts.
func (c *Cores) All() int64 { return c.On() + c.Off() }

// Totals sum up what happened to hosts and reservations from Since until Until. Times are seconds.
type Totals struct {
	Since, Until span.Instant
	// Hosts and Cores are the host-seconds and core-seconds in each state.
	Hosts, Cores Cores
	Joules       float64 // taken by all machines, if Draw is known

	Boots, Shutdowns int64
	Booked, Refused  int64 // requests
	Begun            int64 // reservations that have all their hosts, or have ended without having them all
	// Delayed counts the reservations that began late because hosts had to boot. Late counts those
	// that missed a promised start, and LateSeconds is the sum of these delays.
	Delayed, Late, LateSeconds int64
	// Delay is delay_req of paper 004: the sum of cores × seconds waited for boots / duration.
	Delay float64

	Steps  int64 // of the controller
	Halted int64 // seconds in which no host could be switched off
}

// ResIdle returns res_idle of paper 004, in core-seconds: the capacity not in use, on or off. No
// switching can save more.
func (t *Totals) ResIdle() int64 { return t.Cores.All() - t.Cores.InUse() }

// Savings returns e_savings of paper 004, in core-seconds: the capacity that is off.
func (t *Totals) Savings() int64 { return t.Cores.Off() }

// KWh returns the energy that the hosts used, in kWh.
func (t *Totals) KWh() float64 { return t.Joules / 3.6e6 }

// count counts a reservation that has begun.
func (t *Totals) count(b *Beginning, cores int64) {
	t.Begun++
	if late := b.Late(); late > 0 {
		t.Late++
		t.LateSeconds += late
	}
	wait := b.Wait()
	if wait > 0 {
		t.Delayed++
	}
	t.Delay += energy.DelayReq([]energy.Delayed{{Cores: cores, Boot: wait, Duration: b.Reservation.Span.Seconds()}})
}

// Finish returns the totals until now. It may be called more than once.
func (s *Site) Finish() Totals {
	t := s.totals
	t.Until = s.timeline.Now()
	t.Halted = s.ledger.haltedUntil(t.Until)
	how := &s.options.Machines
	for _, m := range s.fleet.all {
		spent := m.spent
		spent[m.state] += int64(t.Until - m.since)
		for in, seconds := range spent {
			t.Hosts[in] += seconds
			t.Cores[in] += seconds * m.cores
		}
	}
	d := &how.Draw
	t.Joules = d.Idle*float64(t.Hosts[idle]) + d.Full*float64(t.Hosts[busy]) + d.Off*float64(t.Hosts[off]) +
		how.switchingWatts()*float64(t.Hosts[stopping]+t.Hosts[booting])
	return t
}

// switchingWatts returns the power of a machine while it stops or boots.
func (m *Machines) switchingWatts() float64 {
	if m.Shutdown+m.Boot == 0 {
		return 0
	}
	return m.Draw.BootJoules / float64(m.Shutdown+m.Boot)
}

// show reports the cores in each state to Watch if they have changed.
func (s *Site) show() {
	if s.changed && s.options.Watch != nil {
		s.options.Watch(s.timeline.Now(), s.cores)
	}
	s.changed = false
}
