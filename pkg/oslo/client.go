// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// ClientOptions describe an RPC client.
type ClientOptions struct {
	// Queues are the options of the called servers' queues.
	Queues QueueOptions
	// Timeout bounds calls whose ctx has no deadline (rpc_response_timeout);
	// 0 is one minute.
	Timeout time.Duration
	// Monitor is how long a call waits for a sign of life from its server
	// (call_monitor_timeout), in whole seconds; 0 waits to the end of the call.
	Monitor time.Duration
	// NewID returns a random UUID.
	NewID func() string
	Now   func() time.Time
}

// Target names the servers for a request.
type Target struct {
	Exchange  string // control_exchange of the servers
	Topic     string
	Server    string // one server of the topic; "" is any
	Namespace string
	Version   string // the lowest with the method; "" is 1.0
}

// Client calls servers. Its methods are safe for concurrent use. All calls share one reply queue,
// which the first call creates.
type Client struct {
	transport Transport
	options   ClientOptions
	opening   chan struct{} // contains a token while the reply queue is opened

	mu      sync.Mutex
	replies *replyQueue
	calls   map[string]chan reply
	closed  chan struct{}
}

// NewClient returns a client. The caller must Close it.
func NewClient(transport Transport, o ClientOptions) *Client {
	o.Timeout = cmp.Or(o.Timeout, defaultResponse)
	return &Client{
		transport: transport,
		options:   o,
		opening:   make(chan struct{}, 1),
		calls:     map[string]chan reply{},
		closed:    make(chan struct{}),
	}
}

// Call calls method on target and decodes the answer into result, a pointer or nil. args must
// encode as a JSON object, or be nil. The call ends with ctx, or after the client's Timeout if ctx
// has no deadline. The server's exception is returned as a *RemoteError, which for a fault of
// another Almanac also unwraps to that fault. Without an answer in time the error is Unavailable
// and names the topic.
func (c *Client) Call(ctx context.Context, target Target, method string, args, result any) (err error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	ctx, end := traced(ctx, "call "+method, target.address())
	defer func() { end(err) }()
	answer, err := c.call(ctx, target, method, args)
	if ctx.Err() == context.Canceled && err != nil {
		err = ctx.Err() // whatever error the cancellation caused
	}
	if err != nil {
		return fmt.Errorf("call %s on topic %s: %w", method, target.address(), err)
	}
	if answer.Failure != nil {
		return decodeFailure(*answer.Failure)
	}
	if result == nil || answer.Result == nil {
		return nil
	}
	return fault.While(json.Unmarshal(answer.Result, result), "read result of %s from topic %s", method, target.address())
}

// Cast sends target a request without an answer. It returns once the broker has accepted it.
func (c *Client) Cast(ctx context.Context, target Target, method string, args any) error {
	return c.cast(ctx, target, method, args, Message{
		Exchange: c.options.Queues.topicExchange(target.Exchange),
		Key:      target.address(),
	})
}

// Fanout sends a request without an answer to every server of target's topic.
func (c *Client) Fanout(ctx context.Context, target Target, method string, args any) error {
	return c.cast(ctx, target, method, args, Message{Exchange: c.options.Queues.fanoutExchange(target.Topic)})
}

// Close closes the client; calls in progress end with an Unavailable fault.
func (c *Client) Close() {
	c.mu.Lock()
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	replies := c.replies
	c.mu.Unlock()
	if replies != nil {
		replies.subscription.Close()
	}
}

// address returns the routing key: the topic, or the topic of one server.
func (t Target) address() string {
	if t.Server == "" {
		return t.Topic
	}
	return t.Topic + "." + t.Server
}

// bound returns a context with the client's timeout unless ctx has a deadline.
func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.options.Timeout)
}

// request returns a request to call a method, with its arguments encoded and the context of the caller.
func (c *Client) request(ctx context.Context, target Target, method string, args any) (*Request, error) {
	encoded, err := object(args)
	if err != nil {
		return nil, fmt.Errorf("encode arguments of %s: %w", method, err)
	}
	return &Request{
		Method:    method,
		Namespace: target.Namespace,
		Version:   target.Version,
		Args:      encoded,
		Context:   ContextOf(ctx),
		unique:    hexOf(c.options.NewID()),
	}, nil
}

// cast sends a request for which there is no reply; m has the exchange and the key.
func (c *Client) cast(ctx context.Context, target Target, method string, args any, m Message) (err error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	ctx, end := traced(ctx, "cast "+method, target.address())
	defer func() { end(err) }()
	r, err := c.request(ctx, target, method, args)
	if err != nil {
		return err
	}
	if m.Body, err = r.encode(); err != nil {
		return err
	}
	return fault.While(c.transport.Publish(ctx, m), "cast %s to topic %s", method, target.address())
}

// traced makes a request a step of the trace of ctx. The message carries the headers of the trace
// among the keys of its Context: services of OpenStack ignore keys that they do not know.
func traced(ctx context.Context, name, topic string) (context.Context, tracing.End) {
	carried := Context{}
	ctx, end := tracing.Call(ctx, name, func(key, value string) { carried[key], _ = json.Marshal(value) }, slog.String("topic", topic))
	if len(carried) == 0 {
		return ctx, end
	}
	whole := maps.Clone(ContextOf(ctx)) // others use it too
	if whole == nil {
		whole = Context{}
	}
	maps.Copy(whole, carried)
	return WithContext(ctx, whole), end
}

// call sends a request and waits for its reply until the deadline of ctx, which it must have.
func (c *Client) call(ctx context.Context, target Target, method string, args any) (reply, error) {
	r, err := c.request(ctx, target, method, args)
	if err != nil {
		return reply{}, err
	}
	replies, err := c.openReplies(ctx)
	if err != nil {
		return reply{}, err
	}
	r.id, r.replyTo, r.monitor = hexOf(c.options.NewID()), replies.name, c.options.Monitor
	body, err := r.encode()
	if err != nil {
		return reply{}, err
	}
	answers := c.expect(r.id)
	defer c.forget(r.id)
	deadline, _ := ctx.Deadline()
	expiration := deadline.Sub(c.options.Now())
	if c.options.Monitor > 0 {
		expiration = min(expiration, c.options.Monitor) // the call fails if no server takes it within that time
	}
	err = c.transport.Publish(ctx, Message{
		Exchange:   c.options.Queues.topicExchange(target.Exchange),
		Key:        target.address(),
		Body:       body,
		Expiration: max(expiration, time.Millisecond),
	})
	if err != nil {
		return reply{}, err
	}
	return c.await(ctx, replies, answers)
}
