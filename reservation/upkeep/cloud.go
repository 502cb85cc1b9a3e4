package upkeep

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// Ground is the cloud as far as fences lie on it.
type Ground interface {
	// Layout gives what of Almanac's lies there now.
	Layout(ctx context.Context) (fence.Layout, error)
	// Carry does one step. What is done already is no error.
	Carry(ctx context.Context, step fence.Step) error
	// Admit opens the reservation's flavors, which its project may use already; Expel
	// ends that it may.
	Admit(ctx context.Context, r reservation.Reservation) error
	Expel(ctx context.Context, r reservation.Reservation) error
}

// Guests are the instances of the cloud.
type Guests interface {
	// On gives those that are on the host, or on their way to it, as it is now, with
	// Preemptible as the inventory has it. One of which only Placement knows has an ID
	// and a Host, and nothing else.
	On(ctx context.Context, host string) ([]inventory.Instance, error)
	// Of gives those that were made in the reservation, wherever they are now.
	Of(ctx context.Context, r reservation.Reservation) ([]inventory.Instance, error)
	// Order tells Nova what shall become of one; it does not wait until it has. One that
	// is gone is no error.
	Order(ctx context.Context, i inventory.Instance, order Order) error
}

// Order is what shall become of an instance.
type Order string

// The orders. AwaitGuest is none: it goes by itself, or stays. It is never given.
const (
	DeleteGuest  Order = "delete"
	StopGuest    Order = "stop"
	ShelveGuest  Order = "shelve"  // and offload
	MigrateGuest Order = "migrate" // elsewhere: live where it runs, cold where it is stopped
	AwaitGuest   Order = "wait"
)
