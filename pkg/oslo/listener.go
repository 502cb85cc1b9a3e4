// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
)

// ListenerOptions are the settings of a listener for notifications.
type ListenerOptions struct {
	Exchange   string   // control_exchange of the publishers
	Topics     []string // none is "notifications"
	Priorities []Priority
	// Pool names a queue of Almanac's own, bound to the same keys: each pool gets every
	// notification, and its listeners share them. "" reads the queues that the publishers create,
	// shared with all their readers.
	Pool string
	// Own makes the pool's queues private to this listener: they are deleted with it, or expire
	// after its death, and contain nothing from before it listens.
	Own    bool
	Queues QueueOptions
	// Workers bounds the notifications handled at once; 0 is 1, in order.
	Workers int
	// Handle is called with each notification, at least once. After an error the notification
	// returns to the broker, which delivers it again after Pause; an Invalid error drops it, since
	// it would never succeed.
	Handle func(ctx context.Context, n Notification) error
	// Pause is how long a worker pauses after an error; 0 is 1 s.
	Pause time.Duration
	Log   *slog.Logger
}

// Listener reads notifications.
type Listener struct {
	transport Transport
	options   ListenerOptions
	ready     chan struct{}
	slots     chan struct{}
}

// NewListener returns a listener; Serve starts it.
func NewListener(transport Transport, o ListenerOptions) *Listener {
	if len(o.Topics) == 0 {
		o.Topics = []string{defaultTopic}
	}
	o.Workers = cmp.Or(o.Workers, 1)
	o.Pause = cmp.Or(o.Pause, time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Listener{
		transport: transport,
		options:   o,
		ready:     make(chan struct{}),
		slots:     make(chan struct{}, o.Workers),
	}
}

// Ready is closed once the listener consumes its queues.
func (l *Listener) Ready() <-chan struct{} { return l.ready }

// Serve passes notifications to Handle until ctx ends, and returns when no Handle runs. It must be
// called only once. It waits for a broker that does not answer, and reconnects. It returns an
// error if the broker refuses the queues.
func (l *Listener) Serve(ctx context.Context) error {
	subscription, err := l.transport.Subscribe(ctx, l.queues(), l.options.Workers, func(d Delivery) { l.receive(ctx, d) })
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("listen for notifications: %w", err)
	}
	close(l.ready)
	select {
	case <-ctx.Done():
	case <-subscription.Done():
	}
	err = subscription.Err()
	for range cap(l.slots) {
		l.slots <- struct{}{} // each worker is done, and its acknowledgement sent
	}
	subscription.Close()
	return fault.While(err, "listen for notifications")
}

// queues returns the queues of the listener: one for each topic and priority.
func (l *Listener) queues() []Queue {
	o := l.options
	var queues []Queue
	for _, topic := range o.Topics {
		for _, priority := range o.Priorities {
			key := topic + "." + strings.ToLower(string(priority))
			if o.Own {
				queues = append(queues, o.Queues.ownQueue(o.Exchange, key, o.Pool))
			} else {
				queues = append(queues, o.Queues.topicQueue(o.Exchange, key, o.Pool))
			}
		}
	}
	return queues
}

// receive handles a message in a goroutine of its own when one of the slots is free.
func (l *Listener) receive(ctx context.Context, d Delivery) {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		_ = d.Requeue() // if this fails, the broker delivers the message again by itself
		return
	}
	go func() {
		defer func() { <-l.slots }()
		l.handle(ctx, d)
	}()
}

// handle settles a notification by its handler's result. If the connection is gone, it cannot
// settle, and the broker delivers the notification again.
func (l *Listener) handle(ctx context.Context, d Delivery) {
	n, err := decodeNotification(d.Body)
	if err != nil {
		l.options.Log.Warn("dropped a notification that cannot be parsed", "error", err)
		_ = d.Ack()
		return
	}
	err = l.options.Handle(ctx, n)
	switch {
	case err == nil:
		_ = d.Ack()
		return
	case fault.Is(err, fault.Invalid):
		l.options.Log.Warn("dropped an invalid notification", "event_type", n.EventType, "message_id", n.ID, "error", err)
		_ = d.Ack()
		return
	}
	l.options.Log.Warn("requeued a notification", "event_type", n.EventType, "message_id", n.ID, "error", err)
	_ = job.Pause(ctx, l.options.Pause)
	_ = d.Requeue()
}
