// SPDX-License-Identifier: Apache-2.0

package power_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/tests/oslotest"
)

// machine is a machine whose changes the test sees and can delay.
type machine struct {
	mu       sync.Mutex
	state    energy.State
	done     []energy.State // the states that Switch has reached, in order
	under    int            // Switches under way
	gate     chan struct{}  // nil: Switch does not wait; otherwise it waits for one value
	err      error          // of Switch
	readErr  error
	hangs    bool // Read ignores its context until the gate is closed
	onlyHard bool
}

func (m *machine) States() []energy.State { return []energy.State{energy.On, energy.Off} }

func (m *machine) Read(ctx context.Context) (power.Reading, error) {
	m.mu.Lock()
	gate, hangs := m.gate, m.hangs
	state, err := m.state, m.readErr
	m.mu.Unlock()
	if hangs {
		<-gate
	}
	return power.Reading{State: state, Watts: 100}, err
}

func (m *machine) Switch(ctx context.Context, to energy.State, _ power.PowerOffMode) error {
	m.mu.Lock()
	m.under++
	if m.under > 1 {
		panic("a machine is switched by two at once")
	}
	gate := m.gate
	m.mu.Unlock()
	defer func() { m.mu.Lock(); m.under--; m.mu.Unlock() }()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.state = to
	m.done = append(m.done, to)
	return nil
}

func (m *machine) switched() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(m.done)
}

// at returns the instant that is this many seconds from now.
func at(seconds int64) span.Instant { return span.At(time.Now()).Add(seconds) }

// numbered returns an order that may begin within a minute.
func numbered(number int64, host string, to energy.State) energy.Order {
	return energy.Order{ID: fmt.Sprintf("order-%d-%s", number, host), Epoch: 1, Number: number, Host: host, State: to, Deadline: at(60)}
}

// agentFor returns a running agent for a machine h1; stop ends it like the end of its process.
func agentFor(t testing.TB, file string, m power.Machine) (a *power.Agent, stop func()) {
	t.Helper()
	return agentOf(t, power.AgentOptions{Name: "a1", StateFile: file, Machines: map[string]power.Driven{"h1": {Driver: "test", Machine: m}}})
}

func agentOf(t testing.TB, o power.AgentOptions) (a *power.Agent, stop func()) {
	t.Helper()
	o.NewID, o.Now, o.Exchange = oslotest.NewID, time.Now, "almanac"
	a, err := power.NewAgent(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { a.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := a.Close(); err != nil {
			t.Errorf("close the agent: %v", err)
		}
	})
	t.Cleanup(stop)
	return a, stop
}

func stateFile(t testing.TB) string { return filepath.Join(t.TempDir(), "agent.json") }

// give sends an order until the agent answers.
func give(t testing.TB, a interface {
	Order(context.Context, energy.Order) (energy.Outcome, error)
}, o energy.Order) energy.Outcome {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		got, err := a.Order(t.Context(), o)
		if err == nil {
			return got
		}
		if time.Since(began) > patience {
			t.Fatalf("order %d: %v", o.Number, err)
		}
	}
}

// client returns a client of the transport.
func client(t testing.TB, transport oslo.Transport) *oslo.Client {
	c := oslo.NewClient(transport, oslo.ClientOptions{NewID: oslotest.NewID, Now: time.Now, Queues: oslo.QueueOptions{Quorum: true}})
	t.Cleanup(c.Close)
	return c
}

// serve serves an endpoint until stop or the end of the test.
func serve(t testing.TB, transport oslo.Transport, topic, name string, endpoint oslo.Endpoint) (stop func()) {
	t.Helper()
	server := oslo.NewServer(transport, oslo.ServerOptions{
		Exchange: "almanac", Topic: topic, Name: name, Endpoints: []oslo.Endpoint{endpoint}, Queues: oslo.QueueOptions{Quorum: true},
		NewID: oslotest.NewID, Log: slog.New(slog.DiscardHandler), Grace: 100 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := server.Serve(ctx); err != nil {
			t.Errorf("serve %s: %v", topic, err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	<-server.Ready()
	return stop
}
