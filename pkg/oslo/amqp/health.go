// SPDX-License-Identifier: Apache-2.0

package amqp

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

// Status is the state of a transport.
type Status struct {
	// Connected reports whether messages can be sent and received; Since is the time of its last
	// change.
	Connected bool
	Since     time.Time
	// LastError is the last error of the broker or the connection, without passwords; "" if there
	// was none.
	LastError string
	// Refused is why the broker refuses a queue at present, although there may be a connection; ""
	// if it refuses none.
	Refused string
	// Reconnects counts reconnections, Unconfirmed the messages whose publisher got an error
	// because their arrival is unknown.
	Reconnects  int64
	Unconfirmed int64
}

// health tracks the links of a transport.
type health struct {
	url  oslo.URL
	name string // of the transport, for the log
	now  func() time.Time
	log  *slog.Logger

	mu     sync.Mutex
	status Status
	up     map[*link]bool
	met    map[*link]bool // up at least once
	said   string         // the last logged error, until the connection is up
	// refusals are the sentences about queues that the broker refuses, by the name of the queue.
	refusals map[string]string
}

// newHealth returns the health of a broker to which there is no connection yet.
func newHealth(u oslo.URL, o Options) *health {
	return &health{
		url: u, name: o.Name, now: o.Now, log: o.Log, status: Status{Since: o.Now()},
		up: map[*link]bool{}, met: map[*link]bool{}, refusals: map[string]string{},
	}
}

// links is how many links a connected transport has.
const links = 2

// failed records a failed attempt to connect. The log contains each error once, however often it
// recurs.
func (h *health) failed(l *link, host oslo.Host, err error) {
	text := explain(host, h.url.VirtualHost, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.LastError = text
	if h.said != text {
		h.said = text
		h.log.Error(text, "connection", l.purpose)
	}
}

// explain returns why there is no connection, in words for an operator.
func explain(host oslo.Host, vhost string, err error) string {
	if refused, ok := errors.AsType[*amqp091.Error](err); ok {
		switch refused.Code {
		case amqp091.AccessRefused:
			return fmt.Sprintf("RabbitMQ at %s refuses the user name or password; correct transport_url", host)
		case amqp091.NotAllowed:
			return fmt.Sprintf("RabbitMQ at %s has no virtual host %q for this user", host, vhost)
		}
	}
	return fmt.Sprintf("RabbitMQ at %s cannot be reached: %v", host, err)
}

// connected records that one of the links is open. The broker counts as connected when all are.
func (h *health) connected(l *link, host oslo.Host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.met[l] {
		h.status.Reconnects++
	}
	h.up[l], h.met[l] = true, true
	h.said = ""
	h.log.Debug("opened a connection to RabbitMQ", "host", host.Address(), "connection", l.purpose)
	if len(h.up) == links {
		h.status.Connected, h.status.Since = true, h.now()
		h.log.Info("connected to RabbitMQ", "host", host.Address(), "connection_name", h.name)
	}
}

// lost records that a link was closed. It logs the cause unless this process has closed it.
func (h *health) lost(l *link, host oslo.Host, cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.up, l)
	if h.status.Connected {
		h.status.Connected, h.status.Since = false, h.now()
	}
	if errors.Is(cause, amqp091.ErrClosed) {
		return // closed by this process
	}
	h.status.LastError = fmt.Sprintf("the connection to RabbitMQ at %s was lost: %v", host, cause)
	h.log.Warn("lost the connection to RabbitMQ", "host", host.Address(), "connection", l.purpose, "error", cause)
}

// refused records that the broker refuses a queue.
func (h *health) refused(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.LastError = err.Error()
	h.log.Error("RabbitMQ refused a queue", "error", err)
}

// refuses records that the broker refuses a queue with an error that closes the connection, and that
// the declaration will be repeated.
func (h *health) refuses(queue string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refusals[queue] == "" {
		h.log.Error("RabbitMQ refuses a queue", "queue", queue, "error", err)
	}
	h.refusals[queue] = fault.Of(err).Message
	h.status.LastError, h.status.Refused = err.Error(), h.refusals[queue]
}

// accepts records that the broker has accepted a queue, or that it is no longer wanted.
func (h *health) accepts(queue string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.refusals, queue)
	h.status.Refused = ""
	for _, sentence := range h.refusals {
		h.status.Refused = sentence
	}
}

// unconfirmed returns the error for a message whose arrival is unknown.
func (h *health) unconfirmed(why string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status.Unconfirmed++
	return fault.New(fault.Unavailable, "RabbitMQ did not confirm the message (%s): it may or may not have arrived", why)
}

// unavailable returns the error for an operation whose time is over without a connection.
func (h *health) unavailable() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := fault.New(fault.Unavailable, "the message broker cannot be reached; try again later")
	if h.status.LastError != "" {
		f.Err = errors.New(h.status.LastError)
	}
	return f
}

func errClosed() error {
	return fault.New(fault.Unavailable, "the connection to the message broker is being closed")
}

// Status returns the transport's status.
func (t *Transport) Status() Status {
	t.health.mu.Lock()
	defer t.health.mu.Unlock()
	return t.health.status
}
