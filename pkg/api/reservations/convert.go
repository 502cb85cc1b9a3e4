// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// request converts a body to the domain's types. The default quantity is one.
func (s API) request(body v1.ReservationRequest) (reservation.Request, error) {
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
	if start := v1.InstantOf(body.StartTime); start != nil {
		r.Start = *start
	}
	if end := v1.InstantOf(body.EndTime); end != nil {
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

// presented returns the reservation with those fields that by may see.
func presented(r reservation.Reservation, by *serving.Asker) v1.Reservation {
	out := v1.Of(&r)
	if !by.SeesHosts(&r) {
		out.Hosts = []string{}
	}
	return out
}

// offer returns a plan for project in the JSON types. The hosts may still change until it is booked, unless they
// are final, as those of an active reservation.
func offer(p planning.Plan, project string, final bool, by *serving.Asker) v1.Offer {
	out := v1.Offer{
		Start: p.Span.Start.Time(), End: p.Span.End.Time(), Quantity: p.Terms.Quantity, Kind: string(p.Terms.Kind),
		Policy: string(p.Terms.Policy), Hosts: []string{}, Matched: p.Matched, DelayedByBoot: p.DelayedByBoot,
	}
	if final || by.May("reservations:get_hosts", project) {
		planned := reservation.Reservation{Claims: p.Claims}
		out.Hosts = sorted(planned.HostNames())
	}
	return out
}

// withServers adds the servers that must leave before maintenance, for callers that may see them.
func (s API) withServers(out v1.Offer, p planning.Plan, by *serving.Asker) v1.Offer {
	if !p.Terms.Maintenance || !by.May("hosts:get_instances", by.ProjectID) {
		return out
	}
	for _, i := range s.Asked.Occupants(p) {
		out.Servers = append(out.Servers, v1.HostServer{Host: i.Host, ID: i.ID, Name: i.Name, ProjectID: i.ProjectID, Status: i.Status})
	}
	return out
}

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
