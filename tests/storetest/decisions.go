// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func testDecisions(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("what is kept is read back exactly", func(t *testing.T) { testKept(t, open(t)) })
	t.Run("the newest comes first and the oldest are left out", func(t *testing.T) { testNewest(t, open(t)) })
	t.Run("a decision is kept once", func(t *testing.T) { testKeptOnce(t, open(t)) })
	t.Run("a text too long for its column is cut", func(t *testing.T) { testUnfit(t, open(t)) })
	t.Run("many are kept at once", func(t *testing.T) { testManyDecisions(t, open(t)) })
	t.Run("decisions are purged by age", func(t *testing.T) { testPurgedDecisions(t, open(t)) })
}

// keep stores decisions.
func keep(t *testing.T, s decisions, list ...placing.Decision) {
	t.Helper()
	if err := s.KeepDecisions(t.Context(), list); err != nil {
		t.Fatalf("keep %d decisions: %v", len(list), err)
	}
}

// wantDecisions fails unless the stored decisions about an instance or a request are the wanted
// ones.
func wantDecisions(t reporter, s decisions, id string, want ...placing.Decision) {
	t.Helper()
	got, err := s.Decisions(t.Context(), id)
	if err != nil {
		t.Fatalf("decisions about %q: %v", id, err)
	}
	if d := diff(want, got); d != "" {
		t.Errorf("decisions about %q (-want +got):\n%s", id, d)
	}
}

func testKept(t *testing.T, subject Subject) {
	s, id := offered[decisions](t, subject), numbered("id")
	rapid.Check(t, func(rt *rapid.T) {
		list := make([]placing.Decision, rapid.IntRange(0, 3).Draw(rt, "decisions"))
		for i := range list {
			list[i] = anyDecision(id).Draw(rt, "decision")
		}
		if err := s.KeepDecisions(rt.Context(), list); err != nil {
			rt.Fatalf("keep: %v", err)
		}
		for _, d := range list {
			for _, id := range append(d.Instances, d.RequestID) {
				wantDecisions(rt, s, id, d)
			}
		}
		wantDecisions(rt, s, id())
	})
}

func testNewest(t *testing.T, subject Subject) {
	const most = 100
	s := offered[decisions](t, subject)
	var list []placing.Decision
	for i := range most + 20 {
		list = append(list, placing.Decision{RequestID: fmt.Sprint("req-", i), Instances: []string{"i", "j"}, At: span.Instant(i / 2), Took: int64(i)})
	}
	keep(t, s, list[most:]...)
	keep(t, s, list[:most]...)
	wantDecisions(t, s, "req-7", list[7])
	want := slices.Clone(list[20:])
	slices.Reverse(want)
	wantDecisions(t, s, "i", want...)
	wantDecisions(t, s, "j", want...)
	wantDecisions(t, s, "I")
}

func testKeptOnce(t *testing.T, subject Subject) {
	s := offered[decisions](t, subject)
	one := placing.Decision{RequestID: "req-1", Instances: []string{"i"}, At: 7, Took: 1000, Ranked: []placing.RankedHost{{Host: "a", Parts: map[string]float64{"x": 1, "y": 2}}}}
	other := one
	other.Took++
	keep(t, s, one, one)
	keep(t, s, one, other)
	wantDecisions(t, s, "i", other, one)
	wantDecisions(t, s, "req-1", other, one)
}

func testUnfit(t *testing.T, subject Subject) {
	s := offered[decisions](t, subject)
	keep(t, s, placing.Decision{
		RequestID: "req-1", ProjectID: strings.Repeat("ä", 300), Reservation: "\xff", HandledBy: placing.Replaced, Instances: []string{"", "i", strings.Repeat("j", 300)},
		Ranked: []placing.RankedHost{{Host: "a", Weight: math.Inf(1), Parts: map[string]float64{"x": math.NaN(), "y": math.Inf(-1)}}},
	}, placing.Decision{Instances: []string{"i"}, At: 1, Reason: strings.Repeat("no ", 1<<19)})
	wantDecisions(t, s, "")
	wantDecisions(t, s, "i", placing.Decision{Instances: []string{"i"}, At: 1, Reason: strings.Repeat("no ", 1<<19)}, placing.Decision{
		RequestID: "req-1", ProjectID: strings.Repeat("ä", 255), Reservation: "\uFFFD", HandledBy: placing.Replaced, Instances: []string{"", "i", strings.Repeat("j", 300)},
		Ranked: []placing.RankedHost{{Host: "a", Weight: math.MaxFloat64, Parts: map[string]float64{"x": 0, "y": -math.MaxFloat64}}},
	})
}

func testManyDecisions(t *testing.T, subject Subject) {
	s := offered[decisions](t, subject)
	list := make([]placing.Decision, 1100)
	for i := range list {
		list[i] = placing.Decision{RequestID: "req-1", At: span.Instant(i), Instances: []string{fmt.Sprint(i), fmt.Sprint(i, "b")}}
	}
	keep(t, s, list...)
	wantDecisions(t, s, "0b", list[0])
	wantDecisions(t, s, "1099", list[1099])
}

// testKeptTogether makes workers, spread over the stores, store decisions of their own and one that
// all store, while old ones are purged. All must be stored, once.
func testKeptTogether(t *testing.T, subjects ...Subject) {
	common := placing.Decision{RequestID: "req-common", Instances: []string{"i"}, At: 200}
	var wg sync.WaitGroup
	for worker := range workers {
		s := offered[decisions](t, subjects[worker%len(subjects)])
		wg.Go(func() {
			for round := range rounds {
				list := []placing.Decision{common, {RequestID: fmt.Sprint("req-", worker), Instances: []string{"j"}, At: span.Instant(100 + round)}, {Took: int64(worker)}}
				if err := s.KeepDecisions(t.Context(), list); err != nil {
					t.Error(err)
				}
				if _, err := s.PurgeDecisions(t.Context(), job.Lease{}, 100); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := offered[decisions](t, subjects[0])
	wantDecisions(t, s, "i", common)
	for worker := range workers {
		found, err := s.Decisions(t.Context(), fmt.Sprint("req-", worker))
		if len(found) != rounds || err != nil || found[0].At != 100+rounds-1 {
			t.Errorf("worker %d has kept %d decisions, want %d: %v", worker, len(found), rounds, err)
		}
	}
}

func testPurgedDecisions(t *testing.T, subject Subject) {
	s := offered[decisions](t, subject)
	var old []placing.Decision
	for range 1000 {
		old = append(old, placing.Decision{RequestID: "req-old", Took: int64(len(old)), Instances: []string{"i"}, At: 99})
	}
	young := placing.Decision{RequestID: "req-young", Instances: []string{"i"}, At: 100}
	keep(t, s, append(old, young)...)
	for _, want := range []int{1000, 0} {
		if n, err := s.PurgeDecisions(t.Context(), job.Lease{}, 100); n != want || err != nil {
			t.Fatalf("purged %d (%v), want %d", n, err, want)
		}
	}
	wantDecisions(t, s, "req-old")
	wantDecisions(t, s, "i", young)
}

func anyDecision(id func() string) *rapid.Generator[placing.Decision] {
	hosts := rapid.SliceOfN(name(), 0, 3)
	return rapid.Custom(func(t *rapid.T) placing.Decision {
		d := placing.Decision{
			RequestID: id(), ProjectID: name().Draw(t, "project"), Reservation: name().Draw(t, "reservation"),
			HandledBy: rapid.SampledFrom([]string{placing.Interposed, placing.Replaced, placing.PassedOn}).Draw(t, "way"),
			At:        anyInstant().Draw(t, "at"), Took: rapid.Int64().Draw(t, "took"),
			Reason: rapid.String().Draw(t, "reason"), Considered: rapid.Int().Draw(t, "considered"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "instances") {
			d.Instances = append(d.Instances, id())
			d.Placements = append(d.Placements, placing.Placement{
				Instance: d.Instances[0], Host: name().Draw(t, "host"), Node: name().Draw(t, "node"), Alternates: hosts.Draw(t, "alternates"),
			})
		}
		for range rapid.IntRange(0, 3).Draw(t, "filters") {
			d.Filters = append(d.Filters, placing.FilterCount{Filter: name().Draw(t, "filter"), Left: rapid.Int().Draw(t, "left")})
			d.Refused = append(d.Refused, placing.RefusedHost{Host: name().Draw(t, "host"), Filter: name().Draw(t, "filter"), Reason: rapid.String().Draw(t, "reason")})
			d.Ranked = append(d.Ranked, placing.RankedHost{
				Host: name().Draw(t, "host"), Weight: rapid.Float64().Draw(t, "weight"), Parts: rapid.MapOfN(name(), rapid.Float64(), 0, 3).Draw(t, "parts"),
			})
		}
		return d
	})
}
