// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// subscription reads queues, each in its own goroutine.
type subscription struct {
	broker  *Broker
	deliver func(oslo.Delivery)
	queues  []*queue
	readers sync.WaitGroup

	ending sync.Once
	done   chan struct{}
	err    error
}

// Subscribe implements oslo.Transport.
func (b *Broker) Subscribe(ctx context.Context, queues []oslo.Queue, prefetch int, deliver func(oslo.Delivery)) (oslo.Subscription, error) {
	if err := inTime(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed()
	}
	s := &subscription{broker: b, deliver: deliver, done: make(chan struct{})}
	for _, want := range queues {
		q, err := b.declare(want)
		if err != nil {
			return nil, err
		}
		s.queues = append(s.queues, q)
	}
	b.running[s] = true
	for _, q := range s.queues {
		s.readers.Go(func() { s.read(q, make(chan struct{}, prefetch)) })
	}
	return s, nil
}

// read delivers the messages of q; the capacity of unsettled is the prefetch.
func (s *subscription) read(q *queue, unsettled chan struct{}) {
	for {
		select {
		case unsettled <- struct{}{}:
		case <-s.done:
			return
		}
		i, ok := s.next(q)
		if !ok {
			return
		}
		s.deliver(oslo.Delivery{Body: i.body, Expiration: i.expiration, Settle: s.settle(q, i, unsettled)})
	}
}

// next waits for the first item of q. It returns false when the subscription ends.
func (s *subscription) next(q *queue) (item, bool) {
	for {
		s.broker.mu.Lock()
		changed := q.changed
		var first item
		found := len(q.waiting) > 0 && s.broker.running[s]
		if found {
			first, q.waiting = q.waiting[0], q.waiting[1:]
		}
		s.broker.mu.Unlock()
		if found {
			return first, true
		}
		select {
		case <-changed:
		case <-s.done:
			return item{}, false
		}
	}
}

// settle returns the Settle function of one delivery.
func (s *subscription) settle(q *queue, i item, unsettled <-chan struct{}) func(bool) error {
	settled := false
	return func(requeue bool) error {
		s.broker.mu.Lock()
		defer s.broker.mu.Unlock()
		if settled {
			return errSettled
		}
		settled = true
		<-unsettled
		if requeue {
			q.putBack(i)
		}
		return nil
	}
}

// Done, Err and Close are those of oslo.Subscription.
func (s *subscription) Done() <-chan struct{} { return s.done }

func (s *subscription) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

func (s *subscription) Close() {
	s.end(nil)
	s.readers.Wait()
}

// end stops the readers; err is the reason, nil after Close.
func (s *subscription) end(err error) {
	s.ending.Do(func() {
		s.broker.mu.Lock()
		defer s.broker.mu.Unlock()
		delete(s.broker.running, s)
		for _, q := range s.queues {
			if q.declared.Temporary {
				s.broker.delete(q.declared.Name)
			}
		}
		s.err = err
		close(s.done)
	})
}
