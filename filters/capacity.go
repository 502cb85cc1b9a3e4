// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Capacity refuses the hosts on which Placement would refuse the claim: for each resource
// class, the used and the requested amount together must not exceed the limit, and the
// requested amount must fit min_unit, max_unit and step_size (placement/objects/allocation.py
// _check_capacity_exceeded). It refuses a host whose amount of a class is unknown
// (inventory.States.Split).
type Capacity struct {
	// Evicts makes the filter count the room of preemptible instances as free for a request that is
	// not preemptible: it uses the normal state of the hosts (paper 001, Algorithm 2), for any
	// other request the full state.
	Evicts bool
}

// beyondAll is more than any host has of any resource.
const beyondAll = 1 << 53

func (Capacity) Name() string { return "CapacityFilter" }

// For implements Filter. A test has one demand for each resource class of the request.
func (f Capacity) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	var demands capacity
	yields := f.Evicts && !r.Preemptible
	for _, class := range slices.Sorted(maps.Keys(r.Resources)) {
		switch amount := r.Resources[class]; {
		case amount < 0:
			return refuseAll(fmt.Sprintf("the request needs %d %s, which is negative", amount, class))
		case amount > beyondAll:
			return refuseAll(fmt.Sprintf("the request needs %d %s, more than any host has", amount, class))
		case amount > 0:
			d := demand{class: class, amount: amount, of: s.Column(class), split: s.Split(class)}
			if d.yield = s.Zeros(); yields {
				d.yield = d.of.Evictable
			}
			demands = append(demands, d)
		}
	}
	if r.Rebuild || demands == nil {
		return nil
	}
	return demands
}

// Unsupported names a requested resource class that some host has in a form Almanac cannot
// count.
func (Capacity) Unsupported(s *inventory.States, r *placing.Request) string {
	for _, class := range slices.Sorted(maps.Keys(r.Resources)) {
		for i := range s.Split(class).All() {
			if !r.Rebuild && r.Resources[class] > 0 {
				return fmt.Sprintf("%s has %s in more than one provider, or shares it", s.Host(i).Name, class)
			}
		}
	}
	return ""
}

type capacity []demand

// demand is the requested amount of a resource class.
type demand struct {
	class  string
	amount int64
	of     *inventory.Column
	yield  []int64 // amounts that evictions can free, by index of the host
	split  hostset.Set
}

func (c capacity) Keep(hosts hostset.Set) {
	for _, d := range c {
		for w, word := range hosts {
			if word != 0 {
				hosts[w] = word & d.fits(w)
			}
		}
	}
}

// fits returns which of the hosts 64w … 64w+63 have room for the demand, one bit for each. A sum
// that does not fit is negative, so that the loop needs no branches.
func (d demand) fits(w int) (fits uint64) {
	from, to := w<<6, min(w<<6+64, len(d.of.Limit))
	limit, used, yield := d.of.Limit[from:to], d.of.Used[from:to], d.yield[from:to]
	least, most, step := d.of.Min[from:to], d.of.Max[from:to], d.of.Step[from:to]
	used, yield = used[:len(limit)], yield[:len(limit)]
	if d.of.AllAllow(d.amount) {
		for b := range limit {
			fits |= (uint64(limit[b]-used[b]+yield[b]-d.amount)>>63 ^ 1) << (b & 63)
		}
		return fits
	}
	least, most, step = least[:len(limit)], most[:len(limit)], step[:len(limit)]
	steps := int64(1)
	for b := range limit {
		lacks := uint64((limit[b]-used[b]+yield[b]-d.amount)|(d.amount-least[b])|(most[b]-d.amount)) >> 63
		fits |= (lacks ^ 1) << (b & 63)
		steps |= step[b]
	}
	if steps == 1 {
		return fits
	}
	for b := range step {
		if d.amount%max(step[b], 1) != 0 {
			fits &^= 1 << (b & 63)
		}
	}
	return fits
}

// fitsOn reports whether host i has room for the demand.
func (d demand) fitsOn(i int) bool {
	c := d.of
	return d.amount <= c.Limit[i]-c.Used[i]+d.yield[i] && c.Min[i] <= d.amount && d.amount <= c.Max[i] && d.amount%max(c.Step[i], 1) == 0
}

// Why implements Test. It explains the first demand that the host does not meet.
func (c capacity) Why(i int) string {
	for _, d := range c {
		if d.fitsOn(i) {
			continue
		}
		free := d.of.Limit[i] - d.of.Used[i] + d.yield[i]
		switch {
		case d.split.Has(i):
			return fmt.Sprintf("the host has %s in more than one provider, or shares it, which Almanac cannot count", d.class)
		case d.of.Limit[i] == 0:
			return fmt.Sprintf("the host has no %s", d.class)
		case d.amount > free:
			return fmt.Sprintf("%d %s %s, %d are requested", max(0, free), d.class, d.words(i), d.amount)
		case d.amount < d.of.Min[i] || d.amount > d.of.Max[i]:
			return fmt.Sprintf("an instance may have %d to %d %s of the host, %d are requested", d.of.Min[i], d.of.Max[i], d.class, d.amount)
		default:
			return fmt.Sprintf("the host allocates %s in multiples of %d, %d are requested", d.class, d.of.Step[i], d.amount)
		}
	}
	return ""
}

// words returns the end of a sentence about the free amount on host i.
func (d demand) words(i int) string {
	if d.yield[i] > 0 {
		return "are free or can be freed"
	}
	return "are free"
}
