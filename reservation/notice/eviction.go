// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// The event types of an Eviction.
const (
	evictType = "preemptible.evict"
	leftType  = "reservation.evict"
)

// Eviction is the content of the notification that an instance must leave its host: a preemptible
// instance, to make room for another request, or an instance that an ended reservation left on a
// host that the next reservation needs.
type Eviction struct {
	Instance, Name, ProjectID, UserID, Host string
	// At is when the instance must leave; Told is when that was decided.
	At, Told time.Time
	// Action is what happens to the instance: delete, shelve or migrate.
	Action string
	// RequestID is the id of the request that needs the room.
	RequestID string
	// Reservation is the id of the ended reservation that left the instance; empty for a
	// preemptible instance.
	Reservation string
}

// eviction is the payload of an Eviction in Almanac's format.
type eviction struct {
	Version   string    `json:"version"`
	Instance  string    `json:"instance_id"`
	Name      string    `json:"instance_name"`
	ProjectID string    `json:"project_id"`
	UserID    string    `json:"user_id"`
	Host      string    `json:"host"`
	At        time.Time `json:"evicted_at"`
	Action    string    `json:"action"`
	RequestID string    `json:"evicted_for,omitempty"`
	Left      string    `json:"reservation_id,omitempty"`
}

// Evict sends the notification of an eviction and returns when the broker has stored it. The
// formats of the Options do not apply, since Blazar has no such notification.
func (n *Notifier) Evict(ctx context.Context, e Eviction) error {
	payload, err := json.Marshal(eviction{
		payloadVersion, e.Instance, e.Name, e.ProjectID, e.UserID, e.Host, e.At.UTC(), e.Action, e.RequestID, e.Reservation,
	})
	eventType := evictType
	if e.Reservation != "" {
		eventType = leftType
	}
	if err != nil {
		return fmt.Errorf("encode the payload of %s: %w", eventType, err)
	}
	about := oslo.NewRequestContext(e.RequestID, "")
	for key, id := range map[string]string{"user_id": e.UserID, "project_id": e.ProjectID} {
		about[key], _ = json.Marshal(id)
	}
	return n.sender.Notify(ctx, oslo.Notification{
		ID:          nameID(fmt.Sprintf("almanac:%s/%s/%d/%s", e.Instance, e.RequestID, e.Told.UnixNano(), eventType)),
		PublisherID: "almanac." + n.host, EventType: eventType, Priority: oslo.Info,
		Payload: payload, Time: e.Told, Context: about,
	})
}
