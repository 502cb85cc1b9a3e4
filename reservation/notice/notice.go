// Package notice tells the world of stored changes, as oslo notifications.
//
// Each change is told in two formats, of which the operator may choose one:
//
//   - almanac: event types reservation.create, .change, .cancel, .start,
//     .before_end, .end, .heal, .degrade, .restore and .image, published by almanac.<host>.
//     The payload is what REST shows an admin, and the claims.
//   - blazar: event types lease.*, published by blazar.lease, with the payload
//     that Blazar gives them since October 2025, so that what reads Blazar's
//     notifications reads these (blazar/notification/api.py).
//
// What is told beside, of preemptible instances that leave and of hosts that are switched
// on and off, has our format alone.
package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/reservation"
)

// The formats.
const (
	Almanac = "almanac"
	Blazar  = "blazar"
)

// Sender sends a notification on all topics and returns when it is safe;
// *oslo.Notifier does.
type Sender interface {
	Notify(ctx context.Context, n oslo.Notification) error
}

// Options describe a Notifier.
type Options struct {
	Sender Sender
	Host   string // name of this machine, for the publisher id
	// Formats are those sent; none is both.
	Formats []string
}

// Notifier sends notifications of changes.
type Notifier struct {
	sender  Sender
	host    string
	formats []string
}

// New gives a notifier. A format that is not known is an Invalid fault on field
// formats.
func New(o Options) (*Notifier, error) {
	known := []string{Almanac, Blazar}
	for _, format := range o.Formats {
		if !slices.Contains(known, format) {
			return nil, fault.Field("formats", "%s", fault.Unknown("format", format, known))
		}
	}
	if len(o.Formats) == 0 {
		o.Formats = known
	}
	return &Notifier{o.Sender, o.Host, o.Formats}, nil
}

// Notify sends the notifications of a change and returns when they are safe. A
// change that is nobody's business, such as an event that has begun, has none.
// After an error some may have been sent: a call with the same change gives them
// the same message ids, so that consumers can drop what repeats.
func (n *Notifier) Notify(ctx context.Context, change reservation.Change) error {
	for _, event := range n.events(change) {
		payload, err := json.Marshal(event.payload)
		if err != nil {
			return fmt.Errorf("encode the payload of %s: %w", event.eventType, err)
		}
		err = n.sender.Notify(ctx, oslo.Notification{
			ID:          messageID(change, event.eventType),
			PublisherID: event.publisher,
			EventType:   event.eventType,
			Priority:    event.priority,
			Payload:     payload,
			Time:        change.At.Time(),
			Context:     requestOf(change),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// event is one notification of a change.
type event struct {
	publisher, eventType string
	priority             oslo.Priority
	payload              any
}

func (n *Notifier) events(change reservation.Change) []event {
	var events []event
	if slices.Contains(n.formats, Almanac) {
		events = append(events, ours(change, n.host)...)
	}
	if slices.Contains(n.formats, Blazar) {
		events = append(events, leaseEvents(change)...)
	}
	return events
}

// requestOf gives the context of the request that led to the change.
func requestOf(change reservation.Change) oslo.Context {
	c := oslo.NewRequestContext(change.RequestID, "")
	for key, id := range map[string]string{"user_id": change.UserID, "project_id": change.Reservation.ProjectID} {
		if id != "" {
			c[key], _ = json.Marshal(id)
		}
	}
	return c
}

// messageID gives each event of each stored version of a reservation an id of its
// own. The time of the change tells a version from one of the same number that was
// lost when an older backup was put back.
func messageID(change reservation.Change, eventType string) string {
	r := &change.Reservation
	return nameID(fmt.Sprintf("almanac:%s/%d/%d/%s", r.ID, r.Version, int64(change.At), eventType))
}

// nameID returns the UUID, version 5, of a URL.
func nameID(url string) string { return uuid.NewSHA1(uuid.NameSpaceURL, []byte(url)).String() }
