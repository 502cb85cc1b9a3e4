// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Limits are the operator's limits for each project; 0 means no limit, except for Hold and Waiting. An instance counts as one
// host.
type Limits struct {
	Duration        int64 // longest duration of a reservation, in seconds
	StartAhead      int64 // farthest start, in seconds from now
	Hosts           int   // held at one instant by all live reservations of the project
	HostSeconds     int64 // sum over all live reservations of the project
	EmptyLeases     int   // leases without reservations, ended ones included
	ExtensionWindow int64 // how many seconds before the end an extension is accepted
	Hold            int64 // longest hold, in seconds; 0 means that nothing is held
	Holds           int   // held at once, and not confirmed
	Waiting         int   // waiting reservations; 0 means that none waits
}

// tooEarly returns why r may not last as long as changed yet; empty if it may.
func (l Limits) tooEarly(r *reservation.Reservation, changed span.Span, now span.Instant) string {
	promised, window := max(r.Span.End, r.PromisedEnd), span.Instant(l.ExtensionWindow)
	if window == 0 || changed.Seconds() <= int64(promised-r.Span.Start) || now >= promised-window {
		return ""
	}
	return fmt.Sprintf("an extension beyond the end that was promised is accepted from %v on, %v before it", promised-window, period(l.ExtensionWindow))
}

// Held is the sum of what a project's live reservations hold. It is immutable, so decisions use it
// without a lock.
type Held struct {
	Hosts       span.Count // over time
	HostSeconds int64      // in total
	Holds       span.Count // reservations that nobody has confirmed, over the time of their holds
	Waiting     int        // reservations that wait for room
}

// With returns h plus what r holds.
func (h Held) With(r *reservation.Reservation) Held {
	return Held{AddClaims(h.Hosts, CountedClaims(r), 1), h.HostSeconds + Weight(r), h.Holds.Add(holdOf(r), 1), h.Waiting + waits(r)}
}

func (h Held) Without(r *reservation.Reservation) Held {
	return Held{AddClaims(h.Hosts, CountedClaims(r), -1), h.HostSeconds - Weight(r), h.Holds.Add(holdOf(r), -1), h.Waiting - waits(r)}
}

// HeldBy returns what reservations hold together.
func HeldBy(list []*reservation.Reservation) (h Held) {
	h.Hosts = span.CountOf(func(yield func(span.Span, int) bool) {
		for _, r := range list {
			for s, n := range hostsBySpan(CountedClaims(r)) {
				if !yield(s, n) {
					return
				}
			}
		}
	})
	for _, r := range list {
		h.HostSeconds += Weight(r)
		h.Holds = h.Holds.Add(holdOf(r), 1)
		h.Waiting += waits(r)
	}
	return h
}

// AddClaims returns hosts with claims added times times.
func AddClaims(hosts span.Count, claims []reservation.Claim, times int) span.Count {
	for s, n := range hostsBySpan(claims) {
		hosts = hosts.Add(s, n*times)
	}
	return hosts
}

// hostsBySpan yields the spans of claims with the number of their hosts. Claims of one reservation with
// the same span follow each other, and are one.
func hostsBySpan(claims []reservation.Claim) iter.Seq2[span.Span, int] {
	return func(yield func(span.Span, int) bool) {
		for i := 0; i < len(claims); {
			s, n := claims[i].Span, 0
			for ; i < len(claims) && claims[i].Span == s; i++ {
				n += max(claims[i].Slices, 1)
			}
			if !yield(s, n) {
				return
			}
		}
	}
}

// Weight returns the host-seconds of a reservation that count for limits, those that it has released
// included; each instance counts as a host.
func Weight(r *reservation.Reservation) int64 {
	if r.Maintenance {
		return 0
	}
	return r.Released + heldUntil(r.Claims, span.Forever)
}

// spent returns the part of the weight of a reservation that is past, which no change alters.
func spent(r *reservation.Reservation, now span.Instant) int64 {
	if r.Maintenance {
		return 0
	}
	return r.Released + heldUntil(r.Claims, now)
}

// heldUntil returns the host-seconds of claims before an instant.
func heldUntil(claims []reservation.Claim, t span.Instant) (sum int64) {
	for _, c := range claims {
		if c.Span.End = min(c.Span.End, t); !c.Span.Empty() {
			sum += c.Span.Seconds() * int64(max(c.Slices, 1))
		}
	}
	return sum
}

// horizon returns the latest start that is allowed.
func (l Limits) horizon(now span.Instant) span.Instant {
	if l.StartAhead == 0 {
		return span.Forever
	}
	return now.Add(l.StartAhead)
}

// quantity returns the largest quantity that the host-hours allow for that many seconds.
func (l Limits) quantity(held Held, seconds int64) int {
	if l.HostSeconds == 0 {
		return math.MaxInt32
	}
	return int(max(min((l.HostSeconds-held.HostSeconds)/seconds, math.MaxInt32), 0))
}

// changing returns the view, which does not contain r, for a change of r to the window w from now on.
// The past of r stays spent. The limits are raised by what r has: a change is measured only by what
// it adds. The search considers what r holds at each instant.
func (v View) changing(r *reservation.Reservation, w span.Span) View {
	past, l := spent(r, v.Now), &v.Limits
	v.Held.HostSeconds += past
	if l.Duration > 0 {
		l.Duration = max(l.Duration, r.Span.Seconds())
	}
	if l.StartAhead > 0 {
		l.StartAhead = max(l.StartAhead, int64(r.Span.Start-v.Now))
	}
	if l.HostSeconds > 0 {
		has := Weight(r) - past
		if w.Seconds() <= int64(r.Span.End-max(r.Span.Start, v.Now)) {
			has = max(has, int64(r.Quantity)*w.Seconds())
		}
		l.HostSeconds = max(l.HostSeconds, v.Held.HostSeconds+has)
	}
	return v
}

// exceeded returns the first limit that quantity hosts, for seconds from start on, exceed, with a
// sentence; "" if none. It does not check the limit on hosts at one instant, because that depends
// on the start that the search finds.
func (l Limits) exceeded(now span.Instant, held Held, quantity int, start span.Instant, seconds int64) (reservation.Constraint, string) {
	if constraint, text := l.outside(now, start, seconds); constraint != "" {
		return constraint, text
	}
	return l.tooMuch(held, quantity, seconds)
}

// outside is the part of exceeded about the time.
func (l Limits) outside(now, start span.Instant, seconds int64) (reservation.Constraint, string) {
	switch {
	case l.Duration > 0 && seconds > l.Duration:
		return reservation.MaxDuration, fmt.Sprintf("it would last %v; the longest allowed is %v", period(seconds), period(l.Duration))
	case start > l.horizon(now):
		return reservation.MaxStartAhead, fmt.Sprintf("it would start at %v; the farthest allowed now is %v", start, l.horizon(now))
	}
	return "", ""
}

// tooMuch is the part of exceeded about the host-hours.
func (l Limits) tooMuch(held Held, quantity int, seconds int64) (reservation.Constraint, string) {
	if l.HostSeconds > 0 && int64(quantity) > (l.HostSeconds-held.HostSeconds)/seconds {
		return reservation.MaxHostHours, fmt.Sprintf("the project holds %.1f host-hours and asks for %.1f; it may hold %.1f together",
			hours(float64(held.HostSeconds)), hours(float64(quantity)*float64(seconds)), hours(float64(l.HostSeconds)))
	}
	return "", ""
}

func hours(seconds float64) float64 { return seconds / 3600 }

func period(seconds int64) time.Duration { return time.Duration(seconds) * time.Second }

// CountedClaims returns the claims that count for the limits of the project: none of maintenance.
func CountedClaims(r *reservation.Reservation) []reservation.Claim {
	if r.Maintenance {
		return nil
	}
	return r.Claims
}
