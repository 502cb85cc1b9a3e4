// SPDX-License-Identifier: Apache-2.0

package staging_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// drawFacts returns facts of a site with one channel, mostly without limits on pools.
func drawFacts(t *rapid.T, images []staging.Image, now span.Instant) *staging.Facts {
	f := &staging.Facts{
		Site: staging.Site{
			Strategy:     rapid.SampledFrom(staging.Strategies).Draw(t, "strategy"),
			Repositories: []staging.Repository{{Name: "r", Rate: rapid.SampledFrom([]float64{0, 0.5, 1, 2}).Draw(t, "rate")}},
			Margin:       rapid.SampledFrom([]int64{0, 0, 3}).Draw(t, "margin"),
			Lifetime:     rapid.SampledFrom([]int64{0, 40, 100, 100}).Draw(t, "lifetime"),
			Limit:        rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 0, 40}).Draw(t, "limit"),
		},
		Pools: map[string][]staging.Entry{},
	}
	if rapid.Bool().Draw(t, "links") {
		f.Site.Links = map[string]float64{"n0": 0.7, "n1": 1}
	}
	around := func(name string) span.Instant {
		return now + span.Instant(rapid.Int64Range(-40, 60).Draw(t, name))
	}
	for range rapid.IntRange(0, 3).Draw(t, "entries") {
		node := drawNode(t)
		f.Pools[node] = append(f.Pools[node], staging.Entry{Image: rapid.SampledFrom(images).Draw(t, "pooled"), From: around("from"), Expire: around("expire")})
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "running") {
		node, start := drawNode(t), min(around("begun"), now+span.Instant(rapid.Int64Range(-5, 1).Draw(t, "just begun")))
		id := fmt.Sprint("x", i)
		if rapid.Bool().Draw(t, "named") {
			name := fmt.Sprintf("d%d/%s", rapid.IntRange(0, 5).Draw(t, "of"), node)
			if !slices.ContainsFunc(f.Running, func(r staging.Transfer) bool { return r.ID == name }) {
				id = name // each transfer has its own id
			}
		}
		f.Running = append(f.Running, staging.Transfer{
			ID: id, Image: rapid.SampledFrom(images).Draw(t, "running image"), Node: node, Repository: "r",
			Seconds: 20, Deadline: around("deadline"), Entered: int64(i), Started: rapid.IntRange(0, 4).Draw(t, "started") > 0,
			Start: start, End: start + 20, Expire: around("expire of running") + 100,
		})
	}
	return f
}

func drawNode(t *rapid.T) string { return fmt.Sprint("n", rapid.IntRange(0, 2).Draw(t, "node")) }

// drawDemand returns a demand that begins around now or, mostly, later.
func drawDemand(t *rapid.T, id string, images []staging.Image, now span.Instant) staging.Demand {
	start := now + span.Instant(rapid.Int64Range(-20, 250).Draw(t, "ahead"))
	if rapid.IntRange(0, 6).Draw(t, "soon") == 0 {
		start = now + span.Instant(rapid.Int64Range(0, 20).Draw(t, "soon ahead"))
	}
	d := staging.Demand{ID: id, Image: rapid.SampledFrom(images).Draw(t, "image"), Span: span.New(start, rapid.Int64Range(1, 100).Draw(t, "length"))}
	for n := range 3 {
		if rapid.Bool().Draw(t, "on") {
			d.Nodes = append(d.Nodes, fmt.Sprint("n", n))
		}
	}
	return d
}

// A site with one channel decides from what a demand changes. The oracle lays out everything for each
// decision. Some demands have the id of another, as a reservation has that is being changed.
func TestWhatADemandChangesDecidesLikeALayoutOfEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const now = 100
		images := make([]staging.Image, 3)
		for i := range images {
			images[i] = staging.Image{ID: fmt.Sprint("i", i), Size: rapid.Int64Range(0, 25).Draw(t, "size")}
			if rapid.IntRange(0, 9).Draw(t, "elsewhere") == 0 {
				images[i].Repositories = []string{"elsewhere"}
			}
		}
		f := drawFacts(t, images, now)
		var live []staging.Demand
		for i := range rapid.IntRange(0, 14).Draw(t, "demands") {
			if rapid.IntRange(0, 7).Draw(t, "twice") == 0 {
				i = max(i-1, 0)
			}
			d := drawDemand(t, fmt.Sprint("d", i), images, now)
			d.Joining = rapid.IntRange(0, 5).Draw(t, "joins") == 0
			live = append(live, d)
		}
		// What was computed earlier serves later too.
		accepted := f.Accepted(now-span.Instant(rapid.Int64Range(0, 30).Draw(t, "earlier")), live).At(now)
		quick, slow := accepted.Admission(), f.SlowAdmission(now, live)
		for range 4 {
			d := drawDemand(t, rapid.SampledFrom([]string{"request", "request", "request", "d1"}).Draw(t, "id"), images, now)
			if got, want := quick.Allows(d), slow.Allows(d); got != want {
				t.Fatalf("%+v is allowed: %v, want %v", d, got, want)
			}
			got, gotErr := quick.Admit(d)
			want, wantErr := slow.Admit(d)
			if diff := cmp.Diff(wantErr, gotErr); diff != "" {
				t.Fatalf("%+v: the refusal (-want +got):\n%s", d, diff)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%+v: the state (-want +got):\n%s", d, diff)
			}
		}
		if diff := cmp.Diff(f.State(now, live), accepted.Before()); diff != "" {
			t.Fatalf("decisions changed the state (-want +got):\n%s", diff)
		}
	})
}
