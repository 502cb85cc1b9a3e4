// SPDX-License-Identifier: Apache-2.0

// Package app assembles the service: it turns a configuration into a running Almanac. Only app and
// cmd read the clock and draw random ids.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// App is a prepared Almanac process: the list of its features.
type App struct {
	process
	features []feature
	jobs     []*watchedJob // of the features
	face     face
	listener net.Listener
	rules    *rules           // nil without the role api
	bookings *booking.Service // nil without the role api
}

// process is what every feature knows of the process.
type process struct {
	config  config.Config
	log     *slog.Logger
	version string
	machine string
	replica string // unique among all replicas and runs
	pace    Pace
	clock   *clock          // runs at the pace
	tracer  *tracing.Tracer // nil if nothing is traced
}

func (p process) has(role string) bool { return has(p.config, role) }

func (p process) logOf(component string) *slog.Logger { return p.log.With("component", component) }

// face is the HTTP interface of this process.
type face interface {
	http.Handler
	// Drain makes clients leave.
	Drain()
}

// Open prepares the roles of this process and begins to listen. It fails if anything is wrong with
// the configuration, the hosts or the database, but not if a message broker or Keystone does not
// answer. Only the time of a simulated cloud can pass at another pace than real time.
func Open(ctx context.Context, cfg config.Config, pace Pace, version string, log *slog.Logger) (*App, error) {
	if pace.Speed() > 1 && !simulates(cfg) {
		return nil, fault.Field("[inventory] source", "must be simulated where time passes %d times as fast", pace.Speed())
	}
	name, err := machine(cfg.Default)
	if err != nil {
		return nil, err
	}
	a := &App{process: process{
		config: cfg, log: log, version: version, machine: name, replica: name + "." + uuid.NewString()[:8], pace: pace, clock: &clock{pace: pace},
	}}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// machine returns the name of this machine.
func machine(c config.Default) (string, error) {
	if c.Host != "" {
		return c.Host, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("determine the name of this machine; set [DEFAULT] host: %w", err)
	}
	return name, nil
}

// add adds a feature, and returns the error with which it was opened.
func (a *App) add(f feature, err error) error {
	a.features = append(a.features, f)
	return err
}

// listen begins to listen.
func (a *App) listen() (f feature, err error) {
	address := net.JoinHostPort(a.config.API.Host, strconv.Itoa(a.config.API.Port))
	if a.listener, err = net.Listen("tcp", address); err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: another program uses this port; choose another one with [api] port, or OS_API__PORT", err)
		}
		return f, fmt.Errorf("listen on [api] host and port: %w", err)
	}
	f.closers = append(f.closers, func() error { return ignoreClosed(a.listener.Close()) })
	return f, nil
}

// URL is the address of this process's HTTP interface.
func (a *App) URL() string { return "http://" + a.listener.Addr().String() }

// Run serves until ctx ends or a part fails, then finishes the work in progress.
func (a *App) Run(ctx context.Context) error {
	// Events are still carried out while the last requests are answered.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var running sync.WaitGroup
	for _, w := range a.jobs {
		running.Go(func() { w.run(work, a.logOf("upkeep")) })
	}
	var services []service
	for _, f := range a.features {
		services = append(services, f.services...)
	}
	ended := make(chan error, 1+len(services))
	for _, s := range services {
		running.Go(func() {
			if err := s.run(work); err != nil && work.Err() == nil {
				ended <- fmt.Errorf("%s: %w", s.name, err)
			}
		})
	}
	running.Go(func() { watchdog(work, a.log) })
	server := a.serve(ended)
	a.log.Info("almanac serves", "url", a.URL(), "roles", a.config.Default.Roles, "replica", a.replica)
	a.tellSystemd(daemon.SdNotifyReady, "STATUS=serving")

	var err error
	select {
	case err = <-ended:
		a.log.Error("almanac stops because a part of it has failed", "error", err)
	case <-ctx.Done():
		a.log.Info("almanac stops and finishes the work in progress", "drain_delay", a.config.API.DrainDelay.String())
	}
	a.tellSystemd(daemon.SdNotifyStopping, "STATUS=finishing the work in progress")
	err = errors.Join(err, a.drain(server))
	stop()
	running.Wait() // the jobs may still start work of the booking service
	if a.bookings != nil {
		a.bookings.Wait()
	}
	a.log.Info("almanac stopped")
	return err
}

// writeSlack is how long after the time of a request its client may still read the answer.
const writeSlack = 10 * time.Second

// serve answers over HTTP; it sends the error to ended if that fails.
func (a *App) serve(ended chan<- error) *http.Server {
	server := &http.Server{
		Handler: a.face, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		// Both begin with the request. Streams have deadlines of their own.
		ReadTimeout: a.config.API.RequestTimeout, WriteTimeout: a.config.API.RequestTimeout + writeSlack,
		MaxHeaderBytes: 128 << 10, // the longest parameters, and a token
		ErrorLog:       slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
	}
	go func() {
		if err := server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
			ended <- fmt.Errorf("serve HTTP: %w", err)
		}
	}()
	return server
}

// tellSystemd notifies the service manager. An error is only logged.
func (a *App) tellSystemd(states ...string) {
	if err := notify(states...); err != nil {
		a.log.Warn("could not notify the service manager", "error", err)
	}
}

// drain makes clients leave, then waits for the requests in progress.
func (a *App) drain(server *http.Server) error {
	a.face.Drain()
	time.Sleep(a.config.API.DrainDelay)
	patience, cancel := context.WithTimeout(context.Background(), a.config.Default.GracefulShutdownTimeout)
	defer cancel()
	return server.Shutdown(patience)
}

// Close releases what Open acquired.
func (a *App) Close() error {
	var errs []error
	for _, f := range slices.Backward(a.features) {
		errs = append(errs, f.close())
	}
	a.features = nil
	return errors.Join(errs...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
