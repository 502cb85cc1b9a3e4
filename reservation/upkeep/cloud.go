package upkeep

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// FenceBackend is the part of the cloud that fences consist of.
type FenceBackend interface {
	// Layout returns what Almanac has in the cloud now.
	Layout(ctx context.Context) (fence.Layout, error)
	// Carry carries out one step. A step that is done already is no error.
	Carry(ctx context.Context, step fence.Step) error
	// Admit opens the reservation's flavors, to which its project has access already.
	// Expel revokes this access.
	Admit(ctx context.Context, r reservation.Reservation) error
	Expel(ctx context.Context, r reservation.Reservation) error
}

// Instances reads the instances of the cloud and sends them orders.
type Instances interface {
	// On returns the instances that are on the host or on their way to it, with
	// Preemptible as the inventory has it. A consumer that only Placement knows has an ID
	// and a Host, and nothing else.
	On(ctx context.Context, host string) ([]inventory.Instance, error)
	// Of returns the instances that were created in the reservation, wherever they are.
	Of(ctx context.Context, r reservation.Reservation) ([]inventory.Instance, error)
	// Order sends Nova an order for an instance and does not wait until it is carried out.
	// A deleted instance is no error.
	Order(ctx context.Context, i inventory.Instance, order Order) error
}

// Order is what Nova is to do with an instance.
type Order string

// The orders. OrderWait sends nothing: the instance leaves by itself, or stays.
const (
	OrderDelete  Order = "delete"
	OrderStop    Order = "stop"
	OrderShelve  Order = "shelve"  // and offload
	OrderMigrate Order = "migrate" // live if it runs, cold if it is stopped
	OrderWait    Order = "wait"
)
