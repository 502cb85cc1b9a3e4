// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
)

// API serves the calls about hosts and their properties.
type API struct{ Inventory Inventory }

// Inventory reads and changes hosts; *inventory.SnapshotCache implements it.
type Inventory interface {
	Snapshot() *inventory.Snapshot
	// SetHost stores what an operator has set for a host.
	SetHost(ctx context.Context, host string, o inventory.Override) error
	// SetHidden hides a property from tenants, or shows it.
	SetHidden(ctx context.Context, property string, hidden bool) error
}
