package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/config"
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

// ownQueues declares the queues of Almanac's own topics.
var ownQueues = oslo.QueueOptions{Quorum: true}

// notifies reports whether changes are sent as notifications.
func notifies(c config.Config) bool {
	return c.Notifications.Enabled && (c.Default.TransportURL != "" || c.Notifications.TransportURL != "")
}

// bus has this process's connections to message brokers; empty without a broker.
type bus struct {
	transports   []namedTransport
	own          oslo.Transport // for Almanac's own topics
	replicas     *announcements
	notifier     *notice.Notifier
	hostsChanged <-chan struct{} // a signal: the hosts have changed, here or in another process
	readers      []chan struct{} // one for each reader of the hosts in this process
}

// reader returns a new channel that signals changes of the hosts.
func (b *bus) reader() <-chan struct{} {
	told := make(chan struct{}, 1)
	b.readers = append(b.readers, told)
	return told
}

// pokeHosts signals a change to all readers of the hosts.
func (b *bus) pokeHosts() {
	for _, told := range b.readers {
		job.Poke(told)
	}
}

// news returns a service that signals each value of changed to the readers.
func (b *bus) news(changed <-chan struct{}) service {
	return service{"news of the hosts", func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				b.pokeHosts()
			}
		}
	}}
}

type namedTransport struct {
	name      string
	transport *amqp.Transport
}

// openBus prepares the configured transports. They connect later, in the background.
func (a *App) openBus() (*bus, error) {
	b := &bus{}
	if url := a.config.Default.TransportURL; url != "" {
		transport, _, err := a.openTransport(b, "messaging", url)
		if err != nil {
			return nil, fmt.Errorf("[DEFAULT] transport_url: %w", err)
		}
		b.own = transport
		if a.has(config.RoleAPI) {
			b.replicas = a.announce(transport)
		}
	}
	if !notifies(a.config) || !a.has(config.RoleAPI) {
		return b, nil
	}
	var err error
	b.notifier, err = a.openNotifier(b)
	return b, err
}

// openTransport returns a transport to the broker at url.
func (a *App) openTransport(b *bus, name, url string) (*amqp.Transport, oslo.URL, error) {
	at, err := oslo.ParseURL(url)
	if err != nil {
		return nil, at, err
	}
	o := a.config.Rabbit.Options
	o.Name, o.NewID, o.Now, o.Log = "almanac "+name+" "+a.replica, uuid.NewString, time.Now, a.log.With("component", "messaging")
	transport, err := amqp.Open(at, o)
	if err != nil {
		return nil, at, err
	}
	a.closers = append(a.closers, transport.Close)
	b.transports = append(b.transports, namedTransport{name, transport})
	return transport, at, nil
}

// openNotifier returns the notifier, on the broker of [DEFAULT] or on one of its own. Its queues
// have the same options as those of their readers.
func (a *App) openNotifier(b *bus) (*notice.Notifier, error) {
	c, option := a.config, "[oslo_messaging_notifications] transport_url"
	url := c.Notifications.TransportURL
	if url == "" {
		url, option = c.Default.TransportURL, "[DEFAULT] transport_url"
	}
	transport, at, err := a.openTransport(b, "notifications", url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", option, err)
	}
	if !c.Rabbit.Queues.Durable && !c.Rabbit.Queues.Quorum {
		a.log.Warn("notifications that nobody has read are lost when the message broker restarts; set amqp_durable_queues or " +
			"rabbit_quorum_queue in [oslo_messaging_rabbit], here and where they are read")
	}
	queues, err := at.Queues(c.Rabbit.Queues)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", option, err)
	}
	return notice.New(notice.Options{
		Host: a.machine, Formats: c.Notifications.Formats,
		Sender: oslo.NewNotifier(transport, oslo.NotifierOptions{
			Exchange: c.Default.ControlExchange, Topics: c.Notifications.Topics, Queues: queues,
			NewID: uuid.NewString, Now: time.Now,
		}),
	})
}

// connected returns nil if a transport is connected, and otherwise why it is not.
func connected(s amqp.Status) error {
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

func (a *App) announce(transport *amqp.Transport) *announcements {
	n := &announcements{
		broker: transport, client: a.newClient(transport),
		stored: make(chan struct{}, 1), changed: make(chan struct{}, 1),
	}
	a.serveOn(transport, changesTopic, oslo.Endpoint{Version: "1.0", Methods: map[string]oslo.Handler{
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
	if err := n.client.Fanout(ctx, oslo.Target{Exchange: exchange, Topic: changesTopic}, "changed", struct{}{}); err != nil {
		return fmt.Errorf("tell the other replicas that something has changed: %w", err)
	}
	return nil
}
