// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
)

// Occupied asks Nova for the instances on a host, in every state, and for the unfinished
// migrations to it or from it. Then it asks Placement for the allocations of the host's
// providers. It returns the first thing that it finds, as a sentence; empty if there is
// nothing.
//
// Nova alone is not enough: an instance that is being built has no host until its
// nova-compute has begun with it (nova/compute/resource_tracker.py instance_claim), and a
// migration has no destination before the scheduler has chosen one. Placement has both,
// because the scheduler claims the resources there first (nova/scheduler/manager.py
// _schedule). Placement is asked last: whatever was on its way during the questions to Nova
// has its allocation then. An allocation disappears only after its instance.
//
// It fails if that is unknown. A host without a hypervisor, a provider or an inventory is an error
// too, because its allocations may be elsewhere.
func (c *ComputeServices) Occupied(ctx context.Context, host string) (string, error) {
	found, err := c.inNova(ctx, host)
	if err == nil && found == "" {
		found, err = c.inPlacement(ctx, host)
	}
	return found, during("check whether host "+host+" is empty", err)
}

// inNova returns a sentence about a server or a migration that Nova has on the host; "" if there is
// none.
func (c *ComputeServices) inNova(ctx context.Context, host string) (string, error) {
	if _, err := c.nova.ServiceOf(ctx, host); err != nil {
		return "", err // for an unknown host Nova would return no servers
	}
	servers, err := c.nova.Servers(ctx, nova.ServerQuery{Host: host})
	if err != nil {
		return "", err
	}
	for _, s := range servers {
		if s.Host == host && !s.Deleted() {
			return fmt.Sprintf("server %s (%s) is on it, %s", s.ID, s.Name, s.Status), nil
		}
	}
	migrations, err := c.nova.MigrationsOn(ctx, host)
	if err != nil {
		return "", err
	}
	for _, m := range migrations {
		if !m.Over() {
			return fmt.Sprintf("the %s of server %s from %s to %s is under way, %s", kind(m), m.Server, m.Source, place(m.Dest), m.Status), nil
		}
	}
	return "", nil
}

// kind returns the type of a migration, in words.
func kind(m nova.Migration) string {
	if m.Type == "" {
		return "migration"
	}
	return m.Type
}

// place returns the name of a migration's target, in words.
func place(host string) string {
	if host == "" {
		return "a host that is not chosen yet"
	}
	return host
}

// inPlacement returns a sentence about an allocation that Placement has on the host; "" if there is
// none.
func (c *ComputeServices) inPlacement(ctx context.Context, host string) (string, error) {
	hypervisors, err := c.nova.Hypervisors(ctx)
	if err != nil {
		return "", err
	}
	known := false
	for _, h := range hypervisors {
		if h.Host != host {
			continue
		}
		known = true
		tree, err := c.placement.Tree(ctx, h.ID)
		if err != nil {
			return "", err
		}
		if found, err := held(h, tree); found != "" || err != nil {
			return found, err
		}
	}
	if !known {
		return "", fault.New(fault.Unavailable, "Nova has no hypervisor on it")
	}
	return "", nil
}

// held returns the first consumer of a hypervisor's providers, as a sentence; empty if
// there is none.
func held(h nova.Hypervisor, tree []placement.Held) (string, error) {
	root := slices.IndexFunc(tree, func(p placement.Held) bool { return p.ID == h.ID })
	switch {
	case root < 0:
		return "", fault.New(fault.Unavailable, "Placement has no provider of its hypervisor %s", h.Name)
	case len(tree[root].Inventories) == 0:
		return "", fault.New(fault.Unavailable, "its provider %s has no inventory in Placement", h.Name)
	}
	for _, p := range tree {
		for _, consumer := range slices.Sorted(maps.Keys(p.Consumers)) {
			classes := slices.Sorted(maps.Keys(p.Consumers[consumer]))
			return fmt.Sprintf("consumer %s holds %s of its provider %s in Placement", consumer, strings.Join(classes, ", "), p.Name), nil
		}
	}
	return "", nil
}
