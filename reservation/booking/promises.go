package booking

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Reservation gives a live reservation, false where there is none with that id.
func (d *Desk) Reservation(id string) (reservation.Reservation, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if e, ok := d.live[id]; ok {
		return e.r, true
	}
	return reservation.Reservation{}, false
}

// NextClaim gives the first time in which host is promised that ends after t;
// claims that touch or share it come as one.
func (d *Desk) NextClaim(host string, t span.Instant) (span.Span, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	number, known := d.roster.numbers[host]
	if !known {
		return span.Span{}, false
	}
	return d.calendar.NextBusy(number, t)
}

// Snapshot is the inventory that the desk decides with.
func (d *Desk) Snapshot() *inventory.Snapshot {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.roster.snapshot
}

// Live gives the live reservations whose span shares an instant with w, by start,
// then id.
func (d *Desk) Live(w span.Span) []reservation.Reservation {
	d.mu.RLock()
	var list []reservation.Reservation
	for _, e := range d.live {
		if e.r.Span.Overlaps(w) {
			list = append(list, e.r)
		}
	}
	d.mu.RUnlock()
	slices.SortFunc(list, func(a, b reservation.Reservation) int {
		return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// Availability gives the windows in which the request's quantity has room for its
// duration, up to limit of them, and how many hosts match. Limits of the project
// do not count.
func (d *Desk) Availability(by Caller, req reservation.Request, limit int) (windows []calendar.Window, matched int, err error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	v := d.view(by, by.ProjectID)
	v.Limits = Limits{}
	a, err := settle(req, v.Now, v.Defaults)
	if err != nil {
		return nil, 0, err
	}
	s, err := newSearch(v, a)
	if err != nil {
		return nil, 0, err
	}
	all := v.Calendar.Windows(s.query)
	if a.Kind == reservation.Instances {
		all = slices.Values(v.Calendar.SliceWindows(s.slices(s.query)))
	}
	for w := range all {
		if len(windows) == limit {
			break
		}
		windows = append(windows, w)
	}
	return windows, s.matched, nil
}
