// Package app puts the service together: configuration in, a running Almanac out.
// It is the only room beside cmd that reads the clock and draws random ids.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// drain is how long a stop waits for requests under way.
const drain = 10 * time.Second

// App is Almanac, ready to run.
type App struct {
	config   config.Config
	log      *slog.Logger
	listener net.Listener
	handler  http.Handler
	jobs     []job.Job
	closers  []func() error // called last to first
}

// Open reads the hosts and the stored reservations and begins to listen. Whatever
// is wrong with the configuration, the hosts or the database stops it here.
func Open(ctx context.Context, cfg config.Config, version string, log *slog.Logger) (*App, error) {
	a := &App{config: cfg, log: log}
	if err := a.open(ctx, version); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *App) open(ctx context.Context, version string) error {
	if err := loopbackOnly(a.config.API); err != nil {
		return err
	}
	db, err := a.database(ctx)
	if err != nil {
		return err
	}
	hosts, err := inventory.OpenKeeper(ctx, inventory.FileSource(a.config.Inventory.HostsFile), db, db)
	if err != nil {
		return err
	}
	desk, err := booking.Open(ctx, a.deskOptions(db), hosts.Snapshot())
	if err != nil {
		return err
	}
	hosts.Follow(desk.Observe)
	a.jobs = append(upkeep.Jobs(upkeep.Options{
		Desk: desk, Keys: db, Poll: a.config.Lifecycle.PollInterval,
		KeyTTL: a.config.Reservation.IdempotencyKeyTTL, Now: now, Log: a.log,
	}), job.Job{Name: "inventory", Every: a.config.Inventory.RefreshInterval, Step: hosts.Refresh})
	a.handler = api.New(a.apiOptions(version, db, hosts, desk))

	address := net.JoinHostPort(a.config.API.Host, strconv.Itoa(a.config.API.Port))
	if a.listener, err = net.Listen("tcp", address); err != nil {
		return fmt.Errorf("listen on [api] host and port: %w", err)
	}
	a.closers = append(a.closers, func() error { return ignoreClosed(a.listener.Close()) })
	return nil
}

// database opens the store, owned by this process and migrated.
func (a *App) database(ctx context.Context) (*store.Store, error) {
	release, err := store.Own(a.config.Database.Connection)
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, release)
	db, err := OpenStore(ctx, a.config, a.log)
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, db.Close)
	applied, err := db.Migrate(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrate the database: %w", err)
	}
	for _, id := range applied {
		a.log.Info("database migrated", "migration", id)
	}
	return db, nil
}

// OpenStore opens the database that the configuration names, as it is.
func OpenStore(ctx context.Context, cfg config.Config, log *slog.Logger) (*store.Store, error) {
	return store.Open(ctx, store.Options{
		Connection: cfg.Database.Connection, BusyTimeout: cfg.Database.BusyTimeout,
		Logger: log.With("component", "database"),
	})
}

func (a *App) deskOptions(db *store.Store) booking.Options {
	c := a.config
	return booking.Options{
		Records: db, Keys: db, Reader: db,
		Limits: booking.Limits{
			Duration:        seconds(c.Limits.MaxDuration),
			StartAhead:      seconds(c.Limits.MaxStartAhead),
			Hosts:           c.Limits.MaxHostsPerProject,
			HostSeconds:     int64(c.Limits.MaxHostHoursPerProject) * 3600,
			ExtensionWindow: seconds(c.Limits.ExtensionWindow),
		},
		Defaults: booking.Defaults{
			Policy: calendar.Policy(c.Reservation.DefaultPolicy), OnEnd: reservation.OnEnd(c.Reservation.OnEnd),
		},
		LeadTime: seconds(c.Reservation.LeadTime),
		Now:      now,
		NewID:    uuid.NewString,
	}
}

func (a *App) apiOptions(version string, db *store.Store, hosts *inventory.Keeper, desk *booking.Desk) api.Options {
	c, begun := a.config, time.Now()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return api.Options{
		Desk: desk, Reader: db, Inventory: hosts,
		Filter: filters.Reservation{
			Promises: desk, Fence: filters.Fence(c.Reservation.Fence), LeadTime: seconds(c.Reservation.LeadTime),
		},
		Authenticator: api.Fixed{
			ProjectID: c.NoAuth.ProjectID, UserID: c.NoAuth.UserID, Admin: slices.Contains(c.NoAuth.Roles, "admin"),
		},
		Ping: db.Ping, BeforeEnd: seconds(c.Reservation.BeforeEnd), MaxBodyBytes: int64(c.API.MaxBodyBytes),
		Version: version, Now: now, Monotonic: func() time.Duration { return time.Since(begun) },
		NewRequestID: func() string { return "req-" + uuid.NewString() },
		Log:          a.log.With("component", "api"), Registry: registry,
	}
}

// URL is where the API answers.
func (a *App) URL() string { return "http://" + a.listener.Addr().String() }

// Run serves until ctx ends, then lets the requests under way finish.
func (a *App) Run(ctx context.Context) error {
	server := &http.Server{
		Handler: a.handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn),
	}
	work, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, j := range a.jobs {
		running.Go(func() { j.Run(work, a.log.With("component", "upkeep")) })
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(a.listener) }()
	a.log.Info("almanac serves", "url", a.URL())

	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		err = server.Shutdown(patience)
		cancel()
	}
	stop()
	running.Wait()
	a.log.Info("almanac stopped")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close gives back what Open took.
func (a *App) Close() error {
	var errs []error
	for _, closer := range slices.Backward(a.closers) {
		errs = append(errs, closer())
	}
	a.closers = nil
	return errors.Join(errs...)
}

// loopbackOnly refuses to serve everybody as admin to the network.
func loopbackOnly(c config.API) error {
	if ip := net.ParseIP(c.Host); c.AuthStrategy != "noauth" || c.Host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fault.New(fault.Invalid,
		"[api] host is %q: with auth_strategy = noauth everybody who reaches the API is its admin, so it must be a loopback address such as 127.0.0.1", c.Host)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func now() span.Instant { return span.At(time.Now()) }

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
