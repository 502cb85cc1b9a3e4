// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"strconv"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/booking/memory"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// Booking is the service's booking.Service on a Timeline, with records in memory. It carries out
// starts and ends on time and removes reservations that have ended from memory.
type Booking struct {
	*booking.Service
	Timeline *Timeline
	// Moved is called for each reservation that was moved so that another has room; nil means no call. It must not call
	// the service.
	Moved func(reservation.Reservation)
	// Happened is called for each start and end that was carried out; nil means no call.
	Happened func(booking.Happening) error

	records *memory.Records
	ids     int64
}

// BookingOptions are the rules of a Booking; see booking.Options.
type BookingOptions struct {
	Limits   planning.Limits
	Defaults planning.Defaults // empty: first fit, delete
	LeadTime int64             // seconds
	// Images returns the newest facts about images; a nil function means that decisions ignore
	// images.
	Images func() *staging.Facts
	// Tariff and FellBack are those of booking.Options.
	Tariff   func() *tariff.Reading
	FellBack func(ctx context.Context, r *reservation.Reservation, why planning.Fallback)
}

// tidyEvery is the interval, in seconds, between two calls of tidy.
const tidyEvery = 3600

// NewBooking returns a booking service with the hosts of a snapshot.
func NewBooking(ctx context.Context, t *Timeline, hosts *inventory.Snapshot, o BookingOptions) (*Booking, error) {
	if o.Defaults.Policy == "" {
		o.Defaults = planning.Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete}
	}
	d := &Booking{Timeline: t, records: memory.New()}
	var err error
	d.Service, err = booking.Open(ctx, booking.Options{
		Records: d.records, Keys: d.records, Reader: d.records,
		Limits: o.Limits, Defaults: o.Defaults, LeadTime: o.LeadTime, Images: o.Images,
		Tariff: o.Tariff, FellBack: o.FellBack,
		Now: t.Now, NewID: d.newID,
	}, hosts)
	if err != nil {
		return nil, err
	}
	d.Listen(func(l booking.Learned) {
		if l.Before != nil && l.After != nil && l.Before.Span != l.After.Span && l.Before.Notice > 0 && l.After.Notice > 0 {
			d.expect(ctx, *l.After)
			if d.Moved != nil {
				d.Moved(*l.After)
			}
		}
	})
	d.tidy()
	return d, nil
}

// newID returns IDs that sort by age.
func (d *Booking) newID() string {
	d.ids++
	id := strconv.FormatInt(d.ids, 36)
	return string(rune('a'+len(id))) + id
}

// tidy removes reservations that have ended, and schedules its next call.
func (d *Booking) tidy() {
	d.Prune()
	d.records.Forget()
	d.Timeline.After(tidyEvery, Ending, func() error { d.tidy(); return nil })
}

// Book makes a reservation as booking.Service does, and schedules its start and end.
func (d *Booking) Book(ctx context.Context, by booking.Caller, req reservation.Request) (reservation.Reservation, error) {
	r, err := d.Service.Book(ctx, by, req, nil)
	if err == nil {
		d.expect(ctx, r)
	}
	return r, err
}

// Change changes a reservation as booking.Service does, and schedules its start and end.
func (d *Booking) Change(ctx context.Context, by booking.Caller, id string, c planning.Change) (reservation.Reservation, error) {
	r, err := d.Service.Change(ctx, by, id, c)
	if err == nil {
		d.expect(ctx, r)
	}
	return r, err
}

// expect schedules the events of r.
func (d *Booking) expect(ctx context.Context, r reservation.Reservation) {
	for _, e := range r.Events {
		if e.State == reservation.EventDue {
			d.Timeline.At(e.Time, Ending, func() error { return d.carryOut(ctx) })
		}
	}
}

// carryOut carries out all events that are due.
func (d *Booking) carryOut(ctx context.Context) error {
	done, failed := d.CarryOut(ctx)
	for id, err := range failed {
		return fmt.Errorf("reservation %s: %w", id, err)
	}
	if d.Happened == nil {
		return nil
	}
	for _, h := range done {
		if err := d.Happened(h); err != nil {
			return err
		}
	}
	return nil
}

// Hosts returns n hosts of the pool that differ only in their names, which sort in the order of
// their numbers.
func Hosts(n int) []inventory.Host {
	hosts := make([]inventory.Host, n)
	width := len(strconv.Itoa(max(0, n-1)))
	for i := range hosts {
		hosts[i] = inventory.Host{Name: fmt.Sprintf("h%0*d", width, i), Reservable: true}
		hosts[i].Capacity.VCPUs, hosts[i].Capacity.MemoryMB, hosts[i].Capacity.DiskGB = 1, 1, 1
	}
	return hosts
}

// Second returns the instant n seconds after the start of simulated time, which is Saturday,
// 2000-01-01 00:00 UTC. It does not start at the instant 0, which means "not given".
func Second(n int64) span.Instant { return span.Instant(946_684_800 + n) }
