// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// outcome is the result of one run of one policy.
type outcome struct {
	Acceptance float64 // the share of the requests that were accepted
	Slowdown   float64 // the mean of (start − ready time + duration) / duration over accepted requests
}

// trial submits the requests to a sim.Booking, each when it arrives. All requests count, including the
// first ones, which find an empty machine.
func trial(ctx context.Context, hosts int, policy calendar.Policy, requests []request) (outcome, error) {
	machine, err := inventory.NewSnapshot(sim.Hosts(hosts), nil, nil)
	if err != nil {
		return outcome{}, fmt.Errorf("make the machine: %w", err)
	}
	t := sim.NewTimeline(sim.Second(0))
	bookings, err := sim.NewBooking(ctx, t, machine, sim.BookingOptions{})
	if err != nil {
		return outcome{}, fmt.Errorf("open the booking service: %w", err)
	}
	accepted, slowdowns := 0, 0.0
	submit := func(r request) error {
		booked, err := bookings.Book(ctx, booking.Caller{ProjectID: "paper"}, reservation.Request{
			Terms: reservation.Terms{Quantity: r.hosts, Policy: policy},
			Start: sim.Second(r.ready), End: sim.Second(r.latestEnd), Duration: r.duration,
		})
		var refused *reservation.Refusal
		switch {
		case errors.As(err, &refused):
			return nil
		case err != nil:
			return fmt.Errorf("book: %w", err)
		}
		accepted++
		slowdowns += float64(int64(booked.Span.Start-sim.Second(r.ready))+r.duration) / float64(r.duration)
		return nil
	}
	// Each arrival schedules the next, so that the Timeline holds one of them at a time.
	var arrive func(i int)
	arrive = func(i int) {
		if i < len(requests) {
			t.At(sim.Second(requests[i].arrival), sim.Arriving, func() error {
				arrive(i + 1)
				return submit(requests[i])
			})
		}
	}
	arrive(0)
	if err := t.Run(ctx, until(requests)); err != nil {
		return outcome{}, err
	}
	return outcome{float64(accepted) / float64(len(requests)), slowdowns / float64(max(accepted, 1))}, nil
}

// until returns the instant after the last arrival.
func until(requests []request) span.Instant {
	return sim.Second(requests[len(requests)-1].arrival + 1)
}
