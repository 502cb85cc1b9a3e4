// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Priority is the urgency of a notification and the suffix of its topic.
type Priority string

// The priorities of oslo_messaging/notify/notifier.py.
const (
	Audit    Priority = "AUDIT"
	Debug    Priority = "DEBUG"
	Info     Priority = "INFO"
	Warn     Priority = "WARN"
	Error    Priority = "ERROR"
	Critical Priority = "CRITICAL"
	Sample   Priority = "SAMPLE"
)

// Notification is one event for all listeners.
type Notification struct {
	// ID stays the same if the notification is sent or delivered again.
	ID          string
	PublisherID string // "service.host"
	EventType   string // "reservation.create.end"
	Priority    Priority
	Payload     json.RawMessage
	Time        time.Time
	Context     Context
}

type notificationBody struct {
	ID          string          `json:"message_id"`
	PublisherID string          `json:"publisher_id"`
	EventType   string          `json:"event_type"`
	Priority    Priority        `json:"priority"`
	Payload     json.RawMessage `json:"payload"`
	Timestamp   string          `json:"timestamp"`
	Unique      string          `json:"_unique_id,omitempty"`
}

// timestampLayout is the form of Python's str() of a time, in UTC.
const timestampLayout = "2006-01-02 15:04:05.000000"

// NotifierOptions are the settings of a notifier.
type NotifierOptions struct {
	Exchange    string // control_exchange
	PublisherID string
	Topics      []string // [oslo_messaging_notifications] topics; none is "notifications"
	Queues      QueueOptions
	// NewID returns a random UUID.
	NewID func() string
	Now   func() time.Time
}

// Notifier sends notifications.
type Notifier struct {
	transport Transport
	options   NotifierOptions
}

const defaultTopic = "notifications"

// NewNotifier returns a notifier.
func NewNotifier(transport Transport, o NotifierOptions) *Notifier {
	if len(o.Topics) == 0 {
		o.Topics = []string{defaultTopic}
	}
	return &Notifier{transport: transport, options: o}
}

// Notify sends n on each topic and returns once the broker has stored it. It fills in an empty ID,
// PublisherID, Priority, Time or Context: a new id, the notifier's publisher, Info, now, and the
// Context of ctx without its secrets. It creates the queue "topic.priority" if it does not exist,
// so that notifications wait for their first listener. After an error some topics may have the
// notification: send it again with the same ID.
func (n *Notifier) Notify(ctx context.Context, event Notification) error {
	o := n.options
	event.ID = cmp.Or(event.ID, o.NewID())
	event.PublisherID = cmp.Or(event.PublisherID, o.PublisherID)
	event.Priority = cmp.Or(event.Priority, Info)
	if event.Time.IsZero() {
		event.Time = o.Now()
	}
	if event.Context == nil {
		event.Context = ContextOf(ctx)
	}
	for _, topic := range o.Topics {
		body, err := event.encode(hexOf(o.NewID()))
		if err != nil {
			return fmt.Errorf("encode notification %s: %w", event.EventType, err)
		}
		queue := o.Queues.topicQueue(o.Exchange, topic+"."+strings.ToLower(string(event.Priority)), "")
		m := Message{Exchange: queue.Exchange, Key: queue.Key, Queue: &queue, Body: body, Mandatory: true}
		if err := n.transport.Publish(ctx, m); err != nil {
			return fmt.Errorf("notify %s on %s: %w", event.EventType, queue.Key, err)
		}
	}
	return nil
}

// encode returns the notification as it is sent, with unique as its _unique_id and without secrets.
func (n Notification) encode(unique string) ([]byte, error) {
	raw, err := Marshal(notificationBody{
		ID: n.ID, PublisherID: n.PublisherID, EventType: n.EventType, Priority: n.Priority,
		Payload: n.Payload, Timestamp: n.Time.UTC().Format(timestampLayout), Unique: unique,
	})
	if err != nil {
		return nil, err
	}
	fields := map[string]json.RawMessage{}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&fields); err != nil {
		return nil, err
	}
	n.Context.withoutSecrets().pack(fields)
	return seal(fields)
}

// decodeNotification returns the notification in a message.
func decodeNotification(raw []byte) (Notification, error) {
	fields, err := unseal(raw)
	if err != nil {
		return Notification{}, err
	}
	var body notificationBody
	for name, value := range map[string]any{
		"message_id": &body.ID, "publisher_id": &body.PublisherID, "event_type": &body.EventType,
		"priority": &body.Priority, "payload": &body.Payload, "timestamp": &body.Timestamp,
	} {
		if err := field(fields, name, value); err != nil {
			return Notification{}, err
		}
	}
	return Notification{
		ID: body.ID, PublisherID: body.PublisherID, EventType: body.EventType, Priority: body.Priority,
		Payload: body.Payload, Time: parseTimestamp(body.Timestamp), Context: unpackContext(fields),
	}, nil
}

// parseTimestamp parses the output of Python's str() or isoformat(), in UTC; the zero time if it
// cannot.
func parseTimestamp(text string) time.Time {
	text = strings.Replace(text, "T", " ", 1)
	for _, layout := range []string{"2006-01-02 15:04:05.999999", "2006-01-02 15:04:05.999999Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
