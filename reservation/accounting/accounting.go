// SPDX-License-Identifier: Apache-2.0

// Package accounting adds up host-hours: how long projects have reserved hosts, and could use them, and
// how long hosts were in maintenance.
package accounting

import (
	"cmp"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Question is what is added up.
type Question struct {
	Span span.Span
	Now  span.Instant
	// Reservations are those that overlap Span, live or over.
	Reservations []reservation.Reservation
	// Pool maps each host of the pool to its capacity, and Sizes every host. A slice of a host that is
	// in neither map counts as the whole host.
	Pool, Sizes map[string]resource.Vector
	// Asleep maps a host to the spans in which it was switched off on purpose, sorted and without
	// overlaps.
	Asleep map[string][]span.Span
}

// Sum is an amount of host-seconds.
type Sum struct {
	Reserved float64 // what reservations of projects hold or held
	Used     float64 // of that, what the owner could use
	// Maintenance is what maintenance holds or held; it is neither reserved nor idle.
	Maintenance float64
	Idle        float64 // of hosts of the pool: neither held nor asleep, and past
	Asleep      float64 // of hosts of the pool
	Capacity    float64 // of hosts of the pool
}

func (s Sum) plus(o Sum) Sum {
	return Sum{s.Reserved + o.Reserved, s.Used + o.Used, s.Maintenance + o.Maintenance, s.Idle + o.Idle, s.Asleep + o.Asleep, s.Capacity + o.Capacity}
}

// Report is the sums of host-seconds by project and by host, and those of all hosts.
type Report struct {
	Projects map[string]Sum // Reserved and Used
	Hosts    map[string]Sum // the hosts of the pool, and those that were reserved or in maintenance
	Total    Sum
}

// Report adds up.
func (q Question) Report() Report {
	r := Report{Projects: make(map[string]Sum), Hosts: make(map[string]Sum)}
	held := make(map[string][]part)
	for i := range q.Reservations {
		from := &q.Reservations[i]
		usable := usableSpan(from, q.Now)
		for _, c := range from.Claims {
			w := intersection(c.Span, q.Span)
			if w.Empty() {
				continue
			}
			share := q.share(from, &c)
			sum := Sum{Reserved: share * float64(w.Seconds()), Used: share * float64(seconds(intersection(w, usable)))}
			if from.Maintenance {
				sum = Sum{Maintenance: float64(w.Seconds())}
			} else {
				r.Projects[from.ProjectID] = r.Projects[from.ProjectID].plus(sum)
			}
			r.Hosts[c.Host] = r.Hosts[c.Host].plus(sum)
			r.Total = r.Total.plus(sum)
			held[c.Host] = append(held[c.Host], part{w, share})
		}
	}
	for host := range q.Pool {
		sum := q.rest(held[host], q.Asleep[host])
		r.Hosts[host] = r.Hosts[host].plus(sum)
		r.Total = r.Total.plus(sum)
	}
	return r
}

// part is a share of a host for a span.
type part struct {
	span  span.Span
	share float64
}

// share returns how much of its host a claim takes.
func (q Question) share(r *reservation.Reservation, c *reservation.Claim) float64 {
	size, known := q.Sizes[c.Host]
	if r.Kind != reservation.Instances || !known {
		return 1
	}
	return r.Resources.Scale(int64(c.Slices)).ShareOf(size)
}

// rest returns the idle and the sleeping time of a host, and its capacity. Time that is reserved does
// not count as asleep: a host sleeps through the beginning of a reservation only if it does not wake.
func (q Question) rest(held []part, asleep []span.Span) Sum {
	past := intersection(q.Span, span.Span{Start: q.Span.Start, End: max(q.Now, q.Span.Start)})
	sum := Sum{Capacity: float64(q.Span.Seconds())}
	for w, level := range steps(held, asleep, past) {
		free := float64(w.Seconds()) * (1 - min(level.share, 1))
		if level.asleep {
			sum.Asleep += free
		} else {
			sum.Idle += free
		}
	}
	return sum
}

// level is what is known of a host for a while.
type level struct {
	share  float64
	asleep bool
}

// steps iterates over the parts of w in which nothing changes.
func steps(held []part, asleep []span.Span, w span.Span) func(yield func(span.Span, level) bool) {
	type turn struct {
		at    span.Instant
		share float64
		sleep int
	}
	var turns []turn
	add := func(s span.Span, share float64, sleep int) {
		if s = intersection(s, w); !s.Empty() {
			turns = append(turns, turn{s.Start, share, sleep}, turn{s.End, -share, -sleep})
		}
	}
	for _, p := range held {
		add(p.span, p.share, 0)
	}
	for _, s := range asleep {
		add(s, 0, 1)
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	return func(yield func(span.Span, level) bool) {
		at, share, sleeping := w.Start, 0.0, 0
		for _, t := range append(turns, turn{at: w.End}) {
			if t.at > at && !yield(span.Span{Start: at, End: t.at}, level{max(share, 0), sleeping > 0}) {
				return
			}
			at, share, sleeping = t.at, share+t.share, sleeping+t.sleep
		}
	}
}

// usableSpan returns the time until now in which the owner could use the reservation.
func usableSpan(r *reservation.Reservation, now span.Instant) span.Span {
	start, began := r.LastEvent(reservation.StartEvent)
	if !began || start.State != reservation.EventDone {
		return span.Span{}
	}
	return span.Span{Start: start.Done, End: now}
}

func intersection(a, b span.Span) span.Span {
	return span.Span{Start: max(a.Start, b.Start), End: min(a.End, b.End)}
}

// seconds returns the length of a span, 0 if it is empty.
func seconds(s span.Span) int64 {
	if s.Empty() {
		return 0
	}
	return s.Seconds()
}

// Names returns the keys of sums, sorted.
func Names(sums map[string]Sum) []string { return slices.Sorted(maps.Keys(sums)) }
