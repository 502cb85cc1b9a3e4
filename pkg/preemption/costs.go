package preemption

import (
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Costs puts into costs, at the same place, what the Victims of each of hosts cost, which
// are places in s in ascending order; 0 where there is room. That is exact for the most
// cheapest. All others cost as much as the last of these: how much more it is is not found
// out. A host on which no victims are enough costs as much as the dearest.
//
// A search for many hosts gives up earlier than one for the Victims of one host: where that
// happens it may be more than what these cost.
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

// pass is one pass over many hosts.
type pass struct {
	evictor  *Evictor
	states   *inventory.States
	now      span.Instant
	demands  []demand
	hosts    []int
	costs    []int64 // or one of the following
	most     int
	cheapest []int64 // costs of so many hosts at most, ascending
	search   search
	lacks    []int64 // of one host
	lacking  []int   // which of demands these are
	left     []int64 // by place in hosts and demand: what is lacking still, where the walk has begun
	aside    []int   // places in hosts of those that the walk does not know
}

// passes are passes that have ended: their room, some hundred KiB with 10,000 hosts, serves
// the next ones.
var passes = sync.Pool{New: func() any { return new(pass) }}

func (p *pass) end() {
	p.evictor, p.states, p.demands, p.hosts, p.costs = nil, nil, nil, nil, nil
	p.cheapest, p.aside = p.cheapest[:0], p.aside[:0]
	passes.Put(p)
}

// Until its cost is known a host has one of these.
const (
	unknown  = -1
	begun    = -2 // the walk has come by
	hopeless = -3 // no victims are enough, or none below the bar
)

// found notes what a host costs.
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

// bar is what a host has to be cheaper than to be one of the cheapest.
func (p *pass) bar() int64 {
	if len(p.cheapest) < p.most {
		return boundless
	}
	return p.cheapest[p.most-1]
}

// findRoom finds the hosts that cost nothing since there is room, and tells the others
// apart.
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

// missing finds out what is lacking on host i. It is false where that cannot be helped.
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

// look finds what the kth of hosts costs by its instances.
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

func (p *pass) solve(k int) {
	bar := p.bar()
	if cost := p.search.cost(bar); cost < bar {
		p.found(k, cost)
	} else {
		p.costs[k] = hopeless
	}
}

// walk finds the cheapest hosts by going through the instances in the order of their costs
// (the threshold algorithm of Fagin, Lotem and Naor). A host whose instances up to some
// cost are enough, and not without the last, costs as much or more: once the bar is not
// above it no host that is left is one of the cheapest. It is false where it cannot.
func (p *pass) walk() bool {
	if len(p.hosts) <= 2*p.most {
		return false // it is as well to look at all
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

// putAside has a host looked at after the walk, which has nothing or something else of it.
func (p *pass) putAside(host int) {
	if k, asked := p.place(host); asked && p.costs[k] == unknown {
		p.costs[k] = hopeless
		p.aside = append(p.aside, k)
	}
}

// place gives the place of a host in hosts.
func (p *pass) place(host int) (k int, asked bool) {
	// As many are left out before it as are left out at all, or fewer.
	from, to := max(0, host-(p.states.Len()-len(p.hosts))), min(host+1, len(p.hosts))
	if from >= to {
		return 0, false
	}
	k, asked = slices.BinarySearch(p.hosts[from:to], host)
	return from + k, asked
}

// visit takes the next instance away on the kth of hosts, and looks at it if those so far
// are enough.
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
