// SPDX-License-Identifier: Apache-2.0

// Package openstack implements fences on Nova and Placement, and reads and orders instances:
// it carries out what reservation/upkeep decides.
package openstack

import (
	"context"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Backend implements upkeep.FenceBackend and upkeep.Instances with Nova and Placement. It is safe for
// concurrent use.
type Backend struct {
	compute     *nova.Client
	placement   *placement.Client
	hosts       func() *inventory.Snapshot
	preemptible inventory.PreemptibleRule
	records     inventory.InstanceRecords
	resting     Resting
	turns       turns
	limits      Limits
	now         func() span.Instant
	traits      traits
	made        sync.Map // inventory.Aggregate by name: those that this process created
	lifted      sync.Map // resource classes whose limits this process has lifted
}

// Options configure a Cloud.
type Options struct {
	Compute   *nova.Client
	Placement *placement.Client
	// Hosts returns the hosts with their providers in Placement.
	Hosts func() *inventory.Snapshot
	// Preemptible decides which instances are preemptible.
	Preemptible inventory.PreemptibleRule
	// Records reports which instances were placed by a hint; nil means none.
	Records inventory.InstanceRecords
	// Resting reports which servers best-effort work has suspended; nil means none.
	Resting Resting
	// Limits lets projects use the resource classes of reservations; nil if no quota covers them.
	Limits Limits
	Now    func() span.Instant
}

// Limits lifts Nova's unified limits from resource classes.
type Limits interface {
	// Lift lets all projects use any amount of the class.
	Lift(ctx context.Context, class string) error
	// Drop removes what Lift has created.
	Drop(ctx context.Context, class string) error
}

// Resting reports the suspended servers whose allocations were released in Placement, so that
// others can use the host in the meantime.
type Resting interface {
	// Resting returns those of the servers that are suspended in this way.
	Resting(ctx context.Context, servers ...string) (map[string]bool, error)
}

// New returns a cloud.
func New(o Options) *Backend {
	return &Backend{compute: o.Compute, placement: o.Placement, hosts: o.Hosts, preemptible: o.Preemptible, records: o.Records, resting: o.Resting, limits: o.Limits, now: o.Now}
}

// provider returns the id of the host's resource provider. For a host that is no longer in
// the snapshot it looks the provider up by name. It fails with a NotFound fault if Placement
// has none.
func (c *Backend) provider(ctx context.Context, host string) (string, error) {
	if h, there := c.host(host); there && h.Provider != "" {
		return h.Provider, nil
	}
	id, err := c.placement.ProviderNamed(ctx, host)
	if err == nil && id == "" {
		err = fault.New(fault.NotFound, "Placement has no resource provider for host %s", host)
	}
	return id, err
}

func (c *Backend) host(name string) (*inventory.Host, bool) {
	hosts := c.hosts()
	i, there := hosts.Index(name)
	if !there {
		return nil, false
	}
	return hosts.Host(i), true
}

// turns is a lock for each host, so that changes of a host's provider follow each other. Placement
// refuses all but one of several concurrent changes, and Nova, which changes the provider with
// aggregates, then pauses for seconds (nova/scheduler/client/report.py aggregate_add_host).
type turns struct {
	mu    sync.Mutex
	hosts map[string]chan struct{}
}

// enter waits for the host's lock; done releases it.
func (t *turns) enter(ctx context.Context, host string) (done func(), err error) {
	t.mu.Lock()
	if t.hosts == nil {
		t.hosts = map[string]chan struct{}{}
	}
	turn, known := t.hosts[host]
	if !known {
		turn = make(chan struct{}, 1)
		t.hosts[host] = turn
	}
	t.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
