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
	if w := body.Together; w != nil {
		if r.Together = togetherOf(*w); r.Together == (reservation.Together{}) {
			return r, noProperty()
		}
	}
	if body.BeforeEnd != nil {
		r.BeforeEnd = int64(*body.BeforeEnd)
	}
	if body.Notice != nil {
		r.Notice = int64(*body.Notice)
	}
	if body.Hold != nil {
		r.Hold = int64(*body.Hold)
	}
	if body.Duration != nil {
		if r.Duration = int64(*body.Duration); r.Duration <= 0 {
			return r, fault.Field("duration", "must be at least one second")
		}
	}
	if until := v1.InstantOf(body.WaitUntil); until != nil {
		r.WaitUntil = *until
	}
	if start := v1.InstantOf(body.StartTime); start != nil {
		r.Start = *start
	}
	if end := v1.InstantOf(body.EndTime); end != nil {
		r.End = *end
	}
	return r, checkName(body.Name)
}

// changeOf converts a change to the domain's types.
func changeOf(body v1.ReservationChange) planning.Change {
	c := planning.Change{
		Name: body.Name, Quantity: body.Quantity, Start: v1.InstantOf(body.StartTime), End: v1.InstantOf(body.EndTime),
		OnEnd: (*reservation.OnEnd)(body.OnEnd), BeforeEnd: (*int64)(body.BeforeEnd),
		Resources: (*resource.Vector)(body.Resources), Affinity: (*calendar.Affinity)(body.Affinity), Notice: (*int64)(body.Notice),
		Hold: (*int64)(body.Hold),
	}
	if body.HostProperties != nil {
		c.HostProperties = new(string(body.HostProperties))
	}
	return c
}

// fixed are the fields of a request that no change has, and what to do instead.
var fixed = map[string]string{
	"kind":        "cannot be changed; cancel the reservation and book one of the other kind",
	"policy":      "has chosen the start already and cannot be changed; move the reservation with start_time and end_time",
	"duration":    "is no part of a change; send the new end_time",
	"flavor":      "is no part of a change; send the new resources",
	"together":    "cannot be changed; book another reservation",
	"image":       "cannot be changed, since the hosts may have received it already; book another reservation",
	"maintenance": "cannot be changed; book another reservation",
	"held_until":  "cannot be changed; confirm the reservation with \"hold\": 0",
	"wait_until":  "cannot be changed; cancel the reservation and ask for it again",
	"hosts":       "cannot be changed; choose other hosts with host_properties, or for maintenance cancel it and plan it again",
}

// whyFixed returns the error of a body, which states what to do instead if it names a field that cannot be changed.
func whyFixed(err error) error {
	if f := fault.Of(err); f != nil && fixed[f.Field] != "" {
		return fault.Field(f.Field, "%s", fixed[f.Field])
	}
	return err
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

// noProperty is the error about a rule without anything.
func noProperty() *fault.Error {
	return fault.Field("together.by", "is required: the name of a property, such as zone")
}

// togetherOf returns the rule of a wish. The rules same and spread are required unless it states otherwise.
func togetherOf(w v1.TogetherWish) reservation.Together {
	rule := reservation.TogetherRule(w.Rule)
	t := reservation.Together{
		By: w.By, Rule: rule, Values: w.Values, Preferred: rule == reservation.TogetherFewest,
		ApartFrom: strings.Join(slices.Compact(slices.Sorted(slices.Values(w.ApartFrom))), " "),
	}
	if w.Required != nil {
		t.Preferred = !*w.Required
	}
	return t
}

// offer returns a plan for project in the JSON types. The hosts may still change until it is booked, unless they
// are final, as those of an active reservation.
func offer(p planning.Plan, project string, final bool, by *serving.Asker) v1.Offer {
	out := v1.Offer{
		Start: p.Span.Start.Time(), End: p.Span.End.Time(), Quantity: p.Terms.Quantity, Kind: string(p.Terms.Kind),
		Policy: string(p.Terms.Policy), PolicyReason: p.Fallback.Text, Hosts: []string{}, Matched: p.Matched, DelayedByBoot: p.DelayedByBoot,
		Together: v1.TogetherOf(p.Terms.Together), HeldUntil: v1.TimeOf(p.HeldUntil), WaitUntil: v1.TimeOf(p.WaitsUntil),
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
