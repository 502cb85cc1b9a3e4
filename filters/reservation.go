// SPDX-License-Identifier: Apache-2.0

// Package filters decides which hosts may run a request. Each filter is a type, named as in Nova
// or the papers, that reads the columns of inventory.States; reasons are only formatted on demand.
// A filter that cannot decide refuses the host.
package filters

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Fence determines how long before a claim its host is closed to instances outside the reservation.
type Fence string

// The fences.
const (
	// FenceAlways is the filter of paper 004: a host with a future claim is closed, except to
	// preemptible instances.
	FenceAlways Fence = "always"
	// FenceLeadTime leaves the host open until the lead time before the start.
	FenceLeadTime Fence = "lead_time"
	// FencePool closes all hosts of the pool, with and without claims, as Blazar does. The Promises
	// must be Pooled.
	FencePool Fence = "pool"
)

// Fences lists all fences.
var Fences = []Fence{FenceAlways, FenceLeadTime, FencePool}

// Promises returns what is reserved.
type Promises interface {
	// Reservation returns a live reservation; false means that none has that id.
	Reservation(id string) (reservation.Reservation, bool)
	// Promised returns each host that is promised at t or later, once, with the first claim
	// that is not over at t: one that ends after t, or whose end is still being carried out.
	// Claims that touch or share the host are merged into one, without Slices.
	Promised(t span.Instant) []reservation.Claim
}

// Pooled is Promises that can also return the hosts.
type Pooled interface {
	// Snapshot returns the hosts. If it is also Revised, another snapshot is a new revision.
	Snapshot() *inventory.Snapshot
}

// Fillable is Promises that can also return which promised hosts may be filled.
type Fillable interface {
	// Fillable returns the hosts that active reservations have at t, unless another reservation
	// also has the host or starts on it within ahead seconds.
	Fillable(t span.Instant, ahead int64) map[string]bool
}

// Reservation is the filter of paper 004, section "Filtering". A request that names a reservation
// may use the hosts of that reservation while it is active, if the reservation belongs to the
// request's project. Any other request may use every host that is not claimed, except with
// FencePool. A claimed host is closed to it during the claim and, before the claim starts, from when
// the Fence determines.
// Preemptible instances may use the host until Eviction seconds before the start, and with Fill
// also during the claim.
//
// The hosts of a reservation of kind instance are closed in the same way, including their empty
// slices, as the aggregate of package fence does for nova-scheduler. Reservations that share a host
// cannot take each other's room: each has its own slices, and no instance is larger than a slice.
type Reservation struct {
	Promises Promises
	Fence    Fence
	LeadTime int64 // seconds; for FenceLeadTime
	// Eviction is how many seconds before a claim preemptible instances must leave its host.
	Eviction int64
	// Fill lets preemptible instances use hosts of active reservations too, if Promises is a
	// Fillable. They make room when the owner's instances come.
	Fill bool
	// Class returns the resource class of a reservation of kind instance, by its id; each of its
	// instances uses one unit. A nil function means that there are no resource classes.
	Class func(id string) string

	kept *keptPromises // nil reads Promises for each request; New sets it
}

func (Reservation) Name() string { return "ReservationFilter" }

// For prepares the filter for one request. If the request names a reservation of kind instance, r
// must contain all instances that are still without a host.
func (f Reservation) For(s *inventory.States, r *placing.Request, now span.Instant) Test {
	if r.Rebuild {
		return nil
	}
	named, why := f.Resolve(r, now)
	switch {
	case why != "":
		return based{refuseAll(why), nil}
	case named == nil:
		return f.outside(s, r, now)
	case named.Kind == reservation.Instances:
		return based{f.slices(s, r, named, now), nil}
	}
	inside := hostset.New(s.Len())
	for host := range held(named, now) {
		if i, known := s.Index(host); known {
			inside.Add(i)
		}
	}
	return based{subset{inside, func(int) string { return notOf(named) }}, nil}
}

// Judge returns a function that returns the filter's verdict on the host with a name. It is for
// callers that count free resources themselves.
func (f Reservation) Judge(r placing.Request, now span.Instant) func(host string) placing.Verdict {
	named, why := f.Resolve(&r, now)
	switch {
	case why != "":
		return func(string) placing.Verdict { return placing.Refuse(why) }
	case named != nil:
		inside := held(named, now)
		return func(host string) placing.Verdict {
			if _, is := inside[host]; is {
				return placing.Admit
			}
			return placing.Refuse(notOf(named))
		}
	}
	shut, filled := map[string]span.Span{}, f.fillable(&r, now)
	for _, c := range f.promisedAt(now) {
		if !filled[c.Host] && f.shuts(c.Span, r.Preemptible, now) {
			shut[c.Host] = c.Span
		}
	}
	return func(host string) placing.Verdict {
		if claim, is := shut[host]; is {
			return placing.Refuse(shutSince(claim, now))
		}
		return placing.Admit
	}
}

// held returns the hosts that the reservation has now, with the number of its slices on each.
func held(r *reservation.Reservation, now span.Instant) map[string]int {
	hosts := make(map[string]int, len(r.Claims))
	for _, c := range r.Claims {
		if c.Span.Contains(now) {
			hosts[c.Host] += c.Slices
		}
	}
	return hosts
}

func notOf(r *reservation.Reservation) string {
	return fmt.Sprintf("the host is not one of reservation %s", r.ID)
}

// outside judges a request that names no reservation.
func (f Reservation) outside(s *inventory.States, r *placing.Request, now span.Instant) Test {
	p, filled := f.promised(s, now), f.fillable(r, now)
	var open hostset.Set
	for n, i := range p.places {
		if i >= 0 && !filled[p.claims[n].Host] && f.shuts(p.claims[n].Span, r.Preemptible, now) {
			if open == nil {
				open = s.All().Clone()
			}
			open.Remove(i)
		}
	}
	if open == nil {
		return nil
	}
	test := based{subset{open, func(i int) string { return shutSince(p.claims[p.which[i]].Span, now) }}, nil}
	if filled == nil {
		test.basis = p
	}
	return test
}

// fillable returns the promised hosts that the request may use anyway.
func (f Reservation) fillable(r *placing.Request, now span.Instant) map[string]bool {
	if p, tells := f.Promises.(Fillable); tells && f.Fill && r.Preemptible {
		return p.Fillable(now, f.Eviction)
	}
	return nil
}

// shuts reports whether the claim closes its host to requests that name no reservation.
func (f Reservation) shuts(claim span.Span, preemptible bool, now span.Instant) bool {
	switch {
	case claim.Start <= now:
		return true
	case preemptible:
		return f.Eviction > 0 && now.Add(f.Eviction) >= claim.Start
	case f.Fence == FenceLeadTime:
		return now.Add(f.LeadTime) >= claim.Start
	default:
		return true
	}
}

// unclaimed stands for the claims of a host of the pool that has none.
var unclaimed = span.Span{Start: span.Forever, End: span.Forever}

// promisedAt returns the promised hosts as Promises does and, with FencePool, the other hosts of the
// pool with the claim unclaimed.
func (f Reservation) promisedAt(now span.Instant) []reservation.Claim {
	claims := f.Promises.Promised(now)
	pooled, ok := f.Promises.(Pooled)
	if f.Fence != FencePool || !ok {
		return claims
	}
	claimed := make(map[string]bool, len(claims))
	for _, c := range claims {
		claimed[c.Host] = true
	}
	for _, h := range pooled.Snapshot().Hosts() {
		if h.Reservable && !claimed[h.Name] {
			claims = append(claims, reservation.Claim{Host: h.Name, Span: unclaimed})
		}
	}
	return claims
}

// shutSince returns the reason why a claim closes its host to requests that name no reservation:
// when the claim ends or ended, or when it begins if it has not begun.
func shutSince(claim span.Span, now span.Instant) string {
	switch {
	case claim == unclaimed:
		return "the host is in the pool, and the request names no reservation"
	case claim.End <= now:
		return fmt.Sprintf("the host was reserved until %v, and the end is still being carried out", claim.End)
	case claim.Start <= now:
		return fmt.Sprintf("the host is reserved until %v", claim.End)
	default:
		return fmt.Sprintf("the host is reserved from %v", claim.Start)
	}
}

// Revised is Promises with a revision. Results that were read after a call of Revision are valid as
// long as Revision returns the same number, apart from what depends on the time.
type Revised interface {
	Promises
	Revision() uint64
}

// promisedHosts is the result of Promises.Promised, in the order of the hosts of states.
type promisedHosts struct {
	states   *inventory.States
	revision uint64
	good     span.Span // the instants at which it is valid
	claims   []reservation.Claim
	places   []int   // of each claim's host; -1 if the states have no such host
	which    []int32 // by host: the index of its claim
}

// keptPromises caches the promisedHosts of the last decision.
type keptPromises struct{ last atomic.Pointer[promisedHosts] }

// promised returns the promised hosts: the cached ones if they are still valid.
func (f Reservation) promised(s *inventory.States, now span.Instant) *promisedHosts {
	revised, ok := f.Promises.(Revised)
	if !ok || f.kept == nil {
		return gather(f.promisedAt(now), s, now)
	}
	revision := revised.Revision() // before the promises, so that a change in between is read again
	if last := f.kept.last.Load(); last != nil && s.SameHosts(last.states) && last.revision == revision && last.good.Contains(now) {
		return last
	}
	next := gather(f.promisedAt(now), s, now)
	next.revision = revision
	f.kept.last.Store(next)
	return next
}

// gather returns which hosts are promised at now, and until when this is true.
func gather(claims []reservation.Claim, s *inventory.States, now span.Instant) *promisedHosts {
	p := &promisedHosts{
		states: s, good: span.Span{Start: now, End: span.Forever}, claims: claims, places: make([]int, len(claims)), which: make([]int32, s.Len()),
	}
	for n, c := range claims {
		if c.Span.End > now {
			p.good.End = min(p.good.End, c.Span.End)
		}
		i, known := s.Index(c.Host)
		if !known {
			i = -1
		} else {
			p.which[i] = int32(n)
		}
		p.places[n] = i
	}
	return p
}

// slices judges a request that names a reservation of kind instance: each of its hosts may run as
// many instances as the reservation has slices there.
func (f Reservation) slices(s *inventory.States, r *placing.Request, of *reservation.Reservation, now span.Instant) Test {
	var class *inventory.Column
	if f.Class != nil {
		class = s.Column(f.Class(of.ID))
	}
	left, slots := 0, held(of, now)
	inside, open := hostset.New(s.Len()), hostset.New(s.Len())
	for host, most := range slots {
		i, known := s.Index(host)
		if !known {
			continue
		}
		inside.Add(i)
		others, own := count(s.InstancesOn(i), of.ID, r.Instances)
		if class != nil {
			others = max(others, int(class.Used[i])-own)
		}
		if free := most - others; free > 0 {
			open.Add(i)
			left += free
		}
	}
	if left < len(r.Instances) {
		return refuseAll(fmt.Sprintf("reservation %s has room for %d more instances, %d are requested", of.ID, left, len(r.Instances)))
	}
	return subset{open, func(i int) string {
		if !inside.Has(i) {
			return notOf(of)
		}
		return fmt.Sprintf("all slices of reservation %s on the host are in use", of.ID)
	}}
}

// count returns how many of the instances belong to the reservation but not to the request, and
// how many belong to the request.
func count(on []inventory.Instance, id string, request []string) (others, own int) {
	for n := range on {
		switch i := &on[n]; {
		case slices.Contains(request, i.ID):
			own++
		case i.ReservationID() == id:
			others++
		}
	}
	return others, own
}
