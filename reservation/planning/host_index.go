// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"maps"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// HostIndex maps the names of hosts to their numbers in the calendar. A host keeps its number
// forever, also while it does not exist. A HostIndex is immutable.
type HostIndex struct {
	numbers   map[string]int
	names     []string // by number
	snapshot  *inventory.Snapshot
	place     []int // by number: index in the snapshot, or gone
	hostOrder *HostOrder
	// efficient contains the numbers of the existing hosts, sorted by FLOPS per watt, then name.
	// preferred contains them with those first that have few scarce features: criteria 4 to 6 of
	// docs/concepts.md "Which hosts", for requests that name none of these features.
	efficient, preferred []int
	occupants            []occupants // by number
	levels               *sync.Map   // by the name of a property that hosts have: its *level, from when one was needed
}

const gone = -1

// With returns the index for the hosts of a newer snapshot, and the capacities of the hosts
// that are new in it, in the order of their numbers.
func (r *HostIndex) With(l *HostOrder) (*HostIndex, []resource.Vector) {
	s := l.snapshot
	next := &HostIndex{numbers: make(map[string]int, s.Len()), names: slices.Clone(r.names), snapshot: s, hostOrder: l, levels: new(sync.Map)}
	for number, name := range r.names {
		next.numbers[name] = number
	}
	var added []resource.Vector
	for _, h := range s.Hosts() {
		if _, known := next.numbers[h.Name]; !known {
			next.numbers[h.Name] = len(next.names)
			next.names = append(next.names, h.Name)
			added = append(added, h.Capacity)
		}
	}
	next.place = slices.Repeat([]int{gone}, len(next.names))
	next.occupants = make([]occupants, len(next.names))
	byPlace := make([]int, s.Len())
	for i, h := range s.Hosts() {
		byPlace[i] = next.numbers[h.Name]
		next.place[byPlace[i]], next.occupants[byPlace[i]] = i, occupantsOf(h)
	}
	next.efficient, next.preferred = make([]int, s.Len()), make([]int, s.Len())
	for i := range byPlace {
		next.efficient[i], next.preferred[i] = byPlace[l.efficient[i]], byPlace[l.preferred[i]]
	}
	return next, added
}

// WithState returns the index for a newer snapshot whose hosts differ from those of the index in their state only; false if
// they may differ in more.
func (r *HostIndex) WithState(s *inventory.Snapshot) (*HostIndex, bool) {
	if r.snapshot == nil || !s.SameFacts(r.snapshot) {
		return nil, false
	}
	next, order := *r, *r.hostOrder
	order.snapshot, next.snapshot, next.hostOrder = s, s, &order
	next.occupants = make([]occupants, len(r.names))
	for number, at := range r.place {
		if at != gone {
			next.occupants[number] = occupantsOf(s.Host(at))
		}
	}
	return &next, true
}

// Admit returns the index with numbers for hosts that have claims but do not exist, and the
// names that are new in it, in the order of their numbers.
func (r *HostIndex) Admit(names []string) (next *HostIndex, added []string) {
	var once map[string]bool
	for _, name := range names {
		if _, known := r.numbers[name]; known || once[name] {
			continue
		}
		if once == nil {
			once = make(map[string]bool)
		}
		once[name], added = true, append(added, name)
	}
	if len(added) == 0 {
		return r, nil
	}
	admitted := *r
	admitted.levels = new(sync.Map)
	admitted.numbers = maps.Clone(r.numbers)
	if admitted.numbers == nil {
		admitted.numbers = make(map[string]int, len(added))
	}
	admitted.names, admitted.place, admitted.occupants = slices.Clone(r.names), slices.Clone(r.place), slices.Clone(r.occupants)
	for _, name := range added {
		admitted.numbers[name] = len(admitted.names)
		admitted.names = append(admitted.names, name)
		admitted.place = append(admitted.place, gone)
		admitted.occupants = append(admitted.occupants, occupants{})
	}
	return &admitted, added
}

// Number returns the number of a host; known is false if it never had one.
func (r *HostIndex) Number(name string) (number int, known bool) {
	number, known = r.numbers[name]
	return number, known
}

// Names returns the names of all hosts that have a number, by number. The caller must not change them.
func (r *HostIndex) Names() []string { return r.names }

// Snapshot returns the inventory of the index.
func (r *HostIndex) Snapshot() *inventory.Snapshot { return r.snapshot }

// present returns the names of the hosts that exist.
func (r *HostIndex) present() []string {
	names := make([]string, 0, len(r.names))
	for number, name := range r.names {
		if r.place[number] != gone {
			names = append(names, name)
		}
	}
	return names
}

// Claims returns the claims of a reservation in the calendar's form.
func (r *HostIndex) Claims(of *reservation.Reservation, claims []reservation.Claim) []calendar.Claim {
	list := make([]calendar.Claim, len(claims))
	for i, c := range claims {
		list[i] = calendar.Claim{Host: r.numbers[c.Host], Span: c.Span}
		if of.Kind == reservation.Instances {
			list[i].Slice = of.Resources.Scale(int64(c.Slices))
		}
	}
	return list
}

// Host returns the host with that number, or nil if it is gone.
func (r *HostIndex) Host(number int) *inventory.Host {
	if r.place[number] == gone {
		return nil
	}
	return r.snapshot.Host(r.place[number])
}

// scarce returns the scarce features of a host that is not gone.
func (r *HostIndex) scarce(number int) []feature { return r.hostOrder.scarce[r.place[number]] }

// rank returns the position of the host by FLOPS per watt, then name.
func (r *HostIndex) rank(number int) int { return r.snapshot.EfficiencyRank(r.place[number]) }

// occupants states which kinds of instances are on a host.
type occupants struct {
	// bound is true if there are instances that were created in a reservation, other if there are
	// instances that are neither that nor preemptible. If the source only counts instances, they
	// count as other.
	bound, other bool
}

func occupantsOf(h *inventory.Host) occupants {
	c := occupants{other: h.Instances == nil && h.InstanceCount > 0}
	for i := range h.Instances {
		g := &h.Instances[i]
		bound := g.ReservationID() != ""
		c.bound = c.bound || bound
		c.other = c.other || !bound && !g.Preemptible
	}
	return c
}
