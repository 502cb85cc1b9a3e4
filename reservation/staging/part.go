// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"slices"
	"strings"
)

// change is what one more demand changes in the transfers of a state.
type change struct {
	fresh []Transfer // those of the demand; all have its start as deadline
	gone  []int      // indices of transfers that the fresh ones make needless
}

// parts divides a state by image and node. The transfers of an image to a node follow from the
// demands for this image there, the transfers under way, and the pool; other nodes and images do
// not matter. So a demand changes only the transfers of its image to its nodes.
type parts struct {
	facts   *Facts
	demands []Demand // by start
	before  State
	owners  func() owners
}

// part is the demands for one image and its transfers, by node, as indices.
type part struct {
	image     string
	demands   map[string][]int
	transfers map[string][]int
}

// of returns the demands and transfers of one image, by node.
func (p *parts) of(image string) *part {
	one := &part{image: image, demands: map[string][]int{}, transfers: map[string][]int{}}
	for i := range p.demands {
		if d := &p.demands[i]; d.Image.ID == image {
			for _, node := range d.Nodes {
				one.demands[node] = append(one.demands[node], i)
			}
		}
	}
	for i := range p.before.Transfers {
		if t := &p.before.Transfers[i]; t.Image.ID == image {
			one.transfers[t.Node] = append(one.transfers[t.Node], i)
		}
	}
	return one
}

// change returns what a demand changes. ok is false if that follows only from the whole state.
func (a *Admission) change(d Demand) (c change, ok bool) {
	if a.line == nil || a.parts == nil {
		return c, false
	}
	if a.part == nil || a.part.image != d.Image.ID {
		a.part = a.parts.of(d.Image.ID)
	}
	return a.parts.change(a.part, d)
}

// change returns what one more demand changes among the transfers of its image; ok is false if this does
// not follow from its nodes alone.
func (p *parts) change(one *part, d Demand) (c change, ok bool) {
	on := make(map[string]bool, len(d.Nodes))
	var indices, transfers []int
	f := Facts{Site: p.facts.Site, Pools: make(map[string][]Entry, len(d.Nodes))}
	for _, node := range d.Nodes {
		if on[node] {
			continue
		}
		on[node] = true
		indices = append(indices, one.demands[node]...)
		transfers = append(transfers, one.transfers[node]...)
		if entries := p.facts.Pools[node]; len(entries) > 0 {
			f.Pools[node] = entries
		}
	}
	slices.Sort(indices)
	slices.Sort(transfers)
	for _, i := range transfers {
		if i < len(p.facts.Running) {
			f.Running = append(f.Running, p.facts.Running[i])
		}
	}
	demands := p.restricted(slices.Compact(indices), on)
	if !p.owners().clear(d, demands) {
		return c, false
	}
	with := slices.Insert(slices.Clone(demands), follows(demands, d.Span.Start), d)
	return p.compare(transfers, f.state(p.before.At, with, demands), d)
}

// restricted returns demands with only those of their nodes that are on.
func (p *parts) restricted(indices []int, on map[string]bool) []Demand {
	demands := make([]Demand, 0, len(indices)+1)
	for _, i := range indices {
		d := p.demands[i]
		d.Nodes = slices.DeleteFunc(slices.Clone(d.Nodes), func(node string) bool { return !on[node] })
		demands = append(demands, d)
	}
	return demands
}

// compare returns the change from the transfers with these indices to those of after. ok is false if
// others than those of d are added or moved.
func (p *parts) compare(transfers []int, after State, d Demand) (c change, ok bool) {
	had := make(map[string]int, len(transfers))
	for _, i := range transfers {
		had[p.before.Transfers[i].ID] = i
	}
	for i := range after.Transfers {
		t := &after.Transfers[i]
		before, kept := had[t.ID]
		switch {
		case kept && p.before.Transfers[before].Deadline == t.Deadline:
			delete(had, t.ID)
		case !kept && t.Deadline == d.Span.Start && strings.HasPrefix(t.ID, d.ID+"/"):
			c.fresh = append(c.fresh, *t)
		default:
			return c, false
		}
	}
	for _, i := range had {
		c.gone = append(c.gone, i)
	}
	return c, true
}

// owners are the ids in the names of transfers. A name that is taken gets a suffix, so a transfer may
// depend on others with the same id.
type owners struct {
	ids map[string]owner
	// unclear is true if ids or nodes have slashes, so that different ones may result in the same
	// name, or if transfers under way have the same name.
	unclear bool
}

type owner struct {
	image   string
	demands bool // it is the id of a demand, not only of a transfer under way
	several bool // it has several images
}

// ownersOf returns which demand each id of a transfer belongs to.
func ownersOf(f *Facts, demands []Demand) owners {
	o := owners{ids: make(map[string]owner, len(demands))}
	running := map[string]bool{}
	for i := range demands {
		d := &demands[i]
		o.note(d.ID, d.Image.ID, true)
		o.unclear = o.unclear || slashed(d)
	}
	for i := range f.Running {
		t := &f.Running[i]
		id, _, _ := strings.Cut(t.ID, "/")
		o.note(id, t.Image.ID, false)
		o.unclear = o.unclear || running[t.ID]
		running[t.ID] = true
	}
	return o
}

func (o *owners) note(id, image string, demands bool) {
	old, known := o.ids[id]
	o.ids[id] = owner{image, demands || old.demands, known && (old.several || old.image != image)}
}

func slashed(d *Demand) bool {
	return strings.Contains(d.ID, "/") || slices.ContainsFunc(d.Nodes, func(node string) bool { return strings.Contains(node, "/") })
}

// clear reports whether the names of the transfers of d, and of demands for the same image, depend
// only on each other.
func (o owners) clear(d Demand, demands []Demand) bool {
	own, known := o.ids[d.ID]
	if o.unclear || slashed(&d) || known && (own.demands || own.several || own.image != d.Image.ID) {
		return false
	}
	return !slices.ContainsFunc(demands, func(d Demand) bool { return o.ids[d.ID].several })
}
