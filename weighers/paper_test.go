// SPDX-License-Identifier: Apache-2.0

package weighers_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/weighers"
)

const hour = 3600

type promises []reservation.Claim

func (p promises) Promised(t span.Instant) []reservation.Claim {
	return slices.DeleteFunc(slices.Clone(p), func(c reservation.Claim) bool { return c.Span.End <= t })
}

// revised is a Promises that reports its revision.
type revised struct {
	promises
	revision uint64
}

func (r *revised) Revision() uint64 { return r.revision }

// efficient returns a snapshot with the FLOPS per watt of the hosts.
func efficient(t testing.TB, flops map[string]float64) catalogue {
	t.Helper()
	var hosts []inventory.Host
	for name, f := range flops {
		hosts = append(hosts, inventory.Host{Name: name, FlopsPerWatt: f})
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return catalogue{snapshot}
}

type catalogue struct{ snapshot *inventory.Snapshot }

func (c catalogue) Snapshot() *inventory.Snapshot { return c.snapshot }

// chosen returns one weigher with its default multiplier.
func chosen(t testing.TB, name string, ports weighers.Ports) []weighers.Weighted {
	t.Helper()
	w, err := weighers.Choose([]string{name}, nil, ports)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func orderOf(w []weighers.Weighted, s *inventory.States, r *placing.Request) (names []string, equals int) {
	var ranking weighers.Ranking
	ranking.Rank(w, s, r, 0, everyPlace(s))
	for _, i := range ranking.Best(s.Len(), nil) {
		names = append(names, s.Host(i).Name)
	}
	return names, len(ranking.Equals())
}

// A004_9 is the acceptance check of paper 004's weighers.
func TestA004_9(t *testing.T) {
	s := states(t, []inventory.HostState{{Name: "A"}, {Name: "B"}, {Name: "C"}}, nil)
	freeTime := chosen(t, "FreeTimeWeigher", weighers.Ports{Promises: promises{
		{Host: "A", Span: span.New(2*hour, hour)}, {Host: "B", Span: span.New(5*hour, hour)},
	}})
	if got, _ := orderOf(freeTime, s, &placing.Request{}); !slices.Equal(got, []string{"C", "B", "A"}) {
		t.Errorf("by free time the order is %v, want C, B, A", got)
	}
	for name, r := range map[string]*placing.Request{
		"by its hint":   {Hints: map[string][]string{"reservation": {"r1"}}},
		"by its flavor": {ExtraSpecs: map[string]string{"almanac:reservation": "r1"}},
	} {
		if _, equals := orderOf(freeTime, s, r); equals != 3 {
			t.Errorf("for a request in a reservation, %s, %d hosts weigh the same, want all", name, equals)
		}
	}
	ranking := chosen(t, "KWRankingWeigher", weighers.Ports{Efficiencies: efficient(t, map[string]float64{"A": 100, "B": 250, "C": 180})})
	if got, _ := orderOf(ranking, s, &placing.Request{}); !slices.Equal(got, []string{"B", "C", "A"}) {
		t.Errorf("by FLOPS per watt the order is %v, want B, C, A", got)
	}
}

func TestFreeTimeIsAShareOfATimeWithoutEnd(t *testing.T) {
	s := states(t, []inventory.HostState{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}, nil)
	w := &weighers.FreeTimeWeigher{Promises: promises{
		{Host: "a", Span: span.Span{Start: -hour, End: hour}}, // promised now
		{Host: "b", Span: span.New(24*hour, hour)},
		{Host: "c", Span: span.New(3*24*hour, hour)},
		{Host: "gone", Span: span.New(0, hour)},
	}}
	raw := make([]float64, 4)
	w.Weigh(s, &placing.Request{}, 0, everyPlace(s), raw)
	if diff := cmp.Diff([]float64{0, 0.5, 0.75, 1}, raw); diff != "" {
		t.Error(diff)
	}
}

// A weigher that keeps its results between calls answers as a new weigher does.
func TestFreeTimeForgetsWhatIsNoLongerPromised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		var current revised
		kept := &weighers.FreeTimeWeigher{Promises: &current}
		var s *inventory.States
		for range rapid.IntRange(1, 10).Draw(t, "requests") {
			if s == nil || rapid.Bool().Draw(t, "other hosts") {
				var rows []inventory.HostState
				for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "hosts") {
					rows = append(rows, inventory.HostState{Name: name})
				}
				s = states(nilTB{}, rows, nil)
			}
			if rapid.Bool().Draw(t, "other promises") {
				current.promises = nil
				current.revision++
				for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "promised") {
					current.promises = append(current.promises, reservation.Claim{Host: name, Span: span.New(span.Instant(rapid.IntRange(0, 5).Draw(t, "start")), 2)})
				}
			}
			now := span.Instant(rapid.IntRange(0, 5).Draw(t, "now"))
			got, want := make([]float64, s.Len()), make([]float64, s.Len())
			kept.Weigh(s, &placing.Request{}, now, everyPlace(s), got)
			(&weighers.FreeTimeWeigher{Promises: current.promises}).Weigh(s, &placing.Request{}, now, everyPlace(s), want)
			if !slices.Equal(got, want) {
				t.Fatalf("the weigher returns %v, a new one %v", got, want)
			}
		}
	})
}

func TestAHostOfUnknownEfficiencyComesLast(t *testing.T) {
	s := states(t, []inventory.HostState{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}, nil)
	w := chosen(t, "KWRankingWeigher", weighers.Ports{Efficiencies: efficient(t, map[string]float64{"b": 100, "c": 50, "d": 0})})
	var ranking weighers.Ranking
	ranking.Rank(w, s, &placing.Request{}, 0, everyPlace(s))
	got := []float64{ranking.Weight(0), ranking.Weight(1), ranking.Weight(2), ranking.Weight(3)}
	if diff := cmp.Diff([]float64{0, 1, 0.5, 0}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEfficiencyIsThatOfTheSnapshotNow(t *testing.T) {
	s := states(t, []inventory.HostState{{Name: "a"}, {Name: "b"}}, nil)
	current := efficient(t, map[string]float64{"a": 1, "b": 2})
	w := chosen(t, "KWRankingWeigher", weighers.Ports{Efficiencies: &current})
	if got, _ := orderOf(w, s, &placing.Request{}); got[0] != "b" {
		t.Errorf("%s is first, want b", got[0])
	}
	current = efficient(t, map[string]float64{"a": 3, "b": 2})
	if got, _ := orderOf(w, s, &placing.Request{}); got[0] != "a" {
		t.Errorf("after a change %s is first, want a", got[0])
	}
	more := states(t, []inventory.HostState{{Name: "0"}, {Name: "a"}, {Name: "b"}}, nil)
	if got, _ := orderOf(w, more, &placing.Request{}); got[0] != "a" {
		t.Errorf("with another host %s is first, want a", got[0])
	}
}

// The rule holds whatever weights Nova's weighers and KWRanking add.
func TestAHostPromisedWithinADayIsTakenLast(t *testing.T) {
	idle := map[string]inventory.Stock{"VCPU": {Total: 8, Ratio: 1}, "MEMORY_MB": {Total: 8, Ratio: 1}, "DISK_GB": {Total: 8, Ratio: 1}}
	busy := map[string]inventory.Stock{"VCPU": {Total: 8, Ratio: 1, Used: 8}, "MEMORY_MB": {Total: 8, Ratio: 1, Used: 8}, "DISK_GB": {Total: 8, Ratio: 1, Used: 8}}
	s := states(t, []inventory.HostState{{Name: "busy", Stocks: busy, IOOps: 9}, {Name: "promised", Stocks: idle}}, nil)
	for start, want := range map[span.Instant]string{hour: "busy", 23 * hour: "busy", 30 * hour: "promised"} {
		w := chosen(t, weighers.AllWeighers, weighers.Ports{
			Promises:     promises{{Host: "promised", Span: span.New(start, hour)}},
			Efficiencies: efficient(t, map[string]float64{"promised": 100, "busy": 0}),
		})
		if got, _ := orderOf(w, s, &placing.Request{}); got[0] != want {
			t.Errorf("with a claim from %d on %s is first, want %s", start, got[0], want)
		}
	}
}
