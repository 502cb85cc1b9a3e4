// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/reservation/booking"
)

// silentRecords do not answer while silent is open.
type silentRecords struct {
	booking.Records
	silent chan struct{}
}

func (r silentRecords) Recall(ctx context.Context, q booking.Recall) (booking.Recalled, error) {
	select {
	case <-r.silent:
		return r.Records.Recall(ctx, q)
	case <-ctx.Done():
		return booking.Recalled{}, ctx.Err()
	}
}

func TestNobodyWaitsLongerThanHeHasTimeForOthersThatRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, named("a"))
		records := silentRecords{s.memory, make(chan struct{})}
		close(records.silent)
		s.options.Records = &records
		s.restart(t)
		records.silent = make(chan struct{})
		others := make(chan error)
		go func() { others <- s.bookings.Follow(t.Context()) }()
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.bookings.Follow(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
		close(records.silent)
		if err := <-others; err != nil {
			t.Errorf("the request without a deadline: %v", err)
		}
	})
}
