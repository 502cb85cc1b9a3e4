// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// Source is the inventory.Source of a Cloud.
type Source struct {
	Cloud *Cloud
	// LiveState receives the states of the hosts of each reading; Shown is called with them
	// afterwards, nil is not called.
	LiveState *inventory.LiveState
	Shown     func(*inventory.States)
	// Records are what was stored about instances when they were placed; nil means that there are
	// none.
	Records inventory.InstanceRecords
}

// Hosts implements inventory.Source.
func (s *Source) Hosts(ctx context.Context) ([]inventory.Host, error) {
	mark := s.LiveState.BeginRead()
	records := map[string]inventory.InstanceRecord{}
	if err := s.Cloud.Read(ctx); err != nil {
		return nil, err
	}
	if s.Records != nil {
		var err error
		if records, err = s.Records.InstanceRecords(ctx); err != nil {
			return nil, err
		}
	}
	r := s.Cloud.reading(records)
	states, err := inventory.NewStates(r.states, r.aggregates)
	if err != nil {
		return nil, fmt.Errorf("read the simulated cloud: %w", err)
	}
	s.LiveState.Replace(mark, states, func(instance string) bool { return r.busy[instance] })
	if s.Shown != nil {
		s.Shown(s.LiveState.Load())
	}
	return r.hosts, nil
}

// Look implements eviction.Looker.
func (s *Source) Look(_ context.Context, hosts []string) error {
	mark := s.LiveState.BeginRead()
	for _, name := range hosts {
		if stocks, holds, there := s.Cloud.look(name); there {
			s.LiveState.CorrectHost(mark, name, stocks, holds)
		}
	}
	return nil
}

func (c *Cloud) look(host string) (stocks map[string]inventory.Stock, held map[string]map[string]int64, there bool) {
	defer c.enter()()
	m := c.machines[host]
	if m == nil {
		return nil, nil, false
	}
	all := c.placement.ByProvider()
	stocks = c.used(m, all)
	return stocks, holds(m, stocks, all), true
}

// reading is a picture of the cloud.
type reading struct {
	hosts      []inventory.Host
	states     []inventory.HostState
	aggregates []inventory.Aggregate
	busy       map[string]bool // instances that are on their way, or on which a task runs
}

// reading returns the hosts as an inventory and as live state, with their instances.
func (c *Cloud) reading(records map[string]inventory.InstanceRecord) (r reading) {
	defer c.enter()()
	r.busy = map[string]bool{}
	on := map[string][]inventory.Instance{}
	for _, s := range c.list(func(*Server) bool { return true }) {
		r.busy[s.ID] = s.Task != "" || s.Status == building
		if s.Host != "" {
			on[s.Host] = append(on[s.Host], c.recognized(s.Instance, records))
		}
	}
	held := c.placement.ByProvider()
	for _, name := range c.names() {
		m := c.machines[name]
		stocks := c.used(m, held)
		owners := holds(m, stocks, held)
		instances := on[name]
		for i := range instances {
			if instances[i].Preemptible {
				instances[i].Holds = owners[instances[i].ID]
			}
		}
		r.hosts = append(r.hosts, c.host(m, stocks, instances))
		r.states = append(r.states, c.state(m, stocks, instances))
	}
	r.aggregates = c.allAggregates()
	return r
}

// recognized returns an instance with what the rule and the records say about it.
func (c *Cloud) recognized(i inventory.Instance, records map[string]inventory.InstanceRecord) inventory.Instance {
	i.Preemptible, i.Protected = c.o.Preemptible.Marks(&i), c.o.Preemptible.Protects(&i)
	if known, has := records[i.ID]; has {
		i.AddRecord(known)
	}
	return i
}

// allocated is what consumers have, as memory.Placement.ByProvider returns it.
type allocated = map[string]map[string]map[string]int64

// used returns the inventories of a host with their use.
func (c *Cloud) used(m *machine, held allocated) map[string]inventory.Stock {
	all := c.stocks(m)
	for class, s := range all {
		for _, amounts := range held[s.Provider] {
			s.Used += amounts[class]
		}
		all[class] = s
	}
	return all
}

// holds returns, by the id of the consumer and by resource class, the allocations from the stocks of
// a host.
func holds(m *machine, stocks map[string]inventory.Stock, held allocated) map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for _, provider := range []string{m.provider, m.child()} {
		for consumer, amounts := range held[provider] {
			for class, amount := range amounts {
				if _, has := stocks[class]; !has {
					continue
				}
				if all[consumer] == nil {
					all[consumer] = map[string]int64{}
				}
				all[consumer][class] = amount
			}
		}
	}
	return all
}

const hypervisor, hypervisorVersion = "QEMU", 7002000

// host returns a machine as the inventory has it.
func (c *Cloud) host(m *machine, stocks map[string]inventory.Stock, instances []inventory.Instance) inventory.Host {
	h := m.host
	h.Used = resource.Vector{VCPUs: stocks["VCPU"].Used, MemoryMB: stocks["MEMORY_MB"].Used, DiskGB: stocks["DISK_GB"].Used}
	for class := range h.Capacity.Custom {
		if n := stocks[class].Used; n > 0 {
			if h.Used.Custom == nil {
				h.Used.Custom = map[string]int64{}
			}
			h.Used.Custom[class] = n
		}
	}
	h.Instances, h.InstanceCount, h.Provider, h.Power, h.Problem = instances, len(instances), m.provider, "", m.problem()
	h.Hypervisor = inventory.Hypervisor{Name: h.Name, Type: hypervisor, Version: hypervisorVersion}
	return h
}

// problem returns the reason why a host accepts no instances; "" if it accepts them.
func (m *machine) problem() string {
	switch {
	case m.down:
		return "its nova-compute is down"
	case m.closed && m.reason != "":
		return "it is disabled: " + m.reason
	case m.closed:
		return "it is disabled"
	}
	return ""
}

// state returns a machine as the live state has it.
func (c *Cloud) state(m *machine, stocks map[string]inventory.Stock, instances []inventory.Instance) inventory.HostState {
	h := m.host
	s := inventory.HostState{
		Name: h.Name, Node: h.Name, Provider: m.provider, Zone: h.Zone, Up: !m.down, Enabled: !m.closed, DisabledReason: m.reason,
		HypervisorType: hypervisor, HypervisorVersion: hypervisorVersion, Stocks: stocks, Instances: instances,
		Traits: slices.Sorted(maps.Keys(m.traits)),
	}
	s.Traits = slices.Sorted(slices.Values(append(s.Traits, h.Traits...)))
	for i := range instances {
		if instances[i].Status == building {
			s.IOOps++
		}
	}
	return s
}

// allAggregates returns an aggregate for each availability zone, those of the hosts, and Almanac's,
// each sorted by name.
func (c *Cloud) allAggregates() (all []inventory.Aggregate) {
	zones, theirs := map[string]*inventory.Aggregate{}, map[string]*inventory.Aggregate{}
	for _, host := range c.names() {
		h := &c.machines[host].host
		if h.Zone != "" {
			join(zones, h.Zone, h.Name).Zone = h.Zone
		}
		for _, name := range h.Aggregates {
			join(theirs, name, h.Name)
		}
	}
	for _, of := range []map[string]*inventory.Aggregate{zones, theirs, c.aggregates} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			a := *of[name]
			if a.UUID == "" {
				a.UUID = idOf("aggregate " + a.Zone + "/" + name)
			}
			a.Metadata, a.Hosts = maps.Clone(a.Metadata), slices.Clone(a.Hosts)
			all = append(all, a)
		}
	}
	return all
}

// join adds a host to the aggregate with a name, and returns the aggregate.
func join(all map[string]*inventory.Aggregate, name, host string) *inventory.Aggregate {
	a := all[name]
	if a == nil {
		a = &inventory.Aggregate{Name: name}
		all[name] = a
	}
	a.Hosts = append(a.Hosts, host)
	return a
}
