// SPDX-License-Identifier: Apache-2.0

package power

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// mostReads is the largest number of machines that an agent reads at the same time.
const mostReads = 64

// AgentOptions describe an agent.
type AgentOptions struct {
	Name     string
	Machines map[string]Driven // by host
	// StateFile is the file in which the agent stores its orders. If it is empty, a restarted agent
	// has no orders of its previous run.
	StateFile string
	// ReadTimeout limits one read of a machine; 0 means 10 s.
	ReadTimeout time.Duration
	// SwitchTimeout limits an order, in addition to its patience; 0 means 5 min.
	SwitchTimeout time.Duration
	// Client sends the announcements, on Exchange; nil means that the agent sends none.
	Client   *oslo.Client
	Exchange string
	// NewID returns a random UUID.
	NewID func() string
	Now   func() time.Time
	Log   *slog.Logger
}

// Driven is a machine and the name of its driver.
type Driven struct {
	Driver  string
	Machine Machine
}

// Agent switches machines as ordered. It accepts an order once, however often it is sent, and for
// each host only an order that is newer than all before. For each host, it carries out one order at
// a time. Its methods are safe for concurrent use.
//
// In the process of the energy controller, an Agent can be used as controller.Agents without any
// messages.
type Agent struct {
	options  AgentOptions
	run      string
	journal  journal
	discover chan struct{}
	reads    chan struct{} // has an element for each machine that is being read
	looks    map[string]chan struct{}

	mu      sync.Mutex
	orders  *orderLog
	work    context.Context // nil while it does not run
	busy    map[string]bool // hosts that have a worker
	workers sync.WaitGroup
}

// NewAgent returns an agent with the orders of its previous run. Run carries out orders, Endpoint
// serves the agent on Topic under its name, and Close ends it. NewAgent fails if the state file is
// damaged or belongs to another agent.
func NewAgent(o AgentOptions) (*Agent, error) {
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 10*time.Second)
	o.SwitchTimeout = cmp.Or(o.SwitchTimeout, 5*time.Minute)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	j, err := openJournal(o.StateFile)
	if err != nil {
		return nil, err
	}
	known, err := j.read()
	if err != nil {
		return nil, errors.Join(err, j.close())
	}
	known.resume()
	a := &Agent{
		options: o, run: o.NewID(), journal: j, orders: known,
		discover: make(chan struct{}, 1), reads: make(chan struct{}, mostReads), looks: map[string]chan struct{}{}, busy: map[string]bool{},
	}
	for host := range o.Machines {
		a.looks[host] = make(chan struct{}, 1)
	}
	return a, nil
}

// Close releases the state file.
func (a *Agent) Close() error { return a.journal.close() }

// Run carries out orders until ctx ends, beginning with those of the previous run that are not
// finished. It returns when no machine is being switched any more; the next run continues the
// orders that are still open. Call it once.
func (a *Agent) Run(ctx context.Context) {
	a.mu.Lock()
	a.work = ctx
	for host := range a.options.Machines {
		a.startWorker(host)
	}
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.work = nil
	a.mu.Unlock()
	a.workers.Wait()
}

// Endpoint returns the methods for a server of Topic with the agent's name.
func (a *Agent) Endpoint() oslo.Endpoint {
	return oslo.Endpoint{Version: version, Methods: map[string]oslo.Handler{
		orderMethod: func(ctx context.Context, r *oslo.Request) (any, error) {
			var o energy.Order
			if err := r.Decode(&o); err != nil {
				return nil, fault.New(fault.Invalid, "%v", err)
			}
			return a.Order(ctx, o)
		},
		readMethod: func(ctx context.Context, r *oslo.Request) (any, error) {
			var q readRequest
			if err := r.Decode(&q); err != nil {
				return nil, fault.New(fault.Invalid, "%v", err)
			}
			reply := readReply{Readings: []energy.Reading{}}
			for _, reading := range a.Read(ctx, q.Hosts) {
				reply.Readings = append(reply.Readings, reading)
			}
			return reply, nil
		},
		discoverMethod: func(context.Context, *oslo.Request) (any, error) {
			job.Poke(a.discover)
			return nil, nil
		},
	}}
}

// DiscoveryRequested receives a value when a fleet asks all agents to announce themselves: call
// Announce soon.
func (a *Agent) DiscoveryRequested() <-chan struct{} { return a.discover }

// Announce sends all fleets the list of the hosts that the agent can switch.
func (a *Agent) Announce(ctx context.Context) error {
	message := announcement{Agent: a.options.Name, Run: a.run, Hosts: []energy.Access{}}
	access, _ := a.Access()
	for _, host := range slices.Sorted(maps.Keys(access)) {
		message.Hosts = append(message.Hosts, access[host])
	}
	return fault.While(a.options.Client.Fanout(ctx, target(a.options.Exchange, AgentsTopic, ""), announceMethod, message), "announce the agent %s", a.options.Name)
}

// Access implements controller.Agents for the agent's own hosts.
func (a *Agent) Access() (hosts map[string]energy.Access, twice map[string]string) {
	hosts = make(map[string]energy.Access, len(a.options.Machines))
	for host, m := range a.options.Machines {
		hosts[host] = energy.Access{Host: host, Agent: a.options.Name, Driver: m.Driver, States: m.Machine.States()}
	}
	return hosts, nil
}

// Agents returns only this agent; see Fleet.Agents.
func (a *Agent) Agents() []energy.Agent {
	return []energy.Agent{{Name: a.options.Name, Hosts: len(a.options.Machines), Seen: a.now()}}
}

// Order accepts an order, or returns the progress of one that it has accepted before. It fails with
// an Unavailable fault if the agent does not run or cannot write its state file; it has done
// nothing then.
func (a *Agent) Order(_ context.Context, o energy.Order) (energy.Outcome, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work == nil {
		return energy.Outcome{}, fault.New(fault.Unavailable, "the agent %s is being stopped or started", a.options.Name)
	}
	before := a.orders.copy(o.Host)
	result, changed := a.orders.accept(o, a.now(), func() error { return a.canCarryOut(o) })
	if changed {
		if err := a.journal.write(a.orders); err != nil {
			a.orders.restore(before)
			a.options.Log.Error("could not write the state file, so that the order is not accepted", "host", o.Host, "order", o.ID, "error", err)
			return energy.Outcome{}, &fault.Error{
				Kind: fault.Unavailable, Message: fmt.Sprintf("the agent %s cannot write its state file", a.options.Name), Err: err,
			}
		}
		a.options.Log.Info("order", "host", o.Host, "order", o.ID, "number", o.Number, "state", o.State,
			"hard", o.Hard, "progress", result.Progress, "reason", result.Reason)
	}
	a.startWorker(o.Host)
	return result, nil
}

// canCarryOut fails if the agent cannot carry out the order.
func (a *Agent) canCarryOut(o energy.Order) error {
	m, ok := a.options.Machines[o.Host]
	if !ok {
		return fault.New(fault.NotFound, "the agent %s does not switch host %s", a.options.Name, o.Host)
	}
	if !slices.Contains(m.Machine.States(), o.State) {
		return fault.New(fault.Invalid, "the driver %s cannot bring host %s to %q", m.Driver, o.Host, o.State)
	}
	return nil
}

// startWorker starts a worker for the host if it has an order to carry out and no worker. The
// caller must have the lock.
func (a *Agent) startWorker(host string) {
	if a.work == nil || a.busy[host] || !slices.ContainsFunc(a.orders.hosts[host], func(e entry) bool { return e.waits() }) {
		return
	}
	ctx := a.work
	a.busy[host] = true
	a.workers.Go(func() {
		for {
			e, found := a.begin(ctx, host)
			if !found {
				return
			}
			a.finish(ctx, e.order, a.carryOut(ctx, e))
		}
	})
}

// begin returns the next order for the host. If there is none, it ends the host's worker and
// returns false.
func (a *Agent) begin(ctx context.Context, host string) (entry, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		a.busy[host] = false
		return entry{}, false
	}
	e, found, ended := a.orders.next(host, a.now())
	if ended {
		a.save()
	}
	a.busy[host] = found
	return e, found
}

// carryOut brings a machine to the ordered state. The outcome is Accepted if ctx ended before the
// agent began.
func (a *Agent) carryOut(ctx context.Context, e entry) energy.Outcome {
	o, m := e.order, a.options.Machines[e.order.Host].Machine
	if e.resumed {
		if r, problem := a.read(ctx, o.Host); problem == "" && r.State == o.State {
			return energy.Outcome{Progress: energy.OrderDone}
		}
		if now := a.now(); now > o.Deadline {
			return failed("the agent was restarted while the order was under way, and it is %v now, after its deadline %v", now, o.Deadline)
		}
	}
	patience := time.Duration(o.Patience) * time.Second
	limit := a.options.SwitchTimeout + patience
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := m.Switch(within, o.State, PowerOffMode{Patience: patience, Hard: o.Hard})
	switch {
	case err == nil:
		return energy.Outcome{Progress: energy.OrderDone}
	case ctx.Err() != nil:
		return energy.Outcome{Progress: energy.OrderAccepted}
	case fault.Is(err, fault.Denied):
		return refused("%s", fault.Of(err).Message)
	case within.Err() != nil:
		return failed("host %s was not %s after %v: %v", o.Host, o.State, limit, err)
	}
	return failed("%v", err)
}

// finish stores the outcome of an order.
func (a *Agent) finish(ctx context.Context, o energy.Order, result energy.Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.orders.find(o.Host, o.ID)
	if result.Progress == energy.OrderAccepted {
		e.begun = false
		return
	}
	e.outcome = result
	a.save()
	a.options.Log.Log(ctx, levelOf(result), "order finished", "host", o.Host, "order", o.ID, "number", o.Number,
		"state", o.State, "progress", result.Progress, "reason", result.Reason)
}

// levelOf returns the level at which the outcome of an order is logged.
func levelOf(o energy.Outcome) slog.Level {
	if o.Progress == energy.OrderDone {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// save writes the orders to the state file after one has ended. If that fails, the next run
// determines the outcome by reading the machine.
func (a *Agent) save() {
	if err := a.journal.write(a.orders); err != nil {
		a.options.Log.Error("could not write the end of an order to the state file", "error", err)
	}
}

// Read reads the machines of hosts, by the name of the host. A machine that does not answer in time
// has a Problem.
func (a *Agent) Read(ctx context.Context, hosts []string) map[string]energy.Reading {
	readings := make(map[string]energy.Reading, len(hosts))
	var mu sync.Mutex
	var reads sync.WaitGroup
	for _, host := range hosts {
		reads.Go(func() {
			r, problem := a.read(ctx, host)
			mu.Lock()
			defer mu.Unlock()
			readings[host] = energy.Reading{
				Host: host, State: r.State, Watts: r.Watts, Untouchable: r.Untouchable, Problem: problem, At: a.now(),
			}
		})
	}
	reads.Wait()
	return readings
}

// read reads one machine. problem is the reason, as a sentence, why it could not; "" if it could.
func (a *Agent) read(ctx context.Context, host string) (r Reading, problem string) {
	m, ok := a.options.Machines[host]
	if !ok {
		return r, fmt.Sprintf("the agent %s does not switch host %s", a.options.Name, host)
	}
	ctx, cancel := context.WithTimeout(ctx, a.options.ReadTimeout)
	type look struct {
		Reading
		error
	}
	done := make(chan look, 1) // receives the answer before ctx is canceled
	go func() {
		defer cancel()
		release, err := a.turn(ctx, host)
		if err != nil {
			done <- look{error: err}
			return
		}
		defer release()
		r, err := m.Machine.Read(ctx)
		done <- look{r, err}
	}()
	<-ctx.Done()
	select {
	case l := <-done:
		return l.Reading, problemOf(l.error, host, a.options.ReadTimeout)
	default: // a driver that does not return keeps the machine's turn
		return r, problemOf(ctx.Err(), host, a.options.ReadTimeout)
	}
}

// turn waits until the host is not being read and fewer than mostReads machines are. The caller
// must call release after its reading.
func (a *Agent) turn(ctx context.Context, host string) (release func(), err error) {
	mine := a.looks[host]
	select {
	case mine <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case a.reads <- struct{}{}:
		return func() { <-a.reads; <-mine }, nil
	case <-ctx.Done():
		<-mine
		return nil, ctx.Err()
	}
}

// problemOf returns the error of a machine in words for an operator; "" for nil.
func problemOf(err error, host string, limit time.Duration) string {
	if err == nil {
		return ""
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Sprintf("the machine of host %s did not answer within %v", host, limit)
	}
	return err.Error()
}

func (a *Agent) now() span.Instant { return span.At(a.options.Now()) }
