// SPDX-License-Identifier: Apache-2.0

package calendar_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

var roomy = resource.Vector{VCPUs: 8, MemoryMB: 16000, DiskGB: 160}

func cpus(n int64) resource.Vector { return resource.Vector{VCPUs: n} }

func TestBackToBackSlicesNeverAddUp(t *testing.T) {
	c := calendar.New([]resource.Vector{roomy}, 0)
	for i := range span.Instant(5) {
		if err := c.Add(calendar.Claim{Span: span.Span{Start: i * 100, End: (i + 1) * 100}, Slice: cpus(8)}); err != nil {
			t.Fatal(err)
		}
	}
	over := calendar.Claim{Span: span.Span{Start: 99, End: 100}, Slice: cpus(1)}
	if err := c.Add(over); err == nil {
		t.Error("a full host took one vCPU more")
	}
}

func TestASliceKeepsAWholeHostClaimOffAndTheOtherWayRound(t *testing.T) {
	c := calendar.New([]resource.Vector{roomy, roomy}, 0)
	half := calendar.Claim{Host: 0, Span: span.Span{Start: 0, End: 100}, Slice: cpus(4)}
	whole := calendar.Claim{Host: 1, Span: span.Span{Start: 0, End: 100}}
	if err := c.Add(half, whole); err != nil {
		t.Fatal(err)
	}
	if err := c.Add(calendar.Claim{Host: 0, Span: span.Span{Start: 99, End: 200}}); err == nil {
		t.Error("a whole-host claim overlaps a slice")
	}
	if err := c.Add(calendar.Claim{Host: 1, Span: span.Span{Start: 99, End: 200}, Slice: cpus(1)}); err == nil {
		t.Error("a slice overlaps a whole-host claim")
	}
	if err := c.Add(calendar.Claim{Host: 0, Span: span.Span{Start: 100, End: 200}}); err != nil {
		t.Errorf("back to back: %v", err)
	}
}

func TestAffinity(t *testing.T) {
	c := calendar.New([]resource.Vector{roomy, roomy, roomy}, 0)
	if err := c.Add(calendar.Claim{Host: 0, Span: span.Span{Start: 0, End: 100}, Slice: cpus(6)}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		affinity calendar.Affinity
		quantity int
		want     span.Instant
		wantNone bool
	}{
		"any hosts take what fits":              {calendar.AffinityNone, 9, 0, false},
		"any hosts wait for room":               {calendar.AffinityNone, 10, 100, false},
		"more than all hosts hold":              {calendar.AffinityNone, 13, 0, true},
		"one host takes four of two vCPUs":      {calendar.AffinitySame, 4, 0, false},
		"one host never takes five":             {calendar.AffinitySame, 5, 0, true},
		"three hosts take one each":             {calendar.AffinityDifferent, 3, 0, false},
		"four of different hosts are not there": {calendar.AffinityDifferent, 4, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			q := calendar.SliceQuery{
				Query: calendar.Query{Duration: 50, Deadline: 1000, Quantity: tc.quantity},
				Shape: cpus(2), Affinity: tc.affinity,
			}
			got, ok := c.EarliestSlices(q)
			if ok == tc.wantNone || got != tc.want {
				t.Errorf("start %d (found: %v), want %d (none: %v)", got, ok, tc.want, tc.wantNone)
			}
		})
	}
}

// The expected room is a count for each second.
func TestSlicesNeverExceedAHost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const hosts, horizon = 3, 30
		c := calendar.New([]resource.Vector{cpus(8), cpus(5), cpus(3)}, 0)
		capacity := []int64{8, 5, 3}
		var used [hosts][2 * horizon]int64
		var held []calendar.Claim
		count := func(claim calendar.Claim, sign int64) {
			amount := claim.Slice.VCPUs
			if claim.Whole() {
				amount = capacity[claim.Host]
			}
			for at := claim.Span.Start; at < claim.Span.End; at++ {
				used[claim.Host][at] += sign * amount
			}
		}
		room := func(host int, w span.Span) int64 {
			free := capacity[host]
			for at := w.Start; at < w.End; at++ {
				free = min(free, capacity[host]-used[host][at])
			}
			return free
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			if len(held) > 0 && rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				if err := c.Remove(held[i]); err != nil {
					t.Fatal(err)
				}
				count(held[i], -1)
				held = append(held[:i:i], held[i+1:]...)
				continue
			}
			start := span.Instant(rapid.IntRange(0, horizon).Draw(t, "start"))
			claim := calendar.Claim{
				Host:  rapid.IntRange(0, hosts-1).Draw(t, "host"),
				Span:  span.Span{Start: start, End: start + span.Instant(rapid.IntRange(1, 8).Draw(t, "length"))},
				Slice: cpus(rapid.Int64Range(0, 5).Draw(t, "vcpus")), // 0 is the whole host
			}
			want := room(claim.Host, claim.Span) >= claim.Slice.VCPUs
			if claim.Whole() {
				want = room(claim.Host, claim.Span) == capacity[claim.Host]
			}
			if err := c.Add(claim); (err == nil) != want {
				t.Fatalf("add %+v: %v, but there is room: %v", claim, err, want)
			}
			if want {
				held = append(held, claim)
				count(claim, 1)
			}
		}
		checkSlices(t, c, room, horizon)
	})
}

// checkSlices tries every start for a drawn query of slices.
func checkSlices(t *rapid.T, c *calendar.Calendar, room func(int, span.Span) int64, horizon int) {
	q := calendar.SliceQuery{
		Query: calendar.Query{
			Ready:    span.Instant(rapid.IntRange(0, horizon/2).Draw(t, "ready")),
			Duration: rapid.Int64Range(1, 6).Draw(t, "duration"),
			Quantity: rapid.IntRange(1, 9).Draw(t, "quantity"),
		},
		Shape:    cpus(rapid.Int64Range(1, 3).Draw(t, "shape")),
		Affinity: rapid.SampledFrom([]calendar.Affinity{calendar.AffinityNone, calendar.AffinitySame, calendar.AffinityDifferent}).Draw(t, "affinity"),
	}
	q.Deadline = q.Ready.Add(q.Duration) + span.Instant(rapid.IntRange(0, horizon/2).Draw(t, "slack"))
	const limit = 100
	most, first, found, feasible := 0, span.Instant(0), false, 0
	for start := q.Ready; start <= q.Deadline-span.Instant(q.Duration); start++ {
		sum, largest, hosts := 0, 0, 0
		for host := range c.Hosts() {
			n := int(room(host, span.New(start, q.Duration)) / q.Shape.VCPUs)
			sum, largest = sum+n, max(largest, n)
			if n > 0 {
				hosts++
			}
		}
		fit := map[calendar.Affinity]int{calendar.AffinityNone: sum, calendar.AffinitySame: largest, calendar.AffinityDifferent: hosts}[q.Affinity]
		most = max(most, fit)
		if fit >= q.Quantity {
			feasible++
			if !found {
				first, found = start, true
			}
		}
	}
	if got, ok := c.EarliestSlices(q); ok != found || got != first {
		t.Errorf("%+v: start %d (found: %v), want %d (%v)", q, got, ok, first, found)
	}
	if got := c.MostSlices(q, limit); got != most {
		t.Errorf("%+v: most %d, want %d", q, got, most)
	}
	inWindows := 0
	for _, w := range c.SliceWindows(q) {
		inWindows += int(w.LatestStart-w.Start) + 1
	}
	if inWindows != feasible {
		t.Errorf("%+v: windows hold %d starts, want %d", q, inWindows, feasible)
	}
}
