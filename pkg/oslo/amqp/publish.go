// SPDX-License-Identifier: Apache-2.0

package amqp

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

const (
	// publishersAtOnce bounds the messages that wait for their confirmation.
	publishersAtOnce = 32
	// publishTimeout bounds every Publish and Inspect; an earlier deadline of ctx counts too.
	publishTimeout = 30 * time.Second
)

// publisher publishes messages, each on a channel of its own, so that the broker's returns and
// errors on the channel concern that message.
type publisher struct {
	link  *link
	slots chan struct{}

	mu   sync.Mutex
	idle []*outlet
}

// outlet is a channel in confirm mode. It is kept for the life of the link: the library reopens
// it, and a channel that is closed while the connection is down would prevent the recovery of the
// connection.
type outlet struct {
	ch       *amqp091.Channel
	returned chan amqp091.Return
	closed   chan *amqp091.Error
}

func newPublisher(l *link) *publisher {
	return &publisher{link: l, slots: make(chan struct{}, publishersAtOnce)}
}

// Publish implements oslo.Transport. It waits at most 30 s.
func (t *Transport) Publish(ctx context.Context, m oslo.Message) error {
	p := t.publisher
	return p.within(ctx, func(ctx context.Context) error { return p.publish(ctx, m) },
		func() error { return p.link.health.unconfirmed("the broker did not accept it in time") })
}

// within runs act, which uses the broker, for at most 30 s. late returns the error if act takes
// longer.
func (p *publisher) within(ctx context.Context, act func(ctx context.Context) error, late func() error) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return p.link.health.unavailable()
	}
	// A hanging broker blocks act; the caller returns when ctx ends.
	result := make(chan error, 1)
	if !p.link.begin() {
		<-p.slots
		return errClosed()
	}
	go func() {
		defer p.link.tasks.Done()
		defer func() { <-p.slots }()
		result <- act(ctx)
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-result: // act's own error is more precise
		return err
	case <-time.After(publishGrace):
		return late()
	}
}

// publishGrace is how long within waits for act's own error after the deadline.
const publishGrace = 100 * time.Millisecond

// publish sends a message and waits until the broker has confirmed it. It fails if no queue takes the
// message, if the broker rejects it, or if the confirmation does not come in time.
func (p *publisher) publish(ctx context.Context, m oslo.Message) error {
	s, err := p.link.enter(ctx)
	if err != nil {
		return err
	}
	o, confirmed, err := p.send(s, m)
	p.link.mu.RUnlock()
	if err != nil {
		p.put(o)
		return err
	}
	select {
	case <-confirmed.Done():
	case failed, ok := <-o.closed:
		if !ok {
			return errClosed()
		}
		p.link.reopen(o.ch)
		p.put(o)
		s.forget(m)
		return p.link.health.unconfirmed(failed.Reason)
	case <-ctx.Done():
		go p.putLater(o, confirmed)
		return p.link.health.unconfirmed("no answer in time")
	}
	defer p.put(o)
	select {
	case _, ok := <-o.returned:
		if !ok {
			return errClosed()
		}
		s.forget(m)
		return &fault.Error{Kind: fault.Unavailable, Message: fmt.Sprintf("no queue is bound for %q", m.Key), Err: oslo.ErrUnroutable}
	default:
	}
	if !confirmed.Acked() {
		return p.link.health.unconfirmed("the broker rejected it")
	}
	return nil
}

// send declares m's exchange and queue and sends m.
func (p *publisher) send(s *session, m oslo.Message) (*outlet, *amqp091.DeferredConfirmation, error) {
	o, err := p.take()
	if err != nil {
		return nil, nil, p.link.health.unconfirmed(err.Error())
	}
	if err := s.declare(o.ch, m); err != nil {
		p.link.reopenEntered(o.ch)
		return o, nil, err
	}
	publishing := amqp091.Publishing{
		ContentType:     "application/json",
		ContentEncoding: "utf-8",
		DeliveryMode:    amqp091.Persistent,
		Body:            m.Body,
	}
	if m.Expiration > 0 {
		publishing.Expiration = strconv.FormatInt(m.Expiration.Milliseconds(), 10)
	}
	confirmed, err := o.ch.PublishWithDeferredConfirm(m.Exchange.Name, m.Key, m.Mandatory, false, publishing)
	if err != nil {
		return o, nil, p.link.health.unconfirmed(err.Error())
	}
	return o, confirmed, nil
}

// take returns an idle, open channel, or a new one.
func (p *publisher) take() (*outlet, error) {
	p.mu.Lock()
	var o *outlet
	if n := len(p.idle); n > 0 {
		o, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if o != nil {
		o.drain()
		p.link.reopenEntered(o.ch)
		return o, nil
	}
	ch, err := p.link.conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	return &outlet{
		ch:       ch,
		returned: ch.NotifyReturn(make(chan amqp091.Return, 1)),
		closed:   ch.NotifyClose(make(chan *amqp091.Error, 1)),
	}, nil
}

// drain discards the broker's notices about the previous message: at most one of each kind, since
// every message is preceded by a drain. The library closes both channels with the connection.
func (o *outlet) drain() {
	select {
	case <-o.returned:
	default:
	}
	select {
	case <-o.closed:
	default:
	}
}

// put makes an outlet idle; it ignores nil.
func (p *publisher) put(o *outlet) {
	if o == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, o)
}

// putLater makes an outlet idle after the broker's answer about the abandoned message, so that the
// next message does not get that answer.
func (p *publisher) putLater(o *outlet, confirmed *amqp091.DeferredConfirmation) {
	select {
	case <-confirmed.Done():
	case <-o.closed:
		p.link.reopen(o.ch)
	}
	p.put(o)
}

func (p *publisher) close() error { return p.link.close() }

// reopen opens a channel that the broker closed, if there is a connection; otherwise the
// connection's recovery reopens it.
func (l *link) reopen(ch *amqp091.Channel) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	l.reopenEntered(ch)
}

func (l *link) reopenEntered(ch *amqp091.Channel) {
	if l.session != nil && ch.IsClosed() {
		_ = ch.Reconnect() // tried again at its next use
	}
}
