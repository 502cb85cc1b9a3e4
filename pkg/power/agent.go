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
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// mostReads bounds the machines that an agent reads at once.
const mostReads = 64

// AgentOptions describe an agent.
type AgentOptions struct {
	Name     string
	Machines map[string]Driven // by host
	// StateFile is where the agent remembers its orders; empty: nowhere, so that an agent
	// that is started again knows of none.
	StateFile string
	// ReadTimeout bounds one look at a machine; 0 is 10 s.
	ReadTimeout time.Duration
	// SwitchTimeout bounds the carrying out of an order, beside its patience; 0 is 5 min.
	SwitchTimeout time.Duration
	// Client sends the announcements, on Exchange; nil: there are none.
	Client   *oslo.Client
	Exchange string
	// NewID gives a random UUID.
	NewID func() string
	Now   func() time.Time
	Log   *slog.Logger
}

// Driven is a machine and the name of its driver.
type Driven struct {
	Driver  string
	Machine Machine
}

// Agent switches machines as it is ordered. It takes an order once, whoever sends it how
// often, and for each host only one that is newer than all before; it carries out one at a
// time. Its methods may be called at the same time.
//
// In a process with the controller it is its controller.Agents without any messages.
type Agent struct {
	options AgentOptions
	run     string
	journal journal
	greeted chan struct{}
	reads   chan struct{} // one value for each machine that is read
	looks   map[string]chan struct{}

	mu      sync.Mutex
	book    *book
	work    context.Context // nil: it does not run
	busy    map[string]bool // hosts that have a worker
	workers sync.WaitGroup
}

// NewAgent gives an agent that knows what the run before has taken. Run lets it work,
// Endpoint serves it on Topic under its name. Close it. Errors are a state file that is
// damaged or another agent's.
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
		options: o, run: o.NewID(), journal: j, book: known,
		greeted: make(chan struct{}, 1), reads: make(chan struct{}, mostReads), looks: map[string]chan struct{}{}, busy: map[string]bool{},
	}
	for host := range o.Machines {
		a.looks[host] = make(chan struct{}, 1)
	}
	return a, nil
}

// Close releases the state file.
func (a *Agent) Close() error { return a.journal.close() }

// Run carries out orders until ctx ends, beginning with what the run before has left. It
// returns when no machine is being switched any more; what is under way then is gone on
// with in the next run. It is called once.
func (a *Agent) Run(ctx context.Context) {
	a.mu.Lock()
	a.work = ctx
	for host := range a.options.Machines {
		a.employ(host)
	}
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.work = nil
	a.mu.Unlock()
	a.workers.Wait()
}

// Endpoint gives the methods for a server of Topic that has the agent's name.
func (a *Agent) Endpoint() oslo.Endpoint {
	return oslo.Endpoint{Version: version, Methods: map[string]oslo.Handler{
		orderMethod: func(ctx context.Context, r *oslo.Request) (any, error) {
			var o order
			if err := r.Decode(&o); err != nil {
				return nil, fault.New(fault.Invalid, "%v", err)
			}
			result, err := a.Order(ctx, o.order())
			return outcome(result), err
		},
		readMethod: func(ctx context.Context, r *oslo.Request) (any, error) {
			var q question
			if err := r.Decode(&q); err != nil {
				return nil, fault.New(fault.Invalid, "%v", err)
			}
			given := answer{Readings: []reading{}}
			for _, r := range a.Read(ctx, q.Hosts) {
				given.Readings = append(given.Readings, readingOf(r))
			}
			return given, nil
		},
		greetMethod: func(context.Context, *oslo.Request) (any, error) {
			select {
			case a.greeted <- struct{}{}:
			default:
			}
			return nil, nil
		},
	}}
}

// Greeted tells that a fleet wants to know who is there: Announce soon.
func (a *Agent) Greeted() <-chan struct{} { return a.greeted }

// Announce tells all fleets which hosts the agent can switch.
func (a *Agent) Announce(ctx context.Context) error {
	told := announcement{Agent: a.options.Name, Run: a.run, Hosts: []announced{}}
	access, _ := a.Access()
	for _, host := range slices.Sorted(maps.Keys(access)) {
		told.Hosts = append(told.Hosts, announced{Host: host, Driver: access[host].Driver, States: access[host].States})
	}
	if err := a.options.Client.Fanout(ctx, target(a.options.Exchange, AgentsTopic, ""), announceMethod, told); err != nil {
		return fmt.Errorf("announce the agent %s: %w", a.options.Name, err)
	}
	return nil
}

// Access gives the agent's hosts, see controller.Agents.
func (a *Agent) Access() (hosts map[string]energy.Access, twice map[string]string) {
	hosts = make(map[string]energy.Access, len(a.options.Machines))
	for host, m := range a.options.Machines {
		hosts[host] = energy.Access{Host: host, Agent: a.options.Name, Driver: m.Driver, States: m.Machine.States()}
	}
	return hosts, nil
}

// Agents gives this one, see Fleet.Agents.
func (a *Agent) Agents() []energy.Agent {
	return []energy.Agent{{Name: a.options.Name, Hosts: len(a.options.Machines), Seen: a.now()}}
}

// Order takes an order, or says what has become of it. An error is Unavailable: the agent
// does not work, or cannot write its state file; nothing was done then.
func (a *Agent) Order(_ context.Context, o energy.Order) (energy.Outcome, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work == nil {
		return energy.Outcome{}, fault.New(fault.Unavailable, "the agent %s is being stopped or started", a.options.Name)
	}
	before := a.book.copy(o.Host)
	result, changed := a.book.take(o, a.now(), func() error { return a.reaches(o) })
	if changed {
		if err := a.journal.write(a.book); err != nil {
			a.book.restore(before)
			a.options.Log.Error("an order was not taken", "host", o.Host, "order", o.ID, "error", err)
			return energy.Outcome{}, &fault.Error{
				Kind: fault.Unavailable, Message: fmt.Sprintf("the agent %s cannot write its state file", a.options.Name), Err: err,
			}
		}
		a.options.Log.Info("order", "host", o.Host, "order", o.ID, "number", o.Number, "state", o.State,
			"hard", o.Hard, "progress", result.Progress, "reason", result.Reason)
	}
	a.employ(o.Host)
	return result, nil
}

// reaches says why the agent cannot do what is ordered.
func (a *Agent) reaches(o energy.Order) error {
	m, ok := a.options.Machines[o.Host]
	if !ok {
		return fault.New(fault.NotFound, "the agent %s does not switch host %s", a.options.Name, o.Host)
	}
	if !slices.Contains(m.Machine.States(), o.State) {
		return fault.New(fault.Invalid, "the driver %s does not know how to bring host %s to %q", m.Driver, o.Host, o.State)
	}
	return nil
}

// employ gives the host a worker where it needs one. The caller holds the lock.
func (a *Agent) employ(host string) {
	if a.work == nil || a.busy[host] || !slices.ContainsFunc(a.book.hosts[host], func(e entry) bool { return e.waits() }) {
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

// begin gives the next order for the host, or ends its worker.
func (a *Agent) begin(ctx context.Context, host string) (entry, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		a.busy[host] = false
		return entry{}, false
	}
	e, found, ended := a.book.next(host, a.now())
	if ended {
		a.keep()
	}
	a.busy[host] = found
	return e, found
}

// carryOut brings a machine to what is ordered. The outcome is Accepted where ctx has ended
// before.
func (a *Agent) carryOut(ctx context.Context, e entry) energy.Outcome {
	o, m := e.order, a.options.Machines[e.order.Host].Machine
	if e.resumed {
		if r, problem := a.read(ctx, o.Host); problem == "" && r.State == o.State {
			return energy.Outcome{Progress: energy.Done}
		}
		if now := a.now(); now > o.Deadline {
			return failed("the agent was restarted while the order was under way, and it is %v now, after its deadline %v", now, o.Deadline)
		}
	}
	patience := time.Duration(o.Patience) * time.Second
	limit := a.options.SwitchTimeout + patience
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := m.Switch(within, o.State, Manner{Patience: patience, Hard: o.Hard})
	switch {
	case err == nil:
		return energy.Outcome{Progress: energy.Done}
	case ctx.Err() != nil:
		return energy.Outcome{Progress: energy.Accepted}
	case fault.Is(err, fault.Denied):
		return refused("%s", fault.Of(err).Message)
	case within.Err() != nil:
		return failed("host %s was not %s after %v: %v", o.Host, o.State, limit, err)
	}
	return failed("%v", err)
}

// finish writes down what became of an order.
func (a *Agent) finish(ctx context.Context, o energy.Order, result energy.Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.book.find(o.Host, o.ID)
	if result.Progress == energy.Accepted {
		e.begun = false
		return
	}
	e.outcome = result
	a.keep()
	a.options.Log.Log(ctx, levelOf(result), "order is over", "host", o.Host, "order", o.ID, "number", o.Number,
		"state", o.State, "progress", result.Progress, "reason", result.Reason)
}

func levelOf(o energy.Outcome) slog.Level {
	if o.Progress == energy.Done {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// keep writes the book after something is over. Where that fails the next run looks at
// the machine.
func (a *Agent) keep() {
	if err := a.journal.write(a.book); err != nil {
		a.options.Log.Error("the end of an order was not written", "error", err)
	}
}

// Read looks at the machines of hosts; one that does not answer in time has a Problem.
func (a *Agent) Read(ctx context.Context, hosts []string) map[string]energy.Reading {
	given := make(map[string]energy.Reading, len(hosts))
	var mu sync.Mutex
	var looking sync.WaitGroup
	for _, host := range hosts {
		looking.Go(func() {
			r, problem := a.read(ctx, host)
			mu.Lock()
			defer mu.Unlock()
			given[host] = energy.Reading{
				Host: host, State: r.State, Watts: r.Watts, Untouchable: r.Untouchable, Problem: problem, At: a.now(),
			}
		})
	}
	looking.Wait()
	return given
}

// read looks at one machine, and says in a sentence why it could not.
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
	done := make(chan look, 1) // has the answer before ctx is canceled
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
	default: // a driver that does not stop keeps the machine's turn
		return r, problemOf(ctx.Err(), host, a.options.ReadTimeout)
	}
}

// turn waits until the host is not being read, and not too many others are.
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
