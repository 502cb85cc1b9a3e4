// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/inventory/openstack"
	"github.com/almanac-cloud/almanac/inventory/remote"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/nova/cells"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	simulated "github.com/almanac-cloud/almanac/pkg/sim/cloud"
	"github.com/almanac-cloud/almanac/pkg/store"
)

// hostSource is the source of this process's hosts.
type hostSource struct {
	inventory.Source
	cloud  cloudReader          // nil if this process does not read a cloud
	board  *inventory.LiveState // of cloud
	builds *openstack.Builds    // nil without Nova's notifications
	// changed wakes the readers of the hosts: the SnapshotCache, and the service for other processes.
	changed signal
}

// openSource opens the source of this process's hosts: the file or the cloud with the role
// inventory, otherwise the process that has that role. With a message broker, the role inventory
// also answers other processes. records and shown become openstack.Options.Records and
// openstack.Options.Shown.
func openSource(p process, bus *bus, cloud *cloud, records inventory.InstanceRecords, shown func(*inventory.States)) (s *hostSource, f feature, err error) {
	s = &hostSource{changed: newSignal(2)}
	if !p.has(config.RoleInventory) {
		remotes := remote.NewSource(f.newOwnClient(p, bus), exchange)
		s.Source = remotes
		f.services = append(f.services, relay("changes of the hosts", remotes.Changed(), s.changed.poke))
		f.serveOn(p, bus, remote.ChangesTopic, remotes.Endpoint())
		return s, f, nil
	}
	if cloud == nil {
		s.Source = inventory.FileSource(p.config.Inventory.HostsFile)
	} else if err := f.readCloud(p, cloud, s, records, shown); err != nil {
		return nil, f, err
	}
	if bus.own != nil {
		service := remote.NewService(s.Source, f.newOwnClient(p, bus), exchange, stopwatch())
		f.jobs = append(f.jobs, job.Job{Name: "inventory service", Every: p.config.Inventory.RefreshInterval, Step: service.Refresh, Wake: s.changed[1]})
		f.serveOn(p, bus, remote.Topic, service.Endpoint())
	}
	return s, f, nil
}

// readCloud sets the source of the hosts of a cloud.
func (f *feature) readCloud(p process, cloud *cloud, s *hostSource, records inventory.InstanceRecords, shown func(*inventory.States)) (err error) {
	s.board = inventory.NewLiveState() // for packing plans, also if Almanac does not answer Nova
	if cloud.simulated != nil {
		s.cloud = &simulated.Source{Cloud: cloud.simulated, LiveState: s.board, Shown: shown, Records: records}
		s.Source = s.cloud
		f.services = append(f.services, relay("changes of the simulated cloud", cloud.simulated.Changed(), s.changed.poke))
		return nil
	}
	o := openstack.Options{
		Preemptible: preemptibleRule(p.config), FullEvery: p.config.Inventory.FullPollInterval,
		LiveState: s.board, Shown: shown, Records: records, Now: time.Now, Log: p.logOf("inventory"),
	}
	if p.config.Scheduler.Mode == config.ModeReplace {
		o.Missing = func(of release.Release) []string { return missing(p.config, of) }
	}
	if schedules(p.config) {
		if o.Cells, err = f.openCells(p); err != nil {
			return err
		}
		if p.config.Nova.Notifications {
			s.builds = openstack.NewBuilds(time.Now)
		}
		o.Builds = s.builds
	}
	s.cloud = openstack.NewSource(cloud.compute, cloud.placement, o)
	s.Source = shareSource(s.cloud)
	return nil
}

const (
	inventoryTimeout = 10 * time.Second
	// cloudTimeout is for the first reading of a cloud, which has one request per host.
	cloudTimeout   = 5 * time.Minute
	retryInventory = 5 * time.Second
	// staleAfter is the least age, in seconds, at which a reading of the hosts is too old.
	staleAfter = 120
)

// openHosts reads the hosts. It retries while the cloud or the process with the inventory does not
// answer. Later snapshots are published.
func openHosts(
	ctx context.Context, p process, source *hostSource, db *store.Store, powers *powers, published func(*inventory.Snapshot),
) (hosts *inventory.SnapshotCache, f feature, err error) {
	if !p.has(config.RoleInventory) {
		p.log.Info("reading the hosts from the process that has the inventory", "topic", remote.Topic)
	}
	o := inventory.SnapshotCacheOptions{
		Hosts: db, Properties: db, Records: db, Powers: powers, Rules: p.config.Inventory.Trust, Published: published,
		Now: p.clock.now, Log: p.logOf("inventory"),
	}
	if b := p.config.Blazar; b.Enabled {
		o.Numbers, o.OnlyEnrolled = db, b.OnlyEnrolled
	}
	o.Rules.StaleAfter = max(staleAfter, 3*seconds(p.config.Inventory.RefreshInterval))
	for {
		hosts, err = readHosts(ctx, p, source, o)
		away := !p.has(config.RoleInventory) || onOpenStack(p.config) && fault.Is(err, fault.Unavailable)
		if err == nil || !away {
			break
		}
		p.log.Error("could not read the inventory; retrying", "every", retryInventory, "error", err)
		if err := job.Pause(ctx, retryInventory); err != nil {
			return nil, f, err
		}
	}
	if err != nil {
		return nil, f, err
	}
	untrusted := func() string { return hosts.Untrusted(p.clock.now()) }
	f.jobs = append(f.jobs, job.Job{Name: "inventory", Every: p.config.Inventory.RefreshInterval, Step: hosts.Refresh, Wake: source.changed[0]})
	f.probe("inventory trusted", func() error {
		if doubt := untrusted(); doubt != "" {
			return fmt.Errorf("healing and removing are suspended: %s", doubt)
		}
		return nil
	})
	f.metrics.gauge("almanac_inventory_untrusted", "1 if the inventory is untrusted, so that Almanac heals and removes nothing.", nil,
		func() float64 { return oneIf(untrusted() != "") })
	return hosts, f, nil
}

func readHosts(ctx context.Context, p process, source inventory.Source, o inventory.SnapshotCacheOptions) (*inventory.SnapshotCache, error) {
	timeout := inventoryTimeout
	if onOpenStack(p.config) && p.has(config.RoleInventory) {
		timeout = cloudTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return inventory.OpenSnapshotCache(ctx, source, o)
}

// openCells returns the source of each host's cell; nil if none is configured.
func (f *feature) openCells(p process) (openstack.Cells, error) {
	switch c := p.config.Cells; {
	case c.UUID != "":
		return cells.NewSingle(c.UUID)
	case c.File != "":
		return cells.NewFile(p.config.ResolvePath(c.File)), nil
	case c.APIDatabase != "":
		database, err := cells.OpenDatabase(c.APIDatabase, p.logOf("inventory"))
		if err != nil {
			return nil, fmt.Errorf("[api_database]: %w", err)
		}
		f.closers = append(f.closers, database.Close)
		return database, nil
	}
	return nil, nil
}
