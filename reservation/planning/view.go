// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"maps"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/staging"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// View is everything that a decision depends on. Its calendar does not change during the
// decision.
type View struct {
	Now      span.Instant
	Calendar *calendar.Calendar
	// Project is the one that the decision is for. Held is what it holds, without the reservation that is changed.
	Project  string
	Held     Held
	Limits   Limits
	Defaults Defaults
	// LeadTime is how many seconds before a start its hosts should be empty.
	LeadTime int64
	// Migrates is true if the instances of others are migrated off reserved hosts; otherwise they
	// stay.
	Migrates bool
	// SeesHidden is true if the caller may use hidden properties.
	SeesHidden bool
	// Images is nil if decisions ignore images.
	Images *Images
	// ImagesWithout returns Images without a reservation; nil if decisions ignore images.
	ImagesWithout func(id string) *Images
	// Tariff is what a host costs by time; nil if that is not known.
	Tariff *tariff.Reading
	// Pools are the floating IPs of the networks that the decision is about, by network.
	Pools map[string]address.Pool
	// Hosts are the hosts of the calendar.
	Hosts *HostIndex
	// Movable returns reservations that overlap a span and may move for a request, some of them if there are many; nil
	// if none may be moved. HeldBy returns what the project of one of them holds.
	Movable func(w span.Span) []*reservation.Reservation
	HeldBy  func(project string) Held
	// Apart returns the neighbors of a reservation: those of from that are not over, and those that name it by its id; nil if
	// there are none.
	Apart func(id string, from []string) []Neighbor
	// Pruned is the time before which the calendar may have lost claims.
	Pruned span.Instant
	// Holds is for how many seconds the starts and quantities that answers name can be requested, if nobody else books. With an
	// image it may be less: each second without a transfer may be one too many.
	Holds int64

	// later is how many seconds after Now a request may come that the decision is about, from 0 to Holds.
	later  int64
	effort *effort // of a decision with many searches
	// subject is the id of the reservation that the decision is about; "" if it is a new one.
	subject string
	// terse is true if a refusal states only its constraint and why.
	terse bool
}

// tersely returns the view of a decision whose refusals name nothing that would be accepted instead.
func (v View) tersely() View {
	v.terse = true
	return v
}

// lasting returns the view for what an answer names: what fits on it still fits Holds seconds later, or at the instant until
// if that is sooner.
func (v View) lasting(until span.Instant) View {
	v.later = max(v.later, min(v.Holds, int64(until-v.Now)))
	return v
}

// exact returns the view of a decision that uses what a refusal names for a search of its own: that need not last.
func (v View) exact() View {
	v.Holds = v.later
	return v
}

// awakeAt returns from when a host can run instances if a request needs it.
func (v View) awakeAt(h *inventory.Host) span.Instant {
	at := h.AwakeAt(v.Now)
	if at > v.Now && at != span.Forever {
		at = at.Add(v.later)
	}
	return at
}

// future returns the first start that is in the future whenever the request comes.
func (v View) future() span.Instant { return v.Now.Add(v.later + 1) }

// Without returns the view as if r, which it contains, did not exist.
func (v View) Without(r *reservation.Reservation) View {
	v.Calendar = v.Calendar.Fork()
	for _, c := range v.Hosts.Claims(r, r.Claims) {
		// The calendar may have pruned past claims.
		if err := v.Calendar.Remove(c); err != nil && c.Span.End > v.Pruned {
			panic(fmt.Sprintf("booking: the calendar lost a claim: %v", err))
		}
	}
	v.Held = v.Held.Without(r)
	if v.ImagesWithout != nil {
		v.Images = v.ImagesWithout(r.ID)
	}
	v.Pools = v.withoutAddresses(r)
	return v
}

// with returns the view with r, for which it has room.
func (v View) with(r *reservation.Reservation) View {
	v.Calendar = v.Calendar.Fork()
	v.add(r)
	return v
}

// Exchanged returns the view, which contains the reservations of before, as if they were those of after.
func (v View) Exchanged(before, after []*reservation.Reservation) View {
	for _, r := range before {
		v = v.Without(r)
	}
	for _, r := range after {
		if r.Status.Promised() {
			v = v.with(r)
		}
	}
	return v
}

// add adds r, for which there is room, to a view whose calendar no other view has.
func (v *View) add(r *reservation.Reservation) {
	if err := v.Calendar.Restore(v.Hosts.Claims(r, r.Claims)...); err != nil {
		panic("booking: a plan does not fit into the calendar on which it was made: " + err.Error())
	}
	v.Held = v.Held.With(r)
	v.Pools = v.withAddresses(r)
}

// Hold is a part of a host that is already promised.
type Hold struct {
	Host      string
	Span      span.Span
	Resources resource.Vector
}

// NewView returns a view for one decision without a service: with the hosts of s, the holds, no
// limits, and neutral defaults. It returns a *HoldError if a hold does not fit beside those
// before it.
func NewView(now span.Instant, s *inventory.Snapshot, held []Hold) (View, error) {
	r, capacities := (&HostIndex{}).With(OrderHosts(s))
	v := View{
		Now: now, Calendar: calendar.New(capacities, now), Hosts: r,
		Defaults: Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
	}
	for i, h := range held {
		number, known := r.numbers[h.Host]
		if !known {
			return View{}, &HoldError{Index: i, Err: fmt.Errorf("there is no host %q", h.Host)}
		}
		if err := v.Calendar.Add(calendar.Claim{Host: number, Span: h.Span, Slice: h.Resources}); err != nil {
			return View{}, &HoldError{Index: i, Err: err}
		}
	}
	return v, nil
}

// HoldError is the error for a hold that cannot be added.
type HoldError struct {
	Index int
	Err   error
}

func (e *HoldError) Error() string { return fmt.Sprintf("add hold %d: %v", e.Index, e.Err) }

func (e *HoldError) Unwrap() error { return e.Err }

// Images are the facts on which decisions about reservations with an image depend. All reservations
// use the same channels for transfers, so one may delay another on other hosts.
type Images struct {
	Facts *staging.Facts
	// Accepted returns, as they are at an instant, the demands of the live reservations in the order
	// of the function Demands or by start, without those of the reservation that is changed.
	Accepted func(now span.Instant) *staging.Accepted
}

// withAddresses returns the pools of the view with the claims of a reservation.
func (v *View) withAddresses(r *reservation.Reservation) map[string]address.Pool {
	return v.replacing(r, func(p address.Pool) address.Pool { return p.With(r.ID, r.Span, r.Addresses) })
}

// withoutAddresses returns the pools of the view without the claims of a reservation.
func (v *View) withoutAddresses(r *reservation.Reservation) map[string]address.Pool {
	return v.replacing(r, func(p address.Pool) address.Pool { return p.Without(r.ID) })
}

func (v *View) replacing(r *reservation.Reservation, change func(address.Pool) address.Pool) map[string]address.Pool {
	pool, there := v.Pools[NetworkOf(r)]
	if !there {
		return v.Pools
	}
	pools := maps.Clone(v.Pools)
	pools[pool.Network] = change(pool)
	return pools
}

// NetworkOf returns the network of the floating IPs of a reservation; empty if it has none.
func NetworkOf(r *reservation.Reservation) string {
	if len(r.Addresses) == 0 {
		return ""
	}
	return r.Addresses[0].Network
}

// Plan is the result of a decision, which a booking of the request would store.
type Plan struct {
	Terms         reservation.Terms
	Span          span.Span
	Window        span.Span    // see reservation.Reservation
	HeldUntil     span.Instant // as that of a reservation
	WaitsUntil    span.Instant // as that of a reservation
	Hold          int64        // as that of a reservation
	Confirmed     bool         // whether a reservation that is held becomes one that is not
	Claims        []reservation.Claim
	Addresses     []address.Claim
	DelayedByBoot bool
	// Fallback is why the start is that of first fit although the request has another policy.
	Fallback Fallback
	// Matched is the number of hosts of the pool that pass the filter.
	Matched int
	// Images returns the state of images on the hosts, with those of the request; nil if the
	// request has no image or decisions ignore images.
	Images func() staging.State
}

// hostsOf returns the hosts that r has, apart from those that the cloud has no more.
func (v View) hostsOf(r *reservation.Reservation) hostset.Set {
	hosts := hostset.New(v.Calendar.Hosts())
	for _, name := range r.HostNames() {
		if number, known := v.Hosts.numbers[name]; known {
			hosts.Add(number)
		}
	}
	return hosts
}

// all returns all hosts.
func (v View) all() hostset.Set {
	all := hostset.New(v.Calendar.Hosts())
	for number := range v.Hosts.names {
		all.Add(number)
	}
	return all
}
