// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"cmp"
	"iter"
	"slices"

	"github.com/tidwall/btree"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// line is what waits, in the order in which it is booked. The first round has the first of each project, the second round the second of each, and so
// on, so that no project keeps out others by the number of its requests. Within a round the order is that in which they were made; in the same second, by id.
type line struct {
	tree *btree.BTreeG[inLine]
	of   map[string][]*reservation.Reservation // by project, in the order in which they were made; nil in a snapshot
}

type inLine struct {
	round int
	made  span.Instant
	r     *reservation.Reservation // immutable
}

func newLine() line {
	return line{
		tree: btree.NewBTreeGOptions(func(a, b inLine) bool {
			return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.made, b.made), cmp.Compare(a.r.ID, b.r.ID)) < 0
		}, btree.Options{NoLocks: true}),
		of: make(map[string][]*reservation.Reservation),
	}
}

func byMade(a, b *reservation.Reservation) int {
	return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
}

// add adds a waiting reservation. Those of its project that were made later come a round later.
func (l line) add(r *reservation.Reservation) {
	own := l.of[r.ProjectID]
	at, _ := slices.BinarySearchFunc(own, r, byMade)
	l.take(own, at)
	own = slices.Insert(own, at, r)
	l.put(own, at)
	l.of[r.ProjectID] = own
}

// remove removes a waiting reservation. Those of its project that were made later come a round earlier.
func (l line) remove(r *reservation.Reservation) {
	own := l.of[r.ProjectID]
	at, there := slices.BinarySearchFunc(own, r, byMade)
	if !there {
		return
	}
	l.take(own, at)
	own = slices.Delete(own, at, at+1)
	l.put(own, at)
	if l.of[r.ProjectID] = own; len(own) == 0 {
		delete(l.of, r.ProjectID)
	}
}

// take takes those of a project out of the tree, from a round on.
func (l line) take(own []*reservation.Reservation, from int) {
	for round := from; round < len(own); round++ {
		l.tree.Delete(inLine{round, own[round].Created, own[round]})
	}
}

// put puts those of a project into the tree, from a round on.
func (l line) put(own []*reservation.Reservation, from int) {
	for round := from; round < len(own); round++ {
		l.tree.Set(inLine{round, own[round].Created, own[round]})
	}
}

func (l line) snapshot() line { return line{tree: l.tree.IsoCopy()} }

func (l line) count() int { return l.tree.Len() }

// all yields what waits, the next to be booked first.
func (l line) all() iter.Seq[*reservation.Reservation] {
	return func(yield func(*reservation.Reservation) bool) {
		l.tree.Scan(func(x inLine) bool { return yield(x.r) })
	}
}

// from yields what waits from the n-th on, counted from 0.
func (l line) from(n int) iter.Seq[*reservation.Reservation] {
	return func(yield func(*reservation.Reservation) bool) {
		for r := range l.all() {
			if n--; n < 0 && !yield(r) {
				return
			}
		}
	}
}

// holding returns those of a project, by their ids, that become holds.
func (l line) holding(project string) map[string]bool {
	holds := make(map[string]bool)
	for _, r := range l.of[project] {
		if r.Hold > 0 {
			holds[r.ID] = true
		}
	}
	return holds
}

// places returns the place of each in the line, by its id, from 1 on.
func (l line) places() map[string]int {
	places := make(map[string]int, l.count())
	for r := range l.all() {
		places[r.ID] = len(places) + 1
	}
	return places
}
