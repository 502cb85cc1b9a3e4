// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// member returns a reservation of the lease; false if the lease cannot be taken over.
func (p *planner) member(l Lease, from Reservation, status reservation.Status) (reservation.Reservation, bool) {
	r := reservation.Reservation{
		ID: from.ID, ProjectID: l.ProjectID, UserID: l.UserID, Status: status,
		Terms: reservation.Terms{Name: l.Name, Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
		Span:  span.Span{Start: l.Start, End: l.End}, Membership: reservation.Membership{LeaseID: l.ID},
		Created: l.Created, Updated: p.options.Now, Version: 1,
	}
	readable := func(err error) bool {
		if err != nil {
			p.find(Unreadable, l.ID, "delete the lease in Blazar", "lease %s: reservation %s: %v", l.Name, from.ID, err)
		}
		return err == nil
	}
	if from.Hosts != nil {
		if !readable(hostTerms(&r, *from.Hosts)) {
			return r, false
		}
		p.translate(l, &r, from.Hosts.HypervisorProperties, from.Hosts.ResourceProperties)
		if action := from.Hosts.BeforeEnd; action != "" && action != "default" && action != reservation.EndSnapshot {
			p.find(Extra, l.ID, "", "lease %s wants %s before its end, which Almanac does not do", l.Name, action)
		}
	} else if !p.instanceTerms(l, &r, from, readable) {
		return r, false
	}
	if status.Live() && !p.claim(l, &r) {
		return r, false
	}
	p.schedule(l, &r)
	return r, true
}

// hostTerms fills the terms of a reservation of hosts from Blazar's.
func hostTerms(r *reservation.Reservation, terms HostTerms) error {
	least, most, ranged := strings.Cut(terms.CountRange, "-")
	minimum, err := strconv.Atoi(least)
	maximum, err2 := strconv.Atoi(most)
	if !ranged || err != nil || err2 != nil || minimum < 1 || maximum < minimum {
		return fmt.Errorf("its range of hosts is %q", terms.CountRange)
	}
	r.Kind, r.Quantity = reservation.Hosts, maximum
	r.Membership.Min, r.Membership.Max = minimum, maximum
	r.Membership.HypervisorProperties, r.Membership.ResourceProperties = terms.HypervisorProperties, terms.ResourceProperties
	r.Membership.EndAction = terms.BeforeEnd
	return nil
}

// instanceTerms fills the terms of a reservation of instances from Blazar's; false if the lease cannot
// be taken over.
func (p *planner) instanceTerms(l Lease, r *reservation.Reservation, from Reservation, readable func(error) bool) bool {
	terms := *from.Instances
	if terms.Amount < 1 || terms.VCPUs < 1 || terms.MemoryMB < 1 || terms.DiskGB < 0 {
		return readable(fmt.Errorf("it has %d instances of %d vCPUs, %d MB and %d GB", terms.Amount, terms.VCPUs, terms.MemoryMB, terms.DiskGB))
	}
	r.Kind, r.Affinity, r.Quantity = reservation.Instances, affinity(terms.Affinity), terms.Amount
	r.Resources = resource.Vector{VCPUs: terms.VCPUs, MemoryMB: terms.MemoryMB, DiskGB: terms.DiskGB}
	r.Membership.Min, r.Membership.Max = terms.Amount, terms.Amount
	r.Membership.ResourceProperties = terms.ResourceProperties
	if from.Type == typeFlavor {
		return readable(flavorTerms(r, terms.ResourceProperties))
	}
	p.translate(l, r, terms.ResourceProperties)
	return true
}

// affinity returns Blazar's affinity: null is none, true the same host, false different ones.
func affinity(of *bool) calendar.Affinity {
	switch {
	case of == nil:
		return calendar.AffinityNone
	case *of:
		return calendar.AffinitySame
	}
	return calendar.AffinityDifferent
}

// flavorTerms adds what the source flavor of the reservation demands beside vCPUs, memory and disk:
// custom resources and traits.
func flavorTerms(r *reservation.Reservation, flavor string) error {
	specs, err := fence.ExtraSpecs(flavor)
	if err != nil {
		return fmt.Errorf("its flavor is not JSON: %w", err)
	}
	traits := []any{"and"}
	for _, key := range slices.Sorted(maps.Keys(specs)) {
		value := specs[key]
		kind, name, _ := strings.Cut(key, ":")
		switch amount, err := strconv.ParseInt(value, 10, 64); {
		case kind == "trait" && value == "required":
			traits = append(traits, []any{"in", name, "$traits"})
		case kind == "resources" && strings.HasPrefix(name, "CUSTOM_") && err == nil && amount > 0:
			if r.Resources.Custom == nil {
				r.Resources.Custom = make(map[string]int64)
			}
			r.Resources.Custom[name] = amount
		}
	}
	if len(traits) == 1 {
		return nil
	}
	filter, err := json.Marshal(traits)
	r.HostProperties = string(filter)
	return err
}

// translate sets the filter of the reservation. One that cannot be translated becomes one for its
// present hosts only, so that no other host replaces them.
func (p *planner) translate(l Lease, r *reservation.Reservation, written ...string) {
	filter, err := blazar.Filter(p.options.Hosts, written...)
	if err == nil {
		r.HostProperties = filter
		return
	}
	names := []any{"in", "$name"}
	for _, id := range p.allocations[r.ID] {
		if name := p.names[id]; name != "" && !slices.Contains(names, any(name)) {
			names = append(names, name)
		}
	}
	if r.Status.Live() && len(names) > 2 {
		only, _ := json.Marshal(names) // strings always have a JSON form
		r.HostProperties = string(only)
	}
	p.find(Filter, l.ID, "", "lease %s: the query of reservation %s cannot be translated (%v); it keeps its hosts, and no others can replace them", l.Name, r.ID, err)
}

// claim sets the claims of the reservation: exactly the hosts that Blazar has allocated.
func (p *planner) claim(l Lease, r *reservation.Reservation) bool {
	slots := make(map[string]int)
	for _, id := range p.allocations[r.ID] {
		name := p.names[id]
		if name == "" {
			p.find(UnknownHost, l.ID, "bring the host into Almanac's inventory", "lease %s has %s, which Almanac's inventory does not have", l.Name, p.describe(id))
			return false
		}
		slots[name]++
	}
	if len(slots) == 0 {
		p.find(Unreadable, l.ID, "delete the lease in Blazar", "lease %s: reservation %s is %s and has no hosts", l.Name, r.ID, r.Status)
		return false
	}
	for _, name := range slices.Sorted(maps.Keys(slots)) {
		if r.Kind == reservation.Instances {
			r.Claims = append(r.Claims, reservation.Claim{Host: name, Span: r.Span, Slices: slots[name]})
			continue
		}
		for range slots[name] { // more than one is a double booking
			r.Claims = append(r.Claims, reservation.Claim{Host: name, Span: r.Span})
		}
	}
	wanted := r.Membership.Min
	if r.Quantity = len(p.allocations[r.ID]); r.Quantity < wanted {
		p.find(Fewer, l.ID, "", "lease %s: reservation %s has %d of at least %d; Blazar has found no others", l.Name, r.ID, r.Quantity, wanted)
	}
	return true
}

func (p *planner) describe(id string) string {
	h, there := p.hosts[id]
	if !there {
		return "the unknown host " + id
	}
	return "host " + cmp.Or(h.Service, h.Hypervisor)
}

// schedule sets the events: those that Blazar has carried out are done, the others are due.
func (p *planner) schedule(l Lease, r *reservation.Reservation) {
	happened := func(t reservation.EventType, at span.Instant, detail string) {
		r.Events = append(r.Events, reservation.Event{Type: t, Time: at, State: reservation.EventDone, Done: at, Detail: detail})
	}
	happened(reservation.CreatedEvent, l.Created, "taken over from Blazar")
	warning, warns := event(p.events[l.ID], beforeEnd)
	if warns && warning.Time < l.End {
		r.BeforeEnd = int64(l.End - warning.Time)
	}
	if r.Status == reservation.Pending {
		r.Events = lifecycle.Schedule(r)
		return
	}
	happened(reservation.StartEvent, l.Start, "")
	if warns && warning.Status == eventDone {
		happened(reservation.BeforeEndEvent, warning.Time, "")
	}
	if r.Status == reservation.Ended {
		happened(reservation.EndEvent, l.End, "")
		return
	}
	r.Events = lifecycle.Schedule(r)
}
