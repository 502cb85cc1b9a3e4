// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"cmp"
	"container/heap"
	"iter"

	"github.com/tidwall/btree"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// agenda is a heap of appointments: the times at which live reservations have their next event.
// Outdated appointments stay until their time; readers check the reservation itself.
type agenda []appointment

type appointment struct {
	at   span.Instant
	ends bool
	id   string
}

// byTime compares appointments by time. Within a second, ends come first, since they make room for
// starts.
func byTime(a, b appointment) int {
	return cmp.Or(cmp.Compare(a.at, b.at), endsFirst(a.ends, b.ends), cmp.Compare(a.id, b.id))
}

// endsFirst compares whether two events are ends: one that is comes before one that is not.
func endsFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return byTime(a[i], a[j]) < 0 }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(appointment)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// newAgenda returns the agenda of the live reservations.
func newAgenda(live map[string]*entry) agenda {
	a := make(agenda, 0, len(live))
	for _, e := range live {
		if next, ok := appointmentOf(&e.r); ok {
			a = append(a, next)
		}
	}
	heap.Init(&a)
	return a
}

// enter adds an appointment for the next event of r, unless the event is running.
func (a *agenda) enter(r *reservation.Reservation) {
	if next, ok := appointmentOf(r); ok {
		heap.Push(a, next)
	}
}

// appointmentOf returns when the next event of r is due, or false if there is none or it is
// running.
func appointmentOf(r *reservation.Reservation) (appointment, bool) {
	i, ok := lifecycle.Due(r)
	if !ok {
		return appointment{}, false
	}
	at, due := lifecycle.At(r.Events[i])
	ends := r.Events[i].Type == reservation.EndEvent || r.Events[i].Type == reservation.ExpireEvent
	return appointment{at, ends, r.ID}, due
}

// until removes and returns the appointments that are due at now.
func (a *agenda) until(now span.Instant) []appointment {
	var due []appointment
	for len(*a) > 0 && (*a)[0].at <= now {
		due = append(due, heap.Pop(a).(appointment))
	}
	return due
}

// timetable contains reservations, sorted by a time. A snapshot of it costs nothing and is
// independent of the original.
type timetable struct{ tree *btree.BTreeG[timed] }

type timed struct {
	at span.Instant
	r  *reservation.Reservation // immutable
}

func newTimetable() timetable {
	return timetable{btree.NewBTreeGOptions(func(a, b timed) bool {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.r.ID, b.r.ID)) < 0
	}, btree.Options{NoLocks: true})}
}

func (t timetable) add(at span.Instant, r *reservation.Reservation)    { t.tree.Set(timed{at, r}) }
func (t timetable) remove(at span.Instant, r *reservation.Reservation) { t.tree.Delete(timed{at, r}) }
func (t timetable) snapshot() timetable                                { return timetable{t.tree.IsoCopy()} }

// until yields the reservations whose time is at or before last, sorted by time, then id.
func (t timetable) until(last span.Instant) iter.Seq[*reservation.Reservation] {
	return func(yield func(*reservation.Reservation) bool) {
		t.tree.Scan(func(x timed) bool { return x.at <= last && yield(x.r) })
	}
}

func (t timetable) count() int { return t.tree.Len() }

// first returns the earliest time, or false if the timetable is empty.
func (t timetable) first() (span.Instant, bool) {
	x, ok := t.tree.Min()
	return x.at, ok
}

// liveIndex has the live reservations in the orders that lookups need.
type liveIndex struct {
	byStart timetable
	// byRelease orders them by the first end of a claim, which is not after their own end.
	byRelease timetable
	imaged    timetable // those with an image, sorted by start
	movable   timetable // pending ones with a notice, sorted by start
	// waiting are those that wait. The timetables above have none of them.
	waiting line
	// byDue lists those with an event that is not done, sorted by the time of the first.
	byDue timetable
}

func newLiveIndex() liveIndex {
	return liveIndex{newTimetable(), newTimetable(), newTimetable(), newTimetable(), newLine(), newTimetable()}
}

func (s liveIndex) add(r *reservation.Reservation) {
	if i, ok := lifecycle.Due(r); ok {
		s.byDue.add(r.Events[i].Time, r)
	}
	if r.Status == reservation.Waiting {
		s.waiting.add(r)
		return
	}
	s.byStart.add(r.Span.Start, r)
	s.byRelease.add(firstRelease(r), r)
	if r.Image != "" {
		s.imaged.add(r.Span.Start, r)
	}
	if r.Notice > 0 && r.Status == reservation.Pending {
		s.movable.add(r.Span.Start, r)
	}
}

func (s liveIndex) remove(r *reservation.Reservation) {
	s.byStart.remove(r.Span.Start, r)
	s.byRelease.remove(firstRelease(r), r)
	s.imaged.remove(r.Span.Start, r)
	s.movable.remove(r.Span.Start, r)
	s.waiting.remove(r)
	if i, ok := lifecycle.Due(r); ok {
		s.byDue.remove(r.Events[i].Time, r)
	}
}

func (s liveIndex) snapshot() liveIndex {
	return liveIndex{s.byStart.snapshot(), s.byRelease.snapshot(), s.imaged.snapshot(), s.movable.snapshot(), s.waiting.snapshot(), s.byDue.snapshot()}
}

func firstRelease(r *reservation.Reservation) span.Instant {
	first := r.Span.End
	for _, c := range r.Claims {
		first = min(first, c.Span.End)
	}
	return first
}

// nextDue returns the next event of r.
func nextDue(r *reservation.Reservation) (reservation.Event, bool) {
	i, ok := lifecycle.Due(r)
	if !ok {
		return reservation.Event{}, false
	}
	return r.Events[i], true
}
