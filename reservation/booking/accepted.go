// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"cmp"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// keptDemands are the last results of state.accepted, for all reservations and without one of them.
type keptDemands struct{ all, some atomic.Pointer[accepted] }

// accepted is the demands of live reservations, with given facts.
type accepted struct {
	facts  *staging.Facts
	but    string
	imaged []*reservation.Reservation
	// changing is true if imaged contains both states of a reservation that is being changed.
	changing bool
	sorted   sortedDemands
	demands  *staging.Accepted
	// revision is that of the last state with these reservations.
	revision uint64
}

// accepted returns the demands for Images. Most decisions meet the same ones: a refusal changes no
// reservation, and most changes concern few with an image. So the last ones are kept.
func (s *state) accepted(facts *staging.Facts, now span.Instant, but string) *staging.Accepted {
	kept := &s.kept.all
	if but != "" {
		kept = &s.kept.some
	}
	last := kept.Load()
	known := last != nil && last.facts == facts && last.but == but
	a := accepted{facts: facts, but: but, changing: len(s.becoming) > 0, revision: s.revision}
	switch {
	case known && (last.revision == s.revision || s.hasImages(but, last.imaged)):
		a = *last
		a.revision, a.demands = s.revision, last.demands.At(now)
	default:
		a.imaged = s.withImages(but)
		gone, more := last.differing(a.imaged)
		if known && !last.changing && !a.changing && len(gone)+len(more) <= mostReplaced {
			a.sorted = last.sorted.replace(gone, sortDemands(facts, more))
		} else {
			a.sorted = sortDemands(facts, a.imaged)
		}
		a.demands = facts.Accepted(now, a.sorted.demands)
	}
	kept.Store(&a)
	return a.demands
}

// withImages returns the live reservations with an image, except the one with the id but. A
// reservation that is being changed is listed in its old and its new state.
func (s *state) withImages(but string) []*reservation.Reservation {
	live := make([]*reservation.Reservation, 0, s.live.imaged.count()+len(s.becoming))
	for r := range s.live.imaged.until(span.Forever) {
		if but == "" || r.ID != but {
			live = append(live, r)
		}
	}
	for _, r := range s.becoming {
		if r.ID != but {
			live = append(live, r)
		}
	}
	return live
}

// hasImages reports whether withImages would return this list.
func (s *state) hasImages(but string, list []*reservation.Reservation) bool {
	if but != "" || len(s.becoming) > 0 {
		return slices.Equal(s.withImages(but), list)
	}
	if s.live.imaged.count() != len(list) {
		return false
	}
	i := 0
	for r := range s.live.imaged.until(span.Forever) {
		if r != list[i] {
			return false
		}
		i++
	}
	return true
}

// differing returns the parts of the list before and of the list now that lie between their common
// beginning and their common end.
func (a *accepted) differing(now []*reservation.Reservation) (gone, more []*reservation.Reservation) {
	if a == nil {
		return nil, now
	}
	gone, more = a.imaged, now
	for len(gone) > 0 && len(more) > 0 && gone[0] == more[0] {
		gone, more = gone[1:], more[1:]
	}
	for len(gone) > 0 && len(more) > 0 && gone[len(gone)-1] == more[len(more)-1] {
		gone, more = gone[:len(gone)-1], more[:len(more)-1]
	}
	return gone, more
}

// mostReplaced is the largest number of reservations that are replaced in the last demands. If more
// differ, all demands are sorted again.
const mostReplaced = 32

// sortedDemands are the demands of reservations, sorted by start, and in the order of Demands among
// those with the same start.
type sortedDemands struct {
	demands []staging.Demand
	of      []*reservation.Reservation // the reservation of each demand
}

func sortDemands(f *staging.Facts, imaged []*reservation.Reservation) sortedDemands {
	type made struct {
		demand staging.Demand
		of     *reservation.Reservation
	}
	list := make([]made, 0, len(imaged))
	for _, r := range imaged {
		image, _ := f.Image(r.Image)
		for _, d := range planning.AddDemands(nil, r, image) {
			list = append(list, made{d, r})
		}
	}
	slices.SortStableFunc(list, func(a, b made) int { return inOrder(&a.demand, &b.demand, a.of, b.of) })
	s := sortedDemands{make([]staging.Demand, len(list)), make([]*reservation.Reservation, len(list))}
	for i := range list {
		s.demands[i], s.of[i] = list[i].demand, list[i].of
	}
	return s
}

func inOrder(a, b *staging.Demand, ofA, ofB *reservation.Reservation) int {
	return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(ofA.Created, ofB.Created), cmp.Compare(a.ID, b.ID))
}

// replace returns the demands without those of some reservations and with more.
func (s sortedDemands) replace(gone []*reservation.Reservation, more sortedDemands) sortedDemands {
	n := len(s.demands) + len(more.demands)
	all := sortedDemands{make([]staging.Demand, 0, n), make([]*reservation.Reservation, 0, n)}
	add := func(from *sortedDemands, i, until int) {
		all.demands, all.of = append(all.demands, from.demands[i:until]...), append(all.of, from.of[i:until]...)
	}
	kept := 0
	keep := func(until int) {
		for i := kept; i < until; i++ {
			if slices.Contains(gone, s.of[i]) {
				add(&s, kept, i)
				kept = i + 1
			}
		}
		add(&s, kept, until)
		kept = until
	}
	for i := range more.demands {
		keep(sort.Search(len(s.demands), func(at int) bool { return inOrder(&s.demands[at], &more.demands[i], s.of[at], more.of[i]) > 0 }))
		add(&more, i, i+1)
	}
	keep(len(s.demands))
	return all
}
