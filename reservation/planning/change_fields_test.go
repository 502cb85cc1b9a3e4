// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// early is the time of the decisions about changes of fields, and hour is 3600 seconds.
const early, hour = span.Instant(2_000_000_000), 3600

// spacious returns a view of four free hosts, and of two floating IPs of the network n.
func spacious(t *testing.T) View {
	t.Helper()
	var hosts []inventory.Host
	for _, name := range []string{"a", "b", "c", "d"} {
		hosts = append(hosts, inventory.Host{Name: name, Capacity: resource.Vector{VCPUs: 8, MemoryMB: 8, DiskGB: 8}, Reservable: true, Power: inventory.PowerOn})
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewView(early, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	v.Defaults.OnEndChoices = reservation.OnEnds
	v.Pools = map[string]address.Pool{"n": {Network: "n", Addresses: []string{"192.0.2.1", "192.0.2.2"}}}
	return v
}

// later returns a reservation of two hosts for the hour after the next one.
func later() reservation.Reservation {
	w := span.New(early+hour, hour)
	return reservation.Reservation{
		ID: "r", Status: reservation.Pending, Span: w, Window: span.New(w.Start, 2*hour), Claims: []reservation.Claim{{Host: "a", Span: w}, {Host: "b", Span: w}},
		Terms: reservation.Terms{Name: "r", Kind: reservation.Hosts, Quantity: 2, Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete, BeforeEnd: 60, Notice: 60},
	}
}

// eachChange calls try with each field of a type of changes, in which nil or zero means no change, and a change that sets
// this field alone to its value. Each field has one in values, unless its reason is in without.
func eachChange[C any](t *testing.T, values map[string]any, without map[string]string, try func(field string, c C)) {
	t.Helper()
	of := reflect.TypeFor[C]()
	for i := range of.NumField() {
		name := of.Field(i).Name
		value, has := values[name]
		if has == (without[name] != "") {
			t.Errorf("%s.%s: name its value, or state why there is none", of.Name(), name)
		}
		if !has {
			continue
		}
		var c C
		field := reflect.ValueOf(&c).Elem().Field(i)
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.New(field.Type().Elem()))
			field = field.Elem()
		}
		field.Set(reflect.ValueOf(value).Convert(field.Type()))
		try(name, c)
	}
}

// A change of a field alone is planned, is judged by the same checks as any other, and changes nothing if the field is so
// already.
func TestEachFieldOfAChangeChangesThePlanAlone(t *testing.T) {
	v, r := spacious(t), later()
	over := r
	over.Status = reservation.Ended
	same, err := PlanChange(v, r, Change{})
	if err != nil {
		t.Fatal(err)
	}
	eachChange(t, map[string]any{
		"Name": "s", "Quantity": 3, "Start": early + hour + 600, "End": early + 3*hour, "HostProperties": `["!=", "$name", "a"]`,
		"OnEnd": reservation.OnEndShelve, "BeforeEnd": 90, "Notice": 0,
	}, ofHeld, func(field string, c Change) {
		plan, err := PlanChange(v, r, c)
		if err != nil || cmp.Equal(plan.Terms, same.Terms) && plan.Span == same.Span {
			t.Errorf("a change of %s alone: %+v, %v; it changes nothing", field, plan, err)
		}
		if len(plan.Claims) != plan.Terms.Quantity {
			t.Errorf("a change of %s alone: %d claims for %d hosts", field, len(plan.Claims), plan.Terms.Quantity)
		}
		for _, claim := range plan.Claims {
			if claim.Span != plan.Span {
				t.Errorf("a change of %s alone: a claim is %v, the reservation %v", field, claim.Span, plan.Span)
			}
		}
		if _, err := PlanChange(v, over, c); !fault.Is(err, fault.Conflict) {
			t.Errorf("a change of %s alone of a reservation that is over: %v, want a conflict", field, err)
		}
	})
	eachChange(t, map[string]any{
		"Name": r.Name, "Quantity": r.Quantity, "Start": r.Span.Start, "End": r.Span.End, "HostProperties": `""`, "OnEnd": r.OnEnd, "BeforeEnd": r.BeforeEnd, "Notice": r.Notice, "Hold": 0,
	}, ofInstances, func(field string, c Change) {
		if plan, err := PlanChange(v, over, c); err != nil || !cmp.Equal(plan.Terms, r.Terms) || plan.Span != r.Span {
			t.Errorf("%s as it is: %+v, %v; it is a change", field, plan, err)
		}
	})
}

// ofInstances are the fields of a change that apply to kind instance only.
var ofInstances = map[string]string{
	"Resources": "TestAChangeOfInstancesPlacesThemAnew has it", "Affinity": "TestAChangeOfInstancesPlacesThemAnew has it",
}

// ofHeld are these fields, and the one that applies to a reservation that is held.
var ofHeld = map[string]string{
	"Resources": ofInstances["Resources"], "Affinity": ofInstances["Affinity"], "Hold": "TestAHeldReservationChangesOnlyWithItsConfirmation has it",
}

func TestAChangeOfInstancesPlacesThemAnew(t *testing.T) {
	v, r := spacious(t), later()
	r.Kind, r.Resources, r.Affinity = reservation.Instances, resource.Vector{VCPUs: 2}, calendar.AffinityDifferent
	for i := range r.Claims {
		r.Claims[i].Slices = 1
	}
	for want, c := range map[string]Change{
		"2 on 1": {Affinity: new(calendar.AffinitySame)}, "2 on 2": {Resources: &resource.Vector{VCPUs: 8}},
		"3 on 1": {Affinity: new(calendar.AffinityNone), Resources: &resource.Vector{MemoryMB: 2}, Quantity: new(3)},
	} {
		plan, err := PlanChange(v, r, c)
		if got := fmt.Sprintf("%d on %d", countClaimed(plan.Claims), len(hostNames(plan.Claims))); err != nil || got != want {
			t.Errorf("%+v: %s, %v, want %s", c, got, err, want)
		}
		active, host := r, later()
		active.Status = reservation.Active
		if _, err := PlanChange(v, active, c); !fault.Is(err, fault.Conflict) {
			t.Errorf("%+v of an active reservation: %v, want a conflict", c, err)
		}
		if _, err := PlanChange(v, host, c); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v of whole hosts: %v, want an error", c, err)
		}
	}
	if plan, err := PlanChange(v, r, Change{Resources: &resource.Vector{VCPUs: 2, Custom: map[string]int64{"CUSTOM_X": 0}}, Affinity: &r.Affinity}); err != nil || !cmp.Equal(plan.Claims, r.Claims) {
		t.Errorf("what is so already: %+v, %v", plan, err)
	}
	for field, c := range map[string]Change{
		"resources": {Resources: &resource.Vector{}}, "resources.custom": {Resources: &resource.Vector{Custom: map[string]int64{"CUSTOM_X": 1}}}, "affinity": {Affinity: new(calendar.Affinity("near"))},
	} {
		if _, err := PlanChange(v, r, c); !fault.Is(err, fault.Invalid) || fault.Of(err).Field != field {
			t.Errorf("%+v: %v, want an error of %s", c, err, field)
		}
	}
	r.Membership.ServerGroup = "g"
	if _, err := PlanChange(v, r, Change{Affinity: new(calendar.AffinitySame)}); !fault.Is(err, fault.Conflict) {
		t.Errorf("with a server group: %v, want a conflict", err)
	}
}

// A refusal names the number that was asked for only if it is another one than the reservation has.
func TestARefusedChangeTellsWhatTheReservationKeeps(t *testing.T) {
	r, other := later(), later()
	other.ID, other.Span = "o", span.New(early+hour, 3*hour)
	other.Claims = []reservation.Claim{{Host: "c", Span: other.Span}, {Host: "d", Span: other.Span}, {Host: "b", Span: span.New(early+2*hour, hour)}}
	v := spacious(t).with(&other).with(&r)
	end, three := early+3*hour, 3
	for change, want := range map[*Change]string{
		{End: &end}:        "not enough hosts available: the reservation can keep 1 of its 2 hosts from ",
		{Quantity: &three}: "not enough hosts available: 3 hosts asked for, and the reservation can keep 2 of its 2 hosts from ",
	} {
		_, err := PlanChange(v, r, *change)
		var refusal *reservation.Refusal
		if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Message, want) {
			t.Errorf("the refusal is %v, want %q", err, want)
		}
	}
}

// oneOfALease returns a lease with one reservation.
func oneOfALease(r reservation.Reservation) reservation.LeaseRecord {
	r.Membership = reservation.Membership{LeaseID: "l", Min: r.Quantity, Max: r.Quantity}
	return reservation.LeaseRecord{
		Lease:        reservation.Lease{ID: "l", Name: "l", Span: r.Span, BeforeEnd: r.Span.End.Add(-r.BeforeEnd)},
		Reservations: []reservation.Reservation{r},
	}
}

// changesLease reports whether a change of a lease stores anything.
func changesLease(t *testing.T, l reservation.LeaseRecord, c reservation.LeaseChange) bool {
	t.Helper()
	v := spacious(t)
	row, members, err := PlanLeaseChange(v.with(&l.Reservations[0]), l, c)
	if err != nil {
		t.Error(err)
	}
	return row != nil || !cmp.Equal(members, l.Reservations)
}

func TestEachFieldOfAChangeOfALeaseChangesItAlone(t *testing.T) {
	l := oneOfALease(later())
	eachChange(t, map[string]any{
		"Name": "s", "Start": early + hour + 600, "End": early + 3*hour, "Duration": 3 * hour, "BeforeEnd": early + hour + 900, "Warning": int64(300), "OnEnd": reservation.OnEndShelve,
	}, map[string]string{
		"Deadline": "it moves a start that has no room, as below",
		"Members":  "TestEachFieldOfAChangeOfAMemberChangesItAlone has its fields",
	}, func(field string, c reservation.LeaseChange) {
		if !changesLease(t, l, c) {
			t.Errorf("a change of %s alone changes nothing", field)
		}
	})
	v := spacious(t)
	v = v.with(&l.Reservations[0])
	for _, host := range []string{"a", "b", "c", "d"} {
		v = v.with(&reservation.Reservation{ID: host, Claims: []reservation.Claim{{Host: host, Span: span.New(early+3*hour, hour)}}})
	}
	c := reservation.LeaseChange{Start: new(early + 3*hour), Duration: hour}
	if _, _, err := PlanLeaseChange(v, l, c); err == nil {
		t.Error("there is room at the start")
	}
	c.Deadline = new(early + 6*hour)
	if row, _, err := PlanLeaseChange(v, l, c); err != nil || row == nil || row.Span != span.New(early+4*hour, hour) {
		t.Errorf("with Deadline: %+v, %v; want the start after those of others", row, err)
	}
}

func TestEachFieldOfAChangeOfAMemberChangesItAlone(t *testing.T) {
	instances, addresses := later(), later()
	instances.Kind, instances.Resources, instances.Affinity = reservation.Instances, resource.Vector{VCPUs: 2}, calendar.AffinityNone
	for i := range instances.Claims {
		instances.Claims[i].Slices = 1
	}
	addresses.Kind, addresses.Quantity, addresses.Claims, addresses.Policy = reservation.Addresses, 1, nil, ""
	addresses.Addresses = []address.Claim{{Network: "n", Address: "192.0.2.1", Required: true}}
	leases := []reservation.LeaseRecord{oneOfALease(later()), oneOfALease(instances), oneOfALease(addresses)}
	applies := map[string]int{"Resources": 1, "Affinity": 1, "AnyAddress": 2} // the index of a lease; 0 for all others
	eachChange(t, map[string]any{
		"Min": 1, "Max": 3, "HostProperties": `[">=", "$vcpus", 2]`, "HypervisorProperties": `[">=", "$vcpus", "2"]`, "ResourceProperties": `["=", "$a", "b"]`,
		"Resources": resource.Vector{VCPUs: 4}, "Affinity": calendar.AffinityDifferent, "AnyAddress": true,
	}, map[string]string{"ID": "it names the reservation"}, func(field string, m reservation.MemberChange) {
		m.ID = "r"
		if !changesLease(t, leases[applies[field]], reservation.LeaseChange{Members: []reservation.MemberChange{m}}) {
			t.Errorf("a change of %s alone changes nothing", field)
		}
	})
}
