// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// FenceBackend reads and changes the resources in OpenStack that form a fence.
type FenceBackend interface {
	// Layout returns the present resources of Almanac in the cloud.
	Layout(ctx context.Context) (fence.Layout, error)
	// Carry carries out one step. A step that is done already is no error.
	Carry(ctx context.Context, step fence.Step) error
	// Admit allows instances to use the reservation's flavors, to which its project has access
	// already. Expel revokes the project's access.
	Admit(ctx context.Context, r reservation.Reservation) error
	Expel(ctx context.Context, r reservation.Reservation) error
}

// Instances reads the instances of the cloud and sends them orders.
type Instances interface {
	// On returns the instances that are on the host or on their way to it, with Preemptible as in
	// the inventory. A consumer that is only in Placement has an ID and a Host, and nothing else.
	On(ctx context.Context, host string) ([]inventory.Instance, error)
	// Of returns the instances that were created in the reservation, wherever they are.
	Of(ctx context.Context, r reservation.Reservation) ([]inventory.Instance, error)
	// Order sends Nova an order for an instance and does not wait until it is carried out. If the
	// instance is deleted, Order returns nil.
	Order(ctx context.Context, i inventory.Instance, order Order) error
}

// Order is what Nova must do with an instance.
type Order string

// The orders. OrderWait sends nothing: the instance leaves by itself, or stays.
const (
	OrderDelete  Order = "delete"
	OrderStop    Order = "stop"
	OrderShelve  Order = "shelve"  // and offload
	OrderMigrate Order = "migrate" // live if it runs, cold if it is stopped
	OrderWait    Order = "wait"
)

// The orders that Rules.Normal, Rules.Left and Rules.Preemptible may have.
var (
	NormalOrders      = []Order{OrderWait, OrderMigrate}
	LeftOrders        = []Order{OrderMigrate, OrderShelve, OrderDelete, OrderWait}
	PreemptibleOrders = []Order{OrderDelete, OrderShelve, OrderMigrate, OrderWait}
)
