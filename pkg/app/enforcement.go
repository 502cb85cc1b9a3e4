// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// enforcement prepares and enforces reservations on the cloud.
type enforcement struct {
	*upkeep.Enforcer
	backend fenceCloud
	rules   upkeep.Rules
	notices *upkeep.Notices
	prepare signal // wakes the job that prepares hosts
}

// openEnforcement opens the jobs that prepare hosts for reservations, replace failed ones, and clean
// up after instances and evictions.
func openEnforcement(ctx context.Context, s shared) (e *enforcement, f feature, err error) {
	rules, err := enforcementRules(ctx, s.config, s.cloud)
	if err != nil {
		return nil, f, err
	}
	backend := fenceBackend(s.config, s.cloud, s.hosts, s.db, s.clock.now)
	o := upkeep.EnforcerOptions{
		Fence: backend, Instances: backend, Promises: s.bookings, Records: s.db, Snapshot: s.hosts.Snapshot, Untrusted: s.doubt,
		Departing: s.db.Departing, Rules: rules, Now: s.clock.now, Elapsed: stopwatch(), Wait: s.pace.Wait, Log: s.logOf("upkeep"),
	}
	if s.config.Healing.Enabled {
		o.Rehome = s.bookings.Rehome
	}
	if s.bus.notifier != nil {
		o.TellLeft = departures{s.bus.notifier}.tell
	}
	e = &enforcement{
		Enforcer: upkeep.NewEnforcer(o), backend: backend, rules: rules, prepare: newSignal(1),
		notices: &upkeep.Notices{
			Key: evictedAt, Lasts: seconds(s.config.Preemptible.Eviction.Timeout + noticeLinger), Withdraw: servers{fenceCloud: backend, metadata: s.cloud.metadata()}.withdraw,
		},
	}
	f.jobs = append(f.jobs,
		e.Preparation(s.leases(), e.prepare[0]),
		upkeep.Forgetting(upkeep.ForgettingOptions{
			Records: s.db, Leases: s.leases(), Snapshot: s.hosts.Snapshot, Untrusted: s.doubt, Exists: backend.Exists, Now: s.clock.now,
		}),
		e.notices.Job(s.db, s.hosts.Snapshot, s.clock.now),
		upkeep.Snapshots(upkeep.SnapshotOptions{Images: backend, Promises: s.bookings, Leases: s.leases(), Log: s.logOf("upkeep")}),
	)
	if s.cloud.simulated == nil { // which has no server groups
		f.jobs = append(f.jobs, upkeep.Groups(upkeep.GroupOptions{Groups: s.cloud.compute, Records: s.db, Leases: s.leases(), Log: s.logOf("upkeep")}))
	}
	if s.config.Healing.Enabled {
		healing := s.config.Healing.Rules
		healing.Settle = s.config.Inventory.Trust.SettleTime
		f.jobs = append(f.jobs, upkeep.Healing(upkeep.HealingOptions{
			Booking: s.bookings, Leases: s.leases(), Untrusted: s.doubt, Read: s.hosts.ReadAt, Rules: healing, Now: s.clock.now, Log: s.logOf("upkeep"),
		}))
	}
	return e, f, nil
}

// poolPatience is how long a request that changes the pool waits for the cloud.
const poolPatience = 20 * time.Second

// poolChanged returns a function that waits until the cloud shows a change of the pool. If that
// fails, the job that prepares hosts tries again.
func (e *enforcement) poolChanged(log *slog.Logger) func(ctx context.Context) {
	prepared := &job.Shared[struct{}]{Limit: poolPatience, Read: func(ctx context.Context) (struct{}, error) { return struct{}{}, e.Prepare(ctx) }}
	return func(ctx context.Context) {
		if _, err := prepared.Get(ctx); err != nil {
			log.WarnContext(ctx, "the cloud does not show the change of the pool yet; retrying", "error", err)
		}
	}
}

// enforcementRules returns the operator's settings for starts and ends.
func enforcementRules(ctx context.Context, c config.Config, cloud *cloud) (upkeep.Rules, error) {
	flavors, err := flavorsNamed(ctx, cloud, c.Reservation.Flavors)
	if err != nil {
		return upkeep.Rules{}, err
	}
	rules := c.Reservation.Rules
	rules.Fill = fills(c)
	rules.Fence.Ahead, rules.Fence.Prepare, rules.Fence.Flavors = fence.Forever, rules.LeadTime, flavors
	if c.Reservation.Fence == filters.FenceLeadTime {
		rules.Fence.Ahead = rules.LeadTime
	}
	rules.Fence.Pool = c.Reservation.Fence == filters.FencePool
	if rules.Fence.Mirror, err = mirror(c); err != nil {
		return rules, err
	}
	return rules, nil
}

// mirror returns the name of the aggregate of free hosts; empty if aggregates are not mirrored.
func mirror(c config.Config) (string, error) {
	name := c.Blazar.FreePool
	switch {
	case !c.Blazar.MirrorAggregates:
		return "", nil
	case name == "" || strings.HasPrefix(name, "almanac-"):
		return "", fault.Field("[blazar] freepool_aggregate", "must be a name that does not begin with almanac-")
	}
	return name, nil
}

// flavorsNamed returns the flavors of [reservation] flavors.
func flavorsNamed(ctx context.Context, cloud *cloud, names []string) (found []inventory.Flavor, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	all, err := cloud.flavors().Flavors(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up the flavors of [reservation] flavors: %w", err)
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(f inventory.Flavor) bool { return f.Name == name })
		if i < 0 {
			return nil, fault.Field("[reservation] flavors", "the cloud has no flavor %s", name)
		}
		found = append(found, all[i])
	}
	return found, nil
}
