package oslo

import (
	"context"
	"errors"
	"time"
)

// Transport carries messages. Its methods may be called at the same time.
type Transport interface {
	// Publish returns once the broker has taken the message. It waits for a
	// broker that is away until ctx ends. Errors are Unavailable: nobody knows
	// then whether the message arrived, unless errors.Is(err, ErrUnroutable);
	// Conflict where the broker has an exchange or queue of that name with other
	// arguments, Denied where it does not let us use it.
	Publish(ctx context.Context, m Message) error
	// Subscribe declares the queues and calls deliver for each of their
	// messages, one at a time for each queue, until the Subscription is closed.
	// At most prefetch messages of a queue are handed out and not yet settled.
	// It waits for a broker that is away until ctx ends; errors as Publish.
	Subscribe(ctx context.Context, queues []Queue, prefetch int, deliver func(Delivery)) (Subscription, error)
	// Inspect looks at a queue and changes nothing. A queue that is not there is no
	// error. Errors are Unavailable, or Denied: the user has no right to the queue.
	Inspect(ctx context.Context, queue string) (QueueStatus, error)
}

// QueueStatus is how a queue is at a moment.
type QueueStatus struct {
	Exists bool
	// Messages wait for a consumer; those that one has taken and not acknowledged yet
	// are not among them.
	Messages  int
	Consumers int
}

// ErrUnroutable says that a mandatory message had no queue to go to.
var ErrUnroutable = errors.New("no queue takes the message")

// Subscription is a running Subscribe.
type Subscription interface {
	// Close stops the deliveries and returns when deliver is no longer running.
	// Queues that are Temporary go with it.
	Close()
	// Done is closed when no message will come any more.
	Done() <-chan struct{}
	// Err says why Done was closed; nil after Close.
	Err() error
}

// Message is one message on its way to the broker.
type Message struct {
	Exchange Exchange
	Key      string // the routing key
	// Queue is declared and bound first, so that the message has a place to
	// wait; nil declares the exchange alone.
	Queue *Queue
	Body  []byte
	// Expiration is how long the message may wait in a queue; 0 for ever.
	Expiration time.Duration
	// Mandatory makes a message that no queue takes an ErrUnroutable.
	Mandatory bool
}

// Delivery is one message from the broker. It is settled by one Ack or Requeue.
type Delivery struct {
	Body []byte
	// Expiration is what the publisher set; 0 if it set none.
	Expiration time.Duration
	// Settle ends the delivery, or gives it back to the queue.
	Settle func(requeue bool) error
}

// Ack ends the delivery: the broker forgets the message. An error says that
// the broker will deliver it again.
func (d Delivery) Ack() error { return d.Settle(false) }

// Requeue gives the message back, to be delivered again.
func (d Delivery) Requeue() error { return d.Settle(true) }
