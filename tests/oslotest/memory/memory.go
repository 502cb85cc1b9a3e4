// SPDX-License-Identifier: Apache-2.0

// Package memory carries oslo messages inside one process. It acts like a broker that never fails:
// messages wait in their queues for a subscription, whatever their expiration. Nothing survives
// the process.
package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// longestQueue is how many messages a queue may contain.
const longestQueue = 10_000

// Broker is an oslo.Transport inside the process.
type Broker struct {
	mu        sync.Mutex
	queues    map[string]*queue
	exchanges map[string]oslo.Exchange
	bound     map[binding][]*queue
	running   map[*subscription]bool
	closed    bool
}

// binding is the exchange and key that route a message to a queue; the key of a fanout exchange is
// empty.
type binding struct{ exchange, key string }

// New returns an empty broker. The caller must Close it.
func New() *Broker {
	return &Broker{
		queues:    map[string]*queue{},
		exchanges: map[string]oslo.Exchange{},
		bound:     map[binding][]*queue{},
		running:   map[*subscription]bool{},
	}
}

// Publish adds the message to its queues; see oslo.Transport. It fails with an Unavailable fault
// if a queue has 10,000 messages.
func (b *Broker) Publish(ctx context.Context, m oslo.Message) error {
	if err := inTime(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed()
	}
	if err := b.declareExchange(m.Exchange); err != nil {
		return err
	}
	if m.Queue != nil {
		if _, err := b.declare(*m.Queue); err != nil {
			return err
		}
	}
	targets := b.route(m)
	if len(targets) == 0 && m.Mandatory {
		return &fault.Error{Kind: fault.Unavailable, Message: fmt.Sprintf("no queue is bound for %q", m.Key), Err: oslo.ErrUnroutable}
	}
	for _, q := range targets {
		if len(q.waiting) >= longestQueue {
			return fault.New(fault.Unavailable, "the queue %s is full", q.declared.Name)
		}
	}
	for _, q := range targets {
		q.put(item{body: slices.Clone(m.Body), expiration: m.Expiration})
	}
	return nil
}

func (b *Broker) route(m oslo.Message) []*queue {
	switch {
	case m.Exchange.Name == "":
		if q, ok := b.queues[m.Key]; ok {
			return []*queue{q}
		}
		return nil
	case m.Exchange.Kind == oslo.Fanout:
		return b.bound[binding{m.Exchange.Name, ""}]
	}
	return b.bound[binding{m.Exchange.Name, m.Key}]
}

func (b *Broker) declareExchange(e oslo.Exchange) error {
	if known, ok := b.exchanges[e.Name]; ok && known != e {
		return fault.New(fault.Conflict, "the exchange %s is declared with other arguments", e.Name)
	}
	b.exchanges[e.Name] = e
	return nil
}

// declare returns the queue, creates it if necessary, and binds it.
func (b *Broker) declare(want oslo.Queue) (*queue, error) {
	if err := b.declareExchange(want.Exchange); err != nil {
		return nil, err
	}
	q, ok := b.queues[want.Name]
	if !ok {
		q = &queue{declared: want, changed: make(chan struct{})}
		b.queues[want.Name] = q
	}
	if q.declared.Durable != want.Durable || fmt.Sprint(q.declared.Args) != fmt.Sprint(want.Args) {
		return nil, fault.New(fault.Conflict, "the queue %s is declared with other arguments", want.Name)
	}
	if want.Exchange.Name != "" {
		at := binding{want.Exchange.Name, want.Key}
		if want.Exchange.Kind == oslo.Fanout {
			at.key = ""
		}
		if !slices.Contains(b.bound[at], q) {
			b.bound[at] = append(b.bound[at], q)
		}
	}
	return q, nil
}

// delete deletes a queue and its messages.
func (b *Broker) delete(name string) {
	q, ok := b.queues[name]
	if !ok {
		return
	}
	delete(b.queues, name)
	for at, queues := range b.bound {
		b.bound[at] = slices.DeleteFunc(queues, func(other *queue) bool { return other == q })
	}
}

// Inspect implements oslo.Transport.
func (b *Broker) Inspect(ctx context.Context, name string) (oslo.QueueStatus, error) {
	if err := inTime(ctx); err != nil {
		return oslo.QueueStatus{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return oslo.QueueStatus{}, errClosed()
	}
	q, there := b.queues[name]
	if !there {
		return oslo.QueueStatus{}, nil
	}
	status := oslo.QueueStatus{Exists: true, Messages: len(q.waiting)}
	for s := range b.running {
		if slices.Contains(s.queues, q) {
			status.Consumers++
		}
	}
	return status, nil
}

// Close ends all subscriptions.
func (b *Broker) Close() error {
	b.mu.Lock()
	b.closed = true
	var running []*subscription
	for s := range b.running {
		running = append(running, s)
	}
	b.mu.Unlock()
	for _, s := range running {
		s.end(errClosed())
	}
	return nil
}

// inTime returns an Unavailable fault if ctx has ended, as a transport to a broker does.
func inTime(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &fault.Error{Kind: fault.Unavailable, Message: "the message broker did not answer in time", Err: err}
	}
	return nil
}

func errClosed() error { return fault.New(fault.Unavailable, "the message broker is being closed") }

// queue has the waiting messages. The broker's mutex guards it.
type queue struct {
	declared oslo.Queue
	waiting  []item
	changed  chan struct{} // closed and replaced when a message arrives
}

type item struct {
	body       []byte
	expiration time.Duration
}

func (q *queue) put(i item) {
	q.waiting = append(q.waiting, i)
	q.wake()
}

func (q *queue) putBack(i item) {
	q.waiting = slices.Insert(q.waiting, 0, i)
	q.wake()
}

func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

var errSettled = errors.New("the delivery is already settled")
