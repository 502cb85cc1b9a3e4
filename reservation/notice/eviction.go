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

// Eviction is that an instance has to go: a preemptible one, to make room for another
// request, or one that a reservation has left on a host that is promised to the next.
type Eviction struct {
	Instance, Name, ProjectID, UserID, Host string
	// At is when it has to go, Told when that was settled.
	At, Told time.Time
	// Action is what becomes of it: delete, shelve or migrate.
	Action string
	// RequestID is that of the request for which it makes room.
	RequestID string
	// Reservation is the one that is over and has left it; empty of a preemptible one.
	Reservation string
}

// eviction is what our notification of an Eviction says.
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

// Evict sends the notification of an eviction and returns when it is safe, whatever the
// formats: Blazar has no word for it.
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
