// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
)

// HostState is what placement needs to know about a host now (nova/scheduler/host_manager.py
// HostState, with what Placement knows about the host's provider tree).
type HostState struct {
	Name string // of its nova-compute
	Node string // hypervisor_hostname
	// Provider is the root of its tree in Placement, with the UUID of the compute node.
	Provider string
	Cell     string // UUID; empty means unknown
	Zone     string // availability zone; Nova's default for a host in no aggregate with a zone
	IP       string // address of its nova-compute (host_ip); empty means unknown
	// Up reports whether its nova-compute has reported lately, Enabled whether nobody has
	// disabled it; otherwise DisabledReason is the reason.
	Up, Enabled    bool
	DisabledReason string
	HypervisorType string // "QEMU"
	// HypervisorVersion is Nova's number, 1002003 for 1.2.3; 0 means unknown.
	HypervisorVersion int64
	// Stocks are the inventories of its tree, by resource class.
	Stocks map[string]Stock
	Traits []string // of its tree, including Almanac's own
	// Instances are on the host or on their way to it.
	Instances []Instance
	// IOOps is the number of its instances that do heavy work (nova/compute/stats.py
	// io_workload), FailedBuilds the number of builds that failed on it since the last success.
	IOOps, FailedBuilds int64
	// DiskMissing is how many GiB less are free on the host than its instances leave: cached
	// images, and the growth of their disks (Nova's disk_available_least).
	DiskMissing int64
	// PCIDevices is the number of free PCI devices that its nova-compute reports to Placement
	// (nova/conf/pci.py report_in_placement).
	PCIDevices int64
	// Unsupported is the reason why Almanac can never judge the host; empty if it can.
	Unsupported string
	// Split are the resource classes that Stocks lacks because one amount cannot describe them:
	// two providers of the tree have some, or a sharing provider outside it does.
	Split []string
}

// Stock is a host's inventory of one resource class, as Placement computes it
// (placement/objects/inventory.py, allocation.py _check_capacity_exceeded).
type Stock struct {
	Provider        string // of the inventory: the root, or a child
	Total, Reserved int64
	Ratio           float64 // allocation_ratio
	Used            int64
	// Min, Max and Step are min_unit, max_unit and step_size: the amount of one instance lies
	// between Min and Max and is a multiple of Step. 0 is Placement's default: 1, any, and 1.
	Min, Max, Step int64
}

// most is more of a resource class than Placement allocates (placement/db/constants.py
// MAX_INT).
const most = math.MaxInt32

// Limit returns the amount that Placement allocates at most: (Total - Reserved) * Ratio,
// rounded down.
func (s Stock) Limit() int64 {
	return int64(min(float64(s.Real())*max(0, s.Ratio), 1<<53))
}

// offered returns Total * Ratio - Reserved. The conversion prevents a fused multiply-add, which
// would round differently.
func (s Stock) offered() float64 { return float64(float64(s.Total)*s.Ratio) - float64(s.Reserved) }

// Real returns the amount without overcommitment.
func (s Stock) Real() int64 { return max(0, s.Total-s.Reserved) }

// Take is what one consumer takes of one host.
type Take struct {
	Host      int // index in States
	Instance  string
	Group     string // server group, so that the next instance sees this one
	Resources map[string]int64
	// Victims are the instances that leave the host for this one.
	Victims []string
	// Counted reports whether the stocks contain the effect already: what the instance takes,
	// and what victims leave or get back.
	Counted bool
}

// States are the states of all hosts at one moment, sorted by name and laid out in columns.
// They never change: WithTaken returns new ones that share what is equal. Callers must not
// write to the slices and sets that they return.
type States struct {
	rows        rows
	index       map[string]int // by lower-case name
	nodes       map[string]int // by lower-case node
	aggregates  []Aggregate
	members     map[string]hostset.Set // by UUID of an aggregate
	memberships [][]int                // by host: indices in aggregates, ascending
	traits      map[string]hostset.Set // by name
	zones       map[string]hostset.Set
	split       map[string]hostset.Set // by resource class
	up, enabled hostset.Set
	all, none   hostset.Set
	ioOps       []int64 // by host
	nova        release.Release

	locations *locations
	received  hostset.Set // hosts that may have received instances since locations; nil means none

	columns map[string]*Column // by resource class, of those that many hosts have
	// rare are the indices of the hosts that have one of the other classes: each reservation
	// has a class of its own on few hosts. Their columns are made on demand.
	rare  map[string][]int
	made  *sync.Map // *Column by class, of rare
	empty *Column
}

// Column is the amount of one resource class on all hosts, by index. A host without the class
// has 0 everywhere, and Step 1.
type Column struct {
	// Limit is the amount that Placement allocates at most: (Total - Reserved) * Ratio, rounded
	// down. Real is Total - Reserved.
	Limit, Real, Used []int64
	// Evictable is the part of Used that belongs to instances that can be evicted. Limit - Used
	// is free in the full state h_f of paper 001, Limit - Used + Evictable in its normal state
	// h_n.
	Evictable      []int64
	Min, Max, Step []int64
	// Offered is Total * Ratio - Reserved: what nova-scheduler weighs for VCPU
	// (nova/compute/resource_tracker.py counts what is reserved as used).
	Offered []float64
	// least, most and steps bound Min, Max and Step of the hosts that have the class.
	least, most, steps int64
}

// AllAllow reports whether Min, Max and Step allow an amount on all hosts that have the class. It may be false
// although they do.
func (c *Column) AllAllow(amount int64) bool {
	return c.least <= amount && amount <= c.most && c.steps == 1
}

// newColumn returns a column of one resource class without amounts.
func newColumn(hosts int) *Column {
	cells := make([]int64, 7*hosts)
	part := func(i int) []int64 { return cells[i*hosts : (i+1)*hosts : (i+1)*hosts] }
	c := &Column{
		Limit: part(0), Real: part(1), Used: part(2), Evictable: part(3), Min: part(4), Max: part(5), Step: part(6),
		Offered: make([]float64, hosts), most: math.MaxInt64, steps: 1,
	}
	for i := range c.Step {
		c.Step[i] = 1
	}
	return c
}

// set enters the stock of host i, with what preemptible instances there would free.
func (c *Column) set(i int, s Stock, yield int64) {
	c.Limit[i], c.Real[i], c.Used[i], c.Evictable[i] = s.Limit(), s.Real(), s.Used, yield
	c.Min[i], c.Max[i], c.Step[i] = cmp.Or(s.Min, 1), cmp.Or(s.Max, most), cmp.Or(s.Step, 1)
	c.Offered[i] = s.offered()
	c.least, c.most, c.steps = max(c.least, c.Min[i]), min(c.most, c.Max[i]), max(c.steps, c.Step[i])
}

func (c *Column) clear(i int) {
	c.Limit[i], c.Real[i], c.Used[i], c.Evictable[i], c.Min[i], c.Max[i], c.Step[i] = 0, 0, 0, 0, 0, 0, 1
	c.Offered[i] = 0
}

// differsInUse reports whether s differs from the column's stock of host i in nothing but Used; it
// is also true if they are equal.
func (c *Column) differsInUse(i int, s Stock) bool {
	return c.Limit[i] == s.Limit() && c.Real[i] == s.Real() && c.Offered[i] == s.offered() &&
		c.Min[i] == cmp.Or(s.Min, 1) && c.Max[i] == cmp.Or(s.Max, most) && c.Step[i] == cmp.Or(s.Step, 1)
}

// clone returns a copy that can be changed apart.
func (c *Column) clone() *Column {
	next := newColumn(len(c.Used))
	copy(next.Limit, c.Limit)
	copy(next.Real, c.Real)
	copy(next.Used, c.Used)
	copy(next.Evictable, c.Evictable)
	copy(next.Min, c.Min)
	copy(next.Max, c.Max)
	copy(next.Step, c.Step)
	copy(next.Offered, c.Offered)
	next.least, next.most, next.steps = c.least, c.most, c.steps
	return next
}

// NewStates returns the states of hosts in aggregates. It returns an Invalid fault if a host
// has no name, or if two names are equal regardless of case: Nova takes such hosts for one
// (nova/scheduler/host_manager.py get_filtered_hosts). The slices and maps in hosts and
// aggregates belong to the states from then on.
func NewStates(hosts []HostState, aggregates []Aggregate) (*States, error) {
	hosts = slices.Clone(hosts)
	slices.SortFunc(hosts, func(a, b HostState) int { return cmp.Compare(a.Name, b.Name) })
	n := len(hosts)
	s := &States{
		rows: newRows(hosts), aggregates: aggregates, empty: newColumn(n), made: new(sync.Map),
		all: hostset.Full(n), none: hostset.New(n), up: hostset.New(n), enabled: hostset.New(n),
		ioOps: make([]int64, n),
	}
	if err := s.indexNames(); err != nil {
		return nil, err
	}
	s.gatherSets()
	s.gatherAggregates()
	s.layColumns()
	s.locations = &locations{rows: s.rows}
	return s, nil
}

// indexNames fills the index of names and nodes, which Nova compares without case.
func (s *States) indexNames() error {
	s.index, s.nodes = make(map[string]int, s.Len()), make(map[string]int, s.Len())
	for i, h := range s.rows.all() {
		name := strings.ToLower(h.Name)
		if name == "" {
			return fault.Field("name", "a host has no name")
		}
		if other, taken := s.index[name]; taken {
			return fault.Field("name", "two hosts are named %q and %q, which are equal to Nova", s.Host(other).Name, h.Name)
		}
		s.index[name] = i
		if h.Node != "" {
			s.nodes[strings.ToLower(h.Node)] = i
		}
	}
	return nil
}

// gatherSets fills the sets of hosts: up, enabled, and by zone, trait and split resource class.
func (s *States) gatherSets() {
	s.traits, s.zones, s.split = map[string]hostset.Set{}, map[string]hostset.Set{}, map[string]hostset.Set{}
	for i, h := range s.rows.all() {
		if h.Up {
			s.up.Add(i)
		}
		if h.Enabled {
			s.enabled.Add(i)
		}
		s.ioOps[i] = h.IOOps
		s.put(s.zones, h.Zone, i)
		for _, trait := range h.Traits {
			s.put(s.traits, trait, i)
		}
		for _, class := range h.Split {
			s.put(s.split, class, i)
		}
	}
}

// put adds a host to the set with that name.
func (s *States) put(sets map[string]hostset.Set, name string, host int) {
	set, there := sets[name]
	if !there {
		set = hostset.New(s.Len())
		sets[name] = set
	}
	set.Add(host)
}

// gatherAggregates fills the hosts of each aggregate and the aggregates of each host.
func (s *States) gatherAggregates() {
	s.members, s.memberships = make(map[string]hostset.Set, len(s.aggregates)), make([][]int, s.Len())
	for place := range s.aggregates {
		a := &s.aggregates[place]
		set := hostset.New(s.Len())
		for _, name := range a.Hosts {
			if i, known := s.Index(name); known && !set.Has(i) {
				set.Add(i)
				s.memberships[i] = append(s.memberships[i], place)
			}
		}
		s.members[a.UUID] = set
	}
}

// layColumns makes the columns of the classes that at least one host in eight has.
func (s *States) layColumns() {
	having := map[string][]int{}
	for i, h := range s.rows.all() {
		for class := range h.Stocks {
			having[class] = append(having[class], i)
		}
	}
	s.columns, s.rare = map[string]*Column{}, map[string][]int{}
	for class, places := range having {
		if len(places)*8 < s.Len() {
			s.rare[class] = places
		} else {
			s.columns[class] = s.columnOf(class, places)
		}
	}
}

// columnOf returns the column of a class with the hosts at these places.
func (s *States) columnOf(class string, places []int) *Column {
	c := newColumn(s.Len())
	for _, i := range places {
		h := s.Host(i)
		c.set(i, h.Stocks[class], h.evictable(class))
	}
	return c
}

// Nova returns the release of the cloud's Nova.
func (s *States) Nova() release.Release { return s.nova }

// WithNova returns the states in a cloud with that release of Nova.
func (s *States) WithNova(r release.Release) *States {
	next := *s
	next.nova = r
	return &next
}

// Len returns the number of hosts.
func (s *States) Len() int { return len(s.empty.Used) }

// Host returns the host at index i, 0 ≤ i < Len.
func (s *States) Host(i int) *HostState { return s.rows.at(i) }

// InstancesOn returns the instances on host i and on their way to it, in no order.
func (s *States) InstancesOn(i int) []Instance { return s.Host(i).Instances }

// Index returns the index of the host with that name, in any case.
func (s *States) Index(name string) (int, bool) {
	i, ok := s.index[strings.ToLower(name)]
	return i, ok
}

// Node returns the index of the host whose hypervisor has that name, in any case.
func (s *States) Node(name string) (int, bool) {
	i, ok := s.nodes[strings.ToLower(name)]
	return i, ok
}

// Column returns the amounts of a resource class on all hosts. It is never nil: a class that no
// host has is 0 everywhere.
func (s *States) Column(class string) *Column {
	if c, there := s.columns[class]; there {
		return c
	}
	places, there := s.rare[class]
	if !there {
		return s.empty
	}
	if c, there := s.made.Load(class); there {
		return c.(*Column)
	}
	c, _ := s.made.LoadOrStore(class, s.columnOf(class, places))
	return c.(*Column)
}

// All returns all hosts.
func (s *States) All() hostset.Set { return s.all }

// Up returns the hosts whose nova-compute has reported lately.
func (s *States) Up() hostset.Set { return s.up }

// Enabled returns the hosts that nobody has disabled.
func (s *States) Enabled() hostset.Set { return s.enabled }

// Zeros returns a slice of zeros, one per host.
func (s *States) Zeros() []int64 { return s.empty.Used }

// IOOps returns the IOOps of the hosts, by index.
func (s *States) IOOps() []int64 { return s.ioOps }

// Trait returns the hosts with a trait, Zone those in an availability zone, Members those in
// the aggregate with the UUID, and Split those whose amount of a resource class is unknown.
// They are empty, and never nil, for an unknown name.
func (s *States) Trait(name string) hostset.Set   { return s.setOf(s.traits, name) }
func (s *States) Zone(name string) hostset.Set    { return s.setOf(s.zones, name) }
func (s *States) Members(uuid string) hostset.Set { return s.setOf(s.members, uuid) }
func (s *States) Split(class string) hostset.Set  { return s.setOf(s.split, class) }

// setOf returns the set with that name; an empty one if there is none.
func (s *States) setOf(sets map[string]hostset.Set, name string) hostset.Set {
	if set, there := sets[name]; there {
		return set
	}
	return s.none
}

// Aggregates returns all aggregates, in the order of NewStates.
func (s *States) Aggregates() []Aggregate { return s.aggregates }

// AggregatesOf iterates over the aggregates of host i, in the same order.
func (s *States) AggregatesOf(i int) iter.Seq[*Aggregate] {
	return func(yield func(*Aggregate) bool) {
		for _, place := range s.memberships[i] {
			if !yield(&s.aggregates[place]) {
				return
			}
		}
	}
}

// WithTaken returns the states after the takes: their resources are used, their victims have
// left with everything they held, their instances are on the hosts, and each of these is a
// heavy operation there (nova/scheduler/host_manager.py consume_from_request). A resource class
// that the host does not have is ignored, as is a victim that is not there. An instance that is
// already on the host is not added again.
func (s *States) WithTaken(takes []Take) *States {
	if len(takes) == 0 {
		return s
	}
	next := *s
	next.rows, next.columns, next.made = slices.Clone(s.rows), maps.Clone(s.columns), new(sync.Map)
	next.ioOps = slices.Clone(s.ioOps)
	if next.received = s.received.Clone(); next.received == nil {
		next.received = hostset.New(s.Len())
	}
	for _, t := range takes {
		h := next.Host(t.Host)
		if h == s.Host(t.Host) {
			h = h.copied()
			next.rows.put(s.rows, t.Host, h)
		}
		if !t.Counted {
			for _, victim := range t.Victims {
				next.removeInstance(s, t.Host, victim)
			}
			for class, amount := range t.Resources {
				next.addUsed(s, t.Host, class, amount, 0)
			}
		}
		h.addInstance(t)
		next.received.Add(t.Host)
		next.ioOps[t.Host] = h.IOOps
	}
	return &next
}

// removeInstance removes an instance from host i, whose row differs from that of before
// already.
func (s *States) removeInstance(before *States, i int, instance string) {
	h := s.Host(i)
	at := slices.IndexFunc(h.Instances, func(o Instance) bool { return o.ID == instance })
	if at < 0 {
		return
	}
	gone := h.Instances[at]
	yields := gone.Evictable()
	for class, amount := range gone.Holds {
		if yields {
			s.addUsed(before, i, class, -amount, -amount)
		} else {
			s.addUsed(before, i, class, -amount, 0)
		}
	}
	h.Instances = slices.Delete(slices.Clone(h.Instances), at, at+1)
}

// addUsed adds to the used and the evictable amount of a class on host i, whose row differs
// from that of before already.
func (s *States) addUsed(before *States, i int, class string, used, yielded int64) {
	stock, there := s.Host(i).Stocks[class]
	if !there {
		return
	}
	stock.Used += used
	s.Host(i).Stocks[class] = stock
	c, was := s.columns[class], before.columns[class]
	if c == nil {
		return // a rare class
	}
	if c == was {
		own := *c
		own.Used = slices.Clone(c.Used)
		c, s.columns[class] = &own, &own
	}
	c.Used[i] = stock.Used
	if yielded == 0 {
		return // Evictable may still be the slice of before
	}
	if &c.Evictable[0] == &was.Evictable[0] {
		c.Evictable = slices.Clone(c.Evictable)
	}
	c.Evictable[i] += yielded
}

// copied returns a copy that can change.
func (h *HostState) copied() *HostState {
	next := *h
	next.Stocks, next.Instances = maps.Clone(h.Stocks), slices.Clip(h.Instances)
	return &next
}

// evictable returns how much of a class the instances hold that can be evicted.
func (h *HostState) evictable(class string) (amount int64) {
	for i := range h.Instances {
		if one := &h.Instances[i]; one.Evictable() {
			amount += one.Holds[class]
		}
	}
	return amount
}

// addInstance adds an instance that is being built, unless it is there.
func (h *HostState) addInstance(t Take) {
	if slices.ContainsFunc(h.Instances, func(i Instance) bool { return i.ID == t.Instance }) {
		return
	}
	one := Instance{ID: t.Instance, Host: h.Name, Status: "BUILD"}
	if t.Group != "" {
		one.Hints = map[string][]string{groupHint: {t.Group}}
	}
	h.Instances = append(h.Instances, one)
	h.IOOps++
}
