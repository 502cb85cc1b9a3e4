// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// API serves the calls about reservations, and about when there is room for one.
type API struct {
	Booker       Booker
	Changer      Changer
	Asked        Asked
	Groups       Groups
	Recurring    Recurring
	Line         Line
	SeriesReader reservation.SeriesReader
	Leases       reservation.LeaseReader
	Reader       reservation.Reader
	// Snapshot returns the hosts.
	Snapshot func() *inventory.Snapshot
	// Instances finds the servers of reservations; nil means that no reservation has servers.
	Instances Instances
	// Images stages images; nil means that the image of a reservation is stored but not staged.
	Images Images
	// BeforeEnd is the default of before_end: how many seconds before the end the owner gets a
	// warning; at most half of the reservation.
	BeforeEnd int64
	Now       func() span.Instant
	// NewID returns a new id for a reservation.
	NewID func() string
}

// Booker books reservations. Offer returns the plan for what Book would book.
type Booker interface {
	Offer(ctx context.Context, by booking.Caller, r reservation.Request) (planning.Plan, error)
	Book(ctx context.Context, by booking.Caller, r reservation.Request, use *booking.KeyUse) (reservation.Reservation, error)
}

// Changer changes and cancels reservations. OfferChange returns the plan for what Change would do.
type Changer interface {
	OfferChange(ctx context.Context, by booking.Caller, id string, c planning.Change) (planning.Plan, error)
	Change(ctx context.Context, by booking.Caller, id string, c planning.Change) (reservation.Reservation, error)
	Cancel(ctx context.Context, by booking.Caller, id string) (reservation.Reservation, error)
}

// Asked answers what tenants ask before they book.
type Asked interface {
	// Availability returns at most limit windows in which there is room, and the number of hosts that match.
	Availability(ctx context.Context, by booking.Caller, r reservation.Request, limit int) ([]calendar.Window, int, error)
	// NextStart returns the first start after a window without room at which there is some; 0 if there is none.
	NextStart(ctx context.Context, by booking.Caller, r reservation.Request) (span.Instant, error)
	// Offers returns the offers for a wish; complete is false if better ones may exist.
	Offers(ctx context.Context, by booking.Caller, w planning.Wish) (offers []planning.Offer, complete bool, err error)
	// Occupants returns the servers that must leave the hosts of a plan.
	Occupants(p planning.Plan) []inventory.Instance
	// Lies reports whether the hosts of a reservation lie now as its rule asks.
	Lies(r reservation.Reservation) bool
	// Use returns a project's limits, and what it uses of them.
	Use(project string) (planning.Limits, booking.Use)
}

// Line is what waits for room, in the order in which it is booked.
type Line interface {
	// Line returns the place of a waiting reservation, from 1 on, and how many wait; 0 if it does not wait.
	Line(id string) (place, of int)
	// NextRoom returns the first start after the window of a waiting reservation at which there is room; 0 if none is known.
	NextRoom(ctx context.Context, r reservation.Reservation) (span.Instant, error)
}

// Images stages the images of reservations on their hosts; *controller.Controller implements it.
type Images interface {
	// Resolve returns the id of the image that a user of a project names by id or name. Its faults
	// are Invalid on field image, or Unavailable.
	Resolve(ctx context.Context, text, project string) (id string, err error)
	// Of returns the state of a reservation's image on each of its hosts.
	Of(r *reservation.Reservation) []controller.HostImage
}

// Instances finds instances in the cloud.
type Instances interface {
	// Of returns the instances created in the reservation, wherever they are now.
	Of(ctx context.Context, r reservation.Reservation) ([]inventory.Instance, error)
}
