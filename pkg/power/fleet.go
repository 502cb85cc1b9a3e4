package power

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	// mostAsked is how many machines one request asks an agent for.
	mostAsked = 32
	// forgotten is after how long nobody speaks of an agent that was lost.
	forgotten = 24 * time.Hour
)

// FleetOptions describe a fleet.
type FleetOptions struct {
	// Client asks the agents, on Exchange.
	Client   *oslo.Client
	Exchange string
	// LostAfter is after how long without a word an agent is lost; 0 is 30 s.
	LostAfter time.Duration
	// OrderTimeout bounds the answer to an order; 0 is 10 s. ReadTimeout bounds that to a
	// question about machines; 0 is 20 s: more than agents take for a machine that is silent.
	OrderTimeout, ReadTimeout time.Duration
	Now                       func() time.Time
}

// Fleet is what is known of all agents, as controller.Agents. Its methods may be called at
// the same time.
type Fleet struct {
	options FleetOptions

	mu   sync.Mutex
	runs map[string]*member // by run
}

// member is one run of an agent.
type member struct {
	announcement
	hosts map[string]energy.Access
	seen  time.Time
	// replaced: another run of its name was heard of after it for the first time.
	replaced bool
}

// NewFleet gives a fleet that knows of no agent. Endpoint serves it on AgentsTopic.
func NewFleet(o FleetOptions) *Fleet {
	o.LostAfter = cmp.Or(o.LostAfter, 30*time.Second)
	o.OrderTimeout = cmp.Or(o.OrderTimeout, 10*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 20*time.Second)
	return &Fleet{options: o, runs: map[string]*member{}}
}

// Endpoint gives the methods for a server of AgentsTopic.
func (f *Fleet) Endpoint() oslo.Endpoint {
	return oslo.Endpoint{Version: version, Methods: map[string]oslo.Handler{
		announceMethod: func(_ context.Context, r *oslo.Request) (any, error) {
			var told announcement
			if err := r.Decode(&told); err != nil {
				return nil, fault.New(fault.Invalid, "%v", err)
			}
			f.hear(told)
			return nil, nil
		},
	}}
}

// Greet asks all agents to announce themselves now.
func (f *Fleet) Greet(ctx context.Context) error {
	if err := f.options.Client.Fanout(ctx, target(f.options.Exchange, Topic, ""), greetMethod, nil); err != nil {
		return fmt.Errorf("greet the power agents: %w", err)
	}
	return nil
}

// hear takes note of an agent. Of two runs of one name the later one has replaced the
// earlier, until that is heard of again: then both live.
func (f *Fleet) hear(told announcement) {
	if told.Agent == "" || told.Run == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.options.Now()
	_, known := f.runs[told.Run]
	for run, m := range f.runs {
		switch {
		case now.Sub(m.seen) > forgotten || m.replaced && now.Sub(m.seen) > f.options.LostAfter:
			delete(f.runs, run)
		case m.Agent == told.Agent && run != told.Run && !known:
			m.replaced = true
		}
	}
	heard := &member{announcement: told, hosts: make(map[string]energy.Access, len(told.Hosts)), seen: now}
	for _, h := range told.Hosts {
		access := energy.Access{Host: h.Host, Agent: told.Agent, Driver: h.Driver, States: h.States}
		if access.Reaches(energy.On) && access.Reaches(energy.Off) {
			heard.hosts[h.Host] = access
		}
	}
	f.runs[told.Run] = heard
}

func (f *Fleet) lives(m *member) bool {
	return !m.replaced && f.options.Now().Sub(m.seen) <= f.options.LostAfter
}

// Access gives how each host can be switched by an agent that lives, see controller.Agents.
func (f *Fleet) Access() (hosts map[string]energy.Access, twice map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hosts, twice = map[string]energy.Access{}, map[string]string{}
	names := map[string][]string{}
	for _, m := range f.runs {
		if !f.lives(m) {
			continue
		}
		for host, access := range m.hosts {
			hosts[host], names[host] = access, append(names[host], m.Agent)
		}
	}
	for host, claiming := range names {
		if len(claiming) > 1 {
			twice[host] = claimants(claiming)
			delete(hosts, host)
		}
	}
	return hosts, twice
}

func claimants(names []string) string {
	slices.Sort(names)
	if names[0] == names[len(names)-1] {
		return fmt.Sprintf("%d agents of the name %s", len(names), names[0])
	}
	return strings.Join(names, ", ")
}

// Agents gives the agents heard of within a day, by name.
func (f *Fleet) Agents() []energy.Agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.options.Now()
	byName := map[string]energy.Agent{}
	for _, m := range f.runs {
		seen := span.At(m.seen)
		if known, ok := byName[m.Agent]; now.Sub(m.seen) > forgotten || ok && known.Seen > seen {
			continue
		}
		byName[m.Agent] = energy.Agent{Name: m.Agent, Hosts: len(m.hosts), Seen: seen, Lost: now.Sub(m.seen) > f.options.LostAfter}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b energy.Agent) int { return strings.Compare(a.Name, b.Name) })
}

// agentOf names the agent that switches a host. Errors are NotFound: none has ever said so;
// Unavailable: it is lost; Conflict: several say so.
func (f *Fleet) agentOf(host string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var living []string
	var last *member
	for _, m := range f.runs {
		if _, its := m.hosts[host]; !its {
			continue
		}
		if f.lives(m) {
			living = append(living, m.Agent)
		}
		if last == nil || m.seen.After(last.seen) {
			last = m
		}
	}
	switch {
	case len(living) == 1:
		return living[0], nil
	case len(living) > 1:
		return "", fault.New(fault.Conflict, "host %s is switched by nobody while more than one agent says that it does: %s", host, claimants(living))
	case last != nil:
		return "", fault.New(fault.Unavailable, "the agent %s, which switches host %s, was last heard of at %v", last.Agent, host, span.At(last.seen))
	}
	return "", fault.New(fault.NotFound, "no agent has said that it switches host %s", host)
}

// Order gives an order to the host's agent, see controller.Agents. Errors are Unavailable:
// the agent is lost, or nobody knows whether the order has arrived; NotFound and Conflict:
// there is not one agent for the host, and nothing was sent.
func (f *Fleet) Order(ctx context.Context, o energy.Order) (energy.Outcome, error) {
	agent, err := f.agentOf(o.Host)
	if err != nil {
		return energy.Outcome{}, err
	}
	timeout := f.options.OrderTimeout
	// A message that waits longer is not delivered; the question what has become of the
	// order may be asked for ever.
	if left := o.Deadline.Time().Sub(f.options.Now()); left > 0 {
		timeout = min(timeout, max(left, time.Second))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var got outcome
	if err := f.options.Client.Call(ctx, target(f.options.Exchange, Topic, agent), orderMethod, orderOf(o), &got); err != nil {
		return energy.Outcome{}, fmt.Errorf("order host %s %s: %w", o.Host, o.State, err)
	}
	if !slices.Contains(answers, got.Progress) {
		return energy.Outcome{}, fault.New(fault.Unavailable, "the agent %s answered an order with %q", agent, got.Progress)
	}
	return energy.Outcome(got), nil
}

var answers = []energy.Progress{energy.Accepted, energy.Done, energy.Failed, energy.Refused}

// Read asks the agents for the machines of hosts, see controller.Agents.
func (f *Fleet) Read(ctx context.Context, hosts []string) map[string]energy.Reading {
	given := make(map[string]energy.Reading, len(hosts))
	asked := map[string][]string{}
	for _, host := range hosts {
		agent, err := f.agentOf(host)
		if err != nil {
			given[host] = f.unread(host, err)
			continue
		}
		asked[agent] = append(asked[agent], host)
	}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for agent, its := range asked {
		for part := range slices.Chunk(its, mostAsked) {
			asking.Go(func() {
				readings := f.ask(ctx, agent, part)
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(given, readings)
			})
		}
	}
	asking.Wait()
	return given
}

// ask asks one agent. What it does not tell is a problem.
func (f *Fleet) ask(ctx context.Context, agent string, hosts []string) map[string]energy.Reading {
	ctx, cancel := context.WithTimeout(ctx, f.options.ReadTimeout)
	defer cancel()
	var got answer
	err := f.options.Client.Call(ctx, target(f.options.Exchange, Topic, agent), readMethod, question{hosts}, &got)
	if err == nil {
		err = fault.New(fault.Unavailable, "the agent %s did not tell", agent)
	}
	readings := make(map[string]energy.Reading, len(hosts))
	for _, host := range hosts {
		readings[host] = f.unread(host, err)
	}
	for _, r := range got.Readings {
		if _, wanted := readings[r.Host]; wanted {
			readings[r.Host] = r.reading()
		}
	}
	return readings
}

func (f *Fleet) unread(host string, err error) energy.Reading {
	problem := err.Error()
	if known := fault.Of(err); known.Kind != fault.Internal {
		problem = known.Message
	}
	return energy.Reading{Host: host, Problem: problem, At: span.At(f.options.Now())}
}
