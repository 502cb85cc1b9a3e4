package site

import (
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Cores are how many cores there are in each state.
type Cores [states]int64

// InUse are those of hosts with guests.
func (c *Cores) InUse() int64 { return c[busy] }

// Off are those of hosts that are off.
func (c *Cores) Off() int64 { return c[off] }

// On are those of all other hosts: those that stop or boot count as on.
func (c *Cores) On() int64 { return c[idle] + c[busy] + c[stopping] + c[booting] }

// All are those of all hosts.
func (c *Cores) All() int64 { return c.On() + c.Off() }

// Totals are what became of hosts and reservations from Since until Until. Times are seconds.
type Totals struct {
	Since, Until span.Instant
	// Hosts and Cores are the host-seconds and core-seconds in each state.
	Hosts, Cores Cores
	Joules       float64 // taken by all machines, where the draw is known

	Boots, Shutdowns int64
	Booked, Refused  int64 // requests
	Begun            int64 // reservations that have all their hosts, or have ended without
	// Delayed are those that began later than they were asked for because hosts had to boot,
	// and Late those whose start was promised and missed; LateSeconds is by how much together.
	Delayed, Late, LateSeconds int64
	// Delay is delay_req of paper 004: the sum of cores × seconds waited for boots / duration.
	Delay float64

	Steps  int64 // of the controller
	Halted int64 // seconds in which nothing might be switched off
}

// ResIdle is res_idle of paper 004, in core-seconds: what is there and not in use, whether it
// is on or not. No switching can save more.
func (t *Totals) ResIdle() int64 { return t.Cores.All() - t.Cores.InUse() }

// Savings is e_savings of paper 004, in core-seconds: what is off.
func (t *Totals) Savings() int64 { return t.Cores.Off() }

// KWh is the energy that was taken.
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

// Finish gives the account until now. It may be asked for more than once.
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

// switchingWatts is what a machine takes while it stops or boots.
func (m *Machines) switchingWatts() float64 {
	if m.Shutdown+m.Boot == 0 {
		return 0
	}
	return m.Draw.BootJoules / float64(m.Shutdown+m.Boot)
}

// show tells who watches how many cores are in each state, where that is another than before.
func (s *Site) show() {
	if s.changed && s.options.Watch != nil {
		s.options.Watch(s.timeline.Now(), s.cores)
	}
	s.changed = false
}
