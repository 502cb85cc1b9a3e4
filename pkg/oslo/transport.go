// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"context"
	"errors"
	"time"
)

// Transport carries messages. Its methods are safe for concurrent use.
type Transport interface {
	// Publish returns once the broker has accepted the message. It waits for a broker that does
	// not answer until ctx ends. Errors are Unavailable: then the message may or may not have
	// arrived, unless errors.Is(err, ErrUnroutable). They are Conflict if the broker has an
	// exchange or queue of that name with other arguments, and Denied if the user has no right to
	// it.
	Publish(ctx context.Context, m Message) error
	// Subscribe declares the queues and calls deliver for each of their messages, one at a time
	// for each queue, until the Subscription is closed. At most prefetch messages of a queue are
	// delivered and not yet settled. It waits for a broker that does not answer until ctx ends;
	// errors as for Publish.
	Subscribe(ctx context.Context, queues []Queue, prefetch int, deliver func(Delivery)) (Subscription, error)
	// Inspect returns the status of a queue without a change. A missing queue is no error. Errors
	// are Unavailable, or Denied if the user has no right to the queue.
	Inspect(ctx context.Context, queue string) (QueueStatus, error)
}

// QueueStatus is the state of a queue at one moment.
type QueueStatus struct {
	Exists bool
	// Messages wait for a consumer; it excludes messages that are delivered and not yet
	// acknowledged.
	Messages  int
	Consumers int
}

// ErrUnroutable is the error for a mandatory message that no queue accepts.
var ErrUnroutable = errors.New("no queue is bound for the message")

// Subscription is a running Subscribe.
type Subscription interface {
	// Close stops the deliveries and returns when deliver no longer runs. It deletes queues that
	// are Temporary.
	Close()
	// Done is closed when no more messages will come.
	Done() <-chan struct{}
	// Err returns why Done was closed; nil after Close.
	Err() error
}

// Message is one message to the broker.
type Message struct {
	Exchange Exchange
	Key      string // the routing key
	// Queue is declared and bound before the message is sent, so that the message can wait there;
	// nil declares only the exchange.
	Queue *Queue
	Body  []byte
	// Expiration is how long the message may wait in a queue; 0 means forever.
	Expiration time.Duration
	// Mandatory makes Publish fail with ErrUnroutable if no queue accepts the message.
	Mandatory bool
}

// Delivery is one message from the broker. One Ack or Requeue settles it.
type Delivery struct {
	Body []byte
	// Expiration is the publisher's; 0 if it set none.
	Expiration time.Duration
	// Settle acknowledges the message, or returns it to the queue.
	Settle func(requeue bool) error
}

// Ack acknowledges the message: the broker deletes it. After an error the broker delivers it
// again.
func (d Delivery) Ack() error { return d.Settle(false) }

// Requeue returns the message to the broker, which delivers it again. On a Stream it does nothing: the
// stream keeps the message, and the other listeners have it too.
func (d Delivery) Requeue() error { return d.Settle(true) }
