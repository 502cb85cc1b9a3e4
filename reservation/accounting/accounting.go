// SPDX-License-Identifier: Apache-2.0

// Package accounting adds up host-hours: how long projects have reserved hosts, and could use them, and
// how long hosts were in maintenance.
package accounting

import (
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

// Account adds up what reservations held, one after another, in any order. It holds the sums alone.
type Account struct {
	q      Question
	report Report
	// past is how much of each host was held in the past part of the span, in host-seconds, and asleep
	// is how much of that while the host was asleep.
	past, asleep map[string]float64
}

// Begin returns an Account without reservations.
func (q Question) Begin() *Account {
	return &Account{
		q: q, report: Report{Projects: make(map[string]Sum), Hosts: make(map[string]Sum)},
		past: make(map[string]float64), asleep: make(map[string]float64),
	}
}

// Add adds claims of a reservation. Each claim must be added once.
func (a *Account) Add(r *reservation.Reservation, claims []reservation.Claim) {
	usable, past := usableSpan(r, a.q.Now), a.q.past()
	for i := range claims {
		c := &claims[i]
		w := intersection(c.Span, a.q.Span)
		if w.Empty() {
			continue
		}
		shape := ShapeOf(r, c)
		share := a.q.share(shape, c.Host)
		a.add(r.ProjectID, c.Host, shape, share*float64(w.Seconds()), share*float64(seconds(intersection(w, usable))))
		if _, there := a.q.Pool[c.Host]; !there {
			continue
		}
		w = intersection(w, past)
		a.past[c.Host] += share * float64(seconds(w))
		for _, slept := range a.q.Asleep[c.Host] {
			a.asleep[c.Host] += share * float64(seconds(intersection(w, slept)))
		}
	}
}

// AddDay adds what a purged reservation held on one day, in proportion to the part of the day within
// the span of the question.
func (a *Account) AddDay(d DaySum) {
	part := float64(seconds(intersection(span.New(d.Day, Day), a.q.Span))) / Day
	share := a.q.share(d.Of, d.Host)
	held := share * part * float64(d.Held)
	a.add(d.ProjectID, d.Host, d.Of, held, share*part*float64(d.Used))
	a.past[d.Host] += held
}

// add adds host-seconds held and used to the sums of the project, the host and the whole. Maintenance
// counts for the host only.
func (a *Account) add(project, host string, shape Shape, held, used float64) {
	sum := Sum{Reserved: held, Used: used}
	if shape.Maintenance {
		sum = Sum{Maintenance: held}
	} else {
		a.report.Projects[project] = a.report.Projects[project].plus(sum)
	}
	a.report.Hosts[host] = a.report.Hosts[host].plus(sum)
	a.report.Total = a.report.Total.plus(sum)
}

// Report returns the sums. The time in which a host of the pool was not held counts as asleep or idle.
// Time that is held does not count as asleep: a host sleeps through the beginning of a reservation only
// if it does not wake.
func (a *Account) Report() Report {
	r := Report{Projects: maps.Clone(a.report.Projects), Hosts: maps.Clone(a.report.Hosts), Total: a.report.Total}
	past := a.q.past()
	for host := range a.q.Pool {
		free := max(float64(seconds(past))-a.past[host], 0)
		asleep := -a.asleep[host]
		for _, slept := range a.q.Asleep[host] {
			asleep += float64(seconds(intersection(past, slept)))
		}
		asleep = min(max(asleep, 0), free)
		sum := Sum{Asleep: asleep, Idle: free - asleep, Capacity: float64(a.q.Span.Seconds())}
		r.Hosts[host] = r.Hosts[host].plus(sum)
		r.Total = r.Total.plus(sum)
	}
	return r
}

// past returns the past part of the span.
func (q Question) past() span.Span {
	return intersection(q.Span, span.Span{Start: q.Span.Start, End: max(q.Now, q.Span.Start)})
}

// share returns how much of a host a claim takes.
func (q Question) share(s Shape, host string) float64 {
	size, known := q.Sizes[host]
	if s.Slices == 0 || !known {
		return 1
	}
	return s.Size.Scale(int64(s.Slices)).ShareOf(size)
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
