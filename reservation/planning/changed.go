// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// Changed returns r after the plan, with its part in its lease.
func Changed(r reservation.Reservation, plan Plan, part reservation.Membership, now span.Instant) reservation.Reservation {
	before := r
	r.Terms, r.Membership, r.Span, r.Claims, r.Addresses = plan.Terms, part, plan.Span, plan.Claims, plan.Addresses
	if plan.Confirmed {
		r.Events = confirmed(r.Events)
	}
	r.Released += heldUntil(before.Claims, now) - heldUntil(r.Claims, now)
	r.PromisedEnd = promisedEnd(&before, r.Span)
	if r.Span != before.Span || r.Notice == 0 { // its owner fixes the time
		r.Notice, r.Window = 0, span.Span{}
	}
	r.Updated, r.Version = now, r.Version+1
	r.Events = append(slices.Clone(r.Events), Happened(reservation.ChangedEvent, now, Difference(before, r)))
	r.Events = recent(lifecycle.Reschedule(&before, &r, now))
	return r
}

// ChangedAlone returns r after a plan for it alone. A quantity outside the bounds moves them, and another filter takes the
// place of the queries of its lease. r stays if nothing changes.
func ChangedAlone(r reservation.Reservation, plan Plan, now span.Instant) reservation.Reservation {
	part, quantity := r.Membership, plan.Terms.Quantity
	if part.Max != 0 {
		part.Min, part.Max = min(part.Min, quantity), max(part.Max, quantity)
	}
	if plan.Terms.HostProperties != r.HostProperties && part.LeaseID != "" {
		part.HypervisorProperties, part.ResourceProperties = "", plan.Terms.HostProperties
	}
	if next := Changed(r, plan, part, now); Difference(r, next) != "" {
		return next
	}
	return r
}

// changeable lists the fields that an owner has chosen, by their names in the API. A change
// that affects none of them is not stored.
var changeable = []struct {
	name string
	text bool // a text of any length
	of   func(r *reservation.Reservation) string
}{
	{"name", true, func(r *reservation.Reservation) string { return r.Name }},
	{"kind", false, func(r *reservation.Reservation) string { return string(r.Kind) }},
	{"quantity", false, func(r *reservation.Reservation) string { return strconv.Itoa(r.Quantity) }},
	{"host_properties", true, func(r *reservation.Reservation) string { return r.HostProperties }},
	{"policy", false, func(r *reservation.Reservation) string { return string(r.Policy) }},
	{"resources", true, func(r *reservation.Reservation) string { return fmt.Sprintf("%+v", r.Resources) }},
	{"affinity", false, func(r *reservation.Reservation) string { return string(r.Affinity) }},
	{"together", true, func(r *reservation.Reservation) string { return r.Together.String() }},
	{"image", true, func(r *reservation.Reservation) string { return r.Image }},
	{"on_end", false, func(r *reservation.Reservation) string { return string(r.OnEnd) }},
	{"before_end", false, func(r *reservation.Reservation) string { return strconv.FormatInt(r.BeforeEnd, 10) + "s" }},
	{"notice", false, func(r *reservation.Reservation) string { return strconv.FormatInt(r.Notice, 10) + "s" }},
	{"held_until", false, func(r *reservation.Reservation) string { return heldText(r.HeldUntil()) }},
	{"maintenance", false, func(r *reservation.Reservation) string { return strconv.FormatBool(r.Maintenance) }},
	{"min", false, func(r *reservation.Reservation) string { return strconv.Itoa(r.Membership.Min) }},
	{"max", false, func(r *reservation.Reservation) string { return strconv.Itoa(r.Membership.Max) }},
	{"hypervisor_properties", true, func(r *reservation.Reservation) string { return r.Membership.HypervisorProperties }},
	{"resource_properties", true, func(r *reservation.Reservation) string { return r.Membership.ResourceProperties }},
	{"required_floatingips", true, func(r *reservation.Reservation) string { return strings.Join(required(r.Addresses), " ") }},
	{"start", false, func(r *reservation.Reservation) string { return r.Span.Start.String() }},
	{"end", false, func(r *reservation.Reservation) string { return r.Span.End.String() }},
}

// Difference returns in words what a change changed; empty if it changed nothing.
func Difference(before, after reservation.Reservation) string {
	var parts []string
	for _, field := range changeable {
		from, to := field.of(&before), field.of(&after)
		if from == to {
			continue
		}
		if field.text {
			from, to = quoted(from), quoted(to)
		}
		parts = append(parts, fmt.Sprintf("%s from %s to %s", field.name, from, to))
	}
	return strings.Join(parts, ", ")
}

// mostQuoted is the maximum number of characters of a name in a sentence.
const mostQuoted = 60

// quoted returns a name in quotation marks, cut if it is long. A character that cannot be
// printed becomes up to ten bytes.
func quoted(name string) string {
	if letters := []rune(name); len(letters) > mostQuoted {
		name = string(letters[:mostQuoted]) + "…"
	}
	return strconv.Quote(name)
}

func Canceled(r reservation.Reservation, now span.Instant) (reservation.Reservation, error) {
	status, err := lifecycle.Next(r.Status, lifecycle.Cancel)
	if err != nil {
		return r, err
	}
	var why string
	if r.Status == reservation.Waiting {
		why = waitCanceled
	}
	return Closed(r, status, Happened(reservation.CanceledEvent, now, why), now), nil
}

// Closed returns r, ended early: it keeps claims that it has used, later ones are removed.
func Closed(r reservation.Reservation, status reservation.Status, last reservation.Event, now span.Instant) reservation.Reservation {
	r.Status, r.Updated, r.Version = status, now, r.Version+1
	r.Events = slices.DeleteFunc(slices.Clone(r.Events), func(e reservation.Event) bool { return e.State != reservation.EventDone })
	r.Events = append(r.Events, last)
	r.Claims = usedBy(r.Claims, now)
	return r
}

// usedBy returns the parts of claims before an instant.
func usedBy(claims []reservation.Claim, t span.Instant) (used []reservation.Claim) {
	for _, c := range claims {
		if c.Span.End = min(c.Span.End, t); !c.Span.Empty() {
			used = append(used, c)
		}
	}
	return used
}
