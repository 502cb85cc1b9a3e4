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
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
	images "github.com/almanac-cloud/almanac/reservation/staging/openstack"
	ground "github.com/almanac-cloud/almanac/reservation/upkeep/openstack"
)

// Removal takes out of Nova and Placement everything that is Almanac's.
type Removal struct {
	// Admin is who removes it: an admin of the cloud. Almanac's own user may be gone
	// already.
	Admin keystone.Connection
	// Force removes it although reservations live that need it.
	Force bool
	// Providers removes the child providers of hosts too, which are empty by then. For as
	// long as nova-compute does not know that they are gone, builds on these hosts fail:
	// [compute] resource_provider_association_refresh, five minutes, unless it is restarted
	// (nova/compute/resource_tracker.py _update_to_placement).
	Providers bool
	// DryRun looks only, and says what would be done.
	DryRun bool
	// Report is told each thing that is, or would be, removed.
	Report func(what string)
}

// RemoveFromCloud carries a Removal out, and gives how many child providers it has kept.
// What cannot be removed keeps nothing else back. It fails with a Conflict fault where almanacd runs, which would put it all back, and
// where a reservation lives. The hosts are those of an OpenStack cloud.
func RemoveFromCloud(ctx context.Context, c config.Config, r Removal) (kept int, _ error) {
	if err := removable(ctx, c, r); err != nil {
		return 0, err
	}
	log := slog.New(slog.DiscardHandler)
	session, err := keystone.NewSession(r.Admin, time.Now, log)
	if err != nil {
		return 0, err
	}
	cloud, err := newCloud(session, c)
	if err != nil {
		return 0, err
	}
	hosts, err := openstack.NewSource(cloud.compute, cloud.placement, openstack.Options{Now: time.Now, Log: log}).Hosts(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the hosts: %w", err)
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		return 0, err
	}
	on := ground.New(ground.Options{Compute: cloud.compute, Placement: cloud.placement, Hosts: func() *inventory.Snapshot { return snapshot }})
	layout, err := on.Layout(ctx)
	if err != nil {
		return 0, err
	}
	var errs []error
	doing := func(what string, act func() error) {
		if !r.DryRun {
			if err := act(); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", what, err))
				return
			}
		}
		r.Report(what)
	}
	for _, step := range fence.Diff(layout, fence.Layout{}) {
		doing(step.Summary(), func() error { return on.Carry(ctx, step) })
	}
	switch _, err := cloud.compute.AggregateNamed(ctx, fence.ImagesAggregate); {
	case err == nil:
		doing("delete aggregate "+fence.ImagesAggregate, func() error { return images.Cloud{Compute: cloud.compute}.Leave(ctx) })
	case !fault.Is(err, fault.NotFound):
		errs = append(errs, err)
	}
	providers, err := cloud.placement.Providers(ctx)
	if err != nil {
		return 0, errors.Join(append(errs, err)...)
	}
	for _, p := range providers {
		switch {
		case p.Parent == "" || !strings.HasPrefix(p.Name, fence.ProviderPrefix):
		case !r.Providers:
			kept++
		default:
			doing("delete provider "+p.Name, func() error { return cloud.placement.DeleteProvider(ctx, p.ID) })
		}
	}
	return kept, errors.Join(errs...)
}

// removable refuses to remove what is in use. A dry run hears no refusal.
func removable(ctx context.Context, c config.Config, r Removal) error {
	if r.DryRun {
		return nil
	}
	const self = "almanacd bootstrap"
	db, err := OpenStore(ctx, c, self, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer db.Close()
	replicas, err := db.Present(ctx, time.Second)
	if err != nil {
		return err
	}
	if running := slices.DeleteFunc(replicas, func(replica string) bool { return replica == self }); len(running) > 0 {
		return fault.New(fault.Conflict, "almanacd runs (%s) and would put everything back; stop it first", running[0])
	}
	live, err := db.List(ctx, reservation.Query{
		Statuses: []reservation.Status{reservation.Pending, reservation.Starting, reservation.Active, reservation.Ending}, Limit: 1,
	})
	if err != nil {
		return err
	}
	if len(live) > 0 && !r.Force {
		return fault.New(fault.Conflict, "reservation %s of project %s is %s; delete what lives, or use --force and leave its instances where they are",
			live[0].ID, live[0].ProjectID, live[0].Status)
	}
	return nil
}
