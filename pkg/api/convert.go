// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strings"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// request converts a body to the domain's types. The default quantity is one.
func (s *server) request(body v1.ReservationRequest) (reservation.Request, error) {
	if body.Flavor != "" {
		return reservation.Request{}, fault.Field("flavor", "this cloud has no flavors; use resources instead")
	}
	r := reservation.Request{Terms: reservation.Terms{
		Name: body.Name, Kind: reservation.Kind(body.Kind), Quantity: 1,
		HostProperties: string(body.HostProperties), Policy: calendar.Policy(body.Policy),
		Affinity: calendar.Affinity(body.Affinity), Image: body.Image,
		OnEnd: reservation.OnEnd(body.OnEnd), BeforeEnd: s.BeforeEnd, Maintenance: body.Maintenance,
	}, Hosts: body.Hosts, ShortWarning: body.BeforeEnd == nil}
	if body.Quantity != nil && body.Maintenance {
		return r, fault.Field("quantity", "is not allowed for maintenance, which has the hosts that it names")
	}
	if body.Quantity != nil {
		r.Quantity = *body.Quantity
	}
	if body.Resources != nil {
		r.Resources = resource.Vector(*body.Resources)
	}
	if body.BeforeEnd != nil {
		r.BeforeEnd = int64(*body.BeforeEnd)
	}
	if body.Duration != nil {
		if r.Duration = int64(*body.Duration); r.Duration <= 0 {
			return r, fault.Field("duration", "must be at least one second")
		}
	}
	if start := instant(body.StartTime); start != nil {
		r.Start = *start
	}
	if end := instant(body.EndTime); end != nil {
		r.End = *end
	}
	return r, checkName(body.Name)
}

// checkName returns an Invalid fault for a blank name. Reservations made before names were required
// may have an empty one.
func checkName(name string) error {
	if strings.TrimSpace(name) == "" {
		return fault.Field("name", "is required: the name of the reservation")
	}
	return nil
}

// instant returns a time, rounded down to the second; nil if it is absent. The zero instant means
// "absent" in the domain, so instant returns the next second for it: both are long past.
func instant(t *time.Time) *span.Instant {
	if t == nil {
		return nil
	}
	at := span.At(*t)
	if at == 0 {
		at = 1
	}
	return &at
}

// presented returns the reservation with those fields that by may see.
func presented(r reservation.Reservation, by *asker) v1.Reservation {
	out := v1.Of(&r)
	if !seesHosts(&r, by) {
		out.Hosts = []string{}
	}
	return out
}

// seesHosts reports whether by, who may see the reservation, may also see its hosts.
func seesHosts(r *reservation.Reservation, by *asker) bool {
	return begun(r) || by.may("reservations:get_hosts", r.ProjectID)
}

// begun reports whether the hosts of the reservation are final.
func begun(r *reservation.Reservation) bool {
	return r.Status != reservation.Pending && r.Status != reservation.Starting
}

// offer returns a plan for project in the JSON types. The hosts may still change until it is booked, unless they
// are final, as those of an active reservation.
func offer(p planning.Plan, project string, final bool, by *asker) v1.Offer {
	out := v1.Offer{
		Start: p.Span.Start.Time(), End: p.Span.End.Time(), Quantity: p.Terms.Quantity, Kind: string(p.Terms.Kind),
		Policy: string(p.Terms.Policy), Hosts: []string{}, Matched: p.Matched, DelayedByBoot: p.DelayedByBoot,
	}
	if final || by.may("reservations:get_hosts", project) {
		planned := reservation.Reservation{Claims: p.Claims}
		out.Hosts = sorted(planned.HostNames())
	}
	return out
}

// withServers adds the servers that must leave before maintenance, for callers that may see them.
func (s *server) withServers(out v1.Offer, p planning.Plan, by *asker) v1.Offer {
	if !p.Terms.Maintenance || !by.may("hosts:get_instances", by.ProjectID) {
		return out
	}
	for _, i := range s.Booking.Occupants(p) {
		out.Servers = append(out.Servers, v1.HostServer{Host: i.Host, ID: i.ID, Name: i.Name, ProjectID: i.ProjectID, Status: i.Status})
	}
	return out
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
