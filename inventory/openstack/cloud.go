// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// cloud is the result of one reading. It is immutable; the next reading reuses what has not
// changed.
type cloud struct {
	at   span.Instant // when the reading began
	full span.Instant // when the last full reading began

	services    []nova.Service
	hypervisors []nova.Hypervisor
	aggregates  []inventory.Aggregate
	providers   []placement.Provider // those in the trees of hosts
	holdings    map[string]holding   // by provider
	servers     map[string]nova.Server
	records     map[string]inventory.InstanceRecord // what was stored about servers
	// preemptible are the root providers of the hosts with preemptible instances.
	preemptible map[string]bool
	// others are the providers outside the hosts' trees, each with its generation, sorted.
	// shared are the resource classes that they share, by the root provider of the host.
	others []string
	shared map[string][]string

	updated span.Instant            // when the server that changed last was changed, by Nova's clock
	touched map[string]span.Instant // the hosts on which a server or an allocation has changed lately, and when

	// nodes are the services and root providers at the time at which the hypervisors were read.
	nodes []string

	release release.Release // of Nova, at the last full reading

	notes []string // what could not be read, as sentences for the log
}

// holding is Placement's data of a provider, read at its generation or later.
type holding struct {
	generation int64
	// counted is the generation at which the inventories were read.
	counted     int64
	inventories map[string]placement.Inventory
	used        map[string]int64
	// consumers are the allocations by consumer, and used is their sum. consumers is nil if only
	// the sum was read.
	consumers map[string]map[string]int64
	traits    []string
}

// nodesOf returns the names of the services and the ids of the root providers. As long as these are
// the same, the hypervisors are too.
func nodesOf(services []nova.Service, providers []placement.Provider) []string {
	var nodes []string
	for _, s := range services {
		nodes = append(nodes, "service "+s.ID+" "+s.Host)
	}
	for _, p := range providers {
		if p.Parent == "" {
			nodes = append(nodes, "provider "+p.ID)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// ofHosts returns the providers in the trees of hosts.
func ofHosts(providers []placement.Provider, hypervisors []nova.Hypervisor) []placement.Provider {
	nodes, _ := single(hypervisors)
	roots := make(map[string]bool, len(nodes))
	for _, h := range nodes {
		roots[h.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(providers), func(p placement.Provider) bool {
		return !roots[p.Root]
	})
}

// instance converts a server, according to the rule and the stored record of it.
func (c *cloud) instance(s nova.Server, rule inventory.PreemptibleRule) inventory.Instance {
	one := s.Instance
	one.Preemptible, one.Protected = rule.Marks(&one), rule.Protects(&one)
	if g, known := c.records[one.ID]; known {
		one.AddRecord(g)
	}
	return one
}

// withPreemptible returns the root providers of the hosts with preemptible instances.
func (c *cloud) withPreemptible(rule inventory.PreemptibleRule) map[string]bool {
	hosts, roots := map[string]bool{}, map[string]bool{}
	for _, s := range c.servers {
		if one := c.instance(s, rule); one.Preemptible {
			hosts[one.Host] = true
		}
	}
	for _, h := range c.hypervisors {
		if hosts[h.Host] {
			roots[h.ID] = true
		}
	}
	return roots
}

// held returns the data of providers.
func (c *cloud) held(tree []placement.Provider) []placement.Held {
	held := make([]placement.Held, len(tree))
	for i, p := range tree {
		k := c.holdings[p.ID]
		held[i] = placement.Held{Provider: p, Inventories: k.inventories, Used: k.used, Consumers: k.consumers}
	}
	return held
}

// trees returns the providers by the id of their root provider.
func (c *cloud) trees() map[string][]placement.Provider {
	trees := map[string][]placement.Provider{}
	for _, p := range c.providers {
		trees[p.Root] = append(trees[p.Root], p)
	}
	return trees
}

// servicesByHost returns the nova-compute services by the name of their host.
func (c *cloud) servicesByHost() map[string]nova.Service {
	services := make(map[string]nova.Service, len(c.services))
	for _, s := range c.services {
		services[s.Host] = s
	}
	return services
}

// underWay reports whether an instance is on its way to a host or another task runs on it.
func (c *cloud) underWay(instance string) bool {
	s, there := c.servers[instance]
	return there && (s.Task != "" || s.Status == building)
}

// overlap is how many seconds before the last known change the next list of changes begins:
// Nova's writes become visible late and out of order, and the clocks of its conductors differ.
const overlap = 60

// since returns the time from which the changes of servers are listed: the last known change or
// the present, whichever is earlier, since the clocks here and at Nova may differ.
func (c *cloud) since(now span.Instant) span.Instant { return min(c.updated, now).Add(-overlap) }

// settling is for how many seconds after a change on a host its usages are read, and at least
// once more: Placement loses the allocation of a server a moment after Nova deletes it.
const settling = 30

// applyChanges applies changes to the servers of the last reading.
func (c *cloud) applyChanges(last *cloud, changes []nova.Server) {
	c.servers, c.updated = maps.Clone(last.servers), last.updated
	for _, s := range changes {
		if c.updated = max(c.updated, s.Updated); s.Deleted() {
			delete(c.servers, s.ID)
		} else {
			c.servers[s.ID] = s
		}
	}
}

// replaceServers sets the servers from a complete list.
func (c *cloud) replaceServers(listed []nova.Server) {
	c.servers = make(map[string]nova.Server, len(listed))
	for _, s := range listed {
		if c.updated = max(c.updated, s.Updated); !s.Deleted() {
			c.servers[s.ID] = s
		}
	}
}

// touch records the hosts on which servers have changed since the last reading, and keeps the
// recently recorded ones. After the first reading there is nothing to compare.
func (c *cloud) touch(last *cloud, now span.Instant) {
	if last.servers == nil {
		return
	}
	c.touched = map[string]span.Instant{}
	for host, at := range last.touched {
		if at == last.at || now < at.Add(settling) {
			c.touched[host] = at
		}
	}
	for id, s := range c.servers {
		if had := last.servers[id]; had.Updated != s.Updated || had.Host != s.Host {
			c.touched[had.Host], c.touched[s.Host] = now, now
		}
	}
	for id, had := range last.servers {
		if _, stays := c.servers[id]; !stays {
			c.touched[had.Host] = now
		}
	}
}

// touchAllocated records the hosts with a provider that has another generation than in the last reading. A
// server that comes and goes between two readings appears in neither, and Placement does not show that its
// allocation is gone.
func (c *cloud) touchAllocated(last *cloud, now span.Instant) {
	hosts := c.hostsByProvider()
	for _, p := range c.providers {
		if h, known := last.holdings[p.ID]; known && h.generation != p.Generation {
			c.touched[hosts[p.Root]] = now
		}
	}
}

// hostsByProvider returns the hosts by the ids of their root providers.
func (c *cloud) hostsByProvider() map[string]string {
	hosts := make(map[string]string, len(c.hypervisors))
	for _, h := range c.hypervisors {
		hosts[h.ID] = h.Host
	}
	return hosts
}

// doubtful reports whether something is in use although there is no server: either Nova has lost its
// servers, or the usages are out of date.
func (c *cloud) doubtful() bool {
	if c.servers == nil || len(c.servers) > 0 {
		return false
	}
	for _, h := range c.holdings {
		for _, amount := range h.used {
			if amount > 0 {
				return true
			}
		}
	}
	return false
}
