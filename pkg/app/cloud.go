package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	inventoryos "github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/glance"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	novafence "github.com/almanac-cloud/almanac/reservation/upkeep/openstack"
)

// onOpenStack reports whether the hosts are those of an OpenStack cloud.
func onOpenStack(c config.Config) bool { return c.Inventory.Source == "openstack" }

// cloud has this process's clients of an OpenStack cloud; nil if the hosts come from a file.
type cloud struct {
	session   *keystone.Session
	compute   *nova.Client
	placement *placement.Client
	glance    *glance.Client       // nil if no images are staged
	source    *inventoryos.Source  // set if this process reads the hosts itself
	board     *inventory.LiveState // set if this process reads the hosts itself
	builds    *inventoryos.Builds  // nil without Nova's notifications
}

func (a *App) openCloud() (*cloud, error) {
	if !onOpenStack(a.config) {
		return nil, nil
	}
	session, err := keystone.NewSession(KeystoneConnection(a.config.Keystone), time.Now, a.log.With("component", "keystone"))
	if err != nil {
		return nil, err
	}
	return newCloud(session, a.config)
}

func newCloud(session *keystone.Session, c config.Config) (*cloud, error) {
	o := clientOptions(c.Nova.Client)
	o.MaxMicroversion = c.Nova.MaxMicroversion
	compute, err := nova.New(session, o)
	if err != nil {
		return nil, fmt.Errorf("[nova]: %w", err)
	}
	placements, err := placement.New(session, clientOptions(c.Placement))
	if err != nil {
		return nil, fmt.Errorf("[placement]: %w", err)
	}
	return &cloud{session: session, compute: compute, placement: placements}, nil
}

// calls returns how many requests were sent to nova, glance or placement; 0 without a cloud.
func (c *cloud) calls(service string) int64 {
	switch {
	case c == nil:
		return 0
	case service == "nova":
		return c.compute.Calls()
	case service == "glance" && c.glance == nil:
		return 0
	case service == "glance":
		return c.glance.Calls()
	default:
		return c.placement.Calls()
	}
}

func clientOptions(c config.Client) openstack.Options {
	return openstack.Options{
		Region: c.RegionName, Interfaces: c.ValidInterfaces, Override: c.EndpointOverride,
		CAFile: c.CAFile, Insecure: c.Insecure, Timeout: c.Timeout,
	}
}

func preemptibleRule(c config.Config) inventory.PreemptibleRule {
	p := c.Preemptible
	return inventory.PreemptibleRule{ExtraSpec: p.ExtraSpec, Hint: p.Hint, Projects: p.Projects, Protect: p.Protect, Leaves: leaves[p.MakeRoom]}
}

// leaves are the statuses in which Nova shelves or migrates an instance, by [preemptible]
// make_room (nova/compute/api.py shelve, shelve_offload, live_migrate, resize). Nova deletes
// instances in any status.
var leaves = map[string][]string{
	"shelve":  {"ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED"},
	"migrate": {"ACTIVE", "SHUTOFF", "PAUSED", "SHELVED"},
}

// ground returns the adapter for fences on the cloud, with the hosts of the inventory.
func (c *cloud) ground(cfg config.Config, hosts *inventory.SnapshotCache, db *store.Store) *novafence.Cloud {
	return novafence.New(novafence.Options{
		Compute: c.compute, Placement: c.placement, Hosts: hosts.Snapshot, Preemptible: preemptibleRule(cfg), Records: db, Resting: db,
	})
}

// stewardRules returns the operator's settings for starts and ends.
func (c *cloud) stewardRules(ctx context.Context, cfg config.Config) (upkeep.Rules, error) {
	flavors, err := c.flavors(ctx, cfg.Reservation.Flavors)
	if err != nil {
		return upkeep.Rules{}, err
	}
	lead := seconds(cfg.Reservation.LeadTime)
	rules := upkeep.Rules{
		Fence:  fence.Rules{Ahead: fence.Forever, Prepare: lead, Flavors: flavors, RootDisk: int64(cfg.Reservation.RootDisk)},
		Normal: orders[cfg.Reservation.RunningInstances], LeadTime: lead,
		Preemptible: orders[cfg.Reservation.PreemptibleInstances], Eviction: seconds(cfg.Reservation.EvictionTime),
		Left: orders[cfg.Reservation.EndedInstances], Fill: fills(cfg),
		EndGrace: seconds(cfg.Reservation.EndGrace),
	}
	if cfg.Reservation.Fence == "lead_time" {
		rules.Fence.Ahead = lead
	}
	return rules, nil
}

// orders maps the configuration's words to the orders for instances.
var orders = map[string]upkeep.Order{
	"wait": upkeep.OrderWait, "migrate": upkeep.OrderMigrate, "delete": upkeep.OrderDelete, "shelve": upkeep.OrderShelve,
}

// flavors returns the flavors with these names.
func (c *cloud) flavors(ctx context.Context, names []string) ([]inventory.Flavor, error) {
	if len(names) == 0 {
		return nil, nil
	}
	all, err := c.compute.Flavors(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up the flavors of [reservation] flavors: %w", err)
	}
	var found []inventory.Flavor
	for _, name := range names {
		i := slices.IndexFunc(all, func(f inventory.Flavor) bool { return f.Name == name })
		if i < 0 {
			return nil, fault.Field("[reservation] flavors", "Nova has no flavor %s", name)
		}
		found = append(found, all[i])
	}
	return found, nil
}

// carrier is a booking.Cloud whose steward is set after the desk that uses it is open.
type carrier struct {
	steward *upkeep.Enforcer
}

// Carry implements booking.Cloud.
func (c *carrier) Carry(ctx context.Context, r reservation.Reservation, event reservation.EventType) error {
	return c.steward.Carry(ctx, r, event)
}

// addSteward adds the jobs that prepare and enforce reservations on the cloud.
func (a *App) addSteward(ctx context.Context, carry *carrier, db *store.Store, bus *bus, hosts *inventory.SnapshotCache) error {
	c := a.cloud
	rules, err := c.stewardRules(ctx, a.config)
	if err != nil {
		return err
	}
	on := c.ground(a.config, hosts, db)
	log, doubt := a.log.With("component", "upkeep"), a.doubt(hosts)
	o := upkeep.EnforcerOptions{
		Fence: on, Instances: on, Promises: a.desk, Records: db, Snapshot: hosts.Snapshot, Untrusted: doubt,
		Departing: db.Departing, Rules: rules, Now: a.clock.now, Elapsed: stopwatch(), Log: log,
	}
	if a.config.Healing.Enabled {
		o.Rehome = a.desk.Rehome
	}
	if bus.notifier != nil {
		o.TellLeft = departures{bus.notifier}.tell
	}
	carry.steward = upkeep.NewEnforcer(o)
	a.add(carry.steward.Preparation(a.leases(db), a.newsForAll()), upkeep.Forgetting(upkeep.ForgettingOptions{
		Records: db, Leases: a.leases(db), Snapshot: hosts.Snapshot, Untrusted: doubt, Exists: on.Exists, Now: a.clock.now,
	}))
	a.doctor.Fence, a.doctor.Instances, a.doctor.Rules, a.doctor.Fill = on, on, rules.Fence, rules.Fill
	a.doctor.Resting, a.doctor.Claims = db.Resting, on
	a.doctor.Notices = &upkeep.Notices{
		Key: evictedAt, Lasts: seconds(a.config.Preemptible.EvictionTimeout + noticeLinger), Withdraw: servers{compute: c.compute}.withdraw,
	}
	a.add(a.doctor.Notices.Job(db, hosts.Snapshot, a.clock.now))
	if a.config.BestEffort.Enabled && !schedules(a.config) {
		a.doctor.Unpinned = "best-effort work is on, and Almanac does not answer Nova ([scheduler] mode = off): without Almanac's plugin in nova-scheduler, " +
			"Nova chooses the hosts: mostly others than planned, and never promised ones"
	}
	a.doctor.Projects = keystone.Projects{Session: c.session}
	if a.config.Healing.Enabled {
		a.add(upkeep.Healing(upkeep.HealingOptions{
			Booking: a.desk, Leases: a.leases(db), Untrusted: doubt, Read: hosts.ReadAt, Now: a.clock.now, Log: log,
			Rules: upkeep.HealingRules{
				Grace: seconds(a.config.Healing.Grace), Settle: seconds(a.config.Inventory.SettleTime),
				Window: seconds(a.config.Healing.Window),
			},
		}))
	}
	return nil
}

// newsForAll wakes the queue of best-effort requests at every change of reservations, because
// servers may have to leave hosts. It returns a channel that signals the same changes to another
// reader.
func (a *App) newsForAll() <-chan struct{} {
	told := make(chan struct{}, 1)
	a.services = append(a.services, service{"news of reservations", func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-a.desk.News():
				job.Poke(told)
				a.queue.wake()
			}
		}
	}})
	return told
}

// newDoctor returns the doctor with the checks that require no cloud.
func (a *App) newDoctor(db *store.Store, hosts *inventory.SnapshotCache) *upkeep.Doctor {
	return &upkeep.Doctor{
		Promises: a.desk, Records: db, Snapshot: hosts.Snapshot, Untrusted: a.doubt(hosts), Canceler: a.desk, Now: a.clock.now,
	}
}

// doubt returns a function that returns why the time or the inventory is untrusted now; empty if
// both are trusted.
func (a *App) doubt(hosts *inventory.SnapshotCache) func() string {
	return func() string { return cmp.Or(a.clock.doubt(), hosts.Untrusted(a.clock.now())) }
}
