// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"slices"

	"github.com/almanac-cloud/almanac/reservation"
)

// Of returns a reservation as an admin sees it: with its hosts, sorted by name.
func Of(r *reservation.Reservation) Reservation {
	out := Reservation{
		ID: r.ID, Name: r.Name, ProjectID: r.ProjectID, UserID: r.UserID, Kind: string(r.Kind), Status: string(r.Status),
		Start: r.Span.Start.Time(), End: r.Span.End.Time(), Quantity: r.Quantity, Policy: string(r.Policy), PolicyReason: r.PolicyReason(),
		Hosts: append([]string{}, r.HostNames()...), Events: make([]Event, len(r.Events)),
		Affinity: string(r.Affinity), Image: r.Image, OnEnd: string(r.OnEnd), BeforeEnd: Duration(r.BeforeEnd),
		DelayedByBoot: r.DelayedByBoot, Maintenance: r.Maintenance, Degraded: r.Degraded != "", DegradedReason: r.Degraded,
		CreatedAt: r.Created.Time(), UpdatedAt: r.Updated.Time(),
	}
	if r.Notice > 0 || r.Status == reservation.Waiting {
		out.Notice, out.WindowStart, out.WindowEnd = Duration(r.Notice), new(r.Window.Start.Time()), new(r.Window.End.Time())
	}
	if until := r.WaitsUntil(); until != 0 {
		out.Waiting = &Waiting{Until: until.Time(), Hold: Duration(r.Hold)}
	}
	out.HeldUntil = TimeOf(r.HeldUntil())
	slices.Sort(out.Hosts)
	out.Together = TogetherOf(r.Together)
	if id := r.Membership.LeaseID; id != "" {
		out.LeaseID = &id
	}
	out.SeriesID, out.Occurrence = r.Occurrence.SeriesID, r.Occurrence.Local
	if r.HostProperties != "" {
		out.HostProperties = json.RawMessage(r.HostProperties)
	}
	if r.Kind == reservation.Instances {
		out.Resources = new(Resources(r.Resources))
	}
	for i, e := range r.Events {
		out.Events[i] = Event{Type: string(e.Type), Time: e.Time.Time(), State: string(e.State), Detail: e.Detail}
		if e.State == reservation.EventDone {
			out.Events[i].DoneAt = new(e.Done.Time())
		}
	}
	return out
}

// WishOf returns the wish for a rule; nil if there is none.
func WishOf(t reservation.Together) *TogetherWish {
	if t == (reservation.Together{}) {
		return nil
	}
	return &TogetherWish{By: t.By, Rule: string(t.Rule), Values: t.Values, Required: new(!t.Preferred), ApartFrom: t.Apart()}
}

// TogetherOf returns how hosts lie to each other; nil if the reservation does not ask for anything.
func TogetherOf(t reservation.Together) *Together {
	if t == (reservation.Together{}) {
		return nil
	}
	return &Together{By: t.By, Rule: string(t.Rule), Values: t.Values, Required: !t.Preferred, ApartFrom: t.Apart(), Kept: !t.Broken}
}
