package sim

import (
	"context"
	"fmt"
	"strconv"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Desk is the service's own desk on a Timeline, with records in memory. Starts and ends are
// carried out on time, and what is over is forgotten, so that its memory is bounded by what
// is live.
type Desk struct {
	*booking.Service
	Timeline *Timeline
	// Happened, where it is not nil, is told of each start and end that was carried out.
	Happened func(booking.Happening) error

	records *booking.Memory
	ids     int64
}

// DeskOptions are the rules of a Desk, as booking.Options has them.
type DeskOptions struct {
	Limits   booking.Limits
	Defaults booking.Defaults // empty: first fit, delete
	LeadTime int64            // seconds
	// Images are the newest facts about images; nil leaves them out of all decisions.
	Images func() *staging.Facts
}

// tidyEvery is how often, in seconds, a Desk forgets what is over.
const tidyEvery = 3600

// NewDesk gives a desk with the hosts of a snapshot.
func NewDesk(ctx context.Context, t *Timeline, hosts *inventory.Snapshot, o DeskOptions) (*Desk, error) {
	if o.Defaults.Policy == "" {
		o.Defaults = booking.Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete}
	}
	d := &Desk{Timeline: t, records: booking.NewMemory()}
	var err error
	d.Service, err = booking.Open(ctx, booking.Options{
		Records: d.records, Keys: d.records, Reader: d.records,
		Limits: o.Limits, Defaults: o.Defaults, LeadTime: o.LeadTime, Images: o.Images,
		Now: t.Now, NewID: d.newID,
	}, hosts)
	if err != nil {
		return nil, err
	}
	d.tidy()
	return d, nil
}

// newID gives ids that sort by age.
func (d *Desk) newID() string {
	d.ids++
	id := strconv.FormatInt(d.ids, 36)
	return string(rune('a'+len(id))) + id
}

// tidy forgets what is over, now and again.
func (d *Desk) tidy() {
	d.Prune()
	d.records.Forget()
	d.Timeline.After(tidyEvery, Ending, func() error { d.tidy(); return nil })
}

// Book makes a reservation as booking.Service does, and sees to its start and its end.
func (d *Desk) Book(ctx context.Context, by booking.Caller, req reservation.Request) (reservation.Reservation, error) {
	r, err := d.Service.Book(ctx, by, req, nil)
	if err == nil {
		d.expect(ctx, r)
	}
	return r, err
}

// Change changes a reservation as booking.Service does, and sees to its start and its end.
func (d *Desk) Change(ctx context.Context, by booking.Caller, id string, c booking.Change) (reservation.Reservation, error) {
	r, err := d.Service.Change(ctx, by, id, c)
	if err == nil {
		d.expect(ctx, r)
	}
	return r, err
}

// expect carries out what is due of r on time.
func (d *Desk) expect(ctx context.Context, r reservation.Reservation) {
	for _, e := range r.Events {
		if e.State == reservation.EventDue {
			d.Timeline.At(e.Time, Ending, func() error { return d.carryOut(ctx) })
		}
	}
}

// carryOut carries out all that is due.
func (d *Desk) carryOut(ctx context.Context) error {
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

// Hosts gives n hosts of the pool that differ in nothing but their names, which sort as
// they are numbered.
func Hosts(n int) []inventory.Host {
	hosts := make([]inventory.Host, n)
	width := len(strconv.Itoa(max(0, n-1)))
	for i := range hosts {
		hosts[i] = inventory.Host{Name: fmt.Sprintf("h%0*d", width, i), Reservable: true}
		hosts[i].Capacity.VCPUs, hosts[i].Capacity.MemoryMB, hosts[i].Capacity.DiskGB = 1, 1, 1
	}
	return hosts
}

// Second is the instant that lies so many seconds after the beginning of simulated time: the
// first of January 2000, midnight, a Saturday. The desk takes the instant 0 for "not given".
func Second(n int64) span.Instant { return span.Instant(946_684_800 + n) }
