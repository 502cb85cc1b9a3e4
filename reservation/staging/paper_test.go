// SPDX-License-Identifier: Apache-2.0

package staging_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// The images of the paper's checks take 48 s each through the single channel.
const (
	size = 600_000_000
	rate = 12_500_000
)

func image(id string) staging.Image { return staging.Image{ID: id, Size: size} }

func channel(strategy staging.Strategy) staging.Site {
	return staging.Site{Strategy: strategy, Repositories: []staging.Repository{{Name: "glance", Rate: rate}}}
}

// due returns transfers with those deadlines, in this order, each to its own node.
func due(named ...any) (list []staging.Transfer) {
	for i := 0; i < len(named); i += 2 {
		id := named[i].(string)
		list = append(list, staging.Transfer{
			ID: id, Image: image(id), Node: "N" + id, Deadline: span.Instant(named[i+1].(int)), Entered: int64(i), Expire: 10_000,
		})
	}
	return list
}

// spans formats transfers as "id[start,end)", in their order.
func spans(list []staging.Transfer) (s []string) {
	for _, t := range list {
		s = append(s, fmt.Sprintf("%s[%d,%d)", t.ID, t.Start, t.End))
	}
	return s
}

func wants(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestA000_2(t *testing.T) {
	pending := staging.State{Transfers: due("a", 100, "b", 200, "c", 150)}
	edf, late := pending.Schedule(channel(staging.EDF), 0)
	wants(t, "EDF", spans(edf), "a[0,48)", "c[48,96)", "b[96,144)")
	wants(t, "late", spans(late))
	jit, _ := pending.Schedule(channel(staging.JIT), 0)
	wants(t, "JIT", spans(jit), "a[52,100)", "c[102,150)", "b[152,200)")
}

func TestA000_3(t *testing.T) {
	pending := staging.State{Transfers: due("a", 100, "b", 200, "c", 150, "d", 140)}
	edf, _ := pending.Schedule(channel(staging.EDF), 0)
	wants(t, "EDF", spans(edf), "a[0,48)", "d[48,96)", "c[96,144)", "b[144,192)")
	jit, _ := pending.Schedule(channel(staging.JIT), 0)
	wants(t, "JIT", spans(jit), "a[6,54)", "d[54,102)", "c[102,150)", "b[152,200)")

	for _, strategy := range staging.Strategies {
		site := channel(strategy)
		e := staging.Demand{ID: "e", Image: image("e"), Nodes: []string{"Ne"}, Span: span.New(150, 100)}
		after, err := pending.Admit(site, 0, e)
		if refusal := refused(t, err); refusal.Reason != staging.NoTransfer || refusal.Earliest != 240 {
			t.Errorf("e by 150: %+v", *refusal)
		}
		if diff := cmp.Diff(pending.Transfers, after.Transfers); diff != "" {
			t.Errorf("e by 150 has changed (-want +got):\n%s", diff)
		}
		e.Span = span.New(240, 100)
		after, err = pending.Admit(site, 0, e)
		if err != nil {
			t.Fatal(err)
		}
		all, _ := after.Schedule(site, 0)
		wants(t, string(strategy), spans(all), "a[0,48)", "d[48,96)", "c[96,144)", "b[144,192)", "e/Ne[192,240)")
	}
}

func refused(t testing.TB, err error) *staging.Refusal {
	t.Helper()
	refusal, ok := err.(*staging.Refusal)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	return refusal
}

func TestA000_4(t *testing.T) {
	pending := staging.State{Transfers: due("a", 100, "b", 200, "c", 150, "d", 140)}
	all, late := pending.Schedule(channel(staging.EDF), 6)
	wants(t, "at 6", spans(all), "a[6,54)", "d[54,102)", "c[102,150)", "b[150,198)")
	wants(t, "late at 6", spans(late))
	_, late = pending.Schedule(channel(staging.EDF), 7)
	wants(t, "late at 7", spans(late), "c[103,151)")
}

// use returns a demand for the image A on N1.
func use(id string, start, end span.Instant) staging.Demand {
	return staging.Demand{ID: id, Image: image("A"), Nodes: []string{"N1"}, Span: span.Span{Start: start, End: end}}
}

func admit(t testing.TB, s staging.State, site staging.Site, now span.Instant, d staging.Demand) staging.State {
	t.Helper()
	next, err := s.Admit(site, now, d)
	if err != nil {
		t.Fatalf("%s: %v", d.ID, err)
	}
	return next
}

func TestA000_5(t *testing.T) {
	site := channel(staging.EDF)
	s := admit(t, staging.State{}, site, 0, use("VW1", 100, 200)).Advance(site, 120)
	expires := func(want span.Instant) {
		t.Helper()
		if got := s.Pools["N1"][0].Expire; got != want || len(s.Transfers) != 0 {
			t.Errorf("A expires at %d, want %d; %d transfers are pending", got, want, len(s.Transfers))
		}
	}
	expires(200)
	for _, step := range []struct {
		id                 string
		start, end, expire span.Instant
	}{{"VW2", 150, 300, 300}, {"VW3", 250, 280, 300}, {"VW4", 300, 310, 310}} {
		s = admit(t, s, site, 120, use(step.id, step.start, step.end))
		expires(step.expire)
	}
	if s.Nodes("A", 311)["N1"] {
		t.Error("A is in the pool at 311, but it has expired")
	}
	s = admit(t, s, site, 120, use("VW5", 311, 320))
	if len(s.Transfers) != 1 || s.Transfers[0].Deadline != 311 {
		t.Errorf("VW5 needs its own transfer, pending: %+v", s.Transfers)
	}
}

func TestA000_6(t *testing.T) {
	site := channel(staging.EDF)
	first := admit(t, staging.State{}, site, 0, use("VW1", 100, 200))
	s := admit(t, first, site, 0, use("VW2", 500, 600))
	if len(s.Transfers) != 1 {
		t.Fatalf("VW2 makes %d transfers out of one", len(s.Transfers))
	}
	if done := s.Advance(site, 48); len(done.Transfers) != 0 || done.Pools["N1"][0].Expire != 600 {
		t.Errorf("after the transfer the pool has %+v, want A until 600", done.Pools["N1"])
	}
	s = admit(t, first, site, 0, use("VW2'", 90, 100))
	if len(s.Transfers) != 2 || s.Transfers[1].Deadline != 90 {
		t.Errorf("VW2' before VW1 needs a transfer by 90, there are %+v", s.Transfers)
	}
}

func TestA000_7(t *testing.T) {
	a := image("A")
	for _, tc := range []struct {
		avoid     bool
		at        span.Instant
		transfers int
	}{{true, 48, 1}, {false, 96, 2}} {
		q := staging.Queue{Rate: rate, Avoid: tc.avoid}
		at, fresh := q.Ready(0, "N1", a)
		if at != 48 || fresh == nil {
			t.Fatalf("VM1 has its image at %d by %+v", at, fresh)
		}
		q = q.With(*fresh)
		at, fresh = q.Ready(10, "N1", a)
		if fresh != nil {
			q = q.With(*fresh)
		}
		if at != tc.at || len(q.Transfers) != tc.transfers {
			t.Errorf("avoid %v: VM2 has its image at %d after %d transfers, want %d after %d", tc.avoid, at, len(q.Transfers), tc.at, tc.transfers)
		}
	}
}

func TestA000_9(t *testing.T) {
	site := channel(staging.EDF)
	_, err := staging.State{}.Admit(site, 0, use("VW1", 40, 100))
	if refusal := refused(t, err); refusal.Reason != staging.NoTransfer || refusal.Node != "N1" || refusal.Earliest != 48 {
		t.Errorf("an image that takes 48 s by 40: %+v", refusal)
	}
	pool := map[string][]staging.Entry{"N1": {{Image: image("A"), Expire: 40}}}
	s := admit(t, staging.State{Pools: pool}, site, 0, use("VW1", 40, 100))
	if len(s.Transfers) != 0 || s.Pools["N1"][0].Expire != 100 || pool["N1"][0].Expire != 40 {
		t.Errorf("with the image in the pool until 40: %+v; before that %+v", s, pool)
	}
}
