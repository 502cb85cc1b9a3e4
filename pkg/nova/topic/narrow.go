// SPDX-License-Identifier: Apache-2.0

package topic

import (
	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// narrow returns the changes that restrict a request to the hosts that it may use. They restrict
// Placement too: it returns a thousand candidates at most, and Nova removes ignored hosts only
// after that. The changes also list the other hosts as ignored, because the fence in the cloud
// follows the promises a moment later.
//
// For a preemptible request the second change allows hosts inside the fence that are promised only
// for later. refusal is the reason if the request may use no host.
func narrow(promises filters.Reservation, q *question, s *inventory.States, now span.Instant) (list []object.Narrowing, refusal string) {
	if q.request.Rebuild {
		return []object.Narrowing{{}}, ""
	}
	allowed, refusal := allow(promises, q, s, now)
	if refusal != "" {
		return nil, refusal
	}
	if q.held != nil {
		return []object.Narrowing{inside(q.held.ID, fence.Requires(q.held), allowed, s)}, ""
	}
	list = outside(q.request.Preemptible, allowed, s)
	for i := range list {
		list[i].Host = q.pinned
	}
	return list, ""
}

// allow returns the hosts that the reservations leave to the request. It does not count the
// instances of a reservation of kind instance, because the states are older than Placement, which
// counts them.
func allow(promises filters.Reservation, q *question, s *inventory.States, now span.Instant) (allowed hostset.Set, refusal string) {
	allowed = s.All().Clone()
	if q.held != nil && q.held.Kind == reservation.Instances {
		judge := promises.Judge(q.request, now)
		for i := range s.All().All() {
			if word := judge(s.Host(i).Name); !word.Admitted() {
				allowed.Remove(i)
				refusal = word.Reason
			}
		}
		if !allowed.Empty() {
			refusal = ""
		}
		return allowed, refusal
	}
	test := promises.For(s, &q.request, now)
	if test == nil {
		return allowed, ""
	}
	test.Keep(allowed)
	if allowed.Empty() && s.Len() > 0 {
		if q.held == nil {
			return nil, "there are not enough hosts available" // the holders of the reservations stay private
		}
		return nil, test.Why(0)
	}
	return allowed, ""
}

// inside restricts a request to the hosts of its reservation, and lists all others as ignored too:
// the aggregate and the traits have an effect only if nova-scheduler queries Placement.
func inside(id string, requires map[string]string, allowed hostset.Set, s *inventory.States) object.Narrowing {
	n := object.Narrowing{ExtraSpecs: requires, IgnoreHosts: names(s, without(s.All(), allowed))}
	// If the states do not contain the aggregate yet, the traits suffice.
	if own, there := aggregate(s, fence.AggregatePrefix+id); there {
		n.Aggregates = [][]string{{own.UUID}}
	}
	return n
}

// outside keeps a request off the hosts of reservations.
func outside(preemptible bool, allowed hostset.Set, s *inventory.States) []object.Narrowing {
	fenced, there := aggregate(s, fence.Aggregate)
	if !there {
		return []object.Narrowing{{IgnoreHosts: names(s, without(s.All(), allowed))}}
	}
	members := s.Members(fenced.UUID)
	first := object.Narrowing{ForbiddenAggregates: []string{fenced.UUID}, IgnoreHosts: names(s, without(s.All(), allowed))}
	later := without(members, without(members, allowed))
	if !preemptible || later.Count() == 0 {
		return []object.Narrowing{first}
	}
	return []object.Narrowing{first, {
		ExtraSpecs:  map[string]string{"trait:" + fence.Reserved: "required"},
		IgnoreHosts: names(s, without(s.All(), later)),
	}}
}

// aggregate returns the aggregate with that name; false if there is none.
func aggregate(s *inventory.States, name string) (inventory.Aggregate, bool) {
	for _, a := range s.Aggregates() {
		if a.Name == name {
			return a, true
		}
	}
	return inventory.Aggregate{}, false
}

// without returns the hosts of a that are not in b.
func without(a, b hostset.Set) hostset.Set {
	left := a.Clone()
	left.Subtract(b)
	return left
}

// names returns the names of hosts, by number.
func names(s *inventory.States, hosts hostset.Set) (list []string) {
	for i := range hosts.All() {
		list = append(list, s.Host(i).Name)
	}
	return list
}
