// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// state is the content of memory at one moment. It is immutable: decisions and answers use it
// while memory changes.
type state struct {
	revision uint64
	hosts    *hostIndex
	calendar *calendar.Calendar // a snapshot
	live     liveIndex
	marks    uint64 // see Fingerprint
	// becoming are the changed reservations of attempts that are being stored, if they have an
	// image and different claims.
	becoming []*reservation.Reservation
	pruned   span.Instant
	kept     *keptDemands
}

// state returns the newest state. It does not wait for locks if nothing has changed since the
// previous call.
func (d *Service) state() *state {
	if s := d.newest.Load(); s != nil && s.revision == d.mu.revision.Load() {
		return s
	}
	d.mu.lockToLook()
	defer d.mu.Unlock()
	return d.stateNow()
}

// stateNow returns the newest state; mu is held for reading.
func (d *Service) stateNow() *state {
	now := d.mu.revision.Load()
	if s := d.newest.Load(); s != nil && s.revision == now {
		return s
	}
	s := &state{
		revision: now, hosts: d.hosts, calendar: d.calendar.Snapshot(), live: d.liveIndex.snapshot(), marks: d.marks, pruned: d.pruned, kept: &d.kept,
	}
	for a := range d.attempts {
		if a.next.Image != "" && a.before.ID != "" && a.next.Status.Live() && !holdsSame(&a.before, &a.next) {
			s.becoming = append(s.becoming, &a.next)
		}
	}
	d.newest.Store(s)
	return s
}

// view returns what a decision for project depends on.
func (d *Service) view(by Caller, project string) View {
	d.mu.lockToLook()
	defer d.mu.Unlock()
	return d.viewNow(by, project)
}

// viewNow returns what a decision for project depends on; mu is held for reading.
func (d *Service) viewNow(by Caller, project string) View {
	s := d.stateNow()
	v := View{
		Now: d.options.Now(), Calendar: s.calendar, Held: d.held[project],
		Limits: d.options.Limits, Defaults: d.options.Defaults, LeadTime: d.options.LeadTime, Migrates: d.options.Migrates,
		SeesHidden: by.SeesHidden, hosts: s.hosts, state: s, held: d.held[project], configured: d.configured,
	}
	if d.looksAtImages() {
		v.facts = d.options.Images()
	}
	v.Images = v.images("")
	return v
}

// outdated reports whether a decision on v must be made again whatever it claims. The caller holds
// mu.
func (d *Service) outdated(v *View, project string) bool {
	limited := v.Limits.Hosts > 0 || v.Limits.HostSeconds > 0
	return v.hosts != d.hosts || v.configured != d.configured || limited && v.held != d.held[project]
}

// without returns the view as if r, which it contains, did not exist.
func (v View) without(r *reservation.Reservation) View {
	v.Calendar = v.Calendar.Fork()
	for _, c := range v.hosts.claims(r, r.Claims) {
		// The calendar may have pruned past claims.
		if err := v.Calendar.Remove(c); err != nil && c.Span.End > v.state.pruned {
			panic(fmt.Sprintf("booking: the calendar lost a claim: %v", err))
		}
	}
	v.Held = v.Held.without(r)
	v.Images = v.images(r.ID)
	v.Pools = v.withoutAddresses(r)
	return v
}

// with returns the view with r, for which it has room.
func (v View) with(r *reservation.Reservation) View {
	v.Calendar = v.Calendar.Fork()
	if err := v.Calendar.Restore(v.hosts.claims(r, r.Claims)...); err != nil {
		panic("booking: a plan does not fit into the calendar on which it was made: " + err.Error())
	}
	v.Held = v.Held.with(r)
	v.Pools = v.withAddresses(r)
	return v
}

// images returns the Images for a decision, without the reservation that has the id but.
func (v *View) images(but string) *Images {
	if v.facts == nil {
		return nil
	}
	facts, s := v.facts, v.state
	return &Images{Facts: facts, Accepted: func(now span.Instant) *staging.Accepted { return s.accepted(facts, now, but) }}
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
	r, capacities := (&hostIndex{}).with(orderHosts(s))
	v := View{
		Now: now, Calendar: calendar.New(capacities, now), hosts: r,
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
