// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// stay is a reservation that has started.
type stay struct {
	r       reservation.Reservation
	missing int // hosts that are not up yet
}

// happened adds and removes instances as booking carries out starts and ends.
func (s *Site) happened(h booking.Happening) error {
	var err error
	switch h.Event.Type {
	case reservation.StartEvent:
		err = s.enter(h.Reservation)
	case reservation.EndEvent:
		err = s.leave(&h.Reservation)
	}
	if err == nil && s.options.Happened != nil {
		err = s.options.Happened(h)
	}
	return err
}

// enter puts a reservation's instances on its hosts. On hosts that are not up, the instances appear
// once they are.
func (s *Site) enter(r reservation.Reservation) error {
	one := &stay{r: r}
	for _, host := range r.HostNames() {
		m := s.fleet.of(host)
		if before, taken := s.stays[m.tenant]; taken && before.r.Span.End > s.timeline.Now() {
			return fmt.Errorf("host %s is booked twice at %v: by reservations %s and %s", host, s.timeline.Now(), m.tenant, r.ID)
		}
		m.tenant = r.ID
		switch {
		case !m.ready():
			one.missing++
		case m.state == idle:
			s.become(m, busy)
		}
	}
	s.stays[r.ID] = one
	s.show()
	if one.missing > 0 {
		return nil
	}
	return s.complete(one)
}

// admit adds the instances of hosts that were late and are up now.
func (s *Site) admit() error {
	for _, m := range s.fleet.all {
		if m.tenant == "" || m.state != idle || !m.ready() {
			continue
		}
		s.become(m, busy)
		one := s.stays[m.tenant]
		if one.missing--; one.missing > 0 {
			continue
		}
		if err := s.complete(one); err != nil {
			return err
		}
	}
	return nil
}

// leave removes the instances of a reservation.
func (s *Site) leave(r *reservation.Reservation) error {
	one, begun := s.stays[r.ID]
	if !begun {
		return nil
	}
	delete(s.stays, r.ID)
	for _, host := range r.HostNames() {
		m := s.fleet.of(host)
		if m.tenant != r.ID {
			continue // it has the next instance already
		}
		m.tenant = ""
		if m.state == busy {
			s.become(m, idle)
		}
	}
	s.show()
	if one.missing == 0 {
		return nil
	}
	one.missing = 0
	return s.complete(one)
}

// complete counts a reservation that has all its hosts, or that has ended without ever having had
// them all.
func (s *Site) complete(one *stay) error {
	b := Beginning{Reservation: one.r, Asked: one.r.Created, Promised: one.r.Span.Start, At: s.timeline.Now()}
	s.totals.count(&b, s.coresOf(&one.r))
	if s.options.Began == nil {
		return nil
	}
	return s.options.Began(b)
}

func (s *Site) coresOf(r *reservation.Reservation) (cores int64) {
	for _, host := range r.HostNames() {
		cores += s.fleet.of(host).cores
	}
	return cores
}

// promises caches the live reservations until one changes.
type promises struct {
	bookings *booking.Service
	revision uint64
	live     []reservation.Reservation
}

// Live implements controller.Promises. The cached reservations are still live, because ends are
// carried out on time.
func (p *promises) Live(w span.Span) []reservation.Reservation {
	if now := p.bookings.Revision(); p.live == nil || now != p.revision {
		p.live, p.revision = p.bookings.Live(w), now
	}
	return p.live
}
