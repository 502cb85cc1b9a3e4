package amqp

import (
	"context"
	"errors"
	"fmt"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// QueueStatus is how a queue is at a moment.
type QueueStatus struct {
	Exists bool
	// Messages wait for a consumer; those that one has taken and not acknowledged yet
	// are not among them.
	Messages  int
	Consumers int
}

// Inspect looks at a queue and changes nothing. A queue that is not there is no error.
// Without a deadline in ctx it ends after 30 s. Errors are Unavailable, or Denied: the
// user has no right to the queue.
func (t *Transport) Inspect(ctx context.Context, queue string) (QueueStatus, error) {
	p, found := t.publisher, make(chan QueueStatus, 1)
	err := p.within(ctx, func(ctx context.Context) error {
		status, err := p.inspect(ctx, queue)
		found <- status
		return err
	}, p.link.health.unavailable)
	if err != nil {
		return QueueStatus{}, fmt.Errorf("look at queue %s: %w", queue, err)
	}
	return <-found, nil
}

func (p *publisher) inspect(ctx context.Context, queue string) (QueueStatus, error) {
	if _, err := p.link.enter(ctx); err != nil {
		return QueueStatus{}, err
	}
	defer p.link.mu.RUnlock()
	o, err := p.take()
	if err != nil {
		return QueueStatus{}, &fault.Error{Kind: fault.Unavailable, Err: err, Message: "the message broker was lost"}
	}
	defer p.put(o)
	found, err := o.ch.QueueDeclarePassive(queue, false, false, false, false, nil)
	if err == nil {
		return QueueStatus{Exists: true, Messages: found.Messages, Consumers: found.Consumers}, nil
	}
	// The broker closes the channel with every refusal.
	p.link.reopenEntered(o.ch)
	if refused, ok := errors.AsType[*amqp091.Error](err); ok && refused.Code == amqp091.NotFound {
		return QueueStatus{}, nil
	}
	return QueueStatus{}, declareError("queue", queue, err)
}
