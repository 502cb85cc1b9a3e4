// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"cmp"
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
	Work       float64 // the share of the requested hosts × seconds that was accepted
	Moves      float64 // how often accepted requests were moved, in the mean
}

// trial submits the requests to a sim.Booking, each when it arrives. All requests count, including the
// first ones, which find an empty machine. With a notice, in seconds, accepted ones are movable.
func trial(ctx context.Context, hosts int, policy calendar.Policy, notice int64, requests []request) (outcome, error) {
	machine, err := inventory.NewSnapshot(sim.Hosts(hosts), nil, nil)
	if err != nil {
		return outcome{}, fmt.Errorf("make the machine: %w", err)
	}
	t := sim.NewTimeline(sim.Second(0))
	bookings, err := sim.NewBooking(ctx, t, machine, sim.BookingOptions{})
	if err != nil {
		return outcome{}, fmt.Errorf("open the booking service: %w", err)
	}
	kept := promises{of: make(map[string]*promise)}
	bookings.Moved = kept.move
	submit := func(r request) error {
		asked := reservation.Request{
			Terms: reservation.Terms{Quantity: r.hosts, Policy: policy},
			Start: sim.Second(r.ready), End: sim.Second(r.latestEnd), Duration: r.duration,
		}
		if r.latestEnd-r.ready > r.duration { // otherwise there is one start
			asked.Notice = notice
		}
		booked, err := bookings.Book(ctx, booking.Caller{ProjectID: "paper"}, asked)
		var refused *reservation.Refusal
		switch {
		case errors.As(err, &refused):
			return nil
		case err != nil:
			return fmt.Errorf("book: %w", err)
		}
		return kept.add(r, booked)
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
	if kept.broken != nil {
		return outcome{}, kept.broken
	}
	return kept.outcome(requests), nil
}

// promise is an accepted request.
type promise struct {
	request
	start span.Instant
	moves int
}

// promises are the accepted requests of a run.
type promises struct {
	list   []*promise
	of     map[string]*promise // by the id of the reservation
	broken error
}

// add adds an accepted request.
func (k *promises) add(r request, booked reservation.Reservation) error {
	p := &promise{request: r}
	k.list, k.of[booked.ID] = append(k.list, p), p
	return p.hold(booked)
}

// move follows the move of an accepted request.
func (k *promises) move(r reservation.Reservation) {
	p := k.of[r.ID]
	p.moves++
	k.broken = cmp.Or(k.broken, p.hold(r))
}

// hold checks that the reservation is what was asked for.
func (p *promise) hold(r reservation.Reservation) error {
	p.start = r.Span.Start
	if r.Span.Start < sim.Second(p.ready) || r.Span.End > sim.Second(p.latestEnd) || r.Span.Seconds() != p.duration || len(r.HostNames()) != p.hosts {
		return fmt.Errorf("reservation %s holds %d hosts for %v; asked for were %+v", r.ID, len(r.HostNames()), r.Span, p.request)
	}
	return nil
}

// outcome returns the measures of the run.
func (k *promises) outcome(requests []request) (o outcome) {
	asked, held, n := 0.0, 0.0, float64(max(len(k.list), 1))
	for _, r := range requests {
		asked += r.work()
	}
	for _, p := range k.list {
		o.Slowdown += float64(int64(p.start-sim.Second(p.ready))+p.duration) / float64(p.duration)
		o.Moves += float64(p.moves) / n
		held += p.work()
	}
	o.Slowdown /= n
	o.Acceptance, o.Work = float64(len(k.list))/float64(len(requests)), held/asked
	return o
}

// until returns the instant after the last arrival.
func until(requests []request) span.Instant {
	return sim.Second(requests[len(requests)-1].arrival + 1)
}
