// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func newBookings(t *testing.T, hosts int) (*sim.Timeline, *sim.Booking) {
	t.Helper()
	snapshot, err := inventory.NewSnapshot(sim.Hosts(hosts), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	line := sim.NewTimeline(sim.Second(0))
	bookings, err := sim.NewBooking(t.Context(), line, snapshot, sim.BookingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return line, bookings
}

func ask(quantity int, start span.Instant, duration int64) reservation.Request {
	return reservation.Request{Terms: reservation.Terms{Quantity: quantity}, Start: start, Duration: duration}
}

func TestReservationsBeginAndEndOnTimeAndMakeRoomForWhatBeginsThen(t *testing.T) {
	line, bookings := newBookings(t, 2)
	var seen []string
	bookings.Happened = func(h booking.Happening) error {
		seen = append(seen, fmt.Sprintf("%s %s@%d", h.Reservation.Name, h.Event.Type, line.Now()-sim.Second(0)))
		return nil
	}
	for _, name := range []string{"first", "next"} {
		req := ask(2, sim.Second(100), 50)
		if name == "next" {
			req.Start = sim.Second(150)
		}
		req.Name = name
		if _, err := bookings.Book(t.Context(), booking.Caller{ProjectID: "p"}, req); err != nil {
			t.Fatal(err)
		}
	}
	if err := line.Run(t.Context(), sim.Second(1000)); err != nil {
		t.Fatal(err)
	}
	want := []string{"first start@100", "first end@150", "next start@150", "next end@200"}
	if !slices.Equal(seen, want) {
		t.Errorf("what happened is %v\nwant %v", seen, want)
	}
}

func TestADeskThatRunsForLongKeepsWhatIsLiveOnly(t *testing.T) {
	line, bookings := newBookings(t, 64)
	booked := 0
	var come func() error
	come = func() error {
		if _, err := bookings.Book(t.Context(), booking.Caller{ProjectID: "p"}, ask(60, line.Now(), 50)); err != nil {
			return err
		}
		booked++
		line.After(60, sim.Arriving, come)
		return nil
	}
	line.After(0, sim.Arriving, come)
	heap := func(until int64) uint64 {
		t.Helper()
		if err := line.Run(t.Context(), sim.Second(until)); err != nil {
			t.Fatal(err)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const day = 24 * 3600
	before := heap(day)
	after := heap(11 * day)
	if booked < 15_000 || after > before+(1<<20) {
		t.Errorf("%d reservations later %d KB are in use, %d KB before", booked, after>>10, before>>10)
	}
}
