// Package openstack lays fences on an OpenStack cloud and deals with its instances:
// it carries out on Nova and Placement what reservation/upkeep decides.
package openstack

import (
	"context"
	"sync"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
)

// Cloud is upkeep.Ground and upkeep.Guests on Nova and Placement. It is safe for
// concurrent use.
type Cloud struct {
	compute     *nova.Client
	placement   *placement.Client
	hosts       func() *inventory.Snapshot
	preemptible inventory.PreemptibleRule
	guests      inventory.InstanceRecords
	resting     Resting
	turns       turns
	traits      traits
	made        sync.Map // inventory.Aggregate by name: those made here
}

// Options are what a Cloud is made of.
type Options struct {
	Compute   *nova.Client
	Placement *placement.Client
	// Hosts tells which provider in Placement is whose.
	Hosts func() *inventory.Snapshot
	// Preemptible says which instances make room.
	Preemptible inventory.PreemptibleRule
	// Guests remembers who was placed by a hint; nil remembers nobody.
	Guests inventory.InstanceRecords
	// Resting knows which servers best-effort work has suspended; nil is none.
	Resting Resting
}

// Resting knows suspended servers whose room was taken away in Placement, for whoever has
// the host meanwhile.
type Resting interface {
	// Resting gives those of the servers that are.
	Resting(ctx context.Context, servers ...string) (map[string]bool, error)
}

// New gives a cloud.
func New(o Options) *Cloud {
	return &Cloud{compute: o.Compute, placement: o.Placement, hosts: o.Hosts, preemptible: o.Preemptible, guests: o.Guests, resting: o.Resting}
}

// provider gives the id of the host's resource provider. Of a host that is not in the
// snapshot any more it is the one of its name. It fails with a NotFound fault where
// Placement has none.
func (c *Cloud) provider(ctx context.Context, host string) (string, error) {
	if h, there := c.host(host); there && h.Provider != "" {
		return h.Provider, nil
	}
	id, err := c.placement.ProviderNamed(ctx, host)
	if err == nil && id == "" {
		err = fault.New(fault.NotFound, "Placement has no resource provider for host %s", host)
	}
	return id, err
}

func (c *Cloud) host(name string) (*inventory.Host, bool) {
	hosts := c.hosts()
	i, there := hosts.Index(name)
	if !there {
		return nil, false
	}
	return hosts.Host(i), true
}

// turns let one at a time change a host's provider. Placement refuses all but one of
// several changes at once, and Nova, whose aggregates are changes too, then pauses for
// seconds (nova/scheduler/client/report.py aggregate_add_host).
type turns struct {
	mu    sync.Mutex
	hosts map[string]chan struct{}
}

// take waits for the host's turn, and gives what ends it.
func (t *turns) take(ctx context.Context, host string) (done func(), err error) {
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
