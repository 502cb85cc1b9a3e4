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
	// publishersAtOnce bounds the messages waiting for their confirmation.
	publishersAtOnce = 32
	// publishTimeout bounds a Publish whose ctx has no deadline.
	publishTimeout = 30 * time.Second
)

// publisher publishes messages, each on a channel it has for itself: what the
// broker returns or complains about there is about this message.
type publisher struct {
	link  *link
	slots chan struct{}

	mu   sync.Mutex
	idle []*outlet
}

// outlet is a channel in confirm mode. It is kept for the life of the link: the
// library reopens it, and a channel closed while the connection is down would
// keep the connection from recovering.
type outlet struct {
	ch       *amqp091.Channel
	returned chan amqp091.Return
	closed   chan *amqp091.Error
}

func newPublisher(l *link) *publisher {
	return &publisher{link: l, slots: make(chan struct{}, publishersAtOnce)}
}

// Publish publishes m; see oslo.Transport. Without a deadline in ctx it ends
// after 30 s.
func (t *Transport) Publish(ctx context.Context, m oslo.Message) error {
	p := t.publisher
	return p.within(ctx, func(ctx context.Context) error { return p.publish(ctx, m) },
		func() error { return p.link.health.unconfirmed("it was not taken in time") })
}

// within lets act speak to the broker, for 30 s where ctx has no deadline. late gives
// the error where that takes longer.
func (p *publisher) within(ctx context.Context, act func(ctx context.Context) error, late func() error) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return p.link.health.unavailable()
	}
	// A broker that hangs holds whoever sends; the caller goes when ctx ends.
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
	case err := <-result: // it knows better why
		return err
	case <-time.After(publishGrace):
		return late()
	}
}

// publishGrace is how long a Publish at its end waits for its own error.
const publishGrace = 100 * time.Millisecond

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
		return &fault.Error{Kind: fault.Unavailable, Message: fmt.Sprintf("nobody has a queue for %q", m.Key), Err: oslo.ErrUnroutable}
	default:
	}
	if !confirmed.Acked() {
		return p.link.health.unconfirmed("the broker said no")
	}
	return nil
}

// send declares what m needs and sends it.
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

// take gives a channel that is open and free, and makes one where there is none.
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

// drain forgets what was said about the message before: one thing of a kind,
// since every message is drained. The library closes both with the connection.
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

// put gives an outlet back; nil is none.
func (p *publisher) put(o *outlet) {
	if o == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, o)
}

// putLater gives an outlet back when the broker has said what it has to say
// about the message that was given up: the next one is not to hear it.
func (p *publisher) putLater(o *outlet, confirmed *amqp091.DeferredConfirmation) {
	select {
	case <-confirmed.Done():
	case <-o.closed:
		p.link.reopen(o.ch)
	}
	p.put(o)
}

func (p *publisher) close() error { return p.link.close() }

// reopen opens a channel that the broker closed, if the connection is there;
// else the connection's recovery does.
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
