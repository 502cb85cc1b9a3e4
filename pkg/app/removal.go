// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/pkg/config"
	sleeping "github.com/almanac-cloud/almanac/pkg/energy/openstack"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/fence"
	images "github.com/almanac-cloud/almanac/reservation/staging/openstack"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	novafence "github.com/almanac-cloud/almanac/reservation/upkeep/openstack"
)

// Removal removes all of Almanac's resources from Nova and Placement.
type Removal struct {
	// Admin is an admin of the cloud whose account removes the resources. Almanac's own user may
	// no longer exist.
	Admin keystone.Connection
	// Force removes them although live reservations require them, or hosts sleep.
	Force bool
	// Providers also removes the child providers of hosts, which are empty then. Until
	// nova-compute notices, after [compute] resource_provider_association_refresh (five minutes)
	// or a restart, builds on these hosts fail (nova/compute/resource_tracker.py
	// _update_to_placement).
	Providers bool
	// DryRun only reports what would be removed, and why the removal would be refused.
	DryRun bool
	// Report is called for each resource that is, or would be, removed.
	Report func(what string)
}

// Left is what a Removal leaves in the cloud.
type Left struct {
	Providers int      // empty child providers
	Asleep    []string // hosts that Almanac has switched off
}

// RemoveFromCloud carries out a Removal, and returns what it leaves. If one resource cannot be
// removed, it continues with the others. It fails with a Conflict fault if almanacd runs, which
// would restore everything. Unless Force is set, it also fails if a reservation is live, if the end
// of one is not yet carried out, or if a host sleeps. A dry run reports these reasons instead. The
// hosts must be those of an OpenStack cloud.
func RemoveFromCloud(ctx context.Context, c config.Config, r Removal) (left Left, _ error) {
	const self = "almanacd bootstrap"
	db, err := OpenStore(ctx, c, self, slog.New(slog.DiscardHandler))
	if err != nil {
		return left, err
	}
	defer db.Close()
	work := removing{Removal: r, db: db}
	if err := work.unused(ctx, self); err != nil {
		return left, err
	}
	session, err := keystone.NewSession(r.Admin, time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		return left, err
	}
	if work.cloud, err = newCloud(session, c); err != nil {
		return left, err
	}
	on, steps, err := work.observe(ctx)
	if err != nil {
		return left, err
	}
	if left.Asleep, err = work.open(ctx); err != nil {
		return left, err
	}
	work.clear(ctx, on, steps)
	work.groups(ctx)
	left.Providers, err = work.providers(ctx)
	return left, errors.Join(append(work.failed, err)...)
}

// removing is a Removal in progress.
type removing struct {
	Removal
	cloud  *cloud
	db     *store.Store
	failed []error
}

// do carries out one step, or only reports it in a dry run.
func (r *removing) do(what string, act func() error) {
	if !r.DryRun {
		if err := act(); err != nil {
			r.failed = append(r.failed, fmt.Errorf("%s: %w", what, err))
			return
		}
	}
	r.Report(what)
}

// refuse returns a refusal, unless Force is set. A dry run only reports it.
func (r *removing) refuse(refusal error) error {
	if refusal == nil || r.Force {
		return nil
	}
	if r.DryRun {
		r.Report("refuse without --force: " + refusal.Error())
		return nil
	}
	return refusal
}

// observe returns Almanac's resources in the cloud, and the steps that remove those for
// reservations. It refuses if instances still wait for the end of their reservation.
func (r *removing) observe(ctx context.Context) (*novafence.Backend, []fence.Step, error) {
	source := openstack.NewSource(r.cloud.compute, r.cloud.placement, openstack.Options{Records: r.db, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	hosts, err := source.Hosts(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the hosts: %w", err)
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	on := novafence.New(novafence.Options{
		Compute: r.cloud.compute, Placement: r.cloud.placement, Hosts: func() *inventory.Snapshot { return snapshot },
		Limits: keystone.Limits{Session: r.cloud.session}, Now: func() span.Instant { return span.At(time.Now()) },
	})
	layout, err := on.Layout(ctx)
	if err != nil {
		return nil, nil, err
	}
	steps := fence.Withdraw(layout)
	var ids []string
	for _, step := range steps {
		if step.Reservation != "" && !slices.Contains(ids, step.Reservation) {
			ids = append(ids, step.Reservation)
		}
	}
	known, err := booking.Stored(ctx, r.db, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("read the reservations that have resources in the cloud: %w", err)
	}
	return on, steps, r.refuse(ending(hosts, known))
}

// ending returns a Conflict fault if instances are on hosts that Almanac must still delete or
// shelve, because their reservation is over and among those that have resources in the cloud.
func ending(hosts []inventory.Host, withResources []reservation.Reservation) error {
	var names []string
	for _, h := range hosts {
		for _, i := range h.Instances {
			if slices.ContainsFunc(withResources, func(r reservation.Reservation) bool {
				return r.ID == i.ReservationID() && !r.Status.Live() && (r.OnEnd == reservation.OnEndDelete || r.OnEnd == reservation.OnEndShelve)
			}) {
				names = append(names, fmt.Sprintf("%s (%s)", i.Name, i.ID))
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "reservations are over, but almanacd has not yet deleted or shelved their instances %s; "+
		"start almanacd until they are gone, or use --force and leave them where they are", strings.Join(names, ", "))
}

// open enables the compute services that Almanac has disabled, and returns the sleeping hosts. If
// there are any, it refuses and changes nothing, unless Force is set.
func (r *removing) open(ctx context.Context) (asleep []string, _ error) {
	records, err := r.db.PowerRecords(ctx)
	if err != nil {
		return nil, err
	}
	power := sleeping.New(r.cloud.compute, r.cloud.placement)
	services, err := power.Services(ctx)
	if err != nil {
		return nil, err
	}
	switched := switchedBy(services, records)
	if err := r.refuse(switched.refusal()); err != nil {
		return switched.asleep, err
	}
	for _, host := range switched.closed {
		r.do("enable nova-compute on "+host+", which Almanac has disabled", func() error { return power.Enable(ctx, host, "") })
	}
	return switched.asleep, nil
}

// clear removes the resources for reservations and images from the hosts.
func (r *removing) clear(ctx context.Context, on *novafence.Backend, steps []fence.Step) {
	for _, step := range steps {
		r.do(step.Summary(), func() error { return on.Carry(ctx, step) })
	}
	switch _, err := r.cloud.compute.AggregateNamed(ctx, fence.ImagesAggregate); {
	case err == nil:
		r.do("delete aggregate "+fence.ImagesAggregate, func() error { return images.ImageCache{Compute: r.cloud.compute}.Leave(ctx) })
	case !fault.Is(err, fault.NotFound):
		r.failed = append(r.failed, err)
	}
}

// groups removes the server groups of reservations.
func (r *removing) groups(ctx context.Context) {
	left, err := upkeep.GroupsLeft(ctx, r.cloud.compute, r.db, true)
	if err != nil {
		r.failed = append(r.failed, err)
		return
	}
	for id, of := range left {
		r.do("delete server group "+fence.FlavorPrefix+of.ID, func() error { return r.cloud.compute.DeleteGroup(ctx, id) })
	}
}

// providers removes the child providers if Providers is set, and returns how many it keeps.
func (r *removing) providers(ctx context.Context) (kept int, _ error) {
	providers, err := r.cloud.placement.Providers(ctx)
	if err != nil {
		return 0, err
	}
	for _, p := range providers {
		switch {
		case p.Parent == "" || !strings.HasPrefix(p.Name, fence.ProviderPrefix):
		case !r.Providers:
			kept++
		default:
			r.do("delete provider "+p.Name, func() error { return r.cloud.placement.DeleteProvider(ctx, p.ID) })
		}
	}
	return kept, nil
}

// unused refuses if a process other than self uses the database, also if Force is set, or if a
// reservation is live.
func (r *removing) unused(ctx context.Context, self string) error {
	other, err := otherReplica(ctx, r.db, self)
	if err != nil {
		return err
	}
	if other != "" {
		refusal := fault.New(fault.Conflict, "almanacd runs (%s) and would restore everything; stop it first", other)
		if !r.DryRun {
			return refusal
		}
		r.Report("refuse: " + refusal.Error())
	}
	live, err := r.db.List(ctx, reservation.Query{Statuses: reservation.LiveStatuses, Limit: 1})
	if err != nil || len(live) == 0 {
		return err
	}
	return r.refuse(fault.New(fault.Conflict, "reservation %s of project %s is %s; delete all live reservations, or use --force and leave their instances where they are",
		live[0].ID, live[0].ProjectID, live[0].Status))
}
