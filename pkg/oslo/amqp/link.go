// SPDX-License-Identifier: Apache-2.0

package amqp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/oslo"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 30 * time.Second
	closeTimeout     = 5 * time.Second
)

// link is one connection with its recovery.
type link struct {
	purpose string // "publish" or "consume", for the log
	url     oslo.URL
	options Options
	tls     *tls.Config
	health  *health

	life   context.Context // ends when the link is closed
	finish context.CancelFunc
	begins sync.Mutex     // no task begins after life has ended
	tasks  sync.WaitGroup // tasks that close waits for

	// host is the index of the host to dial, raw the dialed connection, and forget cancels the
	// function that closes raw at the end of life. Only the goroutine that dials uses them.
	host   int
	raw    net.Conn
	forget func() bool

	// mu is held for reading during operations on channels: the library does not allow a
	// reconnection in the middle of one.
	mu      sync.RWMutex
	conn    *amqp091.Connection
	session *session      // nil while the connection is down
	changed chan struct{} // closed when session changes
	consumers
}

// session is the time between two losses of the connection.
type session struct {
	mu       sync.Mutex
	declared map[string]bool // exchanges and queues that exist
}

// newLink returns a connection for one purpose, which a goroutine opens and keeps open.
func newLink(purpose string, u oslo.URL, o Options, t *tls.Config, h *health) *link {
	l := &link{purpose: purpose, url: u, options: o, tls: t, health: h, changed: make(chan struct{})}
	l.forget = func() bool { return true }
	l.consumers.running = map[*amqp091.Channel]*subscription{}
	l.life, l.finish = context.WithCancel(context.Background())
	l.tasks.Go(l.connect)
	return l
}

// connect makes the first connection. It tries until it succeeds or the link is closed.
func (l *link) connect() {
	for failures := 1; ; failures++ {
		conn, err := amqp091.DialConfig("amqp://localhost", l.config())
		if err == nil {
			l.up(conn)
			return
		}
		if l.raw != nil {
			l.raw.Close() // the library does not close it if the handshake fails
		}
		if !l.rest(failures, err) {
			return
		}
	}
}

// config returns the settings of the connection for the AMQP library.
func (l *link) config() amqp091.Config {
	properties := amqp091.NewConnectionProperties()
	properties.SetClientConnectionName(l.options.Name + " " + l.purpose)
	return amqp091.Config{
		SASL:       []amqp091.Authentication{credentials{l}},
		Vhost:      l.url.VirtualHost,
		Heartbeat:  l.options.Heartbeat,
		Properties: properties,
		Dial:       l.dial,
		Recovery: &amqp091.Recovery{
			// One attempt at a time: rest pauses between attempts.
			ReconnectionConfig: &amqp091.ReconnectionConfig{MaxRetryCount: 1},
			ConnectionRecovery: recovery{l},
			TopologyRecovery:   recovery{l},
		},
	}
}

// dial ignores the library's address, because the next host may be another. It performs the TLS
// handshake for the same reason.
func (l *link) dial(network, _ string) (net.Conn, error) {
	dialing, cancel := context.WithTimeout(l.life, dialTimeout)
	defer cancel()
	host := l.url.Hosts[l.host]
	var dialer net.Dialer
	l.forget()
	l.raw = nil
	conn, err := dialer.DialContext(dialing, network, host.Address())
	if err != nil {
		return nil, err
	}
	if l.tls != nil {
		settings := l.tls.Clone()
		settings.ServerName = host.Name
		secured := tls.Client(conn, settings)
		if err := secured.HandshakeContext(dialing); err != nil {
			conn.Close()
			return nil, fmt.Errorf("TLS: %w", err)
		}
		conn = secured
	}
	// The library clears the deadline after its handshake.
	if err := conn.SetDeadline(l.options.Now().Add(handshakeTimeout)); err != nil {
		conn.Close()
		return nil, err
	}
	l.raw, l.forget = conn, context.AfterFunc(l.life, func() { conn.Close() })
	return conn, nil
}

// credentials are those of the dialed host.
type credentials struct{ link *link }

func (c credentials) Mechanism() string { return "PLAIN" }

func (c credentials) Response() string {
	host := c.link.url.Hosts[c.link.host]
	return "\x00" + host.User + "\x00" + host.Password
}

// rest records a failed attempt and waits until the next one, which goes to the next host. It
// returns false if the link is closed.
func (l *link) rest(failures int, err error) bool {
	if l.life.Err() != nil {
		return false
	}
	host := l.url.Hosts[l.host]
	l.health.failed(l, host, err)
	l.host = (l.host + 1) % len(l.url.Hosts)
	if failures%len(l.url.Hosts) != 0 {
		return true // pause only after all hosts have failed
	}
	return job.Pause(l.life, l.options.pause(failures/len(l.url.Hosts))) == nil
}

// up begins a session.
func (l *link) up(conn *amqp091.Connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	l.session = &session{declared: map[string]bool{}}
	close(l.changed)
	l.changed = make(chan struct{})
	l.health.connected(l, l.url.Hosts[l.host])
}

// down ends the session, after the operations in progress, which have failed with the connection. Consumers of the
// session are invalid from then on.
func (l *link) down(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == nil {
		return
	}
	l.session = nil
	close(l.changed)
	l.changed = make(chan struct{})
	l.health.lost(l, l.url.Hosts[l.host], cause)
	for _, s := range l.consumers.all() {
		s.invalidate()
	}
}

// enter waits for a session and locks l.mu for reading; the caller calls l.mu.RUnlock after its
// operation.
func (l *link) enter(ctx context.Context) (*session, error) {
	for {
		l.mu.RLock()
		if l.session != nil {
			return l.session, nil
		}
		changed := l.changed
		l.mu.RUnlock()
		select {
		case <-changed:
		case <-l.life.Done():
			return nil, errClosed()
		case <-ctx.Done():
			return nil, l.health.unavailable()
		}
	}
}

// close closes the connection, or ends the attempts to make one.
func (l *link) close() error {
	l.mu.RLock()
	conn, up := l.conn, l.session != nil
	l.mu.RUnlock()
	var err error
	if up {
		err = conn.CloseDeadline(l.options.Now().Add(closeTimeout))
		if errors.Is(err, amqp091.ErrClosed) {
			err = nil
		}
	}
	l.begins.Lock()
	l.finish()
	l.begins.Unlock()
	l.tasks.Wait()
	l.down(amqp091.ErrClosed)
	for _, s := range l.consumers.all() {
		s.end(errClosed())
	}
	return err
}

// recovery implements the library's recovery hooks for a link.
type recovery struct{ link *link }

// OnConnectionClose recovers the connection. It tries until it succeeds or the link is closed.
func (r recovery) OnConnectionClose(conn *amqp091.Connection, cause *amqp091.Error) {
	l := r.link
	if !conn.IsClosed() {
		return // called for a failed attempt although a later one has succeeded
	}
	if l.begin() {
		defer l.tasks.Done()
		l.down(cause)
		for failures := 1; ; failures++ {
			err := conn.Reconnect()
			if err == nil {
				l.up(conn)
				return
			}
			if !l.rest(failures, err) {
				break
			}
		}
	}
	// The library releases the channels of a lost connection only after a failed attempt of its
	// own. This attempt fails because the link is closed.
	new(amqp091.DefaultConnectionRecovery).OnConnectionClose(conn, cause)
}

// begin registers a task that close waits for. It returns false if the link is closed.
func (l *link) begin() bool {
	l.begins.Lock()
	defer l.begins.Unlock()
	if l.life.Err() != nil {
		return false
	}
	l.tasks.Add(1)
	return true
}

// OnChannelClose renews a subscription whose channel the broker closed. A publisher reopens its
// channels itself.
func (r recovery) OnChannelClose(ch *amqp091.Channel, _ *amqp091.Error) {
	l := r.link
	l.mu.RLock()
	defer l.mu.RUnlock()
	if s := l.consumers.of(ch); s != nil && l.session != nil && ch.IsClosed() {
		s.invalidate()
		s.renewSoon()
	}
}

// RecoverTopology subscribes again on the channels that had subscriptions.
func (r recovery) RecoverTopology(conn *amqp091.Connection, channels []*amqp091.Channel) ([]amqp091.TopologyRecoveryEntity, error) {
	for _, ch := range channels {
		if s := r.link.consumers.of(ch); s != nil {
			if err := s.recover(conn); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}
