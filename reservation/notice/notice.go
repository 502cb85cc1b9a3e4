// SPDX-License-Identifier: Apache-2.0

// Package notice sends stored changes as oslo notifications.
//
// Each change is sent in two formats; the operator may choose one of them:
//
//   - almanac: event types reservation.*, which eventTypes lists, published by almanac.<host>.
//     The payload is what REST shows an admin, and the claims.
//   - blazar: event types lease.*, published by blazar.lease, with Blazar's payload
//     since October 2025, so that consumers of Blazar's notifications can read them
//     (blazar/notification/api.py).
//
// Notifications of evictions and of switched hosts exist in Almanac's format only.
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

// Sender sends a notification on all topics and returns when the broker has it.
// *oslo.Notifier implements it.
type Sender interface {
	Notify(ctx context.Context, n oslo.Notification) error
}

// Options describe a Notifier.
type Options struct {
	Sender Sender
	Host   string // the name of this machine, for the publisher id
	// Formats are the formats that are sent; empty means both.
	Formats []string
}

// Notifier sends notifications of changes.
type Notifier struct {
	sender  Sender
	host    string
	formats []string
}

// Formats are all formats.
var Formats = []string{Almanac, Blazar}

// New returns a notifier, or an Invalid fault on field formats if a format is unknown.
func New(o Options) (*Notifier, error) {
	for _, format := range o.Formats {
		if !slices.Contains(Formats, format) {
			return nil, fault.Field("formats", "%s", fault.Unknown("format", format, Formats))
		}
	}
	if len(o.Formats) == 0 {
		o.Formats = Formats
	}
	return &Notifier{o.Sender, o.Host, o.Formats}, nil
}

// Notify sends the notifications of a change and returns when the broker has them. Some
// changes have none, such as an event that has begun. After an error some notifications may
// have been sent. A second call with the same change uses the same message ids, so that
// consumers can drop duplicates.
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

// events returns the notifications of a change, in the configured formats.
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

// requestOf returns the context of the request that caused the change.
func requestOf(change reservation.Change) oslo.Context {
	c := oslo.NewRequestContext(change.RequestID, "")
	for key, id := range map[string]string{"user_id": change.UserID, "project_id": change.Reservation.ProjectID} {
		if id != "" {
			c[key], _ = json.Marshal(id)
		}
	}
	return c
}

// messageID returns a different id for each event of each stored version of a reservation. After
// the restoration of an older backup, a version may have the same number as one that was lost; the
// time of the change distinguishes them.
func messageID(change reservation.Change, eventType string) string {
	r := &change.Reservation
	return nameID(fmt.Sprintf("almanac:%s/%d/%d/%s", r.ID, r.Version, int64(change.At), eventType))
}

// nameID returns the UUID, version 5, of a URL.
func nameID(url string) string { return uuid.NewSHA1(uuid.NameSpaceURL, []byte(url)).String() }
