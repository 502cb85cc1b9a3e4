// SPDX-License-Identifier: Apache-2.0

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
	// mostAsked is the largest number of machines in one request to an agent.
	mostAsked = 32
	// forgotten is how long a lost agent stays in the list of agents.
	forgotten = 24 * time.Hour
)

// FleetOptions describe a fleet.
type FleetOptions struct {
	// Client sends requests to the agents, on Exchange.
	Client   *oslo.Client
	Exchange string
	// LostAfter is the time without an announcement after which an agent counts as lost; 0 means 30
	// s.
	LostAfter time.Duration
	// OrderTimeout limits the wait for the answer to an order; 0 means 10 s. ReadTimeout limits the
	// wait for the answer to a read of machines; 0 means 20 s, which is longer than agents wait for
	// a machine.
	OrderTimeout, ReadTimeout time.Duration
	Now                       func() time.Time
}

// Fleet implements controller.Agents for all agents that announce themselves. Its methods are safe
// for concurrent use.
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
	// replaced is true if a later run of the agent with the same name has announced itself.
	replaced bool
}

// NewFleet returns a fleet without agents. Endpoint serves it on AgentsTopic, where agents announce
// themselves.
func NewFleet(o FleetOptions) *Fleet {
	o.LostAfter = cmp.Or(o.LostAfter, 30*time.Second)
	o.OrderTimeout = cmp.Or(o.OrderTimeout, 10*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 20*time.Second)
	return &Fleet{options: o, runs: map[string]*member{}}
}

// Endpoint returns the methods for a server of AgentsTopic.
func (f *Fleet) Endpoint() oslo.Endpoint {
	return oslo.Endpoint{Version: version, Methods: map[string]oslo.Handler{
		announceMethod: func(_ context.Context, r *oslo.Request) (any, error) {
			var message announcement
			if err := r.Decode(&message); err != nil {
				return nil, fault.New(fault.Invalid, "%v", err)
			}
			f.hear(message)
			return nil, nil
		},
	}}
}

// Discover asks all agents to announce themselves now.
func (f *Fleet) Discover(ctx context.Context) error {
	return fault.While(f.options.Client.Fanout(ctx, target(f.options.Exchange, Topic, ""), discoverMethod, nil), "discover the power agents")
}

// hear stores an announcement. If two runs have the same name, the later one has replaced the
// earlier one, until the earlier one announces itself again: then both are alive.
func (f *Fleet) hear(message announcement) {
	if message.Agent == "" || message.Run == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.options.Now()
	_, known := f.runs[message.Run]
	for run, m := range f.runs {
		switch {
		case now.Sub(m.seen) > forgotten || m.replaced && now.Sub(m.seen) > f.options.LostAfter:
			delete(f.runs, run)
		case m.Agent == message.Agent && run != message.Run && !known:
			m.replaced = true
		}
	}
	heard := &member{announcement: message, hosts: make(map[string]energy.Access, len(message.Hosts)), seen: now}
	for _, access := range message.Hosts {
		access.Agent = message.Agent
		if access.Reaches(energy.On) && access.Reaches(energy.Off) {
			heard.hosts[access.Host] = access
		}
	}
	f.runs[message.Run] = heard
}

func (f *Fleet) lives(m *member) bool {
	return !m.replaced && f.options.Now().Sub(m.seen) <= f.options.LostAfter
}

// Access implements controller.Agents with the agents that are alive.
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

// claimants returns which agents announce the same host, in words.
func claimants(names []string) string {
	slices.Sort(names)
	if names[0] == names[len(names)-1] {
		return fmt.Sprintf("%d agents of the name %s", len(names), names[0])
	}
	return strings.Join(names, ", ")
}

// Agents returns the agents that have announced themselves within a day, sorted by name.
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

// agentOf returns the name of the agent that switches a host. It fails with a NotFound fault if no
// agent has announced the host, with Unavailable if its agent is lost, and with Conflict if several
// agents announce it.
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
		return "", fault.New(fault.Conflict, "host %s is not switched while more than one agent announces it (%s); remove it from all except one", host, claimants(living))
	case last != nil:
		return "", fault.New(fault.Unavailable, "the agent %s, which switches host %s, was last heard of at %v", last.Agent, host, span.At(last.seen))
	}
	return "", fault.New(fault.NotFound, "no agent has announced host %s", host)
}

// Order implements controller.Agents: it sends an order to the host's agent. It fails with an
// Unavailable fault if the agent is lost or it is unknown whether the order has arrived. It fails
// with NotFound or Conflict if there is not exactly one agent for the host; then it has sent
// nothing.
func (f *Fleet) Order(ctx context.Context, o energy.Order) (energy.Outcome, error) {
	agent, err := f.agentOf(o.Host)
	if err != nil {
		return energy.Outcome{}, err
	}
	timeout := f.options.OrderTimeout
	// A message that waits longer is not delivered. The controller may repeat Order at any time
	// after the deadline, to read the outcome of the order.
	if left := o.Deadline.Time().Sub(f.options.Now()); left > 0 {
		timeout = min(timeout, max(left, time.Second))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var got energy.Outcome
	if err := f.options.Client.Call(ctx, target(f.options.Exchange, Topic, agent), orderMethod, o, &got); err != nil {
		return energy.Outcome{}, fmt.Errorf("order host %s %s: %w", o.Host, o.State, err)
	}
	if !slices.Contains(answers, got.Progress) {
		return energy.Outcome{}, fault.New(fault.Unavailable, "the agent %s answered an order with %q", agent, got.Progress)
	}
	return got, nil
}

var answers = []energy.Progress{energy.OrderAccepted, energy.OrderDone, energy.OrderFailed, energy.OrderRefused}

// Read implements controller.Agents: it reads the machines of hosts through their agents.
func (f *Fleet) Read(ctx context.Context, hosts []string) map[string]energy.Reading {
	readings := make(map[string]energy.Reading, len(hosts))
	hostsOf := map[string][]string{}
	for _, host := range hosts {
		agent, err := f.agentOf(host)
		if err != nil {
			readings[host] = f.unread(host, err)
			continue
		}
		hostsOf[agent] = append(hostsOf[agent], host)
	}
	var mu sync.Mutex
	var requests sync.WaitGroup
	for agent, its := range hostsOf {
		for part := range slices.Chunk(its, mostAsked) {
			requests.Go(func() {
				answered := f.ask(ctx, agent, part)
				mu.Lock()
				defer mu.Unlock()
				maps.Copy(readings, answered)
			})
		}
	}
	requests.Wait()
	return readings
}

// ask reads machines through one agent. A host that the answer does not contain has a Problem.
func (f *Fleet) ask(ctx context.Context, agent string, hosts []string) map[string]energy.Reading {
	ctx, cancel := context.WithTimeout(ctx, f.options.ReadTimeout)
	defer cancel()
	var got readReply
	err := f.options.Client.Call(ctx, target(f.options.Exchange, Topic, agent), readMethod, readRequest{hosts}, &got)
	if err == nil {
		err = fault.New(fault.Unavailable, "the agent %s did not answer for this host", agent)
	}
	readings := make(map[string]energy.Reading, len(hosts))
	for _, host := range hosts {
		readings[host] = f.unread(host, err)
	}
	for _, r := range got.Readings {
		if _, wanted := readings[r.Host]; wanted {
			readings[r.Host] = r
		}
	}
	return readings
}

// unread returns the reading of a host that could not be read, with the problem.
func (f *Fleet) unread(host string, err error) energy.Reading {
	problem := err.Error()
	if known := fault.Of(err); known.Kind != fault.Internal {
		problem = known.Message
	}
	return energy.Reading{Host: host, Problem: problem, At: span.At(f.options.Now())}
}
