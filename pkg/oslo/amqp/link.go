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

	"github.com/almanac-cloud/almanac/pkg/oslo"
)

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 30 * time.Second
	closeTimeout     = 5 * time.Second
)

// link is one connection and what keeps it up.
type link struct {
	purpose string // "publish" or "consume", for the log
	url     oslo.URL
	options Options
	tls     *tls.Config
	health  *health

	life   context.Context // ends when the link is closed
	finish context.CancelFunc
	begins sync.Mutex     // no task begins while life ends
	tasks  sync.WaitGroup // what close has to wait for

	// host is the one to dial, raw what dialling it gave, and forget takes back
	// that the end of life closes it; only the goroutine that dials touches them.
	host   int
	raw    net.Conn
	forget func() bool

	// mu is held for reading while something is sent that is not to meet a
	// reconnection halfway: the library asks for that.
	mu      sync.RWMutex
	conn    *amqp091.Connection
	session *session      // nil while the connection is down
	changed chan struct{} // closed when session changes
	consumers
}

// session is the time between two losses of the connection.
type session struct {
	mu       sync.Mutex
	declared map[string]bool // exchanges and queues known to be there
}

func newLink(purpose string, u oslo.URL, o Options, t *tls.Config, h *health) *link {
	l := &link{purpose: purpose, url: u, options: o, tls: t, health: h, changed: make(chan struct{})}
	l.forget = func() bool { return true }
	l.consumers.running = map[*amqp091.Channel]*subscription{}
	l.life, l.finish = context.WithCancel(context.Background())
	l.tasks.Go(l.connect)
	return l
}

// connect makes the first connection, however long that takes.
func (l *link) connect() {
	for failures := 1; ; failures++ {
		conn, err := amqp091.DialConfig("amqp://localhost", l.config())
		if err == nil {
			l.up(conn)
			return
		}
		if l.raw != nil {
			l.raw.Close() // the library leaves it open when the handshake fails
		}
		if !l.rest(failures, err) {
			return
		}
	}
}

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
			// One attempt at a time: the pauses between them are ours.
			ReconnectionConfig: &amqp091.ReconnectionConfig{MaxRetryCount: 1},
			ConnectionRecovery: recovery{l},
			TopologyRecovery:   recovery{l},
		},
	}
}

// dial ignores the address the library knows: the next host may be another.
// The handshake of TLS is done here for the same reason.
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

// credentials are those of the host that is dialled.
type credentials struct{ link *link }

func (c credentials) Mechanism() string { return "PLAIN" }

func (c credentials) Response() string {
	host := c.link.url.Hosts[c.link.host]
	return "\x00" + host.User + "\x00" + host.Password
}

// rest notes why an attempt failed and waits until the next, which is at
// another host where there is one. It says no when the link is closed.
func (l *link) rest(failures int, err error) bool {
	if l.life.Err() != nil {
		return false
	}
	host := l.url.Hosts[l.host]
	l.health.failed(l, host, err)
	l.host = (l.host + 1) % len(l.url.Hosts)
	if failures%len(l.url.Hosts) != 0 {
		return true // all hosts are tried before a pause
	}
	select {
	case <-l.life.Done():
		return false
	case <-time.After(l.options.pause(failures / len(l.url.Hosts))):
		return true
	}
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

// down ends the session. It waits for what is being sent, which fails at once.
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

// enter waits for a session and holds it: the caller sends what it has to and
// calls l.mu.RUnlock.
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

// close ends the connection, or the attempts to make one.
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

// recovery are the link's hooks in the library's recovery.
type recovery struct{ link *link }

// OnConnectionClose recovers the connection, however long that takes.
func (r recovery) OnConnectionClose(conn *amqp091.Connection, cause *amqp091.Error) {
	l := r.link
	if !conn.IsClosed() {
		return // told of an attempt that failed on the way to success
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
	// The library frees the channels of a connection that is down only when an
	// attempt of its own fails. This one does: the link is closed.
	new(amqp091.DefaultConnectionRecovery).OnConnectionClose(conn, cause)
}

// begin counts a task that close has to wait for, unless it is closed already.
func (l *link) begin() bool {
	l.begins.Lock()
	defer l.begins.Unlock()
	if l.life.Err() != nil {
		return false
	}
	l.tasks.Add(1)
	return true
}

// OnChannelClose renews a subscription whose channel the broker closed. A
// publisher looks after its channel itself.
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
