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
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/reservation/booking"
	staging "github.com/almanac-cloud/almanac/reservation/staging/controller"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// App is a prepared Almanac process.
type App struct {
	config  config.Config
	log     *slog.Logger
	version string
	machine string
	replica string // unique among all replicas and runs
	clock   clock
	rules   rules

	listener  net.Listener
	cloud     *cloud // nil if the hosts come from a file
	face      face
	desk      *booking.Service    // nil without the role api
	doctor    *upkeep.Doctor      // nil without the role api
	replicas  atomic.Int64        // live ones, at the last look
	waiting   *waiting            // nil without notifications
	recorder  *recorder           // nil without the role api
	answers   answers             // to Nova; empty without the role api
	evictor   *preemption.Evictor // nil if evictions are off
	powers    *powers             // nil without the role api
	switching *switching          // nil without the role api
	packing   *packing            // nil if no instances can be moved
	queue     *queue              // of best-effort requests; nil without the role api or a cloud
	images    *staging.Controller // nil if no images are staged
	pipeline  *scheduler.Pipeline // nil if another scheduler chooses hosts
	evictions *eviction.Evictor   // nil if another scheduler chooses hosts

	watched  []*watchedJob
	services []service
	closers  []func() error // called last to first
}

// face is the HTTP interface of this process.
type face interface {
	http.Handler
	// Drain makes clients leave.
	Drain()
}

// service is a task that runs until its context ends.
type service struct {
	name string
	run  func(ctx context.Context) error
}

// Open prepares the roles of this process and begins to listen. It fails if anything is wrong with
// the configuration, the hosts or the database, but not if a message broker or Keystone does not
// answer.
func Open(ctx context.Context, cfg config.Config, version string, log *slog.Logger) (*App, error) {
	name, err := machine(cfg.Default)
	if err != nil {
		return nil, err
	}
	a := &App{config: cfg, log: log, version: version, machine: name, replica: name + "." + uuid.NewString()[:8]}
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
		return "", fmt.Errorf("find the name of this machine; set [DEFAULT] host: %w", err)
	}
	return name, nil
}

func (a *App) open(ctx context.Context) error {
	if err := Check(a.config); err != nil {
		return err
	}
	bus, err := a.openBus()
	if err != nil {
		return err
	}
	if a.cloud, err = a.openCloud(); err != nil {
		return err
	}
	hosts, err := a.source(bus)
	if err != nil {
		return err
	}
	if a.has(config.RoleAPI) {
		if err := a.openAPI(ctx, bus, hosts); err != nil {
			return err
		}
	} else {
		a.face = a.newInventoryFace(bus)
	}
	address := net.JoinHostPort(a.config.API.Host, strconv.Itoa(a.config.API.Port))
	if a.listener, err = net.Listen("tcp", address); err != nil {
		return fmt.Errorf("listen on [api] host and port: %w", err)
	}
	a.closers = append(a.closers, func() error { return ignoreClosed(a.listener.Close()) })
	return nil
}

func (a *App) has(role string) bool { return has(a.config, role) }

// URL is the address of this process's HTTP interface.
func (a *App) URL() string { return "http://" + a.listener.Addr().String() }

// Run serves until ctx ends or a part fails, then finishes the work in progress.
func (a *App) Run(ctx context.Context) error {
	// Events are still carried out while the last requests are answered.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var running sync.WaitGroup
	for _, w := range a.watched {
		running.Go(func() { w.run(work, a.log.With("component", "upkeep")) })
	}
	ended := make(chan error, 1+len(a.services))
	for _, s := range a.services {
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
		a.log.Error("almanac stops, since a part of it cannot go on", "error", err)
	case <-ctx.Done():
		a.log.Info("almanac stops; what is under way is finished", "drain_delay", a.config.API.DrainDelay.String())
	}
	a.tellSystemd(daemon.SdNotifyStopping, "STATUS=finishing what is under way")
	err = errors.Join(err, a.drain(server))
	stop()
	running.Wait() // the jobs may still start work of the desk
	if a.desk != nil {
		a.desk.Wait()
	}
	a.log.Info("almanac stopped")
	return err
}

// serve answers over HTTP; it sends the error to ended if that fails.
func (a *App) serve(ended chan<- error) *http.Server {
	server := &http.Server{
		Handler: a.face, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
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
		a.log.Warn("the service manager was not told", "error", err)
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
	for _, closer := range slices.Backward(a.closers) {
		errs = append(errs, closer())
	}
	a.closers = nil
	return errors.Join(errs...)
}

// add registers jobs for Run, watched.
func (a *App) add(jobs ...job.Job) {
	for _, j := range jobs {
		a.watched = append(a.watched, watch(j))
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
