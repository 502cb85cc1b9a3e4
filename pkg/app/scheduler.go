package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
)

// The modes of serving Nova's topic scheduler.
const (
	modeOff       = "off"
	modeInterpose = "interpose"
	modeReplace   = "replace"
)

// sweepEvery is how often claims that no instance uses are released.
const sweepEvery = 5 * time.Second

// schedules reports whether Almanac answers Nova's requests for hosts.
func schedules(c config.Config) bool { return c.Scheduler.Mode != modeOff }

// checkScheduler refuses inconsistent settings of the scheduler.
func checkScheduler(c config.Config) error {
	if !schedules(c) {
		return nil
	}
	if !onOpenStack(c) {
		return fault.Field("[scheduler] mode", "is %s, which takes [inventory] source = openstack", c.Scheduler.Mode)
	}
	if !has(c, roleAPI) || !has(c, roleInventory) {
		return fault.Field("[scheduler] mode", "is %s, which takes the roles api and inventory in the same process", c.Scheduler.Mode)
	}
	if novaTransport(c) == "" {
		return fault.Field("[nova] transport_url", "is needed with [scheduler] mode = %s, here or in [DEFAULT]", c.Scheduler.Mode)
	}
	if c.Scheduler.Mode == modeInterpose && c.Scheduler.ForwardTransportURL == "" {
		return fault.Field("[scheduler] forward_transport_url", "is needed with mode = interpose: who decides there is a nova-scheduler")
	}
	if err := checkForward(c); err != nil {
		return err
	}
	if c.Scheduler.Mode != modeReplace {
		return nil
	}
	if c.Cells == (config.Cells{}) {
		return fault.Field("[api_database] connection", "is needed with [scheduler] mode = replace, or [nova] cells_file or cell: "+
			"Nova has to be told the cell of each host")
	}
	if c.Preemptible.MakeRoom == "migrate" && c.Scheduler.Workers < 2 {
		return fault.Field("[scheduler] workers", "is 1, which waits for the instances that make room; with [preemptible] make_room = migrate "+
			"it takes another, of which Nova asks where to move them")
	}
	evictor, err := evictor(c)
	if err != nil {
		return err
	}
	_, err = pipeline(c, evictor, nil, nil)
	return err
}

// checkForward refuses to pass requests on to the topic that they come from.
func checkForward(c config.Config) error {
	if c.Scheduler.ForwardTransportURL == "" {
		return nil
	}
	from, err := oslo.ParseURL(novaTransport(c))
	if err != nil {
		return fmt.Errorf("[nova]: %w", err)
	}
	to, err := oslo.ParseURL(c.Scheduler.ForwardTransportURL)
	if err != nil {
		return fmt.Errorf("[scheduler]: forward_transport_url: %w", err)
	}
	if from.VirtualHost == to.VirtualHost && len(from.Hosts) > 0 && len(to.Hosts) > 0 && from.Hosts[0].Address() == to.Hosts[0].Address() {
		return fault.Field("[scheduler] forward_transport_url", "is the virtual host on which Nova asks Almanac; "+
			"the nova-scheduler that decides needs another one, or requests would go in a circle")
	}
	return nil
}

// novaTransport returns the URL of Nova's message broker.
func novaTransport(c config.Config) string {
	if c.Nova.TransportURL != "" {
		return c.Nova.TransportURL
	}
	return c.Default.TransportURL
}

// serveNova makes this process answer on Nova's topic scheduler.
func (a *App) serveNova(bus *bus, hosts *inventory.SnapshotCache, db *store.Store) error {
	if !schedules(a.config) {
		return nil
	}
	transport, at, err := a.openTransport(bus, "nova scheduler", novaTransport(a.config))
	if err != nil {
		return fmt.Errorf("[nova] transport_url: %w", err)
	}
	queues, err := othersQueues(at, a.config.Rabbit)
	if err != nil {
		return fmt.Errorf("[nova] transport_url: %w", err)
	}
	queues.Leave = true // the other services of Nova keep casting to all
	log := a.log.With("component", "scheduler")
	o := topic.Options{
		Promises: a.reservationFilter(), Records: db, Over: over(db), Pins: pins{db}, States: a.cloud.board.Load, Rule: preemptibleRule(a.config), Decisions: a.recorder,
		Prefilters: prefilters(a.config), Alternates: a.config.Scheduler.MaxAttempts - 1, Changed: a.castsHeard(bus), Freed: a.cloud.board.InstanceLeft, Started: a.cloud.builds.Forget, Now: a.clock.now, Elapsed: stopwatch(),
		Answered: a.answers.given, Waits: a.cloud.waits, Log: log,
	}
	if behind, err := a.openBehind(bus); err != nil {
		return err
	} else if behind != nil {
		o.Behind = behind
	}
	if a.config.Scheduler.Mode == modeReplace {
		choice, err := pipeline(a.config, a.evictor, a.desk, hosts)
		if err != nil {
			return err
		}
		a.pipeline = choice
		o.Reread = func(ctx context.Context) error {
			_, err := a.cloud.source.Hosts(ctx)
			return err
		}
		room := a.config.Preemptible
		migrates := room.MakeRoom == "migrate"
		a.evictions = eviction.New(eviction.Options{
			Board: a.cloud.board, Placement: a.cloud.placement, Looker: a.cloud.source,
			Servers: servers{a.cloud.ground(a.config, hosts, db), a.cloud.compute, bus.notifier, room.MakeRoom, time.Now},
			Records: db, NewID: uuid.NewString, Notice: room.Notice, Timeout: room.EvictionTimeout, EvictFirst: migrates,
			Now: time.Now, Log: log,
		})
		a.add(job.Job{Name: "unheard claims", Every: sweepEvery, Step: a.evictions.Ledger.Sweep})
		d := dispatch.Options{
			Board: a.cloud.board, Planner: choice, Placement: a.cloud.placement, Looker: a.cloud.source, Reread: o.Reread, Decisions: a.recorder,
			Evictor: a.evictions, Ledger: a.evictions.Ledger, Now: time.Now, Draw: rand.IntN, Log: log,
		}
		if migrates {
			d.MaxWaiting = a.config.Scheduler.Workers / 2
		}
		o.Placer, o.Filters, o.Weighers = dispatch.New(d), choice.Filters, choice.Weighers
	}
	answers := &topic.Service{Options: o}
	server := oslo.NewServer(transport, oslo.ServerOptions{
		Exchange: topic.Exchange, Topic: topic.Topic, Name: topicName(a.machine), Queues: queues, Endpoints: answers.Endpoints(),
		Workers: a.config.Scheduler.Workers, Grace: a.config.Default.GracefulShutdownTimeout, NewID: uuid.NewString, Log: log,
	})
	a.services = append(a.services, service{"Nova's topic " + topic.Topic, server.Serve})
	return nil
}

// over returns a function that reports whether a reservation is over. One that the records do not
// have is not.
func over(records reservation.Reader) func(ctx context.Context, id string) (bool, error) {
	return func(ctx context.Context, id string) (bool, error) {
		r, err := records.Get(ctx, id)
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		return err == nil && !r.Status.Live(), err
	}
}

// waits reports whether Nova is working on an instance: it is in BUILD or has a task. Both end
// when Nova stops asking for a host.
func (c *cloud) waits(ctx context.Context, instance string) (bool, error) {
	now, err := c.compute.Server(ctx, instance)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return now.Status == "BUILD" || now.Task != "", err
}

// topicName is the name of Almanac's server on Nova's topic, which differs from that of a
// nova-scheduler on the same machine.
func topicName(machine string) string { return "almanac." + machine }

// openBehind returns a client of the nova-scheduler that requests are passed on to; nil if there
// is none.
func (a *App) openBehind(bus *bus) (*oslo.Client, error) {
	url := a.config.Scheduler.ForwardTransportURL
	if url == "" {
		return nil, nil
	}
	transport, at, err := a.openTransport(bus, "nova-scheduler behind", url)
	if err != nil {
		return nil, fmt.Errorf("[scheduler] forward_transport_url: %w", err)
	}
	queues, err := othersQueues(at, a.config.Rabbit)
	if err != nil {
		return nil, fmt.Errorf("[scheduler] forward_transport_url: %w", err)
	}
	client := oslo.NewClient(transport, oslo.ClientOptions{
		Queues: queues, Timeout: a.config.Default.RPCResponseTimeout, Monitor: a.config.Default.RPCResponseTimeout,
		NewID: uuid.NewString, Now: time.Now,
	})
	a.closers = append(a.closers, func() error {
		client.Close()
		return nil
	})
	return client, nil
}

// castsHeard returns a function that triggers a reading of the hosts soon after a cast of Nova's.
// The delay lets Placement follow and collects the casts of one burst.
func (a *App) castsHeard(bus *bus) func() {
	heard := make(chan struct{}, 1)
	a.services = append(a.services, service{"casts of Nova", func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-heard:
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(openstack.DefaultGather):
				bus.pokeHosts()
			}
		}
	}})
	return func() { job.Poke(heard) }
}
