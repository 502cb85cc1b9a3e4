// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Failed reports whether a host has failed, and the reason, as a clause such as "its nova-compute
// is down".
type Failed func(host string) (reason string, yes bool)

// Heal returns a reservation with other hosts in the place of those that have failed, and the cause; the reservation as it
// is, without a cause, if nothing changes. If the hosts have not failed but are blocked, a reservation whose hosts cannot
// be replaced is not degraded.
func Heal(v View, r reservation.Reservation, failed Failed, blocked bool) (reservation.Reservation, reservation.Cause) {
	if r.Maintenance || r.Status == reservation.Ending || r.Span.End <= v.Now {
		return r, reservation.Cause{}
	}
	plan := planHealing(v, r, failed)
	plan.blocked = blocked
	return healed(r, plan, v.Now)
}

// healing is the plan that replaces the failed hosts of a reservation.
type healing struct {
	claims []reservation.Claim
	fresh  []string // the new hosts
	// replaced are failed hosts that lose claims to other hosts, missing those that keep claims for
	// lack of other hosts.
	replaced, missing []loss
	// blocked is true if the hosts have not failed, but are not free.
	blocked bool
	// broken is whether the hosts do not lie as the reservation asks.
	broken bool
	// rule is the required rule that a new host must keep; "" if there is none.
	rule string
	// hopeless is the reason why no other host can be searched for; usually "".
	hopeless string
}

// loss is a failed host and the reason.
type loss struct{ host, reason string }

// planHealing decides which hosts replace the failed ones of r. The claims of r are in the
// calendar; claims on hosts that work stay.
func planHealing(v View, r reservation.Reservation, failed Failed) healing {
	h := healing{broken: r.Together.Broken}
	if r.Together.Required() {
		h.rule = r.Together.String()
	}
	var lost []reservation.Claim
	for _, c := range r.Claims {
		if _, yes := failed(c.Host); yes && c.Span.End > v.Now {
			lost = append(lost, c)
		} else {
			h.claims = append(h.claims, c)
		}
	}
	if len(lost) == 0 {
		return h
	}
	fresh, broken, err := substitutes(v, r, lost, failed)
	if err != nil {
		h.hopeless, broken = fault.Of(err).Error(), h.broken
	}
	missing := without(lost, countClaimed(fresh))
	h.claims, h.broken = append(append(h.claims, missing...), fresh...), broken
	if len(missing) > 0 {
		if claims := moved(v, r, failed); claims != nil {
			h.claims, fresh, missing, h.broken = claims, claims, nil, false
		}
	}
	h.fresh = hostNames(fresh)
	for _, host := range hostNames(lost) {
		reason, _ := failed(host)
		still := countOn(missing, host)
		if still < countOn(lost, host) {
			h.replaced = append(h.replaced, loss{host, reason})
		}
		if still > 0 {
			h.missing = append(h.missing, loss{host, reason})
		}
	}
	return h
}

// substitutes returns claims for the hosts or instances of r in lost, or for as many as there is room for, from now or its start
// on, and whether its hosts do not lie as it asks then. Hosts are chosen as for a booking, except that hosts that must boot first
// are used if too few are awake. A required rule about how hosts lie to each other is not broken: a host is missing rather.
func substitutes(v View, r reservation.Reservation, lost []reservation.Claim, failed Failed) (fresh []reservation.Claim, broken bool, err error) {
	s, err := replacing(v, r, countClaimed(lost), failed)
	if err != nil {
		return nil, false, err
	}
	stay := slices.DeleteFunc(slices.Clone(r.Claims), func(c reservation.Claim) bool { return slices.Contains(lost, c) })
	s.ruled().holdClaims(stay)
	for _, q := range []calendar.Query{s.query, s.allAwake()} {
		s.query = q
		for _, part := range s.ruled().beside() {
			found := part.claims(s.query.Ready)
			for _, c := range found {
				s.query.Hosts.Remove(v.Hosts.numbers[c.Host])
			}
			fresh = append(fresh, found...)
			s.request.Quantity -= countClaimed(found)
			s.ruled().holdClaims(slices.Concat(stay, fresh))
		}
	}
	after := func() []reservation.Claim { return slices.Concat(stay, without(lost, countClaimed(fresh)), fresh) }
	for s.ruled().spreadRequired() && len(fresh) > 0 && s.ruled().broken(after()) && !s.ruled().broken(r.Claims) {
		fresh = fresh[:len(fresh)-1]
	}
	return fresh, !s.ruled().kept(after()), nil
}

// replacing returns the search for a quantity of hosts or instances of r, from now or its start on, without the failed hosts.
func replacing(v View, r reservation.Reservation, quantity int, failed Failed) (*search, error) {
	terms, window := r.Terms, span.Span{Start: max(r.Span.Start, v.Now), End: r.Span.End}
	terms.Quantity = quantity
	filter, err := inventory.ParseStoredFilter([]byte(terms.HostProperties), v.Hosts.snapshot, v.SeesHidden)
	if err != nil {
		return nil, err
	}
	s := searchBy(v.of(&r), request{Terms: terms, window: window, duration: window.Seconds()}, unshared(filter))
	for number, name := range v.Hosts.names {
		_, bad := failed(name)
		// Its own whole hosts are not free, so the search does not find them.
		if own := countOn(r.Claims, name) > 0; bad || own && r.Affinity == calendar.AffinityDifferent {
			s.query.Hosts.Remove(number)
		}
	}
	_ = s.imaging().stage() // a host without the image is better than none
	return s, nil
}

// moved returns claims for all of a pending reservation on the hosts of another value, if all must have one; nil if none has
// room.
func moved(v View, r reservation.Reservation, failed Failed) []reservation.Claim {
	if r.Status != reservation.Pending || r.Together.Rule != reservation.TogetherSame || r.Together.Preferred {
		return nil
	}
	s, err := replacing(v.Without(&r), r, r.Quantity, failed)
	if err != nil {
		return nil
	}
	for _, q := range []calendar.Query{s.query, s.allAwake()} {
		s.query = q
		if claims := s.claims(s.query.Ready); countClaimed(claims) == r.Quantity {
			return claims
		}
	}
	return nil
}

// healed returns r after h and the cause of the change. The cause has no action if nothing
// changes.
func healed(r reservation.Reservation, h healing, now span.Instant) (reservation.Reservation, reservation.Cause) {
	// Tenants learn host names only when a reservation is active, and never what an admin
	// notes about a host. The audit trail has both.
	forTenant, full := h.withoutReasons().words(r.Status == reservation.Active), h.words(true)
	if h.blocked {
		forTenant.degraded = r.Degraded
	}
	var cause reservation.Cause
	var details []string
	log := slices.Clone(r.Events)
	note := func(action reservation.Action, t reservation.EventType, detail, audit string) {
		if cause.Action == "" {
			cause.Action = action
		}
		log = append(log, Happened(t, now, detail))
		details = append(details, audit)
	}
	if len(h.fresh) > 0 {
		for i := range log { // a start that failed because of the host is retried at once
			log[i].Until = min(log[i].Until, now)
		}
		note(reservation.ActionHeal, reservation.HealedEvent, forTenant.healed, full.healed)
	}
	switch {
	case forTenant.degraded == r.Degraded:
	case forTenant.degraded != "":
		note(reservation.ActionDegrade, reservation.DegradedEvent, forTenant.degraded, full.degraded)
	case len(h.fresh) == 0:
		note(reservation.ActionRestore, reservation.RestoredEvent, backAgain, backAgain)
	}
	if cause.Action == "" {
		return r, cause
	}
	cause.Detail = strings.Join(details, "; ")
	r.Released += heldUntil(r.Claims, now) - heldUntil(h.claims, now)
	r.Claims, r.Degraded, r.Events = h.claims, forTenant.degraded, recent(log)
	r.Together.Broken = h.broken
	r.Updated, r.Version = now, r.Version+1
	return r, cause
}

const backAgain = "all its hosts work again"

// unusable is the only reason for a missing host that tenants read.
const unusable = "it accepts no instances now"

// withoutReasons returns h without the reasons.
func (h healing) withoutReasons() healing {
	for _, list := range []*[]loss{&h.replaced, &h.missing} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].reason = unusable
		}
	}
	return h
}

// words are the sentences that describe a healing.
type words struct{ healed, degraded string }

func (h healing) words(named bool) (w words) {
	if n := len(h.replaced); n > 0 && named {
		w.healed = fmt.Sprintf("%s; instead: %s", eachOf(h.replaced, "was replaced"), strings.Join(shortened(h.fresh), ", "))
	} else if n > 0 {
		w.healed = fmt.Sprintf("hosts replaced: %d", n)
		if h.blocked {
			w.healed += "; they were not free at the start"
		}
	}
	n := len(h.missing)
	switch {
	case n == 0:
		return w
	case named:
		w.degraded = eachOf(h.missing, "is missing")
	default:
		w.degraded = fmt.Sprintf("hosts missing: %d", n)
	}
	switch {
	case h.hopeless != "":
		w.degraded += "; Almanac cannot search for another host: " + h.hopeless
	case h.rule != "":
		w.degraded += "; no free hosts can take their places and keep the rule: " + h.rule
	case n == 1:
		w.degraded += "; no free host can take its place"
	default:
		w.degraded += "; there are not enough free hosts to take their places"
	}
	return w
}

// eachOf returns a clause about each host that names what happened to it, and why.
func eachOf(losses []loss, what string) string {
	parts := make([]string, len(losses))
	for i, l := range losses {
		parts[i] = fmt.Sprintf("host %s %s since %s", l.host, what, l.reason)
	}
	return strings.Join(shortened(parts), ", ")
}
