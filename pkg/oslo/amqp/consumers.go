// SPDX-License-Identifier: Apache-2.0

package amqp

import (
	"maps"
	"slices"
	"sync"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// consumers maps the channels of a link to their subscriptions. It keeps free channels for later
// subscriptions: see outlet.
type consumers struct {
	guard   sync.Mutex
	running map[*amqp091.Channel]*subscription
	idle    []*amqp091.Channel
}

// take returns a free channel; the caller has entered the link.
func (c *consumers) take(l *link) (*amqp091.Channel, error) {
	c.guard.Lock()
	if n := len(c.idle); n > 0 {
		ch := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.guard.Unlock()
		return ch, nil
	}
	c.guard.Unlock()
	return l.conn.Channel()
}

func (c *consumers) add(s *subscription) {
	c.guard.Lock()
	defer c.guard.Unlock()
	c.running[s.ch] = s
}

// release makes the channel of s free.
func (c *consumers) release(s *subscription) {
	c.guard.Lock()
	defer c.guard.Unlock()
	if c.running[s.ch] == s {
		delete(c.running, s.ch)
		c.idle = append(c.idle, s.ch)
	}
}

// of returns the subscription that uses ch, or nil.
func (c *consumers) of(ch *amqp091.Channel) *subscription {
	c.guard.Lock()
	defer c.guard.Unlock()
	return c.running[ch]
}

func (c *consumers) all() []*subscription {
	c.guard.Lock()
	defer c.guard.Unlock()
	return slices.Collect(maps.Values(c.running))
}
