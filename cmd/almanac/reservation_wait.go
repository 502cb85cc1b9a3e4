package main

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/client"
	"github.com/almanac-cloud/almanac/reservation"
)

// pollTime is how often a reservation that is waited for is looked at.
const pollTime = 2 * time.Second

// await looks at r until it is active, for so long at most.
func (p *process) await(ctx context.Context, almanac *client.Client, r v1.Reservation, most time.Duration) (v1.Reservation, error) {
	p.inform("reservation %s is booked from %s; waiting until it is active", r.ID, stamp(r.Start))
	last := p.now().Add(most)
	for {
		switch status := reservation.Status(r.Status); status {
		case reservation.Active:
			return r, nil
		case reservation.Pending, reservation.Starting:
		default:
			return r, &outcome{exitFailed, fmt.Sprintf("reservation %s is %s and will not become active", r.ID, status)}
		}
		left := last.Sub(p.now())
		if left <= 0 {
			return r, &outcome{exitTimedOut, fmt.Sprintf(
				"reservation %s is still %s; it keeps its place, and 'almanac reservation show %s' shows it", r.ID, r.Status, r.ID)}
		}
		if err := p.pause(ctx, min(left, pollTime)); err != nil {
			return r, err
		}
		var err error
		if r, err = almanac.GetReservation(ctx, r.ID); err != nil {
			return r, err
		}
	}
}
