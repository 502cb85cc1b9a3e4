// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	novapower "github.com/almanac-cloud/almanac/pkg/energy/openstack"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/keystone"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	novapacking "github.com/almanac-cloud/almanac/pkg/rebalance/openstack"
	simulated "github.com/almanac-cloud/almanac/pkg/sim/cloud"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	bestworks "github.com/almanac-cloud/almanac/reservation/besteffort/controller"
	novaqueue "github.com/almanac-cloud/almanac/reservation/besteffort/openstack"
	"github.com/almanac-cloud/almanac/reservation/besteffort/requests"
	imagectl "github.com/almanac-cloud/almanac/reservation/staging/controller"
	novaimages "github.com/almanac-cloud/almanac/reservation/staging/openstack"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
	novafence "github.com/almanac-cloud/almanac/reservation/upkeep/openstack"
)

// The ports to the cloud. Each has an implementation for OpenStack and one for the simulated cloud.
type (
	// cloudReader reads the hosts of the cloud.
	cloudReader interface {
		inventory.Source
		eviction.Looker
	}
	// fenceCloud has the fences, and the instances of reservations.
	fenceCloud interface {
		upkeep.FenceBackend
		upkeep.Instances
		upkeep.Claims
		instanceReader
		imager
	}
	instanceReader interface {
		Server(ctx context.Context, id string) (inventory.Instance, error)
		Exists(ctx context.Context, id string) (bool, error)
	}
	imager interface{ upkeep.Imager }
	// serverMetadata changes the metadata of servers.
	serverMetadata interface {
		SetServerMetadata(ctx context.Context, id string, metadata map[string]string) error
		DeleteServerMetadata(ctx context.Context, id, key string) error
	}
	flavorReader interface {
		Flavors(ctx context.Context) ([]inventory.Flavor, error)
	}
	// powerCloud closes hosts and checks whether they are empty.
	powerCloud interface {
		controller.ComputeServices
		controller.Vacancy
	}
	// movingCloud moves instances.
	movingCloud interface {
		rebalance.Migrator
		Groups(ctx context.Context) (map[string]placing.Group, error)
	}
	// queueCloud has the servers of best-effort work.
	queueCloud interface {
		bestworks.Servers
		bestworks.ServerActions
		bestworks.Allocations
		requests.Catalogue
		requests.Trusts
	}
)

// claims returns the allocations of instances.
func (c *cloud) claims() claiming.Placement {
	if c.simulated != nil {
		return simulated.Allocations{Cloud: c.simulated}
	}
	return c.placement
}

func (c *cloud) metadata() serverMetadata {
	if c.simulated != nil {
		return c.simulated
	}
	return c.compute
}

func (c *cloud) flavors() flavorReader {
	if c.simulated != nil {
		return c.simulated
	}
	return c.compute
}

// fenceBackend returns the adapter for fences on the cloud, with the hosts of the inventory.
func fenceBackend(c config.Config, cloud *cloud, hosts *inventory.SnapshotCache, db *store.Store, now func() span.Instant) fenceCloud {
	if cloud.simulated != nil {
		return simulated.Fence{Cloud: cloud.simulated, Records: db, Resting: db.Resting}
	}
	return novafence.New(novafence.Options{
		Compute: cloud.compute, Placement: cloud.placement, Hosts: hosts.Snapshot, Preemptible: preemptibleRule(c), Records: db, Resting: db,
		Limits: keystone.Limits{Session: cloud.session}, Now: now,
	})
}

func (c *cloud) power() powerCloud {
	if c.simulated != nil {
		return simulated.Power{Cloud: c.simulated}
	}
	return novapower.New(c.compute, c.placement)
}

func (c *cloud) moves() movingCloud {
	if c.simulated != nil {
		return simulated.Moves{Cloud: c.simulated}
	}
	return novapacking.Migrator{Compute: c.compute}
}

func (c *cloud) images() (imagectl.ImageCache, imagectl.Glance) {
	if c.simulated != nil {
		store := simulated.ImageStore{Cloud: c.simulated}
		return store, store
	}
	return novaimages.ImageCache{Compute: c.compute}, novaimages.Images{Glance: c.glance}
}

func (s shared) queueCloud() queueCloud {
	if s.cloud.simulated != nil {
		return simulated.Queue{Cloud: s.cloud.simulated, Records: s.db, Now: s.clock.now}
	}
	return novaqueue.New(novaqueue.Options{
		Compute: s.cloud.compute, Placement: s.cloud.placement, Trusts: keystone.Trusts{Session: s.cloud.session},
		Nova: s.config.Nova.Options, Glance: s.config.Glance, Session: s.cloud.session, Records: s.db, Scripts: s.db, Hosts: s.hosts.Snapshot,
		PreemptibleHint: s.config.Preemptible.Rule.Hint, Now: s.clock.now,
	})
}
