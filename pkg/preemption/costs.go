// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Costs sets costs[k] to the cost of the Victims on hosts[k], or to 0 if there is room without
// victims. hosts are indexes of s in ascending order. Only the costs of the cheapest hosts, as many
// as most, are exact. The other hosts, and hosts without sufficient victims, get the highest of
// these exact costs.
//
// The search for many hosts stops earlier than that of Victims. A cost may then be higher than that
// of the host's Victims.
func (e *Evictor) Costs(s *inventory.States, hosts []int, resources map[string]int64, now span.Instant, most int, costs []int64) {
	p := passes.Get().(*pass)
	defer p.end()
	p.evictor, p.states, p.now, p.demands = e, s, now, demandsOf(s, resources)
	p.hosts, p.costs, p.most = hosts, costs[:len(hosts)], max(1, most)
	p.findRoom()
	if len(p.cheapest) < p.most && !p.walk() {
		for k, cost := range p.costs {
			if cost == unknown {
				p.look(k)
			}
		}
	}
	bar := int64(0)
	if len(p.cheapest) > 0 {
		bar = p.cheapest[len(p.cheapest)-1]
	}
	for k, cost := range p.costs {
		if cost < 0 || cost > bar {
			p.costs[k] = bar
		}
	}
}

// pass is one computation of the costs of many hosts.
type pass struct {
	evictor  *Evictor
	states   *inventory.States
	now      span.Instant
	demands  []demand
	hosts    []int
	costs    []int64 // or one of the states below
	most     int
	cheapest []int64 // the lowest costs so far, at most as many as most, ascending
	search   search
	lacks    []int64 // of one host
	lacking  []int   // the indexes of lacks in demands
	left     []int64 // by place in hosts and demand: what is still lacking, if the walk has visited the host
	aside    []int   // places in hosts of the hosts for which the order is stale
}

// passes is a pool of passes. A pass has some hundred KiB with 10,000 hosts.
var passes = sync.Pool{New: func() any { return new(pass) }}

func (p *pass) end() {
	p.evictor, p.states, p.demands, p.hosts, p.costs = nil, nil, nil, nil, nil
	p.cheapest, p.aside = p.cheapest[:0], p.aside[:0]
	passes.Put(p)
}

// The values that replace the cost of a host whose cost is not known.
const (
	unknown  = -1
	begun    = -2 // the walk has visited the host
	hopeless = -3 // no victims free enough room, or only ones that cost at least the bar
)

// found stores the cost of the kth host.
func (p *pass) found(k int, cost int64) {
	p.costs[k] = cost
	if cost >= p.bar() {
		return
	}
	at, _ := slices.BinarySearch(p.cheapest, cost)
	if len(p.cheapest) == p.most {
		p.cheapest = p.cheapest[:p.most-1]
	}
	p.cheapest = slices.Insert(p.cheapest, at, cost)
}

// bar returns the cost below which a host is among the cheapest.
func (p *pass) bar() int64 {
	if len(p.cheapest) < p.most {
		return boundless
	}
	return p.cheapest[p.most-1]
}

// findRoom sets the costs of hosts with room to 0, and of the others to unknown. It stops after
// finding as many hosts with room as most.
func (p *pass) findRoom() {
	if len(p.demands) == 0 {
		clear(p.costs)
		p.cheapest = append(p.cheapest, 0)
		return
	}
	first := p.demands[len(p.demands)-1]
	limit, used := first.of.Limit, first.of.Used
	for k, i := range p.hosts {
		p.costs[k] = unknown
		if limit[i]-used[i] < first.amount || len(p.cheapest) == p.most {
			continue
		}
		if p.missing(i) && len(p.lacks) == 0 {
			p.found(k, 0)
		}
	}
}

// missing sets lacks and lacking for host i. It returns false if evictions cannot free enough room.
func (p *pass) missing(i int) bool {
	p.lacks, p.lacking = p.lacks[:0], p.lacking[:0]
	for n, d := range p.demands {
		switch lack, ok := d.lack(i); {
		case !ok:
			return false
		case lack > 0:
			p.lacks, p.lacking = append(p.lacks, lack), append(p.lacking, n)
		}
	}
	return true
}

// look computes the cost of the kth of hosts from its instances.
func (p *pass) look(k int) {
	if !p.missing(p.hosts[k]) {
		p.costs[k] = hopeless
		return
	}
	p.search.begin(p.lacks)
	instances := p.states.InstancesOn(p.hosts[k])
	for i := range instances {
		one := &instances[i]
		if !one.Evictable() {
			continue
		}
		amounts := p.search.add(p.evictor.Cost.Of(one, p.now))
		for d, n := range p.lacking {
			amounts[d] = one.Holds[p.demands[n].class]
		}
	}
	p.solve(k)
}

// solve finds the cheapest victims of host k, unless they cost as much as the best found so far.
func (p *pass) solve(k int) {
	bar := p.bar()
	if cost := p.search.cost(bar); cost < bar {
		p.found(k, cost)
	} else {
		p.costs[k] = hopeless
	}
}

// walk finds the cheapest hosts by visiting the instances in the order of their costs (the
// threshold algorithm of Fagin, Lotem and Naor). If the instances of a host up to some cost free
// enough room only together with the last one, the host costs at least as much as that instance. So
// no further host is among the cheapest once the cost of the visited instances has reached the bar.
// walk returns false if there is no such order of the instances.
func (p *pass) walk() bool {
	if len(p.hosts) <= 2*p.most {
		return false // looking at all hosts is as fast
	}
	o := p.evictor.index.of(p.states, p.evictor.Cost, p.now)
	if o == nil {
		return false
	}
	columns := make([]int, len(p.demands)) // of the order, by demand
	for n, d := range p.demands {
		if columns[n] = slices.Index(o.classes, d.class); columns[n] < 0 {
			return false
		}
	}
	for i := range p.states.Changed(o.states) {
		p.putAside(i)
	}
	for i := range o.ahead {
		p.putAside(i)
	}
	p.left = slices.Grow(p.left[:0], len(p.hosts)*len(p.demands))[:len(p.hosts)*len(p.demands)]
	o.rising(p.now, func(e *entry, cost int64) bool {
		if cost >= p.bar() {
			return false
		}
		if k, asked := p.place(int(e.host)); asked && (p.costs[k] == unknown || p.costs[k] == begun) {
			p.visit(o, columns, k, int(e.instance))
		}
		return true
	})
	for _, k := range p.aside {
		p.look(k)
	}
	return true
}

// putAside marks a host for look after the walk, because the order is out of date for it.
func (p *pass) putAside(host int) {
	if k, asked := p.place(host); asked && p.costs[k] == unknown {
		p.costs[k] = hopeless
		p.aside = append(p.aside, k)
	}
}

// place returns the index of a host in hosts; asked is false if it is not in hosts.
func (p *pass) place(host int) (k int, asked bool) {
	// At most as many hosts are left out before it as in total.
	from, to := max(0, host-(p.states.Len()-len(p.hosts))), min(host+1, len(p.hosts))
	if from >= to {
		return 0, false
	}
	k, asked = slices.BinarySearch(p.hosts[from:to], host)
	return from + k, asked
}

// visit subtracts what the next instance of the kth host frees from what the host lacks. When the
// instances so far free enough room, it computes the host's cost.
func (p *pass) visit(o *order, columns []int, k, instance int) {
	host := p.hosts[k]
	left := p.left[k*len(columns) : (k+1)*len(columns)]
	if p.costs[k] == unknown {
		p.costs[k] = begun
		for n, d := range p.demands {
			lack, ok := d.lack(host)
			if !ok {
				p.costs[k] = hopeless
				return
			}
			left[n] = lack
		}
	}
	amounts := o.amounts[instance*len(o.classes):]
	for n, column := range columns {
		left[n] -= amounts[column]
	}
	if !enough(left) {
		return
	}
	p.missing(host)
	p.search.begin(p.lacks)
	for m := o.from[host]; m < o.from[host+1]; m++ {
		amounts := p.search.add(o.cost.at(o.keys[m], p.now))
		for d, n := range p.lacking {
			amounts[d] = o.amounts[m*len(o.classes)+columns[n]]
		}
	}
	p.solve(k)
}
