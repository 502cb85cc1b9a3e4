// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

const year = 366 * 24 * 3600

func TestAnInvalidRequestNamesItsField(t *testing.T) {
	host := func(change func(*reservation.Request)) reservation.Request {
		req := during(1, 100, 200)
		change(&req)
		return req
	}
	instance := func(change func(*reservation.Request)) reservation.Request {
		req := cpus(1, 1, 100, 200)
		change(&req)
		return req
	}
	type request = reservation.Request
	for name, tc := range map[string]struct {
		req  request
		want string
	}{
		"no quantity":                 {host(func(r *request) { r.Quantity = 0 }), "quantity"},
		"a negative quantity":         {host(func(r *request) { r.Quantity = -1 }), "quantity"},
		"a start in the past":         {host(func(r *request) { r.Start = at(-planning.LatestPast - 1) }), "start_time"},
		"a negative start":            {host(func(r *request) { r.Start = -1 }), "start_time"},
		"an end in the past":          {host(func(r *request) { r.Start, r.End = 0, at(-1) }), "end_time"},
		"an end now":                  {host(func(r *request) { r.Start, r.End = 0, at(0) }), "end_time"},
		"an end at the start":         {host(func(r *request) { r.End = r.Start }), "end_time"},
		"an end before the start":     {host(func(r *request) { r.End = at(99) }), "end_time"},
		"a start after all years":     {host(func(r *request) { r.Start, r.End, r.Duration = span.Forever-1, 0, 10 }), "start_time"},
		"an end after all years":      {host(func(r *request) { r.End = span.Forever }), "end_time"},
		"no duration":                 {host(func(r *request) { r.End = 0 }), "duration"},
		"no times at all":             {host(func(r *request) { r.Start, r.End = 0, 0 }), "duration"},
		"a negative duration":         {host(func(r *request) { r.Duration = -1 }), "duration"},
		"a duration of ages":          {host(func(r *request) { r.End, r.Duration = 0, math.MaxInt64 }), "duration"},
		"longer than the window":      {host(func(r *request) { r.Duration = 101 }), "duration"},
		"an unknown kind":             {host(func(r *request) { r.Kind = "disk" }), "kind"},
		"an unknown policy":           {host(func(r *request) { r.Policy = "last-fit" }), "policy"},
		"an unknown on_end":           {host(func(r *request) { r.OnEnd = "burn" }), "on_end"},
		"a negative warning":          {host(func(r *request) { r.BeforeEnd = -1 }), "before_end"},
		"a name without end":          {host(func(r *request) { r.Name = strings.Repeat("x", 256) }), "name"},
		"an image without end":        {host(func(r *request) { r.Image = strings.Repeat("x", 256) }), "image"},
		"a shape of hosts":            {host(func(r *request) { r.Resources.VCPUs = 1 }), "resources"},
		"an affinity of hosts":        {host(func(r *request) { r.Affinity = calendar.AffinitySame }), "affinity"},
		"a broken filter":             {host(func(r *request) { r.HostProperties = `["=", "$name"]` }), "host_properties"},
		"instances without shape":     {instance(func(r *request) { r.Resources = resource.Vector{} }), "resources"},
		"a negative shape":            {instance(func(r *request) { r.Resources.DiskGB = -1 }), "resources"},
		"a negative resource class":   {instance(func(r *request) { r.Resources.Custom = map[string]int64{"CUSTOM_FPGA": -1} }), "resources.CUSTOM_FPGA"},
		"an unknown affinity":         {instance(func(r *request) { r.Affinity = "near" }), "affinity"},
		"a policy of hosts":           {instance(func(r *request) { r.Policy = calendar.PolicyPEBestFit }), "policy"},
		"a window of ages, all of it": {host(func(r *request) { r.End = r.Start.Add(101 * year) }), "end_time"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b"))
			_, err := s.bookings.Book(t.Context(), owner, tc.req, nil)
			if got := fault.Of(err); got == nil || got.Kind != fault.Invalid || got.Field != tc.want || got.Message == "" {
				t.Errorf("got %v (field %q), want an invalid %s", err, fieldOf(err), tc.want)
			}
			if stored := s.stored(t); len(stored) > 0 {
				t.Errorf("stored %+v", stored)
			}
		})
	}
}

func fieldOf(err error) string {
	if f := fault.Of(err); f != nil {
		return f.Field
	}
	return ""
}

func TestAnEndThatTheOperatorDoesNotOfferIsRefusedWithTheChoices(t *testing.T) {
	s := newScene(t, named("a", "b"))
	leaving := during(1, 100, 200)
	leaving.OnEnd = reservation.OnEndLeave
	before := s.book(t, leaving)
	s.bookings.Configure(planning.Limits{}, planning.Defaults{
		Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete, OnEndChoices: []reservation.OnEnd{reservation.OnEndDelete, reservation.OnEndShelve},
	})
	for name, caller := range map[string]booking.Caller{"a tenant": owner, "an admin": {ProjectID: "demo", Admin: true}} {
		_, err := s.bookings.Book(t.Context(), caller, leaving, nil)
		got := fault.Of(err)
		if got == nil || got.Kind != fault.Invalid || got.Field != "on_end" || !strings.Contains(got.Message, "delete or shelve") {
			t.Errorf("%s gets %v, want an invalid on_end with the choices", name, err)
		}
	}
	longer := at(300)
	after, err := s.bookings.Change(t.Context(), owner, before.ID, planning.Change{End: &longer})
	if err != nil || after.OnEnd != reservation.OnEndLeave {
		t.Errorf("the stored reservation has on_end %q after %v, want it unchanged", after.OnEnd, err)
	}
	shelving := during(1, 100, 200)
	shelving.OnEnd = reservation.OnEndShelve
	s.book(t, shelving)
}

func TestAnUnknownPropertyIsRefusedAndSaidSo(t *testing.T) {
	hosts := named("a")
	hosts[0].Properties = map[string]inventory.Value{"rack": inventory.StringValue("r1")}
	s := newScene(t, hosts) // rack is hidden
	colour, rack := during(1, 100, 200), during(1, 100, 200)
	colour.HostProperties, rack.HostProperties = `["=", "$colour", "red"]`, `["=", "$rack", "r1"]`
	for name, req := range map[string]reservation.Request{"colour": colour, "rack": rack} {
		_, err := s.bookings.Offer(t.Context(), owner, req)
		if got := refusal(t, err); got.Constraint != reservation.HostsMatching || !strings.Contains(got.Message, "$"+name) {
			t.Errorf("refused by %s: %s; want a message with $%s", got.Constraint, got.Message, name)
		}
	}
	admin := owner
	admin.SeesHidden = true
	if _, err := s.bookings.Offer(t.Context(), admin, rack); err != nil {
		t.Errorf("a caller who sees hidden properties cannot use one: %v", err)
	}
}

func TestARefusalAsksWhetherAFilterLacksTheSignOfAProperty(t *testing.T) {
	s := newScene(t, named("a"))
	for filter, want := range map[string]string{
		`["=", "gpu", "a100"]`:     `; "gpu" is a plain text: did you mean the property "$gpu"?`,
		`["=", "$name", "nosuch"]`: "",
	} {
		request := during(1, 100, 200)
		request.HostProperties = filter
		_, err := s.bookings.Offer(t.Context(), owner, request)
		got := refusal(t, err)
		if _, advice, _ := strings.Cut(got.Message, "asked for"); got.Constraint != reservation.HostsMatching || advice != want {
			t.Errorf("%s: refused by %s: %s; want it to end with %q", filter, got.Constraint, got.Message, want)
		}
	}
}

func TestWhatARequestLeavesOutIsFilledIn(t *testing.T) {
	s := newScene(t, named("a"))
	s.options.Defaults.Policy, s.options.Defaults.OnEnd = calendar.PolicyPEWorstFit, reservation.OnEndShelve
	s.restart(t)
	r := s.book(t, reservation.Request{Terms: reservation.Terms{Quantity: 1}, Duration: 60})
	want := reservation.Terms{Kind: reservation.Hosts, Quantity: 1, Policy: calendar.PolicyPEWorstFit, OnEnd: reservation.OnEndShelve}
	if diff := cmp.Diff(want, r.Terms); diff != "" {
		t.Errorf("terms (-want +got):\n%s", diff)
	}
	r = s.book(t, cpus(1, 1, 100, 200))
	if r.Policy != calendar.PolicyFirstFit || r.Affinity != calendar.AffinityNone {
		t.Errorf("instances: policy %q, affinity %q; want %q and %q", r.Policy, r.Affinity, calendar.PolicyFirstFit, calendar.AffinityNone)
	}
}

func TestAnOfferIsWhatBookingDoesAndStoresNothing(t *testing.T) {
	s := newScene(t, named("a", "b"))
	plan, err := s.bookings.Offer(t.Context(), owner, during(2, 100, 200))
	if err != nil {
		t.Fatal(err)
	}
	if stored := s.stored(t); len(stored) > 0 {
		t.Errorf("an offer stored %+v", stored)
	}
	r := s.book(t, during(2, 100, 200))
	if diff := cmp.Diff(plan.Claims, r.Claims); diff != "" || plan.Span != r.Span || plan.Matched != 2 {
		t.Errorf("offered %v with %d matching hosts, booked %v; claims (-offered +booked):\n%s", plan.Span, plan.Matched, r.Span, diff)
	}
}
