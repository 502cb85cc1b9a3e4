// SPDX-License-Identifier: Apache-2.0

package oslo

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/tracing"
)

// Handler answers one method. It returns the result, which is encoded as JSON. An error becomes an
// exception: a *fault.Error by its kind, a *RemoteError unchanged. ctx carries the request's
// Context and ends when the caller stops waiting.
type Handler func(ctx context.Context, r *Request) (any, error)

// Endpoint is a set of methods under one namespace and version.
type Endpoint struct {
	Namespace string // "" serves requests without a namespace
	Version   string // "4.5" serves requests for 4.0 to 4.5
	Methods   map[string]Handler
}

// ServerOptions are the settings of an RPC server.
type ServerOptions struct {
	Exchange  string // control_exchange
	Topic     string
	Name      string // the server's; "topic.name" is its own queue
	Endpoints []Endpoint
	Queues    QueueOptions
	// Workers bounds the requests in progress (executor_thread_pool_size); 0 is 64.
	Workers int
	// Grace is how long Serve lets requests in progress finish; 0 is 10 s.
	Grace time.Duration
	// NewID returns a random UUID.
	NewID func() string
	// Tracer traces the requests, in the traces of their callers; nil traces none.
	Tracer *tracing.Tracer
	Log    *slog.Logger
}

// Server serves the requests of one topic.
type Server struct {
	transport Transport
	options   ServerOptions
	ready     chan struct{}
	seen      recent
	slots     chan struct{} // one value for each busy worker
	kept      chan struct{} // one value for each request that waits for its absent caller
	running   sync.WaitGroup
}

// NewServer returns a server; Serve starts it.
func NewServer(transport Transport, o ServerOptions) *Server {
	o.Workers = cmp.Or(o.Workers, 64)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Server{
		transport: transport,
		options:   o,
		ready:     make(chan struct{}),
		slots:     make(chan struct{}, o.Workers),
		kept:      make(chan struct{}, mostKept),
	}
}

// Ready is closed once the server consumes its queues.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Serve serves the queues "topic" and "topic.name" and a fanout queue until ctx ends; then it lets
// the requests in progress finish within the grace. It must be called only once. It waits for a
// broker that does not answer, and reconnects. It returns an error if the broker refuses the
// queues.
func (s *Server) Serve(ctx context.Context) error {
	// The requests outlive ctx by the grace.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	subscription, err := s.transport.Subscribe(ctx, s.queues(), 1, func(d Delivery) { s.receive(ctx, work, d) })
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("serve topic %s: %w", s.options.Topic, err)
	}
	close(s.ready)
	select {
	case <-ctx.Done():
	case <-subscription.Done():
	}
	err = subscription.Err()
	subscription.Close()
	grace := time.AfterFunc(s.options.Grace, stop)
	defer grace.Stop()
	s.running.Wait()
	return fault.While(err, "serve topic %s", s.options.Topic)
}

// queues returns the queues of the server: of its topic, of itself, and for what is sent to all.
func (s *Server) queues() []Queue {
	o := s.options
	return []Queue{
		o.Queues.topicQueue(o.Exchange, o.Topic, ""),
		o.Queues.topicQueue(o.Exchange, o.Topic+"."+o.Name, ""),
		o.Queues.fanoutQueue(o.Topic, hexOf(o.NewID())),
	}
}

// receive accepts a request once a worker is free. Until then one message of each queue waits
// here, unacknowledged, and the others wait in the broker, where another server of the topic may
// take them.
func (s *Server) receive(ctx, work context.Context, d Delivery) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		_ = d.Requeue() // if this fails, the broker delivers the message again by itself
		return
	}
	if err := d.Ack(); err != nil {
		<-s.slots // the broker delivers it again
		return
	}
	r, err := decodeRequest(d.Body)
	if err != nil {
		s.options.Log.Warn("dropped a request that cannot be parsed", "topic", s.options.Topic, "error", err)
		<-s.slots
		return
	}
	if s.seen.before(r.unique) {
		<-s.slots
		return
	}
	s.running.Go(func() {
		if s.wanted(work, r, r.patience(d.Expiration)) {
			s.handle(work, r, d.Expiration)
		}
	})
}

// recent stores the ids of the last messages (oslo_messaging/_drivers/amqp.py, _MsgIdCache).
type recent struct {
	mu   sync.Mutex
	ids  [16]string
	next int
}

// before reports whether id has occurred before, and stores it. A message without an id is
// always new.
func (r *recent) before(id string) bool {
	if id == "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.ids {
		if known == id {
			return true
		}
	}
	r.ids[r.next] = id
	r.next = (r.next + 1) % len(r.ids)
	return false
}
