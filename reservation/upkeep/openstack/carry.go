// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// Carry carries out one step. It returns nil if the step is done already, or if the object that the
// step removes or changes by a removal no longer exists. It fails with a Conflict fault if
// instances still use what the step removes.
func (c *Backend) Carry(ctx context.Context, step fence.Step) error {
	if step.Host != "" {
		done, err := c.turns.enter(ctx, step.Host)
		if err != nil {
			return fmt.Errorf("%s: %w", what(step), err)
		}
		defer done()
	}
	return fault.While(c.carry(ctx, step), "%s", what(step))
}

func (c *Backend) carry(ctx context.Context, step fence.Step) error {
	switch step.Action {
	case fence.CreateAggregate:
		made, err := c.compute.CreateAggregate(ctx, step.Aggregate.Name, step.Aggregate.Metadata)
		c.made.Store(made.Name, made)
		return err
	case fence.MarkAggregate, fence.UnmarkAggregate, fence.AddHost, fence.RemoveHost, fence.DeleteAggregate:
		return c.changeAggregate(ctx, step)
	case fence.AddTraits, fence.RemoveTraits, fence.AddRooms, fence.RemoveRooms:
		return c.changeProvider(ctx, step)
	case fence.CreateFlavor:
		if err := c.compute.CreateFlavor(ctx, step.Flavor); err != nil {
			return err
		}
		return c.markFlavor(ctx, step.Flavor)
	case fence.MarkFlavor:
		return c.markFlavor(ctx, step.Flavor)
	case fence.UnmarkFlavor:
		for _, spec := range slices.Sorted(maps.Keys(step.Flavor.ExtraSpecs)) {
			if err := c.compute.DeleteExtraSpec(ctx, step.Flavor.ID, spec); err != nil {
				return err
			}
		}
		return nil
	case fence.OpenFlavor:
		return c.compute.DeleteExtraSpec(ctx, step.Flavor.ID, closed)
	case fence.DeleteFlavor:
		return c.compute.DeleteFlavor(ctx, step.Flavor.ID)
	case fence.DeleteTrait:
		return c.placement.DeleteTrait(ctx, step.Name)
	case fence.DeleteClass:
		return c.deleteClass(ctx, step.Name)
	}
	return fmt.Errorf("there is no action %q", step.Action)
}

// changeAggregate carries out a step on an aggregate. It finds the aggregate by name if neither the
// step nor this process has its ID, or if it was deleted.
func (c *Backend) changeAggregate(ctx context.Context, step fence.Step) error {
	a := step.Aggregate
	if made, ok := c.made.Load(a.Name); a.ID == 0 && ok {
		a = made.(inventory.Aggregate)
	}
	if a.ID != 0 {
		if err := c.onAggregate(ctx, step, a); !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	a, err := c.compute.AggregateNamed(ctx, step.Aggregate.Name)
	if fault.Is(err, fault.NotFound) && !step.Adds() {
		return nil
	}
	if err != nil {
		return err
	}
	return c.onAggregate(ctx, step, a)
}

func (c *Backend) onAggregate(ctx context.Context, step fence.Step, a inventory.Aggregate) error {
	switch step.Action {
	case fence.MarkAggregate:
		return c.compute.SetMetadata(ctx, a, step.Aggregate.Metadata, nil)
	case fence.UnmarkAggregate:
		return c.compute.SetMetadata(ctx, a, nil, slices.Sorted(maps.Keys(step.Aggregate.Metadata)))
	case fence.AddHost:
		return c.addHost(ctx, a, step.Host)
	case fence.RemoveHost:
		if step.TakesAdopted() {
			if err := c.removeBlazarsUnits(ctx, step); err != nil {
				return err
			}
		}
		return c.compute.RemoveHost(ctx, a, step.Host)
	}
	if step.TakesAdopted() {
		if err := c.deleteBlazars(ctx, step); err != nil {
			return err
		}
	}
	return c.deleteAggregate(ctx, a)
}

// addHost adds a host to an aggregate, and ensures that it is in the aggregate in Placement too,
// since the fence relies on Placement.
func (c *Backend) addHost(ctx context.Context, a inventory.Aggregate, host string) error {
	if err := c.compute.AddHost(ctx, a, host); err != nil {
		return err
	}
	provider, err := c.provider(ctx, host)
	if err != nil {
		return err
	}
	return c.placement.JoinAggregate(ctx, provider, a.UUID)
}

// removeBlazarsUnits removes what Blazar's child provider of the host has for the reservation. The
// provider stays, since Nova needs it as long as it knows it.
func (c *Backend) removeBlazarsUnits(ctx context.Context, step fence.Step) error {
	h, there := c.host(step.Host)
	if !there || h.Provider == "" {
		return nil
	}
	return c.placement.SetUnits(ctx, h.Provider, fence.BlazarProvider+h.HypervisorName(), map[string]int64{fence.BlazarsClass(step.Reservation): 0})
}

// deleteBlazars deletes the other objects that Blazar has made for a reservation: its resource class
// and its server group.
func (c *Backend) deleteBlazars(ctx context.Context, step fence.Step) error {
	if group := step.Aggregate.Metadata[fence.BlazarGroup]; group != "" {
		if err := c.compute.DeleteServerGroup(ctx, group); err != nil {
			return err
		}
	}
	return c.placement.DeleteClass(ctx, fence.BlazarsClass(step.Reservation))
}

// deleteAggregate deletes an aggregate. It also removes the hosts that are in the aggregate only in
// Nova: the layout does not contain them, so there are no steps for them.
func (c *Backend) deleteAggregate(ctx context.Context, a inventory.Aggregate) error {
	c.made.Delete(a.Name)
	err := c.compute.DeleteAggregate(ctx, a)
	if !fault.Is(err, fault.Conflict) {
		return err
	}
	there, err := c.compute.AggregateNamed(ctx, a.Name)
	if err != nil {
		return err
	}
	for _, host := range there.Hosts {
		if err := c.compute.RemoveHost(ctx, there, host); err != nil {
			return err
		}
	}
	return c.compute.DeleteAggregate(ctx, there)
}

// changeProvider carries out a step on a host's provider. If the provider no longer exists, a
// removal counts as done.
func (c *Backend) changeProvider(ctx context.Context, step fence.Step) error {
	provider, err := c.provider(ctx, step.Host)
	if err == nil && step.Adds() {
		err = c.makeNames(ctx, step)
	}
	if err == nil {
		err = c.onProvider(ctx, step, provider)
	}
	if fault.Is(err, fault.NotFound) && !step.Adds() {
		return nil
	}
	return err
}

// makeNames creates the traits and resource classes of the step, since Placement refuses unknown
// ones.
func (c *Backend) makeNames(ctx context.Context, step fence.Step) error {
	for _, trait := range step.Traits {
		if err := c.placement.EnsureTrait(ctx, trait); err != nil {
			return err
		}
	}
	for class := range step.Rooms {
		if err := c.makeClass(ctx, class); err != nil {
			return err
		}
	}
	return nil
}

// makeClass creates the resource class, and once the registered limit without which Nova refuses its
// servers.
func (c *Backend) makeClass(ctx context.Context, class string) error {
	if err := c.placement.EnsureClass(ctx, class); err != nil {
		return err
	}
	if _, done := c.lifted.Load(class); done || c.limits == nil {
		return nil
	}
	if err := c.limits.Lift(ctx, class); err != nil {
		return err
	}
	c.lifted.Store(class, nil)
	return nil
}

func (c *Backend) deleteClass(ctx context.Context, class string) error {
	if c.limits != nil { // first: without the class nothing leads to the limit
		if err := c.limits.Drop(ctx, class); err != nil {
			return err
		}
	}
	c.lifted.Delete(class)
	return c.placement.DeleteClass(ctx, class)
}

func (c *Backend) onProvider(ctx context.Context, step fence.Step, provider string) error {
	switch step.Action {
	case fence.AddTraits:
		return c.placement.ChangeTraits(ctx, provider, step.Traits, nil)
	case fence.RemoveTraits:
		return c.placement.ChangeTraits(ctx, provider, nil, step.Traits)
	}
	return c.placement.SetUnits(ctx, provider, fence.ProviderPrefix+step.Host, step.Rooms)
}

// what describes the step, its host and its reservation.
func what(step fence.Step) string {
	words := []string{string(step.Action)}
	for _, word := range []string{step.Aggregate.Name, step.Flavor.ID, step.Name} {
		if word != "" {
			words = append(words, word)
		}
	}
	if step.Host != "" {
		words = append(words, "on host", step.Host)
	}
	if step.Reservation != "" {
		words = append(words, "for reservation", step.Reservation)
	}
	return strings.Join(words, " ")
}
