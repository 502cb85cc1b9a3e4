// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

const (
	// errorGrace is how many seconds a server must have been in this state: Nova and Almanac's
	// own sweep delete its allocations some moments after a failure.
	errorGrace = 120
	// mostUnplaced is the maximum number of servers whose allocations one call reads.
	mostUnplaced = 200
)

// Unplaced returns the servers in ERROR on no host that still have allocations in Placement, which
// nobody else can use.
func (c *Backend) Unplaced(ctx context.Context, now span.Instant) (list []inventory.Instance, _ error) {
	servers, err := c.compute.Servers(ctx, nova.ServerQuery{Status: "ERROR"})
	if err != nil {
		return nil, err
	}
	asked := 0
	for i := range servers {
		s := &servers[i]
		if !unplaced(s) || now < s.Updated.Add(errorGrace) {
			continue
		}
		if asked++; asked > mostUnplaced {
			break
		}
		has, err := c.placement.AllocationsOf(ctx, s.ID)
		if err != nil {
			return nil, err
		}
		if len(has.Allocations) > 0 {
			list = append(list, s.Instance)
		}
	}
	return list, nil
}

func unplaced(s *nova.Server) bool { return s.Status == "ERROR" && s.Host == "" && s.Task == "" }

// Release deletes the allocations of a server if it is still in the state that Unplaced describes.
func (c *Backend) Release(ctx context.Context, id string) error {
	has, err := c.placement.AllocationsOf(ctx, id)
	if err != nil || len(has.Allocations) == 0 {
		return err
	}
	// A claim for it after this read changes its generation.
	switch now, err := c.compute.Server(ctx, id); {
	case err == nil && unplaced(&now), fault.Is(err, fault.NotFound):
	case err == nil:
		return fault.New(fault.Conflict, "it is now %s on host %q", now.Status, now.Host)
	default:
		return err
	}
	has.Allocations = nil
	return c.placement.Claim(ctx, []placing.Claim{has})
}
