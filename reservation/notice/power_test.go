// SPDX-License-Identifier: Apache-2.0

package notice_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/notice"
)

func TestSwitchingAHostIsToldAsItBeginsAndEnds(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.FixedZone("CET", 3600))
	for _, test := range []struct {
		to        energy.State
		moment    notice.Moment
		eventType string
		priority  oslo.Priority
	}{
		{energy.Off, notice.Start, "energy.host.power_off.start", oslo.Info},
		{energy.Standby, notice.End, "energy.host.power_off.end", oslo.Info},
		{energy.Off, notice.Failed, "energy.host.power_off.error", oslo.Error},
		{energy.On, notice.Start, "energy.host.power_on.start", oslo.Info},
		{energy.On, notice.End, "energy.host.power_on.end", oslo.Info},
		{energy.On, notice.Failed, "energy.host.power_on.error", oslo.Error},
	} {
		t.Run(test.eventType, func(t *testing.T) {
			var out outbound
			n := notifier(t, &out, notice.Blazar)
			p := notice.Power{
				Host: "cmp-001", To: test.to, Moment: test.moment, Reason: "it was idle", Operation: "op-1", Urgent: true, Since: at.Add(-time.Minute), At: at,
			}
			later := p
			later.At = at.Add(time.Minute)
			for _, p := range []notice.Power{p, p, later} {
				if err := n.Power(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			wantSent(t, out.sent[0], test.eventType, test.priority, at, map[string]any{
				"version": "1.0", "host": "cmp-001", "kind": string(test.to), "reason": "it was idle", "operation": "op-1", "urgent": true,
				"since": "2030-01-02T02:03:05Z", "at": "2030-01-02T02:04:05Z",
			})
			if out.sent[0].ID != out.sent[1].ID || out.sent[0].ID == out.sent[2].ID {
				t.Errorf("a repeated notification and another one have the message ids %s, %s and %s", out.sent[0].ID, out.sent[1].ID, out.sent[2].ID)
			}
		})
	}
}

func TestAnAlarmIsToldAsItBeginsAndEnds(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for over, want := range map[bool]struct {
		eventType string
		priority  oslo.Priority
	}{false: {"energy.alarm.begin", oslo.Warn}, true: {"energy.alarm.end", oslo.Info}} {
		var out outbound
		alarm := energy.Alarm{Kind: energy.AlarmStuck, Host: "cmp-001", Text: "look at it", Since: span.At(at.Add(-time.Hour))}
		if err := notifier(t, &out).Alarm(t.Context(), notice.Alarm{Alarm: alarm, Over: over, At: at}); err != nil {
			t.Fatal(err)
		}
		wantSent(t, out.sent[0], want.eventType, want.priority, at, map[string]any{
			"version": "1.0", "host": "cmp-001", "kind": "stuck", "reason": "look at it", "since": "2030-01-02T02:04:05Z", "at": "2030-01-02T03:04:05Z",
		})
	}
}

func wantSent(t *testing.T, got oslo.Notification, eventType string, priority oslo.Priority, at time.Time, payload map[string]any) {
	t.Helper()
	if got.EventType != eventType || got.PublisherID != "almanac.cloud-1" || got.Priority != priority || !got.Time.Equal(at) {
		t.Errorf("the notification is %+v", got)
	}
	var said map[string]any
	if err := json.Unmarshal(got.Payload, &said); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(payload, said); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
}
