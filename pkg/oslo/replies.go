// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// replyQueue is the queue for the answers to a client's calls.
type replyQueue struct {
	name         string
	subscription Subscription
}

// await waits for the answer (oslo_messaging/_drivers/amqpdriver.py,
// ReplyWaiter.wait).
func (c *Client) await(ctx context.Context, replies *replyQueue, answers <-chan reply) (reply, error) {
	var silence <-chan time.Time
	var monitor *time.Timer
	if c.options.Monitor > 0 {
		monitor = time.NewTimer(c.options.Monitor)
		defer monitor.Stop()
		silence = monitor.C
	}
	var final reply
	for {
		select {
		case answer := <-answers:
			if answer.Result != nil || answer.Failure != nil {
				final = answer
			}
			if answer.Ending {
				return final, nil
			}
			if monitor != nil {
				monitor.Reset(c.options.Monitor)
			}
		case <-ctx.Done():
			return reply{}, fault.New(fault.Unavailable, "no server answered in time; check that a server of the topic is running")
		case <-silence:
			return reply{}, fault.New(fault.Unavailable, "no sign of life from the server for %s", c.options.Monitor)
		case <-replies.subscription.Done():
			return reply{}, closedError(replies.subscription.Err())
		case <-c.closed:
			return reply{}, closedError(nil)
		}
	}
}

// closedError returns err, or the fault that the connection is being closed.
func closedError(err error) error {
	if err != nil {
		return err
	}
	return fault.New(fault.Unavailable, "the connection is being closed")
}

// openReplies returns the reply queue, and creates it if there is none.
func (c *Client) openReplies(ctx context.Context) (*replyQueue, error) {
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	case <-ctx.Done():
		return nil, fault.New(fault.Unavailable, "the reply queue is not open yet")
	}
	c.mu.Lock()
	replies := c.replies
	c.mu.Unlock()
	if replies != nil {
		select {
		case <-replies.subscription.Done():
		default:
			return replies, nil
		}
	}
	queue := c.options.Queues.replyQueue(hexOf(c.options.NewID()))
	subscription, err := c.transport.Subscribe(ctx, []Queue{queue}, repliesAtOnce, c.receive)
	if err != nil {
		return nil, err
	}
	replies = &replyQueue{queue.Name, subscription}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.closed:
		go subscription.Close()
		return nil, closedError(nil)
	default:
		c.replies = replies
		return replies, nil
	}
}

// repliesAtOnce bounds the replies delivered to one client and not yet settled.
const repliesAtOnce = 100

// receive passes a reply to its call, and drops replies to calls that have ended.
func (c *Client) receive(d Delivery) {
	_ = d.Ack() // a reply would not be wanted a second time
	answer, err := decodeReply(d.Body)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if call, ok := c.calls[answer.ID]; ok {
		select {
		case call <- answer:
		default: // the call has not yet read earlier signs of life
		}
	}
}

// expect returns the channel for the replies to the call with that id.
func (c *Client) expect(id string) <-chan reply {
	answers := make(chan reply, 16)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[id] = answers
	return answers
}

func (c *Client) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}
