package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/remote"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/admission"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	"github.com/almanac-cloud/almanac/weighers"
)

// parallelEvents is how many events one replica carries out at once.
const parallelEvents = 16

// openAPI prepares the role api: the desk with its hosts and records, the jobs that carry out
// reservations, and the REST handler.
func (a *App) openAPI(ctx context.Context, bus *bus, source inventory.Source) error {
	if err := a.rules.load(a.config); err != nil {
		return err
	}
	callers, keystoneCheck, err := a.authenticator()
	if err != nil {
		return err
	}
	db, err := a.database(ctx)
	if err != nil {
		return err
	}
	if err := a.clock.set(ctx, db, a.log); err != nil {
		return err
	}
	if a.evictor, err = evictor(a.config); err != nil {
		return err
	}
	if a.cloud != nil && a.cloud.source != nil {
		a.cloud.source.Remember(db)
		if a.evictor != nil {
			a.cloud.source.Shown(func(s *inventory.States) { a.evictor.Prepare(s, a.clock.now()) })
		}
	}
	table, err := efficiencies(a.config)
	if err != nil {
		return err
	}
	a.powers = &powers{
		records: db, table: table, boot: seconds(a.config.Energy.BootTime), margin: seconds(a.config.Energy.BootMargin), now: a.clock.now,
	}
	hosts, err := a.keeper(ctx, source, db)
	if err != nil {
		return err
	}
	carry := &carrier{}
	if err := a.openDesk(ctx, db, bus, hosts, carry); err != nil {
		return err
	}
	a.doctor = a.newDoctor(db, hosts)
	if a.cloud != nil {
		if err := a.addSteward(ctx, carry, db, bus, hosts); err != nil {
			return err
		}
	}
	a.addUpkeep(db, bus, hosts)
	a.addRecorder(db)
	a.answers = newAnswers()
	if a.switching, err = a.openEnergy(db, bus, hosts); err != nil {
		return err
	}
	a.queue = a.openBestEffort(db, hosts)
	if a.packing, err = a.openPacking(db, hosts); err != nil {
		return err
	}
	if err := a.serveNova(bus, hosts, db); err != nil {
		return err
	}
	if keystoneCheck != nil {
		a.add(job.Job{Name: "keystone", Every: keystoneEvery, Step: keystoneCheck})
	}
	options, err := a.apiOptions(db, hosts, callers, bus)
	if err != nil {
		return err
	}
	server := api.New(options)
	a.face = server
	a.add(job.Job{Name: "readiness", Every: lookEvery, Step: server.Look})
	return nil
}

// openDesk opens the desk that books, with the facts about images that it requires; carry applies
// its events to the cloud.
func (a *App) openDesk(ctx context.Context, db *store.Store, bus *bus, hosts *inventory.SnapshotCache, carry *carrier) (err error) {
	if a.images, err = a.openStaging(ctx, db, hosts); err != nil {
		return err
	}
	o := a.deskOptions(db, bus)
	if a.images != nil {
		o.Images = a.images.Facts
	}
	if a.cloud != nil {
		o.Cloud = carry
	}
	if a.desk, err = booking.Open(ctx, o, hosts.Snapshot()); err != nil {
		return err
	}
	if a.images != nil {
		a.images.Attach(a.desk)
	}
	hosts.Follow(a.desk.Observe)
	return nil
}

const (
	// keystoneEvery is how often the job keystone checks whether Keystone answers.
	keystoneEvery = 30 * time.Second
	// lookEvery is how often every part is probed, and so how exact the time of a failure is.
	lookEvery = 5 * time.Second
)

// keeper reads the hosts. It tries again while the cloud or the process with the inventory does
// not answer.
func (a *App) keeper(ctx context.Context, source inventory.Source, db *store.Store) (*inventory.SnapshotCache, error) {
	if !a.has(roleInventory) {
		a.log.Info("reading the hosts from the process that has the inventory", "topic", remote.Topic)
	}
	for {
		hosts, err := a.openKeeper(ctx, source, db)
		away := !a.has(roleInventory) || onOpenStack(a.config) && fault.Is(err, fault.Unavailable)
		if err == nil || !away {
			return hosts, err
		}
		a.log.Error("the inventory cannot be read; trying again", "every", retryInventory, "error", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(retryInventory):
		}
	}
}

const (
	inventoryTimeout = 10 * time.Second
	// cloudTimeout is for the first reading of a cloud, which has one request per host.
	cloudTimeout   = 5 * time.Minute
	retryInventory = 5 * time.Second
	// staleAfter is the least age, in seconds, at which a reading of the hosts is too old.
	staleAfter = 120
)

func (a *App) openKeeper(ctx context.Context, source inventory.Source, db *store.Store) (*inventory.SnapshotCache, error) {
	timeout := inventoryTimeout
	if onOpenStack(a.config) && a.has(roleInventory) {
		timeout = cloudTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return inventory.OpenSnapshotCache(ctx, source, inventory.SnapshotCacheOptions{
		Hosts: db, Properties: db, Records: db, Powers: a.powers, Now: a.clock.now, Log: a.log.With("component", "inventory"),
		Rules: inventory.TrustRules{
			MaxChangePercent: a.config.Inventory.MaxChangePercent, SettleTime: seconds(a.config.Inventory.SettleTime),
			StaleAfter: max(staleAfter, 3*seconds(a.config.Inventory.RefreshInterval)),
		},
	})
}

func (a *App) deskOptions(db *store.Store, bus *bus) booking.Options {
	o := booking.Options{
		Records: db, Keys: db, Reader: db,
		Limits: limits(a.config), Defaults: defaults(a.config),
		LeadTime: seconds(a.config.Reservation.LeadTime), Migrates: a.config.Reservation.RunningInstances == "migrate",
		Replica: a.replica, Parallel: parallelEvents, Deciding: runtime.GOMAXPROCS(0) - 1,
		Now: a.clock.now, Elapsed: stopwatch(), NewID: uuid.NewString,
	}
	if bus.replicas != nil {
		o.Announce = func() { job.Poke(bus.replicas.stored) }
	}
	return o
}

// stopwatch returns a function that returns the time since the call of stopwatch.
func stopwatch() func() time.Duration {
	begun := time.Now()
	return func() time.Duration { return time.Since(begun) }
}

func limits(c config.Config) booking.Limits {
	return booking.Limits{
		Duration:        seconds(c.Limits.MaxDuration),
		StartAhead:      seconds(c.Limits.MaxStartAhead),
		Hosts:           c.Limits.MaxHostsPerProject,
		HostSeconds:     int64(c.Limits.MaxHostHoursPerProject) * 3600,
		ExtensionWindow: seconds(c.Limits.ExtensionWindow),
	}
}

func defaults(c config.Config) booking.Defaults {
	d := booking.Defaults{
		Policy: calendar.Policy(c.Reservation.DefaultPolicy), OnEnd: reservation.OnEnd(c.Reservation.OnEnd),
	}
	for _, choice := range c.Reservation.OnEndChoices {
		d.OnEndChoices = append(d.OnEndChoices, reservation.OnEnd(choice))
	}
	return d
}

func (a *App) addUpkeep(db *store.Store, bus *bus, hosts *inventory.SnapshotCache) {
	a.closers = append(a.closers, func() error { return a.leave(db) })
	desk := punctual{a.desk, &a.clock}
	o := upkeep.Options{
		Booking: desk, Replica: desk, Presence: db, Leases: a.leases(db), Keys: db,
		Seen: func(replicas int) { a.replicas.Store(int64(replicas)) },
		Poll: a.config.Lifecycle.PollInterval, KeyTTL: a.config.Reservation.IdempotencyKeyTTL,
		Now: a.clock.now, Log: a.log.With("component", "upkeep"),
	}
	if bus.replicas != nil {
		o.Changed = bus.replicas.changed
		a.add(job.Job{Name: "announcements", Every: time.Hour, Step: bus.replicas.cast, Wake: bus.replicas.stored})
	}
	a.add(upkeep.Jobs(o)...)
	if bus.notifier != nil {
		a.waiting = &waiting{}
		a.add(
			upkeep.Notifications(db, db, bus.notifier),
			job.Job{Name: "notifications waiting", Every: waitingEvery, Step: func(ctx context.Context) error {
				return a.waiting.look(ctx, db, a.clock.now)
			}},
		)
	}
	a.add(
		job.Job{Name: "inventory", Every: a.config.Inventory.RefreshInterval, Step: hosts.Refresh, Wake: bus.hostsChanged},
		job.Job{Name: "clock", Every: clockEvery, Step: func(ctx context.Context) error { return a.clock.set(ctx, db, a.log) }},
	)
}

// leave tells the other replicas that this process has stopped. If the database does not answer,
// they detect it by themselves.
func (a *App) leave(db *store.Store) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := db.Leave(ctx); err != nil {
		a.log.Warn("the other replicas were not told that this one stops", "error", err)
	}
	return nil
}

const leaveTimeout = 2 * time.Second

func (a *App) apiOptions(db *store.Store, hosts *inventory.SnapshotCache, callers api.Authenticator, bus *bus) (api.Options, error) {
	c := a.config
	own, err := ownWeighers(c, weighers.Ports{Promises: a.desk, Efficiencies: hosts})
	if err != nil {
		return api.Options{}, fmt.Errorf("[filter_scheduler]: %w", err)
	}
	m := a.measure(bus)
	a.measureAPI(m, db, hosts)
	doctor := newCountedDoctor(a.doctor)
	doctor.measure(m)
	return api.Options{
		Booking: a.desk, Reader: db, Inventory: hosts, Doctor: doctor, Instances: a.doctor.Instances, Decisions: db, Placing: a.placing(), Images: a.shownImages(), Energy: a.switching.console, BestEffort: a.queue.shown(), Packing: a.packing.shown(c.Packing),
		Admission:     admission.Admission{Promises: a.reservationFilter(), Records: db, Rule: preemptibleRule(c), Pins: pins{db}, Log: a.log.With("component", "api")},
		Weighers:      own,
		Authenticator: callers, KeystoneURI: cmp.Or(c.Keystone.WWWAuthenticateURI, c.Keystone.AuthURL), Policy: &a.rules,
		Ping: db.Ping, Probes: a.probes(bus, hosts),
		BeforeEnd: seconds(c.Reservation.BeforeEnd), MaxBodyBytes: int64(c.API.MaxBodyBytes),
		RequestTimeout: c.API.RequestTimeout, RequestsPerSecond: float64(c.API.RateLimit), Burst: c.API.RateBurst,
		RequestsAtOnce:    c.API.RequestsAtOnce,
		FailuresPerSecond: float64(c.API.FailureLimit), FailureBurst: c.API.FailureBurst,
		ProxyHeaders: c.API.ParseProxyHeaders, FeedSecret: c.API.FeedSecret,
		Version: a.version, Now: a.clock.now, Monotonic: stopwatch(),
		NewRequestID: func() string { return "req-" + uuid.NewString() },
		Log:          a.log.With("component", "api"), Registry: m.registry,
	}, nil
}

// placing returns what the API requires of the placement in this process.
func (a *App) placing() api.Placing {
	p := api.Placing{Pipeline: a.pipeline}
	if a.cloud != nil {
		p.Flavors = a.cloud.compute.Flavors
		if a.cloud.board != nil {
			p.States = a.cloud.board.Load
		}
	}
	return p
}

// probes returns the probes of the parts of this process.
func (a *App) probes(bus *bus, hosts *inventory.SnapshotCache) []api.Probe {
	probes := []api.Probe{{Name: "clock offset", Check: func(context.Context) error {
		if ahead := a.clock.ahead(); ahead.Abs() > worthSaying {
			return fmt.Errorf("the database's clock is %v ahead of this machine's", ahead.Round(time.Millisecond))
		}
		return nil
	}}, {Name: "clock doubt", Check: func(context.Context) error {
		if doubt := a.clock.doubt(); doubt != "" {
			return errors.New(doubt)
		}
		return nil
	}}, {Name: "inventory doubt", Check: func(context.Context) error {
		if doubt := hosts.Untrusted(a.clock.now()); doubt != "" {
			return fmt.Errorf("nothing is healed or taken away: %s", doubt)
		}
		return nil
	}}}
	for _, t := range bus.transports {
		probes = append(probes, api.Probe{Name: t.name + " broker", Check: func(context.Context) error { return connected(t.transport.Status()) }})
	}
	for _, w := range a.watched {
		probes = append(probes, api.Probe{Name: w.Name, Check: func(context.Context) error { return w.trouble() }})
	}
	return probes
}
