// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// sweepEvery is how often claims that no instance uses are released.
const sweepEvery = 5 * time.Second

// schedules reports whether Almanac answers Nova's requests for hosts.
func schedules(c config.Config) bool { return c.Scheduler.Mode != config.ModeOff }

// checkScheduler refuses inconsistent settings of the scheduler.
func checkScheduler(c config.Config) error {
	if !schedules(c) {
		return nil
	}
	if !onCloud(c) {
		return fault.Field("[scheduler] mode", "is %s, which requires [inventory] source = openstack, or simulated", c.Scheduler.Mode)
	}
	if !has(c, config.RoleAPI) || !has(c, config.RoleInventory) {
		return fault.Field("[scheduler] mode", "is %s, which requires the roles api and inventory in the same process", c.Scheduler.Mode)
	}
	if simulates(c) {
		return checkPipeline(c)
	}
	if _, url := novaTransport(c); url == "" {
		return fault.Field("[nova] transport_url", "is required with [scheduler] mode = %s, here or in [DEFAULT]", c.Scheduler.Mode)
	}
	if c.Scheduler.Mode == config.ModeInterpose && c.Scheduler.ForwardTransportURL == "" {
		return fault.Field("[scheduler] forward_transport_url", "is required with mode = interpose, in which a nova-scheduler decides")
	}
	if err := checkForward(c); err != nil {
		return err
	}
	if c.Scheduler.Mode != config.ModeReplace {
		return nil
	}
	if c.Cells == (config.Cells{}) {
		return fault.Field("[api_database] connection", "is required with [scheduler] mode = replace, or [nova] cells_file or cell: "+
			"Nova must receive the cell of each host")
	}
	if c.Preemptible.Action == upkeep.OrderMigrate && c.Scheduler.Workers < 2 {
		return fault.Field("[scheduler] workers", "must be at least 2 with [preemptible] preempt_action = migrate: "+
			"while one worker waits for victims to leave, Nova asks another one for their new hosts")
	}
	return checkPipeline(c)
}

// checkPipeline refuses wrong names of filters, weighers and costs.
func checkPipeline(c config.Config) error {
	evictor, err := newEvictor(c)
	if err != nil {
		return err
	}
	_, err = pipeline(c, evictor, nil, nil)
	return err
}

// checkForward refuses to forward requests to the topic that they come from.
func checkForward(c config.Config) error {
	if c.Scheduler.ForwardTransportURL == "" {
		return nil
	}
	_, url := novaTransport(c)
	from, err := oslo.ParseURL(url)
	if err != nil {
		return fmt.Errorf("[nova]: %w", err)
	}
	to, err := oslo.ParseURL(c.Scheduler.ForwardTransportURL)
	if err != nil {
		return fmt.Errorf("[scheduler]: forward_transport_url: %w", err)
	}
	if from.VirtualHost == to.VirtualHost && len(from.Hosts) > 0 && len(to.Hosts) > 0 && from.Hosts[0].Address() == to.Hosts[0].Address() {
		return fault.Field("[scheduler] forward_transport_url", "is the virtual host on which Nova sends its requests to Almanac; "+
			"the nova-scheduler needs another one, or requests would go in a circle")
	}
	return nil
}

// novaTransport returns the URL of Nova's message broker, and the option that has it.
func novaTransport(c config.Config) (option, url string) {
	if c.Nova.TransportURL != "" {
		return "[nova] transport_url", c.Nova.TransportURL
	}
	return "[DEFAULT] transport_url", c.Default.TransportURL
}

// openScheduler opens the server on Nova's topic scheduler, if Almanac serves it, or what chooses
// hosts for the simulated cloud. It returns the pipeline that chooses hosts; nil if another
// scheduler does.
func openScheduler(s shared, evictor *preemption.Evictor, decisions *recorder) (choice *scheduler.Pipeline, f feature, err error) {
	took := newAnswers()
	f.metrics = append(f.metrics, took.took)
	evicted := func() (gone, stayed int64) { return 0, 0 }
	defer func() { f.metrics.evictions(evicted) }()
	if !schedules(s.config) {
		return nil, f, nil
	}
	o := topic.Options{
		Promises: reservationFilter(s.config, s.bookings), Records: s.db, Over: over(s.db), Pins: pins{s.db}, States: s.source.board.Load,
		Rule: preemptibleRule(s.config), Decisions: decisions, Prefilters: s.config.Prefilters, Alternates: s.config.Scheduler.MaxAttempts - 1,
		Changed: f.castsReceived(s.source.changed), Freed: s.source.board.InstanceLeft, Started: s.source.builds.Forget,
		Now: s.clock.now, Elapsed: stopwatch(), Answered: took.given, Waits: s.cloud.waits, Log: s.logOf("scheduler"),
	}
	if o.Behind, err = f.openBehind(s.process); err != nil {
		return nil, f, err
	}
	if s.config.Scheduler.Mode == config.ModeReplace {
		if choice, err = pipeline(s.config, evictor, s.bookings, s.hosts); err != nil {
			return nil, f, err
		}
		o.Reread = func(ctx context.Context) error {
			_, err := s.source.cloud.Hosts(ctx)
			return err
		}
		evictions := newEvictions(s)
		evicted = evictions.Evicted
		f.jobs = append(f.jobs, job.Job{Name: "unheard claims", Every: sweepEvery, Step: evictions.Ledger.Sweep})
		d := dispatch.Options{
			Board: s.source.board, Planner: choice, Placement: claiming.NewGatherer(s.cloud.claims()), Looker: s.source.cloud, Reread: o.Reread, Decisions: decisions,
			Evictor: evictions, Now: s.pace.Now, Wait: s.pace.Wait, Draw: rand.IntN, Log: o.Log,
		}
		if s.config.Preemptible.Action == upkeep.OrderMigrate {
			d.MaxWaiting = s.config.Scheduler.Workers / 2
		}
		o.Placer, o.Filters, o.Weighers = dispatch.New(d), choice.Filters, choice.Weighers
	}
	answers := &topic.Service{Options: o}
	if c := s.cloud.simulated; c != nil {
		f.services = append(f.services, service{"simulated cloud", func(ctx context.Context) error { return c.Conduct(ctx, answers) }})
		return choice, f, nil
	}
	return choice, f, f.serveNova(s.process, answers)
}

// serveNova makes the process answer on Nova's topic scheduler.
func (f *feature) serveNova(p process, answers *topic.Service) error {
	option, url := novaTransport(p.config)
	transport, queues, err := f.openPeer(p, "nova scheduler", option, url)
	if err != nil {
		return err
	}
	queues.Leave = true // the other services of Nova keep casting to all
	server := oslo.NewServer(transport, oslo.ServerOptions{
		Tracer:   p.tracer,
		Exchange: topic.Exchange, Topic: topic.Topic, Name: topicName(p.machine), Queues: queues, Endpoints: answers.Endpoints(),
		Workers: p.config.Scheduler.Workers, Grace: p.config.Default.GracefulShutdownTimeout, NewID: uuid.NewString, Log: answers.Log,
	})
	f.services = append(f.services, service{"Nova's topic " + topic.Topic, server.Serve})
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

// openBehind returns a client of the nova-scheduler to which requests are forwarded; nil if there is
// none.
func (f *feature) openBehind(p process) (topic.Scheduler, error) {
	url := p.config.Scheduler.ForwardTransportURL
	if url == "" {
		return nil, nil
	}
	transport, queues, err := f.openPeer(p, "nova-scheduler behind", "[scheduler] forward_transport_url", url)
	if err != nil {
		return nil, err
	}
	timeout := p.config.Default.RPCResponseTimeout
	return f.newClient(transport, oslo.ClientOptions{Queues: queues, Timeout: timeout, Monitor: timeout}), nil
}

// castsReceived returns a function that triggers a reading of the hosts soon after a cast of Nova's.
// The delay lets Placement follow and collects the casts of one burst.
func (f *feature) castsReceived(changed signal) func() {
	casts := newSignal(1)
	f.services = append(f.services, service{"casts of Nova", func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-casts[0]:
			}
			if job.Pause(ctx, openstack.DefaultGather) != nil {
				return nil
			}
			changed.poke()
		}
	}})
	return casts.poke
}
