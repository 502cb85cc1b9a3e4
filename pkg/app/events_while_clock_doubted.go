// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// eventBookings carries out the events of reservations.
type eventBookings interface {
	upkeep.Booking
	upkeep.Replica
}

// punctual is an eventBookings that begins nothing while the time is in doubt.
type punctual struct {
	eventBookings
	clock *clock
}

// CarryOut implements upkeep.Booking.
func (p punctual) CarryOut(ctx context.Context) (done []booking.Happening, failed map[string]error) {
	if p.clock.doubt() != "" {
		return nil, nil
	}
	return p.eventBookings.CarryOut(ctx)
}

// TakeOver implements upkeep.Replica.
func (p punctual) TakeOver(ctx context.Context, gone func(replica string) bool) error {
	if p.clock.doubt() != "" {
		return nil
	}
	return p.eventBookings.TakeOver(ctx, gone)
}

// punctualWaiting books nothing that waits while the time is in doubt.
type punctualWaiting struct {
	upkeep.Waiting
	clock *clock
}

// BookFreed implements upkeep.Waiting.
func (p punctualWaiting) BookFreed(ctx context.Context) error {
	if p.clock.doubt() != "" {
		return nil
	}
	return p.Waiting.BookFreed(ctx)
}

// BookAll implements upkeep.Waiting.
func (p punctualWaiting) BookAll(ctx context.Context) error {
	if p.clock.doubt() != "" {
		return nil
	}
	return p.Waiting.BookAll(ctx)
}

// punctualLeases are the leases of jobs that depend on the time. While the time is in doubt, this
// process acquires none and lets its own expire, so that a process with a trusted clock may
// acquire them.
type punctualLeases struct {
	job.Leases
	clock *clock
}

// Take implements job.Leases.
func (l punctualLeases) Take(ctx context.Context, name string, ttl time.Duration) (lease job.Lease, held bool, err error) {
	if l.clock.doubt() != "" {
		return job.Lease{}, false, nil
	}
	return l.Leases.Take(ctx, name, ttl)
}
