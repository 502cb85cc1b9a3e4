// SPDX-License-Identifier: Apache-2.0

// Package simulated contains a machine in memory, for trying Almanac without any hardware, and for
// tests.
package simulated

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// Options describe a machine.
type Options struct {
	State energy.State // initial state; empty is On
	// Shutdown is how long the operating system takes to stop, and Boot how long it then takes
	// until its services are up; from standby it takes a tenth of that.
	Shutdown, Boot time.Duration
	// Watts is the power in each state, in watts.
	Watts map[energy.State]float64
	// Wait waits for a duration, or until ctx ends; nil means a wait in real time.
	Wait func(ctx context.Context, d time.Duration) error
	// Changed is called with true when the operating system is up, and with false when it has
	// stopped; nil means no call.
	Changed func(up bool)
}

// Trouble is a set of defects of a machine. The zero Trouble means no defect.
type Trouble struct {
	NeverBoots bool          // the power is on, and the operating system never starts
	NeverStops bool          // the operating system ignores the order to stop
	Deaf       bool          // orders are acknowledged, and nothing happens
	Late       time.Duration // added to the time of a boot
	Slow       time.Duration // before each answer
	Lies       bool          // readings are the opposite of the truth
	Flaps      bool          // every other reading is false
	Broken     string        // every read and order fails with this sentence
	// Untouchable is the Untouchable of readings, and the reason with which orders are denied.
	Untouchable string
}

// Machine is a simulated machine. Its methods are safe for concurrent use.
type Machine struct {
	options Options

	mu      sync.Mutex
	trouble Trouble
	state   energy.State
	up      bool
	asked   int
	change  int // counts changes of power, so that an interrupted boot does not end
}

// New returns a machine.
func New(o Options) *Machine {
	if o.State == "" {
		o.State = energy.On
	}
	if o.Wait == nil {
		o.Wait = job.Pause
	}
	return &Machine{options: o, state: o.State, up: o.State == energy.On}
}

// Trouble sets the defects of the machine from now on.
func (m *Machine) Trouble(t Trouble) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trouble = t
}

// Up reports whether its operating system is up.
func (m *Machine) Up() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up
}

// Changes returns how often its power was changed.
func (m *Machine) Changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.change
}

// State returns the true state, which may differ from what Read reports.
func (m *Machine) State() energy.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// PressButton changes the power at once, as somebody at the power button does.
func (m *Machine) PressButton(to energy.State) {
	from, _ := m.truth()
	if from == to {
		return
	}
	m.mu.Lock()
	t := m.trouble
	m.mu.Unlock()
	m.set(to)
	if to == energy.On {
		m.boot(t, from)
	}
}

// States returns all states.
func (m *Machine) States() []energy.State { return energy.States }

// Read returns the state, changed as the defects determine.
func (m *Machine) Read(ctx context.Context) (power.Reading, error) {
	t, err := m.answer(ctx)
	if err != nil {
		return power.Reading{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	told := m.state
	m.asked++
	if t.Lies || t.Flaps && m.asked%2 == 0 {
		told = opposite(m.state)
	}
	return power.Reading{State: told, Watts: m.options.Watts[told], Untouchable: t.Untouchable}, nil
}

// Switch brings the machine to the state, as far as its defects allow.
func (m *Machine) Switch(ctx context.Context, to energy.State, how power.PowerOffMode) error {
	t, err := m.answer(ctx)
	if err != nil {
		return err
	}
	if t.Untouchable != "" {
		return fault.New(fault.Denied, "%s", t.Untouchable)
	}
	if t.Deaf {
		<-ctx.Done()
		return fault.New(fault.Unavailable, "the machine acknowledges orders and nothing happens")
	}
	state, up := m.truth()
	if state == to && (to != energy.On || !how.Hard) {
		return nil
	}
	if to != energy.On && up {
		if err := m.stop(ctx, t, how); err != nil {
			return err
		}
	}
	if to == energy.On && state == energy.On {
		m.set(energy.Off)
	}
	m.set(to)
	if to == energy.On {
		m.boot(t, state)
	}
	return nil
}

func (m *Machine) truth() (energy.State, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, m.up
}

// answer waits for as long as an answer of the machine takes now, and returns its present trouble; an
// Unavailable fault if the trouble is that it does not answer.
func (m *Machine) answer(ctx context.Context) (Trouble, error) {
	m.mu.Lock()
	t := m.trouble
	m.mu.Unlock()
	if t.Slow > 0 {
		if err := m.options.Wait(ctx, t.Slow); err != nil {
			return t, err
		}
	}
	if t.Broken != "" {
		return t, fault.New(fault.Unavailable, "%s", t.Broken)
	}
	return t, ctx.Err()
}

// stop waits until the operating system has stopped.
func (m *Machine) stop(ctx context.Context, t Trouble, how power.PowerOffMode) error {
	wait, stops := m.options.Shutdown, !t.NeverStops && m.options.Shutdown <= how.Patience
	if !stops {
		wait = how.Patience
	}
	if err := m.options.Wait(ctx, wait); err != nil {
		return err
	}
	if !stops && !how.Hard {
		return fault.New(fault.Unavailable, "the operating system has not stopped within %v", how.Patience)
	}
	return nil
}

// boot starts the operating system, which is up after a while, also if the caller has stopped
// waiting.
func (m *Machine) boot(t Trouble, from energy.State) {
	takes := m.options.Boot
	if from == energy.Standby {
		takes /= 10
	}
	m.mu.Lock()
	change := m.change
	m.mu.Unlock()
	if t.NeverBoots {
		return
	}
	go func() {
		if m.options.Wait(context.Background(), takes+t.Late) != nil {
			return
		}
		m.mu.Lock()
		booted := m.change == change
		m.up = m.up || booted
		m.mu.Unlock()
		if booted {
			m.tell(true)
		}
	}()
}

// set changes the power; the operating system is down afterwards.
func (m *Machine) set(to energy.State) {
	m.mu.Lock()
	was := m.up
	m.state, m.up = to, false
	m.change++
	m.mu.Unlock()
	if was {
		m.tell(false)
	}
}

func (m *Machine) tell(up bool) {
	if m.options.Changed != nil {
		m.options.Changed(up)
	}
}

// opposite returns On for Off, and Off for all other states.
func opposite(s energy.State) energy.State {
	if s == energy.On {
		return energy.Off
	}
	return energy.On
}
