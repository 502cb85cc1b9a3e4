// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// state is what a machine is doing.
type state int

const (
	idle state = iota // up, without an instance
	busy
	stopping
	off
	booting
	states // the number of states
)

// machine is a host's machine together with its nova-compute.
type machine struct {
	name   string
	cores  int64
	state  state
	since  span.Instant  // of the start of the state
	spent  [states]int64 // seconds in each state before since
	boots  int
	tenant string // the reservation that has it now; it has an instance once the host is ready
	closed string // why its nova-compute is disabled; empty if it is not

	order    energy.Order // the last one
	progress energy.Progress
}

func (m *machine) up() bool { return m.state == idle || m.state == busy }

// ready reports whether the host accepts instances.
func (m *machine) ready() bool { return m.up() && m.closed == "" }

// fleet is all machines, as agents and Nova show them. While the controller makes a step, several
// goroutines may read and order; the machines obey the orders after the step.
type fleet struct {
	mu       sync.Mutex
	all      []*machine
	places   map[string]int
	access   map[string]energy.Access
	services map[string]controller.Service // by host, apart from those of outdated
	outdated []*machine
	// touched are the hosts about which anything that the controller sees may have changed since it asked for them.
	touched []string
	now     func() span.Instant
}

func (f *fleet) of(host string) *machine {
	if i, known := f.places[host]; known {
		return f.all[i]
	}
	return nil
}

// Access implements controller.Agents.
func (f *fleet) Access() (map[string]energy.Access, map[string]string) { return f.access, nil }

// Agents implements controller.Agents.
func (f *fleet) Agents() []energy.Agent {
	return []energy.Agent{{Name: "simulated", Hosts: len(f.all), Seen: f.now()}}
}

// Read implements controller.Agents. A machine that boots is read as on.
func (f *fleet) Read(_ context.Context, hosts []string) map[string]energy.Reading {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, all := f.now(), make(map[string]energy.Reading, len(hosts))
	for _, host := range hosts {
		r := energy.Reading{Host: host, State: energy.On, At: now}
		if f.of(host).state == off {
			r.State = energy.Off
		}
		all[host] = r
	}
	return all
}

// Order implements controller.Agents. It records the order, which obey begins after the step.
func (f *fleet) Order(_ context.Context, o energy.Order) (energy.Outcome, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.of(o.Host)
	switch {
	case o.ID == m.order.ID:
		return energy.Outcome{Progress: m.progress}, nil
	case o.Number <= m.order.Number:
		return energy.Outcome{Progress: energy.OrderRefused, Reason: "it is older than an earlier order"}, nil
	case o.Deadline < f.now():
		return energy.Outcome{Progress: energy.OrderRefused, Reason: "it came too late"}, nil
	}
	m.order, m.progress = o, energy.OrderAccepted
	return energy.Outcome{Progress: energy.OrderAccepted}, nil
}

// Services implements controller.ComputeServices.
func (f *fleet) Services(context.Context) (map[string]controller.Service, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.outdated {
		f.services[m.name] = controller.Service{Up: m.up(), Disabled: m.closed != "", Reason: m.closed}
	}
	f.outdated = f.outdated[:0]
	return f.services, nil
}

// Disable implements controller.ComputeServices. Nobody but the controller disables services here.
func (f *fleet) Disable(_ context.Context, host, reason string) error {
	f.setClosed(host, reason)
	return nil
}

// Enable implements controller.ComputeServices.
func (f *fleet) Enable(_ context.Context, host, _ string) error {
	f.setClosed(host, "")
	return nil
}

func (f *fleet) setClosed(host, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.of(host)
	m.closed = reason
	f.changes(m)
}

// changes marks a machine whose state the controller has not seen yet.
func (f *fleet) changes(m *machine) {
	f.outdated, f.touched = append(f.outdated, m), append(f.touched, m.name)
}

// Touched returns the hosts that may have another machine, service, record or inventory since its last call.
func (f *fleet) Touched() (hosts []string, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hosts, f.touched = f.touched, nil
	return hosts, true
}

// Occupied implements controller.Vacancy.
func (f *fleet) Occupied(_ context.Context, host string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.of(host); m.tenant != "" {
		return "there is an instance of reservation " + m.tenant + " on it", nil
	}
	return "", nil
}

// become changes the state of a machine.
func (s *Site) become(m *machine, to state) {
	now := s.timeline.Now()
	m.spent[m.state] += int64(now - m.since)
	s.cores[m.state] -= m.cores
	s.cores[to] += m.cores
	s.stale = s.stale || m.state == busy || to == busy // all that the inventory reads of the machine
	m.state, m.since = to, now
	s.fleet.changes(m)
	s.changed = true
}

// obey begins what was ordered in the last step, sorted by host, so that the result does not depend
// on the sequence of concurrent calls.
func (s *Site) obey() error {
	for _, m := range s.fleet.all {
		if m.progress != energy.OrderAccepted || m.state == stopping || m.state == booting {
			continue
		}
		switch {
		case m.order.State == energy.On && m.up() || m.order.State != energy.On && m.state == off:
			m.progress = energy.OrderDone
		case m.order.State == energy.On:
			s.boot(m)
		case m.tenant != "":
			return fmt.Errorf("host %s is ordered off while reservation %s has it", m.name, m.tenant)
		default:
			s.stop(m)
		}
	}
	return nil
}

func (s *Site) stop(m *machine) {
	s.become(m, stopping)
	s.totals.Shutdowns++
	s.later(s.options.Machines.Shutdown, func() {
		s.become(m, off)
		m.progress = energy.OrderDone
	})
}

func (s *Site) boot(m *machine) {
	takes := s.bootTime(m)
	s.become(m, booting)
	m.boots++
	s.totals.Boots++
	s.later(takes, func() {
		s.become(m, idle)
		m.progress = energy.OrderDone
	})
}

// later runs a change of a machine after that many seconds, and then makes the controller step at
// its next possible time, so that it sees the change.
func (s *Site) later(seconds int64, do func()) {
	s.timeline.After(seconds, sim.Ending, func() error {
		do()
		s.show()
		s.expectStep(s.timeline.Now())
		return nil
	})
}

// bootTime draws how many seconds this boot of the machine takes.
func (s *Site) bootTime(m *machine) int64 {
	how, seconds := &s.options.Machines, float64(s.options.Machines.Boot)
	if how.Spread > 0 {
		chance := sim.Chance(s.options.Seed, "boot", m.name, m.boots)
		seconds *= math.Exp(how.Spread * chance.NormFloat64())
	}
	if how.Crowding > 0 {
		others := 0
		for _, other := range s.fleet.all {
			if other.state == booting {
				others++
			}
		}
		seconds *= 1 + how.Crowding*float64(others)
	}
	return int64(math.Round(min(seconds, longest)))
}
