package booking

import (
	"fmt"
	"math"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Limits bound what a project may ask for; 0 is no limit, in every field. An
// instance counts as one host.
type Limits struct {
	Duration        int64 // the longest reservation, in seconds
	StartAhead      int64 // the farthest start, in seconds from now
	Hosts           int   // held at once: the sum over the project's live reservations
	HostSeconds     int64 // likewise
	ExtensionWindow int64 // an extension is accepted only that many seconds before the end
}

// Held is what a project's live reservations hold together.
type Held struct {
	Hosts       int
	HostSeconds int64
}

func (h *Held) add(r *reservation.Reservation, sign int) {
	h.Hosts += sign * r.Quantity
	h.HostSeconds += int64(sign) * weight(r)
}

// weight is the host time of a reservation, each instance counted as a host.
func weight(r *reservation.Reservation) int64 {
	sum := int64(0)
	for _, c := range r.Claims {
		sum += c.Span.Seconds() * int64(max(c.Slices, 1))
	}
	return sum
}

// horizon is the latest start that is allowed.
func (l Limits) horizon(now span.Instant) span.Instant {
	if l.StartAhead == 0 {
		return span.Forever
	}
	return now.Add(l.StartAhead)
}

// quantity is the most that the project may still ask for, for that long.
func (l Limits) quantity(held Held, seconds int64) int {
	most := int64(math.MaxInt32)
	if l.Hosts > 0 {
		most = min(most, int64(l.Hosts-held.Hosts))
	}
	if l.HostSeconds > 0 {
		most = min(most, (l.HostSeconds-held.HostSeconds)/seconds)
	}
	return int(max(most, 0))
}

// granting gives the limits raised to what r has, for a change of r that shall last
// that long: a change is held only against what it asks more of. held is without r.
func (l Limits) granting(now span.Instant, held Held, r *reservation.Reservation, seconds int64) Limits {
	if l.Duration > 0 {
		l.Duration = max(l.Duration, r.Span.Seconds())
	}
	if l.StartAhead > 0 {
		l.StartAhead = max(l.StartAhead, int64(r.Span.Start-now))
	}
	if l.Hosts > 0 {
		l.Hosts = max(l.Hosts, held.Hosts+r.Quantity)
	}
	if l.HostSeconds > 0 {
		has := weight(r)
		if seconds <= r.Span.Seconds() {
			has = max(has, int64(r.Quantity)*seconds)
		}
		l.HostSeconds = max(l.HostSeconds, held.HostSeconds+has)
	}
	return l
}

// exceeded gives the first limit that quantity for seconds from start on breaks,
// with a sentence; "" where all hold.
func (l Limits) exceeded(now span.Instant, held Held, quantity int, start span.Instant, seconds int64) (reservation.Constraint, string) {
	switch {
	case l.Duration > 0 && seconds > l.Duration:
		return reservation.MaxDuration, fmt.Sprintf("it would last %v; the longest allowed is %v", period(seconds), period(l.Duration))
	case start > l.horizon(now):
		return reservation.MaxStartAhead, fmt.Sprintf("it would start at %v; the farthest allowed now is %v", start, l.horizon(now))
	case l.Hosts > 0 && quantity > l.Hosts-held.Hosts:
		return reservation.MaxHosts, fmt.Sprintf("the project holds %d hosts and asks for %d; it may hold %d at once",
			held.Hosts, quantity, l.Hosts)
	case l.HostSeconds > 0 && int64(quantity) > (l.HostSeconds-held.HostSeconds)/seconds:
		return reservation.MaxHostHours, fmt.Sprintf("the project holds %.1f host-hours and asks for %.1f; it may hold %.1f at once",
			hours(float64(held.HostSeconds)), hours(float64(quantity)*float64(seconds)), hours(float64(l.HostSeconds)))
	}
	return "", ""
}

func hours(seconds float64) float64 { return seconds / 3600 }

func period(seconds int64) time.Duration { return time.Duration(seconds) * time.Second }
