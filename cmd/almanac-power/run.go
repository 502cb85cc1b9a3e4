// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/oslo/amqp"
	"github.com/almanac-cloud/almanac/pkg/power"
	"github.com/almanac-cloud/almanac/pkg/servicelog"
)

// exchange is the exchange of Almanac's own topics.
const exchange = "almanac"

// bus is the message broker.
type bus struct {
	*amqp.Transport
	client *oslo.Client
}

// openBus connects to the broker of the configuration.
func openBus(cfg config.PowerAgent, log *slog.Logger) (*bus, error) {
	if cfg.Default.TransportURL == "" {
		return nil, fault.Field("[DEFAULT] transport_url", "is required: the message broker of almanacd")
	}
	at, err := oslo.ParseURL(cfg.Default.TransportURL)
	if err != nil {
		return nil, fmt.Errorf("[DEFAULT] transport_url: %w", err)
	}
	o := cfg.Rabbit
	o.Name, o.NewID, o.Now, o.Log = "almanac-power "+cfg.Agent.Name, uuid.NewString, time.Now, log.With("component", "messaging")
	transport, err := amqp.Open(at, o)
	if err != nil {
		return nil, err
	}
	return &bus{transport, oslo.NewClient(transport, oslo.ClientOptions{
		Queues: oslo.OwnQueues, Timeout: 15 * time.Second, NewID: uuid.NewString, Now: time.Now,
	})}, nil
}

func (b *bus) close() error {
	b.client.Close()
	return b.Transport.Close()
}

// run is the agent.
func (s *service) run(ctx context.Context, stderr io.Writer) (err error) {
	cfg, err := s.load()
	if err != nil {
		return err
	}
	log, err := servicelog.Open(cfg.Default, "almanac-power", stderr)
	if err != nil {
		return err
	}
	defer log.Close()
	log.TellConfiguration(cfg.Origin, cfg.Warnings)
	defer s.reloads(log)()
	machines, err := openMachines(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, machines.close()) }()
	if machines.ironic != nil {
		if err := machines.ironic.check(ctx, machines.driven, log.Logger); err != nil {
			return err
		}
	}
	bus, err := openBus(cfg, log.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bus.close()) }()
	agent, err := power.NewAgent(power.AgentOptions{
		Name: cfg.Agent.Name, Machines: machines.driven, StateFile: cfg.ResolvePath(cfg.Agent.StateFile),
		ReadTimeout: cfg.Agent.ReadTimeout, SwitchTimeout: cfg.Agent.SwitchTimeout,
		Client: bus.client, Exchange: exchange, NewID: uuid.NewString, Now: time.Now, Log: log.With("component", "power"),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, agent.Close()) }()
	log.Info("almanac-power serves", "version", version, "agent", cfg.Agent.Name, "machines", len(machines.driven))
	return serve(ctx, cfg, agent, bus, log.Logger)
}

// serve runs the agent until ctx ends or the broker refuses its queue.
func serve(ctx context.Context, cfg config.PowerAgent, agent *power.Agent, bus *bus, log *slog.Logger) error {
	server := oslo.NewServer(bus, oslo.ServerOptions{
		Exchange: exchange, Topic: power.Topic, Name: cfg.Agent.Name, Queues: oslo.OwnQueues, Endpoints: []oslo.Endpoint{agent.Endpoint()},
		NewID: uuid.NewString, Log: log.With("component", "messaging"),
	})
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { agent.Run(ctx) })
	running.Go(func() {
		select {
		case <-server.Ready(): // a process that receives the announcement may send orders at once
		case <-ctx.Done():
			return
		}
		job.Job{
			Name: "announcement", Every: cfg.Agent.AnnounceInterval, Step: agent.Announce, Wake: agent.DiscoveryRequested(),
		}.Run(ctx, log)
	})
	err := server.Serve(ctx)
	stop()
	return err
}

// reloads reloads the configuration of the log at each SIGHUP, until it is stopped.
func (s *service) reloads(log *servicelog.Log) (stop func()) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-hangup:
				s.reload(log)
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(hangup); close(done) }
}

// reload reopens the log, reads the configuration again, and applies the option debug unless
// anything of this fails.
func (s *service) reload(log *servicelog.Log) {
	unopened := log.Reopen() // even if the configuration is wrong: the open file may have been rotated
	cfg, err := s.load()
	if err = errors.Join(unopened, err); err != nil {
		log.Error("could not apply the configuration; the previous one stays in effect", "error", err)
		return
	}
	log.SetLevel(cfg.Default)
}
