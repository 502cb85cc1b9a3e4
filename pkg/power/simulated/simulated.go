// Package simulated is a machine that exists in memory: for trying Almanac without any
// hardware, and for tests of those who give orders.
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
	State energy.State // that it has at first; empty is On
	// Shutdown is how long the operating system takes to stop, and Boot how long it then
	// takes until its services are up; from standby a tenth of that.
	Shutdown, Boot time.Duration
	// Watts are what it takes in each state.
	Watts map[energy.State]float64
	// Wait waits for a duration, or until ctx ends; nil waits in real time.
	Wait func(ctx context.Context, d time.Duration) error
	// Changed, where it is not nil, is told when the operating system is there (true), and
	// when it is gone.
	Changed func(up bool)
}

// Trouble is what is wrong with a machine. The zero Trouble is nothing.
type Trouble struct {
	NeverBoots bool          // the power is on, and the operating system never comes
	NeverStops bool          // the operating system does not heed the order to stop
	Deaf       bool          // orders are answered, and nothing happens
	Late       time.Duration // is added to the time that a boot takes
	Slow       time.Duration // before each answer
	Lies       bool          // it says the opposite of the truth
	Flaps      bool          // it says the truth every other time
	Broken     string        // every question and order fails with this sentence
	// Untouchable is told in readings, and orders are denied with it.
	Untouchable string
}

// Machine is a simulated machine. Its methods may be called at the same time.
type Machine struct {
	options Options

	mu      sync.Mutex
	trouble Trouble
	state   energy.State
	up      bool
	asked   int
	change  int // counts changes of power, so that a boot that was cut short does not end
}

// New gives a machine.
func New(o Options) *Machine {
	if o.State == "" {
		o.State = energy.On
	}
	if o.Wait == nil {
		o.Wait = job.Pause
	}
	return &Machine{options: o, state: o.State, up: o.State == energy.On}
}

// Trouble sets what is wrong with it from now on.
func (m *Machine) Trouble(t Trouble) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trouble = t
}

// Up says whether its operating system is there.
func (m *Machine) Up() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up
}

// State is the truth, whatever it tells.
func (m *Machine) State() energy.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// Press changes the power at once, as somebody at the button does.
func (m *Machine) Press(to energy.State) {
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

// States are all.
func (m *Machine) States() []energy.State { return energy.States }

// Read tells how it is, or what its trouble makes of that.
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

// Switch does what it is told as far as its trouble lets it.
func (m *Machine) Switch(ctx context.Context, to energy.State, how power.Manner) error {
	t, err := m.answer(ctx)
	if err != nil {
		return err
	}
	if t.Untouchable != "" {
		return fault.New(fault.Denied, "%s", t.Untouchable)
	}
	if t.Deaf {
		<-ctx.Done()
		return fault.New(fault.Unavailable, "the machine takes orders and nothing happens")
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

// answer takes the time that an answer takes.
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

// stop lets the operating system stop.
func (m *Machine) stop(ctx context.Context, t Trouble, how power.Manner) error {
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

// boot lets the operating system come, after a while, whoever has lost patience meanwhile.
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

// set changes the power; without it nothing is up.
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

func opposite(s energy.State) energy.State {
	if s == energy.On {
		return energy.Off
	}
	return energy.On
}
