// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Snapshot implements upkeep.Imager. Nova shares an image that an admin makes with the project of
// the server (nova/compute/utils.py initialize_instance_snapshot_metadata). A deleted server needs no
// image.
func (c *Backend) Snapshot(ctx context.Context, i inventory.Instance, name string, since span.Instant) error {
	actions, err := c.compute.ActionsOf(ctx, i.ID)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(actions, func(a nova.Action) bool { return a.Action == "createImage" && a.Start >= since }) {
		return nil
	}
	return c.compute.ImageServer(ctx, i.ID, name)
}
