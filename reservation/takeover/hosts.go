// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// NameHosts returns the name in Almanac's inventory of each of Blazar's hosts by its id; "" for one
// that the inventory does not have. A host is called like its nova-compute, or like its compute node
// where several compute nodes have one nova-compute.
func NameHosts(hosts []Host, known func(name string) bool) map[string]string {
	services := make(map[string]int)
	for _, h := range hosts {
		services[h.Service]++
	}
	names := make(map[string]string, len(hosts))
	for _, h := range hosts {
		names[h.ID] = ""
		switch {
		case h.Service != "" && services[h.Service] == 1 && known(h.Service):
			names[h.ID] = h.Service
		case h.Hypervisor != "" && known(h.Hypervisor):
			names[h.ID] = h.Hypervisor
		}
	}
	return names
}

// Enrolled is a host of Blazar's pool that enters that of Almanac.
type Enrolled struct {
	Name         string
	Number       int64 // identifies it in Blazar's API
	Capabilities map[string]string
	Created      span.Instant
}

// Pool is Blazar's pool of hosts, as it becomes Almanac's.
type Pool struct {
	Hosts    []Enrolled // sorted by number
	Hidden   []string   // the properties that only admins see, sorted
	Findings []Finding
}

// NewPool returns the pool. names are the hosts as NameHosts returns them, in the inventory hosts.
func NewPool(db Database, names map[string]string, hosts *inventory.Snapshot) Pool {
	var p planner
	texts, hidden, builtIn := make(map[string]map[string]string), make(map[string]bool), make(map[string]bool)
	for _, c := range db.Capabilities {
		if texts[c.HostID] == nil {
			texts[c.HostID] = make(map[string]string)
		}
		if inventory.IsBuiltIn(c.Property) {
			builtIn[c.Property] = true
			continue
		}
		texts[c.HostID][c.Property] = c.Value
		hidden[c.Property] = hidden[c.Property] || c.Private
	}
	for _, property := range slices.Sorted(maps.Keys(builtIn)) {
		p.find(HostLeft, "", "set a property of another name on the hosts", "the import omits the capability %s: a property that Almanac computes has its name", property)
	}
	sizes := make(map[difference][]string) // names of hosts
	var pool Pool
	for _, h := range db.Hosts {
		called := cmp.Or(h.Service, h.Hypervisor)
		number, err := strconv.ParseInt(h.ID, 10, 64)
		at, known := hosts.Index(names[h.ID])
		switch {
		case err != nil || number < 1:
			p.find(HostLeft, "", "", "host %s has the id %s in Blazar, which is no number; it is not added to the pool", called, h.ID)
			continue
		case !known:
			p.find(HostLeft, "", "bring it into Almanac's inventory, and run the import again", "Almanac's inventory does not have host %s; it is not added to the pool", called)
			continue
		}
		differ := difference{resource.Vector{VCPUs: h.VCPUs, MemoryMB: h.MemoryMB, DiskGB: h.DiskGB}.String(), plain(hosts.Host(at).Capacity).String()}
		if differ.blazar != differ.here {
			sizes[differ] = append(sizes[differ], names[h.ID])
		}
		pool.Hosts = append(pool.Hosts, Enrolled{names[h.ID], number, texts[h.ID], h.Created})
	}
	slices.SortFunc(pool.Hosts, func(a, b Enrolled) int { return cmp.Compare(a.Number, b.Number) })
	for _, d := range slices.SortedFunc(maps.Keys(sizes), func(a, b difference) int { return cmp.Compare(sizes[a][0], sizes[b][0]) }) {
		p.find(Size, "", "", "Blazar has %s for %d hosts, such as %s; Placement has %s, which counts", d.blazar, len(sizes[d]), sizes[d][0], d.here)
	}
	maps.DeleteFunc(hidden, func(_ string, is bool) bool { return !is })
	pool.Hidden = slices.Sorted(maps.Keys(hidden))
	pool.Findings = p.plan.Findings
	return pool
}

// Overrides returns the settings of those hosts of the pool that change: in the pool, and with their
// capabilities. Settings of operators in Almanac stay, and so do the capabilities that a host has
// already. stored are the settings of all hosts, by name.
func (p *Pool) Overrides(stored map[string]inventory.Override, now span.Instant) map[string]inventory.Override {
	changed := make(map[string]inventory.Override)
	for _, h := range p.Hosts {
		o := stored[h.Name]
		if o.Capabilities != nil {
			continue
		}
		o.Capabilities = &inventory.Capabilities{Texts: maps.Clone(h.Capabilities), Created: cmp.Or(h.Created, now)}
		maps.DeleteFunc(o.Capabilities.Texts, func(name, _ string) bool { _, set := o.Properties[name]; return set })
		if o.Reservable == nil {
			o.Reservable = new(true)
		}
		changed[h.Name] = o
	}
	return changed
}

// Numbers returns the numbers of hosts after those of the pool have theirs. Another host that has one
// of these numbers gets the next free one. stored are the present numbers, by name.
func (p *Pool) Numbers(stored map[string]int64) map[string]int64 {
	numbers, owner, last := maps.Clone(stored), make(map[int64]string), int64(0)
	if numbers == nil {
		numbers = make(map[string]int64)
	}
	for _, h := range p.Hosts {
		numbers[h.Name], owner[h.Number] = h.Number, h.Name
	}
	for _, n := range numbers {
		last = max(last, n)
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if of, taken := owner[numbers[name]]; taken && of != name {
			last++
			numbers[name] = last
		}
	}
	return numbers
}

// difference is a size of hosts in Blazar, and in Almanac's inventory.
type difference struct{ blazar, here string }

// plain returns a capacity without custom resources, which Blazar's table of hosts does not have.
func plain(v resource.Vector) resource.Vector {
	v.Custom = nil
	return v
}
