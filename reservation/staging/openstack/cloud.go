// SPDX-License-Identifier: Apache-2.0

// Package openstack makes Nova cache images on hosts, reads Nova's reports about that, and reads
// images from Glance.
package openstack

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// ImageCache implements controller.ImageCache with Nova's image pre-caching.
type ImageCache struct {
	Compute *nova.Client
}

var _ controller.ImageCache = ImageCache{}

// Cache implements controller.ImageCache. Nova caches images on the hosts of an aggregate; an aggregate
// of Almanac's own contains the hosts for the duration of the call. Nova copies the list of hosts
// when it accepts the call, so Cache empties the aggregate afterwards.
func (c ImageCache) Cache(ctx context.Context, call, image string, hosts []string) (asked bool, err error) {
	aggregate, err := c.aggregate(ctx)
	if err != nil {
		return false, err
	}
	refused, err := c.Compute.SetHosts(ctx, aggregate, hosts)
	if err != nil {
		return false, err
	}
	aggregate.Hosts = slices.DeleteFunc(slices.Clone(hosts), func(host string) bool { return refused[host] != nil })
	if len(aggregate.Hosts) > 0 {
		err = c.Compute.CacheImage(ctx, aggregate, image, call)
		asked = err == nil || fault.Is(err, fault.Unavailable)
	}
	if len(refused) > 0 {
		err = errors.Join(err, &controller.LeftOut{Hosts: refused})
	}
	// Hosts that cannot be removed from the aggregate now are removed before the next call.
	if leave := c.empty(ctx, aggregate); leave != nil {
		err = errors.Join(err, fmt.Errorf("empty the aggregate of images again: %w", leave))
	}
	return asked, err
}

// empty removes all hosts from the aggregate.
func (c ImageCache) empty(ctx context.Context, a inventory.Aggregate) error {
	refused, err := c.Compute.SetHosts(ctx, a, nil)
	if err == nil && len(refused) > 0 {
		err = &controller.LeftOut{Hosts: refused}
	}
	return err
}

// aggregate returns Almanac's own aggregate with its hosts. It creates the aggregate if it does not
// exist.
func (c ImageCache) aggregate(ctx context.Context) (inventory.Aggregate, error) {
	a, err := c.Compute.AggregateNamed(ctx, fence.ImagesAggregate)
	if fault.Is(err, fault.NotFound) {
		return c.Compute.CreateAggregate(ctx, fence.ImagesAggregate, nil)
	}
	return a, err
}

// Clear implements controller.ImageCache: it empties the aggregate if there is one.
func (c ImageCache) Clear(ctx context.Context) error {
	_, err := c.clear(ctx)
	return err
}

// clear empties Almanac's aggregate of images, and returns it.
func (c ImageCache) clear(ctx context.Context) (inventory.Aggregate, error) {
	a, err := c.Compute.AggregateNamed(ctx, fence.ImagesAggregate)
	if fault.Is(err, fault.NotFound) {
		return a, nil
	}
	if err == nil {
		err = c.empty(ctx, a)
	}
	return a, err
}

// Leave deletes the aggregate and the membership of its hosts.
func (c ImageCache) Leave(ctx context.Context) error {
	a, err := c.clear(ctx)
	if err != nil || a.ID == 0 {
		return err
	}
	return c.Compute.DeleteAggregate(ctx, a)
}
