// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"maps"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// View is everything that a decision depends on. Its calendar does not change during the
// decision.
type View struct {
	Now      span.Instant
	Calendar *calendar.Calendar
	// Held is what the project holds, without the reservation that is changed.
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
	// Pools are the floating IPs of the networks that the decision is about, by network.
	Pools map[string]address.Pool
	// Hosts are the hosts of the calendar.
	Hosts *HostIndex
	// Pruned is the time before which the calendar may have lost claims.
	Pruned span.Instant

	effort *effort // of a decision with many searches
}

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
	if err := v.Calendar.Restore(v.Hosts.Claims(r, r.Claims)...); err != nil {
		panic("booking: a plan does not fit into the calendar on which it was made: " + err.Error())
	}
	v.Held = v.Held.With(r)
	v.Pools = v.withAddresses(r)
	return v
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
	Claims        []reservation.Claim
	Addresses     []address.Claim
	DelayedByBoot bool
	// Matched is the number of hosts of the pool that pass the filter.
	Matched int
	// Images returns the state of images on the hosts, with those of the request; nil if the
	// request has no image or decisions ignore images.
	Images func() staging.State
}
