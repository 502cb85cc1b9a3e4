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
	// SetHost stores what an operator has set for a host, if allow, from the hosts before and after it, allows the change;
	// a nil allow allows everything.
	SetHost(ctx context.Context, host string, o inventory.Override, allow func(before, after *inventory.Snapshot) error) error
	// SetHidden hides a property from tenants, or shows it.
	SetHidden(ctx context.Context, property string, hidden bool) error
}
