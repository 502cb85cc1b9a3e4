// SPDX-License-Identifier: Apache-2.0

package notice_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/reservation/notice"
)

// About the tenant that gets the room, the owner learns only the id of the request.
func TestAnEvictionIsToldWithWhatItsOwnerMayKnow(t *testing.T) {
	var out outbound
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.FixedZone("CET", 3600))
	e := notice.Eviction{
		Instance: "i", Name: "cheap", ProjectID: "p", UserID: "u", Host: "cmp-001", At: at, Told: at.Add(-time.Minute), Action: "shelve", RequestID: "req-1",
	}
	n := notifier(t, &out, notice.Blazar)
	for range 2 { // the second time after a lost answer
		if err := n.Evict(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	one := out.sent[0]
	if one.EventType != "preemptible.evict" || one.PublisherID != "almanac.cloud-1" || one.Priority != oslo.Info || !one.Time.Equal(e.Told) {
		t.Errorf("the notification is %+v", one)
	}
	if one.ID != out.sent[1].ID {
		t.Error("the same eviction has two message ids")
	}
	var got map[string]any
	if err := json.Unmarshal(one.Payload, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"version": "1.0", "instance_id": "i", "instance_name": "cheap", "project_id": "p", "user_id": "u", "host": "cmp-001",
		"evicted_at": "2030-01-02T02:04:05Z", "action": "shelve", "evicted_for": "req-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
	if user, project := string(one.Context["user_id"]), string(one.Context["project_id"]); user != `"u"` || project != `"p"` {
		t.Errorf("the context has user %s in project %s, want the owner", user, project)
	}
}

func TestWhatAReservationHasLeftIsToldToGoByAnEventOfItsOwn(t *testing.T) {
	var out outbound
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	e := notice.Eviction{Instance: "i", Name: "old", ProjectID: "p", UserID: "u", Host: "cmp-001", At: at, Told: at, Action: "migrate", Reservation: "r"}
	if err := notifier(t, &out, notice.Blazar).Evict(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	one := out.sent[0]
	var got map[string]any
	if err := json.Unmarshal(one.Payload, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"version": "1.0", "instance_id": "i", "instance_name": "old", "project_id": "p", "user_id": "u", "host": "cmp-001",
		"evicted_at": "2030-01-02T03:04:05Z", "action": "migrate", "reservation_id": "r",
	}
	if diff := cmp.Diff(want, got); diff != "" || one.EventType != "reservation.evict" {
		t.Errorf("event %s, payload (-want +got):\n%s", one.EventType, diff)
	}
}
