// SPDX-License-Identifier: Apache-2.0

package amqp

import (
	"slices"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// consumeAgain consumes q again if the broker ended its consumer, as it does when the queue is
// deleted or moved.
func (s *subscription) consumeAgain(generation int, q oslo.Queue, tag string) {
	if _, err := s.link.enter(s.life); err != nil {
		return
	}
	defer s.link.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.generation != generation {
		return
	}
	s.tags = slices.DeleteFunc(s.tags, func(other string) bool { return other == tag })
	err := declareQueue(s.ch, q)
	if err == nil {
		err = s.consume(q)
	}
	if err != nil && final(err) {
		s.fail(err)
	} // otherwise the channel is closed and reopened with all its consumers
}

// invalidate ends the generation, because its channel is gone.
func (s *subscription) invalidate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
}

// recover consumes again on a reopened channel. An error makes the library repeat the recovery of
// the connection.
func (s *subscription) recover(conn *amqp091.Connection) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.active {
		return nil // open tries again
	}
	err := s.start()
	switch {
	case err == nil && s.closed:
		s.link.consumers.release(s)
		return nil
	case err == nil:
		return nil
	case final(err):
		s.fail(err)
		return nil
	case conn.IsClosed():
		return err
	}
	s.renewLocked()
	return nil
}

// renewSoon reopens the channel after the broker has closed it.
func (s *subscription) renewSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewLocked()
}

// renewLocked starts renew unless it runs already. The caller holds mu.
func (s *subscription) renewLocked() {
	if !s.active || s.renewing || s.life.Err() != nil {
		return
	}
	s.renewing = true
	go s.renew()
}

// renew opens the channel again, with growing pauses, until it is open or the subscription ends.
func (s *subscription) renew() {
	defer func() {
		s.mu.Lock()
		s.renewing = false
		s.mu.Unlock()
	}()
	for failures := 1; ; failures++ {
		if job.Pause(s.life, s.link.options.pause(failures)) != nil {
			return
		}
		if _, err := s.link.enter(s.life); err != nil {
			return
		}
		if s.ch.IsClosed() {
			_ = s.ch.Reconnect() // which also calls recover
		}
		open := !s.ch.IsClosed()
		s.link.mu.RUnlock()
		if open {
			return
		}
	}
}

// fail ends the subscription because the broker refuses it; mu is held.
func (s *subscription) fail(err error) {
	s.link.health.refused(err)
	s.generation++
	s.closed = true
	s.end(err)
	s.link.consumers.release(s)
}
