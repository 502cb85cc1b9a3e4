// SPDX-License-Identifier: Apache-2.0

package notice_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/notice"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// The fields and spellings are those of blazar/notification/api.py and of Blazar's database
// (blazar/db/sqlalchemy/models.py).
func TestBlazarsPayloadIsTheWholeLease(t *testing.T) {
	r := booked()
	r.Status, r.Updated = reservation.Active, noon+5
	r.Events[1].State, r.Events[1].Done = reservation.EventDone, noon+5
	want := parsed(t, `{
		"lease_id": "8a8f1f3e-5f6c-4f0e-9d2e-3a2f6f1f0a11", "name": "night <run> ä", "user_id": "u1", "project_id": "p1",
		"trust_id": null, "start_date": "2026-11-21T12:00:00.000000", "end_date": "2026-11-21T13:00:00.000000",
		"status": "ACTIVE", "degraded": false, "created_at": "2026-11-21 11:00:00", "updated_at": "2026-11-21 12:00:05",
		"reservations": [{
			"id": "8a8f1f3e-5f6c-4f0e-9d2e-3a2f6f1f0a11", "lease_id": "8a8f1f3e-5f6c-4f0e-9d2e-3a2f6f1f0a11",
			"resource_id": "8a8f1f3e-5f6c-4f0e-9d2e-3a2f6f1f0a11", "resource_type": "physical:host", "status": "active",
			"missing_resources": false, "resources_changed": false,
			"created_at": "2026-11-21 11:00:00", "updated_at": "2026-11-21 12:00:05",
			"hypervisor_properties": "", "resource_properties": "[\"=\", \"$gpu\", \"a100\"]", "before_end": "",
			"min": 2, "max": 2}],
		"events": [
			{"id": "7945d47f-c6a2-528b-8340-9594fd08815d", "lease_id": "8a8f1f3e-5f6c-4f0e-9d2e-3a2f6f1f0a11",
				"event_type": "start_lease", "time": "2026-11-21T12:00:00.000000", "status": "DONE",
				"created_at": "2026-11-21 11:00:00", "updated_at": "2026-11-21 12:00:05"},
			{"id": "02e717df-4e27-5f75-8639-c92108166f72", "lease_id": "8a8f1f3e-5f6c-4f0e-9d2e-3a2f6f1f0a11",
				"event_type": "before_end_lease", "time": "2026-11-21T12:50:00.000000", "status": "UNDONE",
				"created_at": "2026-11-21 11:00:00", "updated_at": null},
			{"id": "92aa4354-8132-5c2a-b0a0-0b7fb6c604cf", "lease_id": "8a8f1f3e-5f6c-4f0e-9d2e-3a2f6f1f0a11",
				"event_type": "end_lease", "time": "2026-11-21T13:00:00.000000", "status": "UNDONE",
				"created_at": "2026-11-21 11:00:00", "updated_at": null}]
	}`)
	if diff := cmp.Diff(want, decoded(t, told(t, changeOf(r, reservation.ActionStart), notice.Blazar))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInstancesAreBlazarsVirtualInstances(t *testing.T) {
	for affinity, want := range map[calendar.Affinity]any{
		calendar.AffinityNone: nil, calendar.AffinitySame: true, calendar.AffinityDifferent: false,
	} {
		r := booked()
		r.Kind, r.Affinity = reservation.Instances, affinity
		r.Resources = resource.Vector{VCPUs: 2, MemoryMB: 512, DiskGB: 10}
		got := leaseReservation(t, decoded(t, told(t, changeOf(r, reservation.ActionCreate), notice.Blazar)))
		for name, want := range map[string]any{
			"resource_type": "virtual:instance", "vcpus": 2.0, "memory_mb": 512.0, "disk_gb": 10.0, "amount": 2.0,
			"affinity": want, "flavor_id": r.ID, "aggregate_id": nil, "server_group_id": nil,
		} {
			if value, there := got[name]; !there || value != want {
				t.Errorf("affinity %s: %s is %v, want %v", affinity, name, value, want)
			}
		}
		if _, there := got["min"]; there {
			t.Error("a virtual:instance has the field min of a physical:host")
		}
	}
}

func TestBlazarsWordsForEachState(t *testing.T) {
	all := func(state reservation.EventState) [3]reservation.EventState {
		return [3]reservation.EventState{state, state, state}
	}
	for status, tc := range map[reservation.Status]struct {
		log                    [3]reservation.EventState // start, before_end, end
		wantLease, wantHolding string
		wantEvents             [3]string
	}{
		reservation.Pending: {all(reservation.EventDue), "PENDING", "pending", [3]string{"UNDONE", "UNDONE", "UNDONE"}},
		reservation.Starting: {[3]reservation.EventState{reservation.EventRunning, reservation.EventDue, reservation.EventDue},
			"STARTING", "pending", [3]string{"IN_PROGRESS", "UNDONE", "UNDONE"}},
		reservation.Active: {[3]reservation.EventState{reservation.EventDone, reservation.EventDue, reservation.EventDue},
			"ACTIVE", "active", [3]string{"DONE", "UNDONE", "UNDONE"}},
		reservation.Ending: {[3]reservation.EventState{reservation.EventDone, reservation.EventDone, reservation.EventRunning},
			"TERMINATING", "active", [3]string{"DONE", "DONE", "IN_PROGRESS"}},
		reservation.Ended:  {all(reservation.EventDone), "TERMINATED", "deleted", [3]string{"DONE", "DONE", "DONE"}},
		reservation.Failed: {all(reservation.EventDue), "ERROR", "error", [3]string{"ERROR", "UNDONE", "UNDONE"}},
	} {
		t.Run(string(status), func(t *testing.T) {
			r := booked()
			r.Status = status
			for i, state := range tc.log {
				r.Events[i+1].State = state
			}
			got := decoded(t, told(t, changeOf(r, reservation.ActionModify), notice.Blazar))
			if got["status"] != tc.wantLease || leaseReservation(t, got)["status"] != tc.wantHolding {
				t.Errorf("lease %v, reservation %v", got["status"], leaseReservation(t, got)["status"])
			}
			for i, e := range got["events"].([]any) {
				if state := e.(map[string]any)["status"]; state != tc.wantEvents[i] {
					t.Errorf("event %d is %v, want %s", i, state, tc.wantEvents[i])
				}
			}
		})
	}
}

// A lease that could not be had does not exist for Blazar's clients.
func TestWhatWaitsBecomesALeaseWhenItIsBooked(t *testing.T) {
	waiting := booked()
	waiting.Status, waiting.Claims, waiting.Window = reservation.Waiting, nil, waiting.Span
	waiting.Events = []reservation.Event{waiting.Events[0], {Type: reservation.ExpireEvent, Time: noon, State: reservation.EventDue}}
	canceled, err := planning.Canceled(waiting, noon-10)
	if err != nil {
		t.Fatal(err)
	}
	expired, err := planning.Expired(waiting, noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		r      reservation.Reservation
		action reservation.Action
		want   []string
	}{
		{waiting, reservation.ActionCreate, nil},
		{canceled, reservation.ActionCancel, nil},
		{expired, reservation.ActionExpire, nil},
		{booked(), reservation.ActionBook, []string{"blazar.lease lease.create INFO"}},
	} {
		if diff := cmp.Diff(of.want, heads(told(t, changeOf(of.r, of.action), notice.Blazar)), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +sent):\n%s", of.action, diff)
		}
	}
}

func TestAReservationOfALeaseIsNotifiedUnderTheLease(t *testing.T) {
	const id = "5d1c2f6e-0c3c-4b5e-8a53-0f6f1c9b7a20"
	r := booked()
	r.Membership = reservation.Membership{LeaseID: id, Min: 1, Max: 3, ResourceProperties: `["==", "$gpu", "a100"]`}
	got := decoded(t, told(t, changeOf(r, reservation.ActionCreate), notice.Blazar))
	part := leaseReservation(t, got)
	for name, pair := range map[string][2]any{
		"lease": {got["lease_id"], id}, "reservation": {part["id"], r.ID}, "lease of the reservation": {part["lease_id"], id},
		"min": {part["min"], 1.0}, "max": {part["max"], 3.0}, "properties": {part["resource_properties"], r.Membership.ResourceProperties},
		"lease of an event": {got["events"].([]any)[0].(map[string]any)["lease_id"], id},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
}

func TestAStartedLeaseThatFailsHasItsEndInError(t *testing.T) {
	r := booked()
	r.Status = reservation.Failed
	r.Events[1].State = reservation.EventDone
	got := decoded(t, told(t, changeOf(r, reservation.ActionEnd), notice.Blazar))
	if diff := cmp.Diff([]any{"DONE", "UNDONE", "ERROR"}, eventStates(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A canceled reservation has no record of events that will not happen, but Blazar's consumers
// expect a start and an end.
func TestADeletedLeaseHasItsStartAndItsEnd(t *testing.T) {
	r := booked()
	r.Status, r.Claims = reservation.Canceled, nil
	r.Events = append(r.Events[:1], reservation.Event{
		Type: reservation.CanceledEvent, Time: noon - 60, State: reservation.EventDone, Done: noon - 60,
	})
	got := decoded(t, told(t, changeOf(r, reservation.ActionCancel), notice.Blazar))
	if got["status"] != "DELETING" || leaseReservation(t, got)["status"] != "deleted" {
		t.Errorf("lease %v, reservation %v", got["status"], leaseReservation(t, got)["status"])
	}
	if diff := cmp.Diff([]any{"UNDONE", "UNDONE"}, eventStates(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWarningThatDoesNotHoldAnyMoreIsCalledOff(t *testing.T) {
	warned := booked()
	warned.Status = reservation.Active
	warned.Events[1].State, warned.Events[2].State = reservation.EventDone, reservation.EventDone
	prolonged := warned
	prolonged.Span.End += 3600
	prolonged.Events = append(warned.Events[:3:3],
		reservation.Event{Type: reservation.BeforeEndEvent, Time: noon + 6600, State: reservation.EventDue},
		reservation.Event{Type: reservation.EndEvent, Time: prolonged.Span.End, State: reservation.EventDue})
	update, stop := "blazar.lease lease.update INFO", "blazar.lease lease.event.before_end_lease.stop INFO"
	for name, tc := range map[string]struct {
		r    reservation.Reservation
		want []string
	}{
		"renamed":    {warned, []string{update}},
		"prolonged":  {prolonged, []string{update, stop}},
		"not warned": {booked(), []string{update}},
	} {
		if diff := cmp.Diff(tc.want, heads(told(t, changeOf(tc.r, reservation.ActionModify), notice.Blazar))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	got := decoded(t, told(t, changeOf(prolonged, reservation.ActionWarnOfEnd), notice.Blazar))
	if at := got["events"].([]any)[1].(map[string]any)["time"]; at != "2026-11-21T13:50:00.000000" {
		t.Errorf("the warning of the lease is at %v, want the later one", at)
	}
}

func TestADegradedReservationMissesResources(t *testing.T) {
	r := booked()
	r.Degraded = "node-2 does not answer"
	got := decoded(t, told(t, changeOf(r, reservation.ActionModify), notice.Blazar))
	if got["degraded"] != true || leaseReservation(t, got)["missing_resources"] != true {
		t.Errorf("degraded %v, missing_resources %v", got["degraded"], leaseReservation(t, got)["missing_resources"])
	}
}

func TestAReservationHealedInUseHasOtherResources(t *testing.T) {
	for name, tc := range map[string]struct {
		healed reservation.Event
		want   bool
	}{
		"before the start": {reservation.Event{Type: reservation.HealedEvent, State: reservation.EventDone, Done: noon - 1}, false},
		"after it":         {reservation.Event{Type: reservation.HealedEvent, State: reservation.EventDone, Done: noon + 60}, true},
		"degraded only":    {reservation.Event{Type: reservation.DegradedEvent, State: reservation.EventDone, Done: noon + 60}, false},
	} {
		r := booked()
		r.Events[1].State, r.Events[1].Done = reservation.EventDone, noon
		r.Events = append(r.Events, tc.healed)
		got := leaseReservation(t, decoded(t, told(t, changeOf(r, reservation.ActionHeal), notice.Blazar)))
		if got["resources_changed"] != tc.want {
			t.Errorf("%s: resources_changed is %v", name, got["resources_changed"])
		}
	}
}

// leaseReservation returns the only reservation of a lease.
func leaseReservation(t *testing.T, lease map[string]any) map[string]any {
	t.Helper()
	all := lease["reservations"].([]any)
	if len(all) != 1 {
		t.Fatalf("%d reservations, want one", len(all))
	}
	return all[0].(map[string]any)
}

func eventStates(lease map[string]any) []any {
	var states []any
	for _, e := range lease["events"].([]any) {
		states = append(states, e.(map[string]any)["status"])
	}
	return states
}
