package openstack

import (
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// cloud is all that one reading knows. It does not change; the next reading takes over
// what has stayed.
type cloud struct {
	at   span.Instant // when it was made
	full span.Instant // when everything was read

	services    []nova.Service
	hypervisors []nova.Hypervisor
	aggregates  []inventory.Aggregate
	providers   []placement.Provider // those of hosts, and below them
	holdings    map[string]holding   // by provider
	servers     map[string]nova.Server
	guests      map[string]inventory.Guest // what is remembered of servers
	// preemptible are the root providers of the hosts with preemptible instances.
	preemptible map[string]bool
	// others are the providers that are of no host, each with its generation, sorted, and
	// shared the resource classes of which they share some, by the root provider of a host.
	others []string
	shared map[string][]string

	updated span.Instant            // of the server that changed last, by Nova's clock
	touched map[string]span.Instant // the hosts on which a server has changed lately, and when

	// nodes is of whom the hypervisors were read: the services and root providers that
	// there were.
	nodes []string

	notes []string // what could not be read, in sentences for the log
}

// holding is what a provider has. It is at least as new as its generation.
type holding struct {
	generation int64
	// counted is the generation at which the inventories were read.
	counted     int64
	inventories map[string]placement.Inventory
	used        map[string]int64
	// consumers are what each of them has of it, used their sum; nil where only the sum was
	// read.
	consumers map[string]map[string]int64
	traits    []string
}

// nodesOf names the services and the root providers there are. While they stay the
// same, so do the hypervisors.
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

// ofHosts leaves the providers in the trees of hosts.
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

// instance gives a server as the rule and what is remembered of it tell of it.
func (c *cloud) instance(s nova.Server, rule inventory.PreemptibleRule) inventory.Instance {
	one := s.Instance
	one.Preemptible, one.Protected = rule.Marks(&one), rule.Protects(&one)
	if g, known := c.guests[one.ID]; known {
		one.Recognize(g)
	}
	return one
}

// withPreemptible gives the root providers of the hosts with preemptible instances.
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

// held gives what is known of providers.
func (c *cloud) held(tree []placement.Provider) []placement.Held {
	held := make([]placement.Held, len(tree))
	for i, p := range tree {
		k := c.holdings[p.ID]
		held[i] = placement.Held{Provider: p, Inventories: k.inventories, Used: k.used, Consumers: k.consumers}
	}
	return held
}

// trees gives the providers by their root.
func (c *cloud) trees() map[string][]placement.Provider {
	trees := map[string][]placement.Provider{}
	for _, p := range c.providers {
		trees[p.Root] = append(trees[p.Root], p)
	}
	return trees
}

func (c *cloud) servicesByHost() map[string]nova.Service {
	services := make(map[string]nova.Service, len(c.services))
	for _, s := range c.services {
		services[s.Host] = s
	}
	return services
}

// underWay says that an instance is on its way to a host, or that something else is being
// done with it.
func (c *cloud) underWay(instance string) bool {
	s, there := c.servers[instance]
	return there && (s.Task != "" || s.Status == building)
}

// overlap is how many seconds before the last known change the next list of changes
// begins: writes of Nova become visible late, and out of order, and the clocks of its
// conductors differ.
const overlap = 60

// since gives from when on the changes of servers are to be listed. However long ago
// the last one was, the clock here, which may differ from Nova's, makes it no later.
func (c *cloud) since(now span.Instant) span.Instant { return min(c.updated, now).Add(-overlap) }

// settling is for how many seconds after a change on a host its usages are read, and in
// any case once more: the allocation of a server goes a moment after the server.
const settling = 30

// take lays changes over the servers of the last reading.
func (c *cloud) take(last *cloud, changes []nova.Server) {
	c.servers, c.updated = maps.Clone(last.servers), last.updated
	for _, s := range changes {
		if c.updated = max(c.updated, s.Updated); s.Deleted() {
			delete(c.servers, s.ID)
		} else {
			c.servers[s.ID] = s
		}
	}
}

// takeAll takes servers that were listed as a whole.
func (c *cloud) takeAll(listed []nova.Server) {
	c.servers = make(map[string]nova.Server, len(listed))
	for _, s := range listed {
		if c.updated = max(c.updated, s.Updated); !s.Deleted() {
			c.servers[s.ID] = s
		}
	}
}

// touch notes the hosts on which servers have changed since the last reading, and keeps
// those on which they did lately. With the first reading everything is new anyway.
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
