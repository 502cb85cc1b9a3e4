package oslo

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// ListenerOptions describe a listener for notifications.
type ListenerOptions struct {
	Exchange   string   // control_exchange of the publishers
	Topics     []string // none is "notifications"
	Priorities []Priority
	// Pool names a queue of our own, bound to the same keys: listeners of one
	// pool share what another pool gets too. "" reads the queues that the
	// publishers make, shared with everybody who does.
	Pool string
	// Own has the pool's queues belong to this listener: they go with it, or expire
	// when it has died, and what was sent before it listens is not for it.
	Own    bool
	Queues QueueOptions
	// Workers bounds the notifications handled at once; 0 is 1, in order.
	Workers int
	// Handle is told each notification, at least once. An error gives it back to
	// the broker, to come again after Pause; one that is Invalid drops it, since
	// it would never succeed.
	Handle func(ctx context.Context, n Notification) error
	// Pause is how long a worker rests after an error; 0 is 1 s.
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

// NewListener gives a listener; Serve starts it.
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

// Ready is closed once the queues are there and read.
func (l *Listener) Ready() <-chan struct{} { return l.ready }

// Serve hands notifications to Handle until ctx ends, and returns when none is
// being handled. It is called once. A broker that is away or comes and goes is
// waited for. An error means that it cannot listen: the broker refuses the
// queues.
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
	if err != nil {
		return fmt.Errorf("listen for notifications: %w", err)
	}
	return nil
}

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

func (l *Listener) receive(ctx context.Context, d Delivery) {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		_ = d.Requeue() // what cannot be given back now comes back by itself
		return
	}
	go func() {
		defer func() { <-l.slots }()
		l.handle(ctx, d)
	}()
}

// handle settles a notification by what its handler says. What cannot be
// settled, because the connection is gone, the broker delivers again.
func (l *Listener) handle(ctx context.Context, d Delivery) {
	n, err := decodeNotification(d.Body)
	if err != nil {
		l.options.Log.Warn("dropped a notification that is not readable", "error", err)
		_ = d.Ack()
		return
	}
	err = l.options.Handle(ctx, n)
	switch {
	case err == nil:
		_ = d.Ack()
		return
	case fault.Is(err, fault.Invalid):
		l.options.Log.Warn("dropped a notification", "event_type", n.EventType, "message_id", n.ID, "error", err)
		_ = d.Ack()
		return
	}
	l.options.Log.Warn("a notification comes again", "event_type", n.EventType, "message_id", n.ID, "error", err)
	select {
	case <-ctx.Done():
	case <-time.After(l.options.Pause):
	}
	_ = d.Requeue()
}
