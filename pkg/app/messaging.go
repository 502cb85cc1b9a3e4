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
	// exchange is that of Almanac's own topics.
	exchange = "almanac"
	// changesTopic is where replicas tell each other that they have stored something.
	changesTopic = "almanac.changes"
	// castTimeout bounds what only makes others faster.
	castTimeout = 2 * time.Second
)

// ownQueues are how the queues of Almanac's own topics are declared.
var ownQueues = oslo.QueueOptions{Quorum: true}

// notifies says that changes are to be told to the world.
func notifies(c config.Config) bool {
	return c.Notifications.Driver == "messagingv2" && (c.Default.TransportURL != "" || c.Notifications.TransportURL != "")
}

// bus is what this process has of the message broker; without one all of it is
// empty.
type bus struct {
	transports   []namedTransport
	own          oslo.Transport // for Almanac's own topics
	replicas     *announcements
	notifier     *notice.Notifier
	hostsChanged <-chan struct{} // the hosts have changed, here or for another process
	readers      []chan struct{} // who reads the hosts here, to be told of a change
}

// reader gives what one who reads the hosts is told of changes by.
func (b *bus) reader() <-chan struct{} {
	told := make(chan struct{}, 1)
	b.readers = append(b.readers, told)
	return told
}

// pokeHosts tells all who read the hosts here of a change.
func (b *bus) pokeHosts() {
	for _, told := range b.readers {
		job.Poke(told)
	}
}

// news tells them whenever something changes.
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

// openBus prepares what the configuration asks for. Connections come by and by.
func (a *App) openBus() (*bus, error) {
	b := &bus{}
	if url := a.config.Default.TransportURL; url != "" {
		transport, _, err := a.openTransport(b, "messaging", url)
		if err != nil {
			return nil, fmt.Errorf("[DEFAULT] transport_url: %w", err)
		}
		b.own = transport
		if a.has(roleAPI) {
			b.replicas = a.announce(transport)
		}
	}
	if !notifies(a.config) || !a.has(roleAPI) {
		return b, nil
	}
	var err error
	b.notifier, err = a.openNotifier(b)
	return b, err
}

// openTransport gives a transport to the broker at url.
func (a *App) openTransport(b *bus, name, url string) (*amqp.Transport, oslo.URL, error) {
	at, err := oslo.ParseURL(url)
	if err != nil {
		return nil, at, err
	}
	r := a.config.Rabbit
	transport, err := amqp.Open(at, amqp.Options{
		Name: "almanac " + name + " " + a.replica, Heartbeat: r.HeartbeatThreshold,
		RetryInterval: r.RetryInterval, RetryBackoff: r.RetryBackoff, IntervalMax: r.IntervalMax,
		TLS:   amqp.TLS{Enabled: r.SSL, CAFile: r.SSLCAFile, CertFile: r.SSLCertFile, KeyFile: r.SSLKeyFile},
		NewID: uuid.NewString, Now: time.Now, Log: a.log.With("component", "messaging"),
	})
	if err != nil {
		return nil, at, err
	}
	a.closers = append(a.closers, transport.Close)
	b.transports = append(b.transports, namedTransport{name, transport})
	return transport, at, nil
}

// othersQueues gives how the queues of other services at a transport_url are declared:
// as they do it themselves.
func othersQueues(at oslo.URL, r config.Rabbit) (oslo.QueueOptions, error) {
	return at.Queues(oslo.QueueOptions{
		Durable: r.DurableQueues, Quorum: r.QuorumQueue, DeliveryLimit: r.DeliveryLimit, TransientTTL: r.TransientTTL,
		TransientQuorum: r.TransientQuorum, MaxMemoryLength: r.MaxMemoryLength, MaxMemoryBytes: r.MaxMemoryBytes,
	})
}

// openNotifier gives what tells of changes, on the broker of [DEFAULT] or on one of
// its own. Its queues are declared as those that read them do.
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
	if !c.Rabbit.DurableQueues && !c.Rabbit.QuorumQueue {
		a.log.Warn("notifications that nobody has read are lost when the message broker restarts; set amqp_durable_queues or " +
			"rabbit_quorum_queue in [oslo_messaging_rabbit], here and where they are read")
	}
	queues, err := othersQueues(at, c.Rabbit)
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

// connected says whether a transport is, and what is wrong where it is not.
func connected(s amqp.Status) error {
	if s.Connected {
		return nil
	}
	if s.LastError == "" {
		return api.ErrStarting
	}
	return errors.New(s.LastError)
}

// announcements lets replicas know of each other's commits sooner than they would
// look.
type announcements struct {
	broker  *amqp.Transport
	client  *oslo.Client
	stored  chan struct{} // something was stored here
	changed chan struct{} // and elsewhere
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

// cast tells the others. While the broker is away they look by themselves.
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
