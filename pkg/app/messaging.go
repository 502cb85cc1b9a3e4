// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/reservation/notice"
)

const (
	// exchange is the exchange of Almanac's own topics.
	exchange = "almanac"
	// changesTopic is the topic on which replicas announce that they have stored a change.
	changesTopic = "almanac.changes"
	// castTimeout bounds messages that only speed up other replicas.
	castTimeout = 2 * time.Second
)

// notifies reports whether changes are sent as notifications.
func notifies(c config.Config) bool {
	return c.Notifications.Enabled && (c.Default.TransportURL != "" || c.Notifications.TransportURL != "")
}

// bus is the message broker; its fields are nil without one.
type bus struct {
	own      oslo.Transport // for Almanac's own topics
	replicas *announcements
	notifier *notice.Notifier
}

// openMessaging opens the configured transports, and what only other processes of Almanac and
// readers of notifications need.
func openMessaging(p process) (b *bus, f feature, err error) {
	b = &bus{}
	if url := p.config.Default.TransportURL; url != "" {
		transport, _, err := f.openTransport(p, "messaging", url)
		if err != nil {
			return nil, f, fmt.Errorf("[DEFAULT] transport_url: %w", err)
		}
		b.own = transport
		if p.has(config.RoleAPI) {
			b.replicas = f.announce(p, b, transport)
		}
	}
	if notifies(p.config) && p.has(config.RoleAPI) {
		b.notifier, err = f.openNotifier(p)
	}
	return b, f, err
}

// newOwnClient returns a client of Almanac's own topics.
func (f *feature) newOwnClient(p process, b *bus) *oslo.Client {
	return f.newClient(b.own, oslo.ClientOptions{Queues: oslo.OwnQueues, Timeout: p.config.Default.RPCResponseTimeout})
}

// serveOn makes this process answer on one of Almanac's own topics. Its own queue there is named
// after the machine, so that the next run uses it again: the queue is durable, and one per run
// would remain forever.
func (f *feature) serveOn(p process, b *bus, topic string, endpoint oslo.Endpoint) {
	server := oslo.NewServer(b.own, oslo.ServerOptions{
		Tracer:   p.tracer,
		Exchange: exchange, Topic: topic, Name: p.machine, Queues: oslo.OwnQueues, Endpoints: []oslo.Endpoint{endpoint},
		NewID: uuid.NewString, Log: p.logOf("messaging"),
	})
	f.services = append(f.services, service{"topic " + topic, server.Serve})
}

// openNotifier returns the notifier, on the broker of [DEFAULT] or on one of its own. Its queues
// have the same options as those of their readers.
func (f *feature) openNotifier(p process) (*notice.Notifier, error) {
	c := p.config
	option, url := "[oslo_messaging_notifications] transport_url", c.Notifications.TransportURL
	if url == "" {
		option, url = "[DEFAULT] transport_url", c.Default.TransportURL
	}
	transport, queues, err := f.openPeer(p, "notifications", option, url)
	if err != nil {
		return nil, err
	}
	if !c.Rabbit.Queues.Durable && !c.Rabbit.Queues.Quorum {
		p.log.Warn("a restart of the message broker loses unread notifications; set amqp_durable_queues or rabbit_quorum_queue in " +
			"[oslo_messaging_rabbit], here and in the services that read the notifications")
	}
	return notice.New(notice.Options{
		Host: p.machine, Formats: c.Notifications.Formats,
		Sender: oslo.NewNotifier(transport, oslo.NotifierOptions{
			Exchange: c.Default.ControlExchange, Topics: c.Notifications.Topics, Queues: queues,
			NewID: uuid.NewString, Now: time.Now,
		}),
	})
}

// connected returns nil if a transport is connected and the broker accepts its queues, and
// otherwise why not.
func connected(s amqp.Status) error {
	if s.Refused != "" {
		return errors.New(s.Refused)
	}
	if s.Connected {
		return nil
	}
	if s.LastError == "" {
		return api.ErrStarting
	}
	return errors.New(s.LastError)
}

// announcements signals commits to the other replicas before their next poll.
type announcements struct {
	broker  *amqp.Transport
	client  *oslo.Client
	stored  chan struct{} // signals a change stored here
	changed chan struct{} // signals a change stored elsewhere
}

func (f *feature) announce(p process, b *bus, transport *amqp.Transport) *announcements {
	n := &announcements{
		broker: transport, client: f.newOwnClient(p, b),
		stored: make(chan struct{}, 1), changed: make(chan struct{}, 1),
	}
	f.serveOn(p, b, changesTopic, oslo.Endpoint{Version: "1.0", Methods: map[string]oslo.Handler{
		"changed": func(context.Context, *oslo.Request) (any, error) {
			job.Poke(n.changed)
			return nil, nil
		},
	}})
	return n
}

// cast announces a change to the other replicas. Without a connection it does nothing: the others
// poll.
func (n *announcements) cast(ctx context.Context) error {
	if !n.broker.Status().Connected {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, castTimeout)
	defer cancel()
	return fault.While(n.client.Fanout(ctx, oslo.Target{Exchange: exchange, Topic: changesTopic}, "changed", struct{}{}), "announce a change to the other replicas")
}
