// SPDX-License-Identifier: Apache-2.0

package amqp

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// subscription consumes queues on a channel of its own.
type subscription struct {
	link     *link
	ch       *amqp091.Channel
	queues   []oslo.Queue
	prefetch int
	deliver  func(oslo.Delivery)

	// mu guards the fields below. It is also held while a delivery is settled, so that no new
	// generation begins meanwhile.
	mu sync.Mutex
	// generation counts how often the channel was opened: a delivery of one generation cannot be
	// settled in another.
	generation int
	consumers  int                  // counts consumers, for their tags
	tags       []string             // of the consumers of this generation
	heard      map[string]time.Time // when a message of a stream was last settled, or its first consumer started
	active     bool                 // has consumed, so it must be recovered
	closed     bool
	renewing   bool
	delivering sync.WaitGroup

	life   context.Context
	ending sync.Once
	finish context.CancelFunc
	err    error // why life ended; set before it ends
}

// Subscribe implements oslo.Transport.
func (t *Transport) Subscribe(ctx context.Context, queues []oslo.Queue, prefetch int, deliver func(oslo.Delivery)) (oslo.Subscription, error) {
	l := t.consume
	s := &subscription{link: l, queues: queues, prefetch: prefetch, deliver: deliver, heard: map[string]time.Time{}}
	s.life, s.finish = context.WithCancel(context.Background())
	result := make(chan error, 1)
	if !l.begin() {
		return nil, errClosed()
	}
	go func() {
		defer l.tasks.Done()
		result <- s.open(ctx)
	}()
	select {
	case err := <-result:
		if err != nil {
			s.finish()
			return nil, err
		}
		return s, nil
	case <-ctx.Done():
		go s.Close() // in case it still opens
		return nil, l.health.unavailable()
	}
}

// open starts consuming as soon as the link has a session.
func (s *subscription) open(ctx context.Context) error {
	for failures := 1; ; failures++ {
		if _, err := s.link.enter(ctx); err != nil {
			return err
		}
		err := s.openEntered()
		s.link.mu.RUnlock()
		if err == nil || final(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-s.life.Done():
			return errClosed()
		case <-time.After(s.link.options.pause(failures)):
		}
	}
}

// openEntered declares the queues and starts to consume, on a channel of its own. The caller has entered
// the link.
func (s *subscription) openEntered() error {
	if s.ch == nil {
		ch, err := s.link.consumers.take(s.link)
		if err != nil {
			return err
		}
		s.ch = ch
		s.link.consumers.add(s)
	}
	s.link.reopenEntered(s.ch)
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.start()
	if s.closed || err != nil && final(err) {
		s.link.consumers.release(s)
	}
	return err
}

// start declares the queues and consumes them as a new generation; mu is held.
func (s *subscription) start() error {
	s.generation++
	if err := s.stop(); err != nil || s.closed {
		return err
	}
	if err := s.ch.Qos(s.prefetch, 0, false); err != nil {
		return declareError("prefetch of", s.queues[0].Name, err)
	}
	for _, q := range s.queues {
		if err := declareQueue(s.ch, q); err != nil {
			if refusesTransient(err) {
				s.link.health.refuses(q.Name, err)
			}
			return err
		}
		s.link.health.accepts(q.Name)
	}
	for _, q := range s.queues {
		if err := s.consume(q); err != nil {
			return err
		}
	}
	s.active = true
	return nil
}

// stop cancels the consumers of the previous generation; mu is held. On a reopened channel the
// broker has none of them and confirms.
func (s *subscription) stop() error {
	for _, tag := range s.tags {
		if err := s.ch.Cancel(tag, false); err != nil {
			return err
		}
	}
	s.tags = nil
	return nil
}

// consume starts one consumer; mu is held.
func (s *subscription) consume(q oslo.Queue) error {
	s.consumers++
	tag := q.Name + "-" + strconv.Itoa(s.consumers)
	deliveries, err := s.ch.Consume(q.Name, tag, false, false, false, false, s.position(q))
	if err != nil {
		return declareError("consumer of queue", q.Name, err)
	}
	s.tags = append(s.tags, tag)
	go s.read(s.generation, q, tag, deliveries)
	return nil
}

// position returns the argument of a consumer that names its position in a stream: what is yet to come
// or, after a lost connection, a little before the last settled message. A time, unlike an offset, is
// right also if the broker has lost the end of the stream. mu is held.
func (s *subscription) position(q oslo.Queue) amqp091.Table {
	if !q.Stream {
		return nil
	}
	const argument = "x-stream-offset"
	last, again := s.heard[q.Name]
	if !again {
		s.heard[q.Name] = s.link.options.Now()
		return amqp091.Table{argument: "next"}
	}
	return amqp091.Table{argument: last.Add(-clockTolerance)}
}

// clockTolerance is how much the clocks of the broker and of this machine may differ.
const clockTolerance = 10 * time.Second

// read passes on the deliveries of one consumer.
func (s *subscription) read(generation int, q oslo.Queue, tag string, deliveries <-chan amqp091.Delivery) {
	for d := range deliveries {
		s.mu.Lock()
		if s.closed || s.generation != generation {
			if s.generation == generation {
				_ = handBack(q, d)
			}
			s.mu.Unlock()
			continue
		}
		s.delivering.Add(1)
		s.mu.Unlock()
		s.deliver(oslo.Delivery{
			Body:       d.Body,
			Expiration: expiration(d.Expiration),
			Settle:     func(requeue bool) error { return s.settle(generation, q, d, requeue) },
		})
		s.delivering.Done()
	}
	s.consumeAgain(generation, q, tag)
}

// expiration returns the time to live of a message; 0 for none.
func expiration(milliseconds string) time.Duration {
	n, err := strconv.ParseInt(milliseconds, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

var errLost = errors.New("the connection was lost earlier; the broker delivers the message again")

// settle acknowledges a delivery, or returns it to its queue; errLost if the channel is another one
// since.
func (s *subscription) settle(generation int, q oslo.Queue, d amqp091.Delivery, requeue bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation != generation {
		return errLost
	}
	if requeue {
		return handBack(q, d)
	}
	if q.Stream {
		s.heard[q.Name] = s.link.options.Now()
	}
	return d.Ack(false)
}

// handBack lets another consumer take a message. A stream keeps its messages, and RabbitMQ closes the
// connection of a consumer that hands one back.
func handBack(q oslo.Queue, d amqp091.Delivery) error {
	if q.Stream {
		return nil
	}
	return d.Nack(false, true)
}

// end closes Done; the first reason stays.
func (s *subscription) end(err error) {
	s.ending.Do(func() {
		s.err = err
		s.finish()
	})
}

// Done is closed when the subscription has ended.
func (s *subscription) Done() <-chan struct{} { return s.life.Done() }

// Err returns why the subscription ended.
func (s *subscription) Err() error {
	select {
	case <-s.life.Done():
		return s.err
	default:
		return nil
	}
}

// Close stops the deliveries and waits for those in progress. It then cancels the consumers at the
// broker and deletes the Temporary queues, and waits at most closeTimeout for that. Without a
// connection it returns at once: the broker ends the consumers with their connection, and the
// queues expire.
func (s *subscription) Close() {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	s.end(nil)
	s.delivering.Wait()
	if again {
		return
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		s.leave()
	}()
	select {
	case <-said:
	case <-time.After(closeTimeout): // the broker hangs
	}
}

// leave cancels the consumers at the broker, if there is a connection.
func (s *subscription) leave() {
	s.link.mu.RLock()
	defer s.link.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link.session == nil || !s.active || s.ch.IsClosed() || s.stop() != nil {
		return
	}
	for _, q := range s.queues {
		if q.Temporary {
			_, _ = s.ch.QueueDelete(q.Name, false, false, false) // or it expires
		}
	}
	s.link.consumers.release(s)
}
