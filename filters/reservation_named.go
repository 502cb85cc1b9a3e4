// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Leases is Promises that can also return the reservations of a lease.
type Leases interface {
	// InLease returns the ids of the project's live reservations in the lease, sorted.
	InLease(lease, project string) []string
}

// mostHinted is the largest number of reservations that a hint may name.
const mostHinted = 16

// Resolve returns the reservation that the request names by its hint or by its flavor's mark
// (inventory.ReservationMark); nil means none. Of several hinted reservations, it is the first that
// the request may use. If the request may use none of them, why is the reason, as a sentence for the
// tenant. Resolve reveals nothing about other projects' reservations and does not find any that is
// over.
func (f Reservation) Resolve(r *placing.Request, now span.Instant) (named *reservation.Reservation, why string) {
	ids, why := names(r)
	if len(ids) == 0 {
		return nil, why
	}
	for _, id := range ids {
		named, whyNot := f.usable(id, r, now)
		if named != nil {
			return named, ""
		}
		why = cmp.Or(why, whyNot)
	}
	if len(ids) > 1 {
		why += fmt.Sprintf("; nor may the request use another that the hint %s names", placing.ReservationHint)
	}
	return nil, why
}

// usable returns the reservation with the id if the request may use it, else the reason why not.
func (f Reservation) usable(id string, r *placing.Request, now span.Instant) (named *reservation.Reservation, why string) {
	found, ok := f.Promises.Reservation(id)
	switch {
	case !ok || !found.BelongsTo(r.ProjectID):
		return nil, f.unknown(id, r.ProjectID)
	case found.Status == reservation.Waiting:
		return nil, fmt.Sprintf("reservation %s waits for room until %v; it has no hosts yet", id, found.WaitsUntil())
	case found.Status == reservation.Pending || found.Status == reservation.Starting:
		return nil, fmt.Sprintf("reservation %s has not started: it is %s; it runs from %v to %v", id, found.Status, found.Span.Start, found.Span.End)
	case found.Status != reservation.Active:
		return nil, fmt.Sprintf("reservation %s is %s; it ran from %v to %v", id, found.Status, found.Span.Start, found.Span.End)
	case !found.Span.Contains(now):
		return nil, fmt.Sprintf("reservation %s runs from %v to %v, and it is %v", id, found.Span.Start, found.Span.End, now)
	case found.Kind == reservation.Addresses:
		return nil, fmt.Sprintf("reservation %s is one of floating IPs, which no server can use as a host", id)
	case found.Kind == reservation.Instances:
		if why := f.exceeds(&found, r); why != "" {
			return nil, why
		}
	}
	return &found, ""
}

// unknown returns the reason why the project cannot use a reservation that it does not have. The id
// may be that of a lease.
func (f Reservation) unknown(id, project string) string {
	if p, tells := f.Promises.(Leases); tells {
		if members := p.InLease(id, project); len(members) > 0 {
			return fmt.Sprintf("lease %s is not a reservation; name one of its reservations: %s", id, strings.Join(members, ", "))
		}
	}
	return fmt.Sprintf("the project has no reservation %s, or it is over", id)
}

// names returns the ids of the reservations that the request names, if any. why is the reason why a
// name is invalid; "" if none is.
func names(r *placing.Request) (ids []string, why string) {
	ids, hinted := r.HintedReservations()
	mark, marked := r.ExtraSpecs[inventory.ReservationMark]
	switch {
	case !hinted && !marked:
		return nil, ""
	case hinted && (len(ids) == 0 || len(ids) > mostHinted):
		return nil, fmt.Sprintf("the hint %s must name one reservation, or up to %d", placing.ReservationHint, mostHinted)
	case hinted && marked && !slices.Contains(ids, mark):
		return nil, fmt.Sprintf("the hint %s names another reservation than the flavor belongs to", placing.ReservationHint)
	case marked:
		ids = []string{mark}
	}
	if slices.ContainsFunc(ids, func(id string) bool { return !plain(id) }) {
		return nil, fmt.Sprintf("the hint %s, or the flavor's %s, must be the id of a reservation", placing.ReservationHint, inventory.ReservationMark)
	}
	return ids, ""
}

// longestID is longer than any id.
const longestID = 64

// plain reports whether id has the form of an id, so that it may be repeated in a message to the
// caller.
func plain(id string) bool {
	return id != "" && len(id) <= longestID && strings.IndexFunc(id, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_'
	}) < 0
}

// exceeds returns why the request does not fit the reservation of kind instance: it asks for more
// instances, or its flavor needs more resources than one reserved instance has. "" means that it
// fits.
func (f Reservation) exceeds(of *reservation.Reservation, r *placing.Request) string {
	if len(r.Instances) > of.Quantity {
		return fmt.Sprintf("reservation %s has %d instances, %d are requested", of.ID, of.Quantity, len(r.Instances))
	}
	room := map[string]int64{
		"VCPU": of.Resources.VCPUs, "MEMORY_MB": of.Resources.MemoryMB, "DISK_GB": of.Resources.DiskGB,
	}
	maps.Copy(room, of.Resources.Custom)
	if f.Class != nil {
		room[f.Class(of.ID)] = 1
	}
	takes := maps.Clone(r.Resources)
	if pinned := takes["PCPU"]; pinned > 0 {
		delete(takes, "PCPU")
		takes["VCPU"] += pinned // a reserved vCPU may be either
	}
	for _, class := range slices.Sorted(maps.Keys(takes)) {
		if takes[class] > room[class] {
			return fmt.Sprintf("reservation %s has %d %s for each instance, the flavor needs %d", of.ID, room[class], class, takes[class])
		}
	}
	return ""
}
