// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// counter books reservations of virtual machines through a sim.Booking, all at the beginning, and
// records which images they need.
type counter struct {
	options  *Options
	bookings *sim.Booking
	facts    *staging.Facts
	begin    span.Instant
	taken    []reservation.Reservation
	refused  int
}

// newCounter returns a counter at the beginning of simulated time.
func (o *Options) newCounter(ctx context.Context, strategy staging.Strategy, begin span.Instant) (*counter, error) {
	c := &counter{options: o, begin: begin, facts: &staging.Facts{Site: staging.Site{
		Strategy: strategy, Limit: o.PoolLimit * megabyte,
		Repositories: []staging.Repository{{Name: "repository", Rate: o.Rate * megabyte}},
	}}}
	hosts := make([]inventory.Host, o.Nodes)
	for i := range hosts {
		hosts[i] = inventory.Host{Name: nodeName(i), Reservable: true}
		hosts[i].Capacity = o.capacity()
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make the nodes: %w", err)
	}
	c.bookings, err = sim.NewBooking(ctx, sim.NewTimeline(begin), snapshot, sim.BookingOptions{Images: func() *staging.Facts { return c.facts }})
	if err != nil {
		return nil, fmt.Errorf("open the booking service: %w", err)
	}
	return c, nil
}

// book requests a reservation at its start; an empty image means that it needs none. It returns
// false if the request was refused.
func (c *counter) book(ctx context.Context, w wish, image string) (reservation.Reservation, bool, error) {
	if image != "" {
		facts := *c.facts
		facts.Images = maps.Clone(facts.Images)
		if facts.Images == nil {
			facts.Images = map[string]staging.Image{}
		}
		facts.Images[image] = c.options.image(image)
		c.facts = &facts
	}
	r, err := c.bookings.Book(ctx, booking.Caller{ProjectID: "thesis"}, reservation.Request{
		Terms: reservation.Terms{Kind: reservation.Instances, Quantity: w.vms, Resources: shape(), Image: image},
		Start: c.begin.Add(w.start), Duration: w.duration,
	})
	if _, no := errors.AsType[*reservation.Refusal](err); no {
		c.refused++
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("book: %w", err)
	}
	c.taken = append(c.taken, r)
	return r, true, nil
}

// state returns the images that the accepted reservations need, with their transfers.
func (c *counter) state() staging.State {
	return c.facts.State(c.begin, planning.Demands(c.facts, c.taken))
}

// copies returns how many virtual machines need an image on a node, by image and node, if each
// reservation has an image of its own.
func (c *counter) copies() map[imageOnNode]int {
	all := map[imageOnNode]int{}
	for _, r := range c.taken {
		for _, claim := range r.Claims {
			all[imageOnNode{claim.Host, r.Image}] = claim.Slices
		}
	}
	return all
}
