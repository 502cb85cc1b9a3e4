// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

func testListing(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("a list is what the query selects, in order", func(t *testing.T) { testSelection(t, open(t)) })
	t.Run("each row comes once while others are inserted", func(t *testing.T) { testPaging(t, open(t)) })
	t.Run("what is asked for a project is what belongs to it", func(t *testing.T) { testOwners(t, open(t)) })
	t.Run("an unknown marker is invalid", func(t *testing.T) {
		s := open(t)
		foreign := booked("foreign")
		foreign.ProjectID = "other"
		mustCreate(t, s, foreign)
		for _, marker := range []string{"nobody", "foreign"} {
			_, err := s.List(t.Context(), reservation.Query{ProjectID: "demo", Marker: marker, Limit: 10})
			if f := fault.Of(err); f == nil || f.Kind != fault.Invalid || f.Field != "marker" {
				t.Errorf("marker %s: %v, want an invalid fault on marker", marker, err)
			}
		}
	})
	t.Run("a marker stays good when its reservation leaves the list", func(t *testing.T) {
		s := open(t)
		offered[settings](t, s) // booking.Memory accepts only markers of its own list
		for _, id := range []string{"a", "b", "c"} {
			mustCreate(t, s, booked(id))
		}
		gone := booked("b")
		gone.Status, gone.Version = reservation.Canceled, 2
		mustUpdate(t, s, gone)
		if list := mustList(t, s, reservation.Query{Marker: "b"}); diff([]string{"c"}, ids(list)) != "" {
			t.Errorf("after b come %v, want c", ids(list))
		}
	})
}

// testSelection compares lists with a selection made in memory by the same query.
func testSelection(t *testing.T, s Subject) {
	all := population(rand.New(rand.NewPCG(1, 0)), 120)
	for _, r := range all {
		mustCreate(t, s, r)
	}
	slices.SortFunc(all, inListOrder)
	rapid.Check(t, func(rt *rapid.T) {
		q := anyQuery(all).Draw(rt, "query")
		var want []reservation.Reservation
		past := q.Marker == ""
		for _, r := range all {
			if past && selected(q, r) {
				want = append(want, r)
			}
			past = past || r.ID == q.Marker
		}
		if cut := len(want) - q.Limit; q.Limit > 0 && cut > 0 && q.Last {
			want = want[cut:]
		} else if q.Limit > 0 && cut > 0 {
			want = want[:q.Limit]
		}
		if d := diff(want, mustList(rt, s, q)); d != "" {
			rt.Errorf("%+v (-want +got):\n%s", q, d)
		}
	})
}

// population returns n reservations that have much in common.
func population(random *rand.Rand, n int) []reservation.Reservation {
	all := make([]reservation.Reservation, n)
	for i := range all {
		r := booked(fmt.Sprintf("%08x", random.Uint32()))
		r.ProjectID = []string{"demo", "Demo", "other"}[random.IntN(3)]
		r.Name = []string{"run", "RUN", "run "}[random.IntN(3)]
		r.Kind = reservation.HostKinds[random.IntN(len(reservation.HostKinds))]
		r.Status = reservation.Statuses[random.IntN(len(reservation.Statuses))]
		r.Span = span.New(span.Instant(random.IntN(20)), 1+random.Int64N(5))
		r.Claims[0].Host = r.ID
		r.Maintenance = random.IntN(4) == 0
		r.Occurrence.SeriesID = []string{"", "s-1", "s-2"}[random.IntN(3)]
		r.Membership.LeaseID = []string{"", "l-1", "l-2"}[random.IntN(3)]
		all[i] = r
	}
	return all
}

func anyQuery(all []reservation.Reservation) *rapid.Generator[reservation.Query] {
	return rapid.Custom(func(t *rapid.T) reservation.Query {
		q := reservation.Query{
			ProjectID: rapid.SampledFrom([]string{"", "demo", "other"}).Draw(t, "project"),
			Statuses:  rapid.SliceOfDistinct(rapid.SampledFrom(reservation.Statuses), rapid.ID[reservation.Status]).Draw(t, "statuses"),
			Name:      rapid.SampledFrom([]string{"", "run", "run "}).Draw(t, "name"),
			Kind:      rapid.SampledFrom([]reservation.Kind{"", reservation.Hosts, reservation.Instances}).Draw(t, "kind"),
			LeaseID:   rapid.SampledFrom([]string{"", "l-1", "L-1", "l-2"}).Draw(t, "lease"),
			SeriesID:  rapid.SampledFrom([]string{"", "", "s-1", "S-1", "s-2"}).Draw(t, "series"),
			Limit:     rapid.IntRange(0, 20).Draw(t, "limit"),

			Maintenance: rapid.SampledFrom([]*bool{nil, new(false), new(true)}).Draw(t, "maintenance"),
		}
		if rapid.Bool().Draw(t, "ids") {
			for _, r := range rapid.SliceOfN(rapid.SampledFrom(all), 1, 5).Draw(t, "those") {
				q.IDs = append(q.IDs, r.ID)
			}
			q.IDs = append(q.IDs, "unknown")
		}
		if rapid.Bool().Draw(t, "window") {
			q.Overlaps = span.New(span.Instant(rapid.IntRange(1, 25).Draw(t, "start")), rapid.Int64Range(1, 10).Draw(t, "seconds"))
		}
		if rapid.Bool().Draw(t, "next page") {
			listed := slices.DeleteFunc(slices.Clone(all), func(r reservation.Reservation) bool { return !selected(q, r) })
			if len(listed) > 0 {
				q.Marker = rapid.SampledFrom(listed).Draw(t, "marker").ID
			}
		} else {
			q.Last = rapid.Bool().Draw(t, "last")
		}
		return q
	})
}

func selected(q reservation.Query, r reservation.Reservation) bool {
	switch {
	case q.ProjectID != "" && q.ProjectID != r.ProjectID,
		q.SeriesID != "" && q.SeriesID != r.Occurrence.SeriesID,
		q.LeaseID != "" && q.LeaseID != r.Membership.LeaseID,
		len(q.IDs) > 0 && !slices.Contains(q.IDs, r.ID),
		q.Name != "" && q.Name != r.Name,
		q.Kind != "" && q.Kind != r.Kind,
		q.Maintenance != nil && *q.Maintenance != r.Maintenance,
		q.Overlaps != (span.Span{}) && !q.Overlaps.Overlaps(r.Span),
		len(q.Statuses) > 0 && !slices.Contains(q.Statuses, r.Status),
		len(q.Statuses) == 0 && r.Status == reservation.Canceled:
		return false
	}
	return true
}

func inListOrder(a, b reservation.Reservation) int {
	return cmp.Or(cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.ID, b.ID))
}

func testPaging(t *testing.T, s Subject) {
	random := rand.New(rand.NewPCG(2, 0))
	seen := make(map[string]int)
	var there []reservation.Reservation
	grow := func(n int) {
		for _, r := range population(random, n) {
			r.Status = reservation.Active
			mustCreate(t, s, r)
			there = append(there, r)
		}
	}
	grow(60)
	before := ids(there)
	for q := (reservation.Query{Limit: 7}); ; grow(3) {
		list := mustList(t, s, q)
		if len(list) == 0 {
			break
		}
		if len(there) > 10*len(before) {
			t.Fatal("the pages do not end")
		}
		for _, r := range list {
			seen[r.ID]++
		}
		q.Marker = list[len(list)-1].ID
	}
	for _, id := range before {
		if seen[id] == 0 {
			t.Errorf("%s was there all the time and came on no page", id)
		}
	}
	for id, times := range seen {
		if times > 1 {
			t.Errorf("%s came %d times", id, times)
		}
	}
}
