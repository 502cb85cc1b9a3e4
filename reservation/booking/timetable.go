package booking

import (
	"cmp"
	"iter"

	"github.com/tidwall/btree"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// timetable has reservations ordered by a time. A snapshot costs nothing and is independent of
// the original.
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

// until yields the reservations whose time is not after last, by time, then id.
func (t timetable) until(last span.Instant) iter.Seq[*reservation.Reservation] {
	return func(yield func(*reservation.Reservation) bool) {
		t.tree.Scan(func(x timed) bool { return x.at <= last && yield(x.r) })
	}
}

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
	imaged    timetable // those with an image, by start
}

func newLiveIndex() liveIndex {
	return liveIndex{newTimetable(), newTimetable(), newTimetable()}
}

func (s liveIndex) add(r *reservation.Reservation) {
	s.byStart.add(r.Span.Start, r)
	s.byRelease.add(firstRelease(r), r)
	if r.Image != "" {
		s.imaged.add(r.Span.Start, r)
	}
}

func (s liveIndex) remove(r *reservation.Reservation) {
	s.byStart.remove(r.Span.Start, r)
	s.byRelease.remove(firstRelease(r), r)
	s.imaged.remove(r.Span.Start, r)
}

func (s liveIndex) snapshot() liveIndex {
	return liveIndex{s.byStart.snapshot(), s.byRelease.snapshot(), s.imaged.snapshot()}
}

func firstRelease(r *reservation.Reservation) span.Instant {
	first := r.Span.End
	for _, c := range r.Claims {
		first = min(first, c.Span.End)
	}
	return first
}
