// SPDX-License-Identifier: Apache-2.0

package amqp

import (
	"errors"
	"fmt"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// declare ensures that m's exchange and queue exist. It declares an exchange with AutoDelete each
// time, since it disappears with its last queue.
func (s *session) declare(ch *amqp091.Channel, m oslo.Message) error {
	if m.Exchange.Name == "" {
		return nil
	}
	if s.known(exchangeKey(m)) && (m.Queue == nil || s.known(queueKey(m))) {
		return nil
	}
	if m.Queue != nil {
		if err := declareQueue(ch, *m.Queue); err != nil {
			return err
		}
		s.learn(queueKey(m))
	} else if err := declareExchange(ch, m.Exchange); err != nil {
		return err
	}
	if !m.Exchange.AutoDelete {
		s.learn(exchangeKey(m))
	}
	return nil
}

func exchangeKey(m oslo.Message) string { return "exchange " + m.Exchange.Name }
func queueKey(m oslo.Message) string    { return "queue " + m.Queue.Name + " " + m.Exchange.Name }

func (s *session) known(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.declared[key]
}

func (s *session) learn(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.declared[key] = true
}

// forget makes declare declare m's exchange and queue again, because they were deleted.
func (s *session) forget(m oslo.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.declared, exchangeKey(m))
	if m.Queue != nil {
		delete(s.declared, queueKey(m))
	}
}

// declareExchange declares an exchange; an error names it and what differs.
func declareExchange(ch *amqp091.Channel, e oslo.Exchange) error {
	if err := ch.ExchangeDeclare(e.Name, string(e.Kind), e.Durable, e.AutoDelete, false, false, nil); err != nil {
		return declareError("exchange", e.Name, err)
	}
	return nil
}

// declareQueue declares q and its exchange and binds them.
func declareQueue(ch *amqp091.Channel, q oslo.Queue) error {
	if q.Exchange.Name != "" {
		if err := declareExchange(ch, q.Exchange); err != nil {
			return err
		}
	}
	if _, err := ch.QueueDeclare(q.Name, q.Durable, q.AutoDelete, false, false, q.Args); err != nil {
		return declareError("queue", q.Name, err)
	}
	if q.Exchange.Name == "" {
		return nil
	}
	if err := ch.QueueBind(q.Name, q.Key, q.Exchange.Name, false, nil); err != nil {
		return declareError("binding of queue", q.Name, err)
	}
	return nil
}

// declareError distinguishes errors that persist (Conflict, Denied) from temporary ones
// (Unavailable).
func declareError(what, name string, err error) error {
	if refusesTransient(err) {
		return &fault.Error{Kind: fault.Unavailable, Err: err, Message: fmt.Sprintf("RabbitMQ refuses the queue %s, as it refuses all queues that are "+
			"transient and not exclusive: set rabbit_transient_quorum_queue = true in [oslo_messaging_rabbit], here and in the other services that use the topic", name)}
	}
	if refused, ok := errors.AsType[*amqp091.Error](err); ok {
		switch refused.Code {
		case amqp091.PreconditionFailed:
			return &fault.Error{Kind: fault.Conflict, Err: err, Message: fmt.Sprintf("the %s %s exists with other arguments; set amqp_durable_queues, rabbit_quorum_queue and similar options as the other services do", what, name)}
		case amqp091.AccessRefused:
			return &fault.Error{Kind: fault.Denied, Err: err, Message: fmt.Sprintf("the user of transport_url may not use the %s %s", what, name)}
		}
	}
	return &fault.Error{Kind: fault.Unavailable, Err: err, Message: fmt.Sprintf("the %s %s could not be declared", what, name)}
}

// refusesTransient reports whether the broker refuses queues that are transient and not exclusive
// (deprecated_features.permit.transient_nonexcl_queues of RabbitMQ 4).
func refusesTransient(err error) bool {
	refused, ok := errors.AsType[*amqp091.Error](err)
	return ok && refused.Code == amqp091.InternalError && strings.Contains(refused.Reason, "transient_nonexcl_queues")
}

// final reports whether another attempt would fail too.
func final(err error) bool { return fault.Is(err, fault.Conflict) || fault.Is(err, fault.Denied) }
