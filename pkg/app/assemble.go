// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	imagectl "github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// open opens the features of this process's roles. A feature gets the results of those that it
// needs as arguments.
func (a *App) open(ctx context.Context) error {
	if err := Check(a.config); err != nil {
		return err
	}
	tracer, f, err := openTracing(a.process)
	if a.add(f, err) != nil {
		return err
	}
	a.tracer = tracer
	bus, f, err := openMessaging(a.process)
	if a.add(f, err) != nil {
		return err
	}
	cloud, f, err := openCloud(a.process)
	if a.add(f, err) != nil {
		return err
	}
	if a.has(config.RoleAPI) {
		err = a.openAPI(ctx, bus, cloud)
	} else {
		err = a.openInventory(bus, cloud)
	}
	if err != nil {
		return err
	}
	return a.add(a.listen())
}

// openInventory opens the role inventory without the role api.
func (a *App) openInventory(bus *bus, cloud *cloud) error {
	source, f, err := openSource(a.process, bus, cloud, nil, nil)
	if a.add(f, err) != nil {
		return err
	}
	if err := a.add(openEvents(a.process, cloud, source, nil)); err != nil {
		return err
	}
	a.jobs = a.watchJobs()
	a.face = newInventoryFace(a.version, a.jobs, a.registry())
	return nil
}

// shared is what the features of the role api share.
type shared struct {
	process
	bus      *bus
	cloud    *cloud // nil if the hosts come from a file
	db       *store.Store
	powers   *powers
	source   *hostSource
	hosts    *inventory.SnapshotCache
	bookings *booking.Service
	// networks is nil without a Keystone.
	networks *networks
}

// doubt returns why the time or the inventory is untrusted now; empty if both are trusted.
func (s shared) doubt() string { return cmp.Or(s.clock.doubt(), s.hosts.Untrusted(s.clock.now())) }

// leases returns leases for jobs that depend on the time.
func (s shared) leases() job.Leases { return punctualLeases{s.db, s.clock} }

// purge returns a job that deletes what is older than keep seconds.
func (s shared) purge(name string, keep int64, purge func(ctx context.Context, lease job.Lease, before span.Instant) (int, error)) job.Job {
	step := func(ctx context.Context, held *job.Held) error {
		_, err := purge(ctx, held.Lease, s.clock.now().Add(-keep))
		return err
	}
	return job.Job{Name: name, Every: forgetEvery, Step: job.Leased(s.leases(), name, forgetTTL, step)}
}

// openShared opens the reservations with what they rest on: the database and its clock, the hosts,
// and the fences on the cloud, which are nil without one. images contains the facts about images
// that decisions use; shown becomes openstack.Options.Shown.
func (a *App) openShared(
	ctx context.Context, bus *bus, cloud *cloud, images *imagectl.Known, shown func(*inventory.States),
) (s shared, enforced *enforcement, err error) {
	p := a.process
	db, f, err := openDatabase(ctx, p)
	if a.add(f, err) != nil {
		return s, nil, err
	}
	if err := a.add(openClock(ctx, p, db)); err != nil {
		return s, nil, err
	}
	powers, err := newPowers(p, db)
	if err != nil {
		return s, nil, err
	}
	source, f, err := openSource(p, bus, cloud, db, shown)
	if a.add(f, err) != nil {
		return s, nil, err
	}
	// The hosts and the booking service, and the booking service and the enforcer, need each other: the first of each pair
	// gets a function. Nothing calls it before the jobs run.
	hosts, f, err := openHosts(ctx, p, source, db, powers, func(next *inventory.Snapshot) { a.bookings.Observe(next) })
	if a.add(f, err) != nil {
		return s, nil, err
	}
	var enforcer booking.Cloud
	if cloud != nil {
		enforcer = enforce(func(ctx context.Context, r reservation.Reservation, event reservation.EventType) error {
			return enforced.Carry(ctx, r, event)
		})
	}
	checks, f, err := openUsage(p, cloud, db, hosts)
	if a.add(f, err) != nil {
		return s, nil, err
	}
	floating, f, err := openNetworks(p, cloud, db)
	if a.add(f, err) != nil {
		return s, nil, err
	}
	tariff, f := openTariff(ctx, p)
	_ = a.add(f, nil)
	a.bookings, f, err = openBooking(ctx, p, bus, db, hosts, images, enforcer, floating, checks, tariff)
	if a.add(f, err) != nil {
		return s, nil, err
	}
	s = shared{p, bus, cloud, db, powers, source, hosts, a.bookings, floating}
	if floating != nil {
		floating.Promises, floating.Leases = s.bookings, s.leases()
		_ = a.add(feature{jobs: []job.Job{floating.Job()}}, nil)
	}
	if cloud == nil {
		return s, nil, nil
	}
	enforced, f, err = openEnforcement(ctx, s)
	return s, enforced, a.add(f, err)
}

// enforce is a function that implements booking.Cloud.
type enforce func(ctx context.Context, r reservation.Reservation, event reservation.EventType) error

// Carry implements booking.Cloud.
func (e enforce) Carry(ctx context.Context, r reservation.Reservation, event reservation.EventType) error {
	return e(ctx, r, event)
}

// openAPI opens the role api, with the roles inventory and energy if the process has them.
func (a *App) openAPI(ctx context.Context, bus *bus, cloud *cloud) error {
	callers, f, err := openIdentity(a.process)
	if a.add(f, err) != nil {
		return err
	}
	a.rules = callers.rules
	evictor, err := newEvictor(a.config)
	if err != nil {
		return err
	}
	var shown func(*inventory.States)
	if evictor != nil {
		shown = func(states *inventory.States) { evictor.Prepare(states, a.clock.now()) }
	}
	images := &imagectl.Known{}
	s, enforced, err := a.openShared(ctx, bus, cloud, images, shown)
	if err != nil {
		return err
	}
	return a.openFeatures(ctx, s, callers, enforced, images, evictor)
}

// openFeatures opens the features that rest on what they share, and at last the API.
func (a *App) openFeatures(
	ctx context.Context, s shared, callers identity, enforced *enforcement, images *imagectl.Known, evictor *preemption.Evictor,
) error {
	_ = a.add(openUpkeep(s), nil)
	var f feature
	var err error
	parts := apiParts{shared: s, callers: callers, enforced: enforced}
	if parts.images, f, err = openStaging(ctx, s, images); a.add(f, err) != nil {
		return err
	}
	if err := a.add(openEvents(s.process, s.cloud, s.source, parts.images)); err != nil {
		return err
	}
	if parts.energy, f, err = openEnergy(s); a.add(f, err) != nil {
		return err
	}
	if parts.packing, f, err = openPacking(s, parts.energy); a.add(f, err) != nil {
		return err
	}
	recorder, f := openRecorder(s)
	_ = a.add(f, nil)
	if parts.pipeline, f, err = openScheduler(s, evictor, recorder); a.add(f, err) != nil {
		return err
	}
	if parts.webhooks, f, err = openWebhooks(s); a.add(f, err) != nil {
		return err
	}
	parts.queue, f = openBestEffort(s, enforced)
	_ = a.add(f, nil)
	parts.doctor, f = openDoctor(s, enforced)
	_ = a.add(f, nil)
	return a.serveAPI(parts)
}
