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
	Hosts           int   // held at one instant by the project's live reservations together
	HostSeconds     int64 // the sum over the project's live reservations
	ExtensionWindow int64 // an extension is accepted only that many seconds before the end
}

// Held is what a project's live reservations hold together. It is a value that never
// changes, so a decision may use it without a lock.
type Held struct {
	Hosts       span.Count // over time
	HostSeconds int64      // altogether
}

// with returns h with r, without returns it without r.
func (h Held) with(r *reservation.Reservation) Held {
	return Held{addClaims(h.Hosts, r.Claims, 1), h.HostSeconds + weight(r)}
}

func (h Held) without(r *reservation.Reservation) Held {
	return Held{addClaims(h.Hosts, r.Claims, -1), h.HostSeconds - weight(r)}
}

// addClaims returns the count of hosts with claims added times times. Those of one
// reservation that last equally long follow each other, and count as one step.
func addClaims(hosts span.Count, claims []reservation.Claim, times int) span.Count {
	for i := 0; i < len(claims); {
		s, n := claims[i].Span, 0
		for ; i < len(claims) && claims[i].Span == s; i++ {
			n += max(claims[i].Slices, 1)
		}
		hosts = hosts.Add(s, n*times)
	}
	return hosts
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

// quantity is the most that the host-hours still allow for that long.
func (l Limits) quantity(held Held, seconds int64) int {
	if l.HostSeconds == 0 {
		return math.MaxInt32
	}
	return int(max(min((l.HostSeconds-held.HostSeconds)/seconds, math.MaxInt32), 0))
}

// granting gives the limits raised to what r has, for a change of r that shall last
// that long: a change is held only against what it asks more of. held is without r. What r
// holds at each instant is left to the search.
func (l Limits) granting(now span.Instant, held Held, r *reservation.Reservation, seconds int64) Limits {
	if l.Duration > 0 {
		l.Duration = max(l.Duration, r.Span.Seconds())
	}
	if l.StartAhead > 0 {
		l.StartAhead = max(l.StartAhead, int64(r.Span.Start-now))
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
// with a sentence; "" where all hold. Whether the hosts held at once keep their limit
// depends on the start, and is for the search to say.
func (l Limits) exceeded(now span.Instant, held Held, quantity int, start span.Instant, seconds int64) (reservation.Constraint, string) {
	switch {
	case l.Duration > 0 && seconds > l.Duration:
		return reservation.MaxDuration, fmt.Sprintf("it would last %v; the longest allowed is %v", period(seconds), period(l.Duration))
	case start > l.horizon(now):
		return reservation.MaxStartAhead, fmt.Sprintf("it would start at %v; the farthest allowed now is %v", start, l.horizon(now))
	case l.HostSeconds > 0 && int64(quantity) > (l.HostSeconds-held.HostSeconds)/seconds:
		return reservation.MaxHostHours, fmt.Sprintf("the project holds %.1f host-hours and asks for %.1f; it may hold %.1f together",
			hours(float64(held.HostSeconds)), hours(float64(quantity)*float64(seconds)), hours(float64(l.HostSeconds)))
	}
	return "", ""
}

func hours(seconds float64) float64 { return seconds / 3600 }

func period(seconds int64) time.Duration { return time.Duration(seconds) * time.Second }
