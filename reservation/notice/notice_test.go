// SPDX-License-Identifier: Apache-2.0

package notice_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/notice"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

var _ upkeep.Notifier = (*notice.Notifier)(nil)

// outbound keeps what is sent. The number of sends that succeed before one fails is broken.
type outbound struct {
	sent   []oslo.Notification
	broken int
}

func (o *outbound) Notify(_ context.Context, n oslo.Notification) error {
	if o.broken--; o.broken == 0 {
		return errors.New("the broker is away")
	}
	o.sent = append(o.sent, n)
	return nil
}

func notifier(t testing.TB, sender notice.Sender, formats ...string) *notice.Notifier {
	t.Helper()
	n, err := notice.New(notice.Options{Sender: sender, Host: "cloud-1", Formats: formats})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// told returns the notifications of a change.
func told(t testing.TB, change reservation.Change, formats ...string) []oslo.Notification {
	t.Helper()
	var out outbound
	if err := notifier(t, &out, formats...).Notify(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	return out.sent
}

// heads returns the publisher, event type and priority of each notification.
func heads(sent []oslo.Notification) []string {
	var heads []string
	for _, n := range sent {
		heads = append(heads, fmt.Sprintf("%s %s %s", n.PublisherID, n.EventType, n.Priority))
	}
	return heads
}

// noon is 2026-11-21 12:00 UTC.
const noon = span.Instant(1795262400)

// booked returns a reservation of two hosts for an hour from noon on. It was created an hour
// earlier and warns ten minutes before its end.
func booked() reservation.Reservation {
	hour := span.New(noon, 3600)
	return reservation.Reservation{
		ID: "8a8f1f3e-5f6c-4f0e-9d2e-3a2f6f1f0a11", ProjectID: "p1", UserID: "u1",
		Terms: reservation.Terms{
			Name: "night <run> ä", Kind: reservation.Hosts, Quantity: 2, Policy: calendar.PolicyFirstFit,
			HostProperties: `["=", "$gpu", "a100"]`, OnEnd: reservation.OnEndDelete, BeforeEnd: 600,
		},
		Status: reservation.Pending, Span: hour,
		Claims: []reservation.Claim{{Host: "node-2", Span: hour}, {Host: "node-1", Span: hour}},
		Events: []reservation.Event{
			{Type: reservation.CreatedEvent, Time: noon - 3600, State: reservation.EventDone, Done: noon - 3600},
			{Type: reservation.StartEvent, Time: noon, State: reservation.EventDue},
			{Type: reservation.BeforeEndEvent, Time: noon + 3000, State: reservation.EventDue},
			{Type: reservation.EndEvent, Time: noon + 3600, State: reservation.EventDue},
		},
		Created: noon - 3600, Updated: noon - 3600, Version: 1,
	}
}

func changeOf(r reservation.Reservation, action reservation.Action) reservation.Change {
	return reservation.Change{
		Place: 17, At: noon - 3600,
		Cause:       reservation.Cause{Action: action, UserID: "u1", RequestID: "req-1", Detail: "what is different"},
		Reservation: r,
	}
}

func TestEachActionHasItsEventTypes(t *testing.T) {
	for action, want := range map[reservation.Action][]string{
		reservation.ActionCreate:    {"almanac.cloud-1 reservation.create INFO", "blazar.lease lease.create INFO"},
		reservation.ActionModify:    {"almanac.cloud-1 reservation.change INFO", "blazar.lease lease.update INFO"},
		reservation.ActionBook:      {"almanac.cloud-1 reservation.book INFO", "blazar.lease lease.create INFO"},
		reservation.ActionCancel:    {"almanac.cloud-1 reservation.cancel INFO", "blazar.lease lease.delete INFO"},
		reservation.ActionStart:     {"almanac.cloud-1 reservation.start INFO", "blazar.lease lease.event.start_lease INFO"},
		reservation.ActionWarnOfEnd: {"almanac.cloud-1 reservation.before_end INFO", "blazar.lease lease.event.before_end_lease INFO"},
		reservation.ActionEnd:       {"almanac.cloud-1 reservation.end INFO", "blazar.lease lease.event.end_lease INFO"},
		reservation.ActionHeal:      {"almanac.cloud-1 reservation.heal INFO", "blazar.lease lease.update INFO"},
		reservation.ActionDegrade:   {"almanac.cloud-1 reservation.degrade INFO", "blazar.lease lease.update INFO"},
		reservation.ActionRestore:   {"almanac.cloud-1 reservation.restore INFO", "blazar.lease lease.update INFO"},

		reservation.ActionRemark:     {"almanac.cloud-1 reservation.image INFO"},
		reservation.ActionBeginEvent: nil,
		reservation.ActionPutOff:     nil,
		"of a later version":         nil,
	} {
		t.Run(string(action), func(t *testing.T) {
			if diff := cmp.Diff(want, heads(told(t, changeOf(booked(), action)))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheOperatorChoosesTheFormats(t *testing.T) {
	change := changeOf(booked(), reservation.ActionCreate)
	for format, want := range map[string]string{
		notice.Almanac: "almanac.cloud-1 reservation.create INFO",
		notice.Blazar:  "blazar.lease lease.create INFO",
	} {
		if diff := cmp.Diff([]string{want}, heads(told(t, change, format))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	_, err := notice.New(notice.Options{Formats: []string{"blaza"}})
	if f := fault.Of(err); !fault.Is(err, fault.Invalid) || f.Field != "formats" {
		t.Errorf("an unknown format: %v", err)
	}
}

func TestAFailedReservationIsAnErrorAndForBlazarALeaseInError(t *testing.T) {
	r := booked()
	r.Status = reservation.Failed
	sent := told(t, changeOf(r, reservation.ActionStart))
	want := []string{"almanac.cloud-1 reservation.start ERROR", "blazar.lease lease.event.start_lease INFO"}
	if diff := cmp.Diff(want, heads(sent)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestANotificationSaysWhenAndForWhichRequest(t *testing.T) {
	for _, n := range told(t, changeOf(booked(), reservation.ActionCreate)) {
		if want := (noon - 3600).Time(); !n.Time.Equal(want) {
			t.Errorf("%s at %v, want %v", n.EventType, n.Time, want)
		}
		want := oslo.Context{
			"request_id": json.RawMessage(`"req-1"`), "user_id": json.RawMessage(`"u1"`), "project_id": json.RawMessage(`"p1"`),
		}
		if diff := cmp.Diff(want, n.Context); diff != "" {
			t.Errorf("%s (-want +got):\n%s", n.EventType, diff)
		}
	}
}

// The expected id is Python's uuid.uuid5(uuid.NAMESPACE_URL, "almanac:8a8f…/1/1795258800/lease.create").
func TestAMessageIDIsTheUUIDOfReservationVersionTimeAndEventType(t *testing.T) {
	sent := told(t, changeOf(booked(), reservation.ActionCreate), notice.Blazar)
	if want := "84837d42-5f98-5551-a94d-ae8c8c9cd22e"; sent[0].ID != want {
		t.Errorf("message id %s, want %s", sent[0].ID, want)
	}
}

func TestASecondAttemptHasTheSameMessageIDsAndNothingElseHas(t *testing.T) {
	seen := map[string]string{}
	rapid.Check(t, func(rt *rapid.T) {
		r := booked()
		r.ID = rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "id")
		r.Version = rapid.Int64Range(1, 3).Draw(rt, "version")
		action := rapid.SampledFrom([]reservation.Action{reservation.ActionCreate, reservation.ActionModify, reservation.ActionEnd}).Draw(rt, "action")
		change := changeOf(r, action)
		// After a restore from a backup, the same version is created a second time, later.
		change.At += span.Instant(rapid.IntRange(0, 2).Draw(rt, "seconds later"))
		out := outbound{broken: 2}
		n := notifier(t, &out)
		if err := n.Notify(t.Context(), change); err == nil {
			rt.Fatal("the second message is lost without an error")
		}
		if err := n.Notify(t.Context(), change); err != nil {
			rt.Fatal(err)
		}
		if len(out.sent) != 3 || out.sent[0].ID != out.sent[1].ID {
			rt.Fatalf("sent %v", heads(out.sent))
		}
		for _, m := range out.sent {
			told := fmt.Sprint(r.ID, " ", r.Version, " ", change.At, " ", m.EventType)
			if other, ok := seen[m.ID]; ok && other != told {
				rt.Fatalf("%q and %q have the same message id", other, told)
			}
			seen[m.ID] = told
		}
	})
}

// decoded returns the payload of the only notification.
func decoded(t *testing.T, sent []oslo.Notification) map[string]any {
	t.Helper()
	if len(sent) != 1 {
		t.Fatalf("sent %v, want one", heads(sent))
	}
	var payload map[string]any
	if err := json.Unmarshal(sent[0].Payload, &payload); err != nil {
		t.Fatal(err)
	}
	return payload
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func TestOursHaveTheReservationAndItsClaims(t *testing.T) {
	r := booked()
	r.Version, r.Status, r.Degraded = 3, reservation.Active, "node-2 does not answer"
	r.Events[1].State, r.Events[1].Done, r.Events[1].Detail = reservation.EventDone, noon+5, "5s after its time"
	want := parsed(t, `{
		"version": "1.7", "lease_id": null, "maintenance": false, "reservation_version": 3, "detail": "what is different", "request_id": "req-1",
		"id": "8a8f1f3e-5f6c-4f0e-9d2e-3a2f6f1f0a11", "name": "night <run> ä", "project_id": "p1", "user_id": "u1",
		"kind": "host", "status": "active", "quantity": 2, "policy": "first-fit",
		"start": "2026-11-21T12:00:00Z", "end": "2026-11-21T13:00:00Z", "hosts": ["node-1", "node-2"],
		"claims": [
			{"host": "node-2", "start": "2026-11-21T12:00:00Z", "end": "2026-11-21T13:00:00Z"},
			{"host": "node-1", "start": "2026-11-21T12:00:00Z", "end": "2026-11-21T13:00:00Z"}],
		"events": [
			{"type": "created", "time": "2026-11-21T11:00:00Z", "state": "done", "done_at": "2026-11-21T11:00:00Z"},
			{"type": "start", "time": "2026-11-21T12:00:00Z", "state": "done", "done_at": "2026-11-21T12:00:05Z",
				"detail": "5s after its time"},
			{"type": "before_end", "time": "2026-11-21T12:50:00Z", "state": "pending"},
			{"type": "end", "time": "2026-11-21T13:00:00Z", "state": "pending"}],
		"host_properties": ["=", "$gpu", "a100"], "on_end": "delete", "before_end": 600,
		"delayed_by_boot": false, "degraded": true, "degraded_reason": "node-2 does not answer",
		"created_at": "2026-11-21T11:00:00Z", "updated_at": "2026-11-21T11:00:00Z"
	}`)
	if diff := cmp.Diff(want, decoded(t, told(t, changeOf(r, reservation.ActionStart), notice.Almanac))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOursSayTheShapeOfInstancesAndHowManyAHostTakes(t *testing.T) {
	r := booked()
	r.Kind, r.Affinity, r.Image = reservation.Instances, calendar.AffinitySame, "debian-12"
	r.Resources = resource.Vector{VCPUs: 2, MemoryMB: 512, Custom: map[string]int64{"CUSTOM_FPGA": 1}}
	r.Claims = []reservation.Claim{{Host: "node-1", Span: r.Span, Slices: 2}}
	got := decoded(t, told(t, changeOf(r, reservation.ActionCreate), notice.Almanac))
	want := parsed(t, `{
		"kind": "instance", "affinity": "same", "image": "debian-12", "hosts": ["node-1"],
		"resources": {"vcpus": 2, "memory_mb": 512, "custom": {"CUSTOM_FPGA": 1}},
		"claims": [{"host": "node-1", "start": "2026-11-21T12:00:00Z", "end": "2026-11-21T13:00:00Z", "instances": 2}]
	}`)
	for name := range got {
		if _, asked := want[name]; !asked {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
