// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// This file has how a reservation lies apart from others: its hosts have none of the values that a property has on theirs. Both
// sides keep that whenever they get hosts: the one that asks for it, and those that it names.

// mostApart is the largest number of reservations that a request lies apart from.
const mostApart = 8

// Neighbor is a reservation that is not over, and another one lies apart from it.
type Neighbor struct {
	Of *reservation.Reservation
	// By is the property of the rule of the neighbor, if that names the other one; "" if the other one names the neighbor.
	By     string
	Claims []reservation.Claim
}

// apartness is where the hosts of a request may be because of its neighbors; nil means everywhere.
type apartness struct {
	hosts hostset.Set
	own   hostset.Set // as the request itself asks
}

// of returns the view of a decision about r.
func (v View) of(r *reservation.Reservation) View {
	v.subject = r.ID
	return v
}

// apart returns where hosts lie apart from the neighbors of a request with a rule.
func (v View) apart(rule reservation.Together) (a apartness) {
	if v.Apart == nil || v.subject == "" && rule.ApartFrom == "" {
		return a
	}
	asked, byOthers := []reservation.Claim(nil), make(map[string][]reservation.Claim)
	for _, n := range v.Apart(v.subject, rule.Apart()) {
		if n.By == "" {
			asked = append(asked, n.Claims...)
		} else {
			byOthers[n.By] = append(byOthers[n.By], n.Claims...)
		}
	}
	if rule.ApartFrom != "" {
		a.own = v.away(rule.By, asked, true)
		a.hosts = a.own
	}
	for by, claims := range byOthers {
		away := v.away(by, claims, false)
		if a.hosts != nil {
			away.Keep(a.hosts)
		}
		a.hosts = away
	}
	return a
}

// away returns the hosts on which a property has none of the values that it has on the hosts of claims; valued is true if those
// without the property are left out.
func (v View) away(by string, claims []reservation.Claim, valued bool) hostset.Set {
	var near []int
	for i := range claims {
		if number, known := v.Hosts.numbers[claims[i].Host]; known && claims[i].Span.End > v.Now && v.Hosts.Host(number) != nil {
			near = append(near, number)
		}
	}
	l := v.Hosts.level(by, true) // somebody who sees it has named it
	if l.distinct > mostValues {
		return v.awayRead(by, near, valued)
	}
	away := l.all.Clone()
	if valued {
		away = l.valued.Clone()
	}
	for _, number := range near {
		if value := l.of[number]; value != noValue {
			away.Subtract(l.on[value])
		}
	}
	return away
}

// awayRead is away for a property with more values than a level has, such as the name.
func (v View) awayRead(by string, near []int, valued bool) hostset.Set {
	away, read := hostset.New(len(v.Hosts.names)), v.Hosts.snapshot.Property(by, true)
	taken := make(map[any]bool, len(near))
	for _, number := range near {
		taken[read(v.Hosts.Host(number)).Any()] = true
	}
	taken[inventory.Value{}.Any()] = valued
	for number := range v.Hosts.names {
		if h := v.Hosts.Host(number); h != nil && !taken[read(h).Any()] {
			away.Add(number)
		}
	}
	return away
}

// checkApart checks the reservations that a rule names. It fails with an Invalid fault that names the field.
func checkApart(rule reservation.Together, v View) error {
	const field = "together.apart_from"
	named := rule.Apart()
	if len(named) > mostApart {
		return fault.Field(field, "names %d reservations; at most %d are allowed", len(named), mostApart)
	}
	var live []Neighbor
	if v.Apart != nil {
		live = v.Apart("", named)
	}
	for _, id := range named {
		if !slices.ContainsFunc(live, func(n Neighbor) bool { return n.Of.ID == id && n.Of.BelongsTo(v.Project) }) {
			return fault.Field(field, "the project has no reservation %s that is pending or has begun", quoted(id))
		}
	}
	return nil
}

// apartFromOthers reports whether the hosts of claims lie apart as the request asks. Those that are gone do.
func (s ruled) apartFromOthers(claims []reservation.Claim) bool {
	return s.apart.own == nil || !slices.ContainsFunc(claims, func(c reservation.Claim) bool {
		number, known := s.view.Hosts.numbers[c.Host]
		return known && c.Span.End > s.view.Now && s.view.Hosts.place[number] != gone && !s.apart.own.Has(number)
	})
}

// kept reports whether the hosts of claims lie as the request asks.
func (s ruled) kept(claims []reservation.Claim) bool {
	return !s.broken(claims) && s.apartFromOthers(claims)
}

// noRoomApart returns a sentence about the room in the wanted span of a refusal.
func (s refusing) noRoomApart(r *reservation.Refusal) string {
	return fmt.Sprintf("there is room for %d of %s on other values of %s than those of reservation %s from %v to %v",
		r.Free, fault.Counted(s.request.Quantity, s.request.what()), s.request.Together.By, strings.Join(s.request.Together.Apart(), " or "), r.Wanted.Start, r.Wanted.End)
}

// Lies reports whether the hosts of r lie as it asks now, given those reservations that it names and that are not over. It compares
// the values of the hosts concerned, however many others there are.
func (h *HostIndex) Lies(now span.Instant, r *reservation.Reservation, named []Neighbor) bool {
	rule := r.Together
	if rule == (reservation.Together{}) {
		return true
	}
	own, unknown := h.valuesOf(rule.By, r.Claims, now)
	if breaks(rule, own, valueless, unknown) {
		return false
	}
	if rule.ApartFrom == "" {
		return true
	}
	near := map[any]bool{valueless: true} // hosts without the property do not lie apart
	for _, n := range named {
		values, _ := h.valuesOf(rule.By, n.Claims, now)
		maps.Copy(near, values)
	}
	for value := range own {
		if near[value] {
			return false
		}
	}
	return true
}

// valueless is the value of a host without a property.
var valueless = inventory.Value{}.Any()

// valuesOf returns the values of a property on the hosts of claims that are not over, and of how many claims the host is gone.
func (h *HostIndex) valuesOf(by string, claims []reservation.Claim, now span.Instant) (values map[any]bool, gone int) {
	read := h.snapshot.Property(by, true)
	values = make(map[any]bool)
	for i := range claims {
		if claims[i].Span.End <= now {
			continue
		}
		number, known := h.numbers[claims[i].Host]
		switch {
		case !known || h.Host(number) == nil:
			gone++
		case read == nil:
			values[valueless] = true
		default:
			values[read(h.Host(number)).Any()] = true
		}
	}
	return values, gone
}
