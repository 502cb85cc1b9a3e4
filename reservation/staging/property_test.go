// SPDX-License-Identifier: Apache-2.0

package staging_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// world is a random site with demands that arrive one after the other.
type world struct {
	site     staging.Site
	state    staging.State
	admitted []staging.Demand
	demands  []staging.Demand
	arrivals []span.Instant
}

func drawWorld(t *rapid.T) *world {
	w := &world{site: staging.Site{
		Strategy: rapid.SampledFrom(staging.Strategies).Draw(t, "strategy"),
		Limit:    rapid.SampledFrom([]int64{0, 0, 30, 50, 100}).Draw(t, "limit"),
		Margin:   rapid.SampledFrom([]int64{0, 0, 3}).Draw(t, "margin"),
	}}
	for i := range rapid.IntRange(1, 3).Draw(t, "repositories") {
		w.site.Repositories = append(w.site.Repositories, staging.Repository{
			Name: fmt.Sprint("r", i), Rate: rapid.SampledFrom([]float64{0.5, 1, 2}).Draw(t, "rate"),
		})
	}
	if rapid.Bool().Draw(t, "links") {
		w.site.Links = map[string]float64{"n0": 0.7, "n1": 1}
	}
	images := make([]staging.Image, 4)
	for i := range images {
		images[i] = staging.Image{ID: fmt.Sprint("i", i), Size: rapid.Int64Range(0, 30).Draw(t, "size")}
		if n := len(w.site.Repositories); n > 1 && rapid.Bool().Draw(t, "in one") {
			images[i].Repositories = []string{fmt.Sprint("r", rapid.IntRange(0, n-1).Draw(t, "which"))}
		}
	}
	w.state.Pools = map[string][]staging.Entry{}
	if rapid.Bool().Draw(t, "pools") {
		w.state.Pools["n0"] = []staging.Entry{{Image: images[0], Expire: span.Instant(rapid.Int64Range(1, 200).Draw(t, "expire"))}}
	}
	now := span.Instant(0)
	for i := range rapid.IntRange(1, 12).Draw(t, "demands") {
		now += span.Instant(rapid.Int64Range(0, 20).Draw(t, "pause"))
		start := now + span.Instant(rapid.Int64Range(0, 150).Draw(t, "ahead"))
		d := staging.Demand{ID: fmt.Sprint("d", i), Image: rapid.SampledFrom(images).Draw(t, "image"), Span: span.New(start, rapid.Int64Range(1, 100).Draw(t, "length"))}
		for n := range 3 {
			if rapid.Bool().Draw(t, "on") {
				d.Nodes = append(d.Nodes, fmt.Sprint("n", n))
			}
		}
		w.demands, w.arrivals = append(w.demands, d), append(w.arrivals, now)
	}
	return w
}

// clone returns a copy that shares no data with s.
func clone(s staging.State) staging.State {
	s.Transfers = slices.Clone(s.Transfers)
	pools := map[string][]staging.Entry{}
	for node, entries := range s.Pools {
		pools[node] = slices.Clone(entries)
	}
	s.Pools = pools
	return s
}

// run lets the demands arrive, records which are admitted, and calls look after each.
func (w *world) run(t *rapid.T, look func(before, after staging.State, d staging.Demand, err error)) {
	for i, d := range w.demands {
		now := w.arrivals[i]
		w.state = w.state.Advance(w.site, now)
		kept := clone(w.state)
		after, err := w.state.Admit(w.site, now, d)
		if !reflect.DeepEqual(kept, clone(w.state)) {
			t.Fatalf("%s changed the state it came to\nfrom %+v\nto   %+v", d.ID, kept, w.state)
		}
		look(w.state, after, d, err)
		if err == nil {
			w.admitted = append(w.admitted, d)
		}
		w.state = after
	}
}

// end is an instant after the end of everything.
const end = span.Instant(1000)

func TestEveryAdmittedDemandHasItsImagesThroughoutItsSpan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		s := newHistory(w)
		w.run(t, func(_, after staging.State, _ staging.Demand, _ error) { s.see(t, after) })
		for now := w.state.At; now <= end; now += 7 {
			w.state = w.state.Advance(w.site, now)
			s.see(t, w.state)
		}
		for _, d := range w.admitted {
			for _, node := range d.Nodes {
				for at := d.Span.Start; at < d.Span.End; at++ {
					if !s.has(node, d.Image.ID, at) {
						t.Fatalf("%s: %s has no %s at %d", d.ID, node, d.Image.ID, at)
					}
				}
			}
		}
		s.checkSpace(t)
		s.checkChannels(t)
	})
}

// history records entries and transfers under way second by second. It is an oracle without
// any knowledge of schedules.
type history struct {
	site    staging.Site
	there   map[string]map[span.Instant]map[string]int64 // image and size by node and second
	running map[string]staging.Transfer                  // the last record of each
}

func newHistory(w *world) *history {
	h := &history{site: w.site, there: map[string]map[span.Instant]map[string]int64{}, running: map[string]staging.Transfer{}}
	return h
}

// see records the present and the promised future at the state's instant.
func (h *history) see(t *rapid.T, s staging.State) {
	for node, seconds := range h.there { // the future may have changed
		for at := range seconds {
			if at >= s.At {
				delete(h.there[node], at)
			}
		}
	}
	note := func(node string, i staging.Image, from, until span.Instant) {
		if h.there[node] == nil {
			h.there[node] = map[span.Instant]map[string]int64{}
		}
		for at := max(from, s.At); at < min(until, end); at++ {
			if h.there[node][at] == nil {
				h.there[node][at] = map[string]int64{}
			}
			h.there[node][at][i.ID] = i.Size
		}
	}
	for node, entries := range s.Pools {
		for _, e := range entries {
			note(node, e.Image, e.From, e.Expire)
		}
	}
	all, late := s.Schedule(h.site, s.At)
	if len(late) > 0 {
		t.Fatalf("at %d these are late: %+v", s.At, late)
	}
	for _, tr := range all {
		if tr.Started {
			h.running[tr.ID] = tr
		}
		note(tr.Node, tr.Image, tr.End, tr.Expire)
		h.space(tr, note)
	}
}

// space marks the time of the transfer itself, while the image occupies space but cannot be
// used.
func (h *history) space(tr staging.Transfer, note func(string, staging.Image, span.Instant, span.Instant)) {
	coming := tr.Image
	coming.ID = "coming " + tr.Image.ID
	note(tr.Node, coming, tr.Start, min(tr.End, tr.Expire))
}

func (h *history) has(node, image string, at span.Instant) bool {
	_, ok := h.there[node][at][image]
	return ok
}

func (h *history) checkSpace(t *rapid.T) {
	for node, seconds := range h.there {
		for at, images := range seconds {
			sum := int64(0)
			for id, size := range images {
				if _, there := images["coming "+id]; !there {
					sum += size
				}
			}
			if h.site.Limit > 0 && sum > h.site.Limit {
				t.Fatalf("the pool of %s has %d of %d at %d: %v", node, sum, h.site.Limit, at, images)
			}
		}
	}
}

func (h *history) checkChannels(t *rapid.T) {
	for _, a := range h.running {
		for _, b := range h.running {
			if a.ID >= b.ID || !(span.Span{Start: a.Start, End: a.End}).Overlaps(span.Span{Start: b.Start, End: b.End}) || a.Start == a.End || b.Start == b.End {
				continue
			}
			if a.Repository == b.Repository || a.Node == b.Node && h.site.Links[a.Node] > 0 {
				t.Fatalf("two at once:\n%+v\n%+v", a, b)
			}
		}
	}
}

func TestARefusedDemandLeavesTheStateAndItsEarliestStartIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.run(t, func(before, after staging.State, d staging.Demand, err error) {
			if err == nil {
				return
			}
			if !reflect.DeepEqual(clone(before), clone(after)) {
				t.Fatalf("%s was refused, but changed\n%+v\nto\n%+v", d.ID, before, after)
			}
			refusal, ok := errors.AsType[*staging.Refusal](err)
			if !ok || refusal.Message == "" || !slices.Contains(d.Nodes, refusal.Node) && refusal.Reason == staging.NoPool && w.site.Limit == 0 {
				t.Fatalf("refused with %#v", err)
			}
			if refusal.Earliest == 0 {
				if w.site.Limit == 0 {
					t.Fatalf("%s fits after all others: %+v", d.ID, refusal)
				}
				return
			}
			d.Span = span.New(refusal.Earliest, d.Span.Seconds())
			if _, err := before.Admit(w.site, before.At, d); err != nil {
				t.Fatalf("at its earliest start, %d: %v", refusal.Earliest, err)
			}
		})
	})
}

func TestOnOneChannelNoStartBeforeTheEarliestIsAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.site.Repositories, w.site.Links, w.site.Limit = w.site.Repositories[:1], nil, 0
		for i := range w.demands {
			w.demands[i].Image.Repositories = nil
		}
		w.run(t, func(before, _ staging.State, d staging.Demand, err error) {
			refusal, ok := errors.AsType[*staging.Refusal](err)
			if !ok {
				return
			}
			last := refusal.Earliest
			if last == 0 {
				last = d.Span.Start + 300
			}
			for start := d.Span.Start + 1; start < last; start++ {
				earlier := d
				earlier.Span = span.New(start, d.Span.Seconds())
				if _, err := before.Admit(w.site, before.At, earlier); err == nil {
					t.Fatalf("%s would be accepted at %d, before the earliest start %d", d.ID, start, refusal.Earliest)
				}
			}
		})
	})
}

func TestTimeoutsNeverShrink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.run(t, func(before, after staging.State, d staging.Demand, _ error) {
			for node, entries := range before.Pools {
				for i, e := range entries {
					if after.Pools[node][i].Expire < e.Expire {
						t.Fatalf("%s shortens %s on %s", d.ID, e.Image.ID, node)
					}
				}
			}
			for i, tr := range before.Transfers {
				if after.Transfers[i].Expire < tr.Expire || after.Transfers[i].Deadline != tr.Deadline {
					t.Fatalf("%s shortens or moves %s", d.ID, tr.ID)
				}
			}
		})
	})
}

func TestReuseNeverTransfersMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.run(t, func(before, after staging.State, d staging.Demand, err error) {
			if fresh := len(after.Transfers) - len(before.Transfers); err == nil && fresh > len(d.Nodes) {
				t.Fatalf("%s makes %d transfers for %d nodes", d.ID, fresh, len(d.Nodes))
			}
		})
	})
}

func TestEDFAndJITAcceptTheSameWhenAllIsKnownAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		edf, jit := w.site, w.site
		edf.Strategy, jit.Strategy = staging.EDF, staging.JIT
		s := w.state
		for _, d := range w.demands {
			a, errEDF := s.Admit(edf, 0, d)
			b, errJIT := s.Admit(jit, 0, d)
			if (errEDF == nil) != (errJIT == nil) || !reflect.DeepEqual(a, b) {
				t.Fatalf("%s: EDF %v, JIT %v", d.ID, errEDF, errJIT)
			}
			s = a
		}
		early, _ := s.Schedule(edf, 0)
		late, _ := s.Schedule(jit, 0)
		if w.site.Limit > 0 || len(w.site.Links) > 0 || len(w.site.Repositories) > 1 {
			return // each may use another repository
		}
		for _, e := range early {
			l := late[slices.IndexFunc(late, func(l staging.Transfer) bool { return l.ID == e.ID })]
			if l.Start < e.Start || l.End > l.Deadline.Add(-w.site.Margin) {
				t.Fatalf("%s is [%d,%d) by EDF and [%d,%d) by JIT, its deadline %d", e.ID, e.Start, e.End, l.Start, l.End, l.Deadline)
			}
		}
	})
}

func TestEDFIsFeasibleWhereverAnyOrderIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []staging.Transfer
		for i := range rapid.IntRange(1, 6).Draw(t, "n") {
			list = append(list, staging.Transfer{
				ID: fmt.Sprint(i), Node: fmt.Sprint(i), Image: staging.Image{ID: fmt.Sprint(i), Size: rapid.Int64Range(0, 20).Draw(t, "size")},
				Deadline: span.Instant(rapid.Int64Range(0, 80).Draw(t, "deadline")),
			})
		}
		lifetime := rapid.SampledFrom([]int64{0, 25}).Draw(t, "lifetime")
		site := staging.Site{Strategy: staging.EDF, Repositories: []staging.Repository{{Rate: 1}}, Lifetime: lifetime}
		_, late := staging.State{Transfers: list}.Schedule(site, 0)
		if got, want := len(late) == 0, anyOrder(list, 0, lifetime); got != want {
			t.Fatalf("EDF feasible: %v, some order: %v, %+v", got, want, list)
		}
	})
}

// anyOrder tries all orders of the transfers, at one byte per second.
func anyOrder(rest []staging.Transfer, now span.Instant, lifetime int64) bool {
	if len(rest) == 0 {
		return true
	}
	for i, tr := range rest {
		start := now
		if lifetime > 0 {
			start = max(now, tr.Deadline.Add(-lifetime))
		}
		end := start.Add(tr.Image.Size)
		if end <= tr.Deadline && anyOrder(slices.Delete(slices.Clone(rest), i, i+1), end, lifetime) {
			return true
		}
	}
	return false
}

func TestFactsNeedNoMoreThanAdmittingOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		f := staging.Facts{Site: w.site, Pools: w.state.Pools}
		s := w.state
		var live []staging.Demand
		for _, d := range w.demands {
			next, err := s.Admit(w.site, 0, d)
			if err != nil {
				continue
			}
			s, live = next, append(live, d)
			derived := f.State(0, live)
			if len(derived.Transfers) > len(s.Transfers) {
				t.Fatalf("derived: %+v\none by one: %+v", derived.Transfers, s.Transfers)
			}
			if w.site.Limit == 0 && len(w.site.Repositories) == 1 {
				if _, late := derived.Schedule(w.site, 0); len(late) > 0 {
					t.Fatalf("late: %+v", late)
				}
			}
		}
	})
}

func TestWhatJoinsLateRefusesNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.site.Repositories, w.site.Links, w.site.Limit = w.site.Repositories[:1], nil, 0
		f := staging.Facts{Site: w.site, Pools: w.state.Pools}
		const now = 20
		var live, joining []staging.Demand
		for _, d := range w.demands {
			d.Image.Repositories = nil
			if d.Span.Start <= now || rapid.Bool().Draw(t, "joins") {
				d.Span.Start, d.Joining = min(d.Span.Start, now), true
				joining = append(joining, d)
				continue
			}
			all := slices.Concat(live, joining)
			_, alone := f.Admission(now, live).Admit(d)
			after, err := f.Admission(now, all).Admit(d)
			if alone == nil && err != nil { // the reverse is possible: an image that is already there stays
				t.Fatalf("%s is refused with %v beside %+v", d.ID, err, joining)
			}
			if err != nil {
				continue
			}
			live = append(live, d)
			_, late := after.Schedule(f.Site, now)
			for _, tr := range late {
				if tr.Deadline > now {
					t.Fatalf("%+v is late beside %+v", tr, joining)
				}
			}
		}
	})
}
