// SPDX-License-Identifier: Apache-2.0

package amqp

import (
	"context"
	"errors"
	"fmt"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Inspect implements oslo.Transport. It waits at most 30 s.
func (t *Transport) Inspect(ctx context.Context, queue string) (oslo.QueueStatus, error) {
	p, found := t.publisher, make(chan oslo.QueueStatus, 1)
	err := p.within(ctx, func(ctx context.Context) error {
		status, err := p.inspect(ctx, queue)
		found <- status
		return err
	}, p.link.health.unavailable)
	if err != nil {
		return oslo.QueueStatus{}, fmt.Errorf("inspect queue %s: %w", queue, err)
	}
	return <-found, nil
}

// inspect returns how many messages and consumers a queue has, without declaring it.
func (p *publisher) inspect(ctx context.Context, queue string) (oslo.QueueStatus, error) {
	if _, err := p.link.enter(ctx); err != nil {
		return oslo.QueueStatus{}, err
	}
	defer p.link.mu.RUnlock()
	o, err := p.take()
	if err != nil {
		return oslo.QueueStatus{}, &fault.Error{Kind: fault.Unavailable, Err: err, Message: "the connection to the message broker was lost"}
	}
	defer p.put(o)
	found, err := o.ch.QueueDeclarePassive(queue, false, false, false, false, nil)
	if err == nil {
		return oslo.QueueStatus{Exists: true, Messages: found.Messages, Consumers: found.Consumers}, nil
	}
	// The broker closes the channel with every refusal.
	p.link.reopenEntered(o.ch)
	if refused, ok := errors.AsType[*amqp091.Error](err); ok && refused.Code == amqp091.NotFound {
		return oslo.QueueStatus{}, nil
	}
	return oslo.QueueStatus{}, declareError("queue", queue, err)
}
