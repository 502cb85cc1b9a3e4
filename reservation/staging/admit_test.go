// SPDX-License-Identifier: Apache-2.0

package staging_test

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

func limited(strategy staging.Strategy, limit int64) staging.Site {
	site := channel(strategy)
	site.Limit = limit
	return site
}

func pool(id string, expire span.Instant) map[string][]staging.Entry {
	return map[string][]staging.Entry{"N1": {{Image: image(id), Expire: expire}}}
}

func TestAPoolThatIsFullThenRefuses(t *testing.T) {
	s := staging.State{Pools: pool("B", 300)}
	_, err := s.Admit(limited(staging.EDF, size), 0, use("VW1", 200, 400))
	refusal := refused(t, err)
	if refusal.Reason != staging.NoPool || refusal.Node != "N1" || refusal.Earliest != 348 {
		t.Errorf("B fills the pool until 300: %+v; want room after it, at 348", *refusal)
	}
	admit(t, s, limited(staging.EDF, 2*size), 0, use("VW1", 200, 400))
}

func TestATransferWaitsForRoomInThePool(t *testing.T) {
	for _, strategy := range staging.Strategies {
		site := limited(strategy, size)
		s := admit(t, staging.State{Pools: pool("B", 300)}, site, 0, use("VW1", 350, 400))
		got, late := s.Schedule(site, 0)
		wants(t, "late", spans(late))
		if got[0].Start < 300 || got[0].End > 350 {
			t.Errorf("%s: A arrives in %v, want it after B expires at 300", strategy, spans(got))
		}
	}
	_, err := staging.State{Pools: pool("B", 310)}.Admit(limited(staging.JIT, size), 0, use("VW1", 350, 400))
	if refusal := refused(t, err); refusal.Reason != staging.NoPool || refusal.Earliest != 358 {
		t.Errorf("B expires at 310, A needs 48 s: %+v", *refusal)
	}
}

func TestAnImageLargerThanThePoolIsRefusedForGood(t *testing.T) {
	_, err := staging.State{}.Admit(limited(staging.EDF, size-1), 0, use("VW1", 200, 400))
	refusal := refused(t, err)
	if refusal.Reason != staging.NoPool || refusal.Earliest != 0 || !strings.Contains(refusal.Message, "at most 599999999") {
		t.Errorf("got %+v", refusal)
	}
}

func TestWhoNeedsNoTransferIsNotRefusedForOthersThatAreLate(t *testing.T) {
	site := channel(staging.EDF)
	s := staging.State{Transfers: due("a", 60, "b", 90), Pools: pool("A", 200)}
	admit(t, s, site, 0, use("there", 100, 200))
	_, err := s.Admit(site, 0, use("not there", 300, 400))
	if refusal := refused(t, err); refusal.Reason != staging.NoTransfer {
		t.Errorf("b is late already: %+v", refusal)
	}
}

func TestWhatIsHopelessKeepsNobodyWaiting(t *testing.T) {
	site := channel(staging.EDF)
	s := staging.State{Transfers: due("a", 40, "b", 50, "c", 500)}
	all, late := s.Schedule(site, 0)
	wants(t, "the schedule", spans(all), "b[0,48)", "a[48,96)", "c[96,144)")
	wants(t, "late", spans(late), "a[48,96)")
	admit(t, s, site, 0, use("VW1", 300, 400))
}

func TestATransferUnderWayIsNotPreempted(t *testing.T) {
	running := due("r", 500)
	running[0].Started, running[0].Start, running[0].End, running[0].Repository = true, -20, 30, "glance"
	for strategy, want := range map[staging.Strategy]string{staging.EDF: "a[30,78)", staging.JIT: "a[52,100)"} {
		got, _ := staging.State{Transfers: append(running, due("a", 100)...)}.Schedule(channel(strategy), 0)
		wants(t, string(strategy), spans(got), "r[-20,30)", want)
	}
	overdue, _ := staging.State{Transfers: append(running, due("a", 100)...)}.Schedule(channel(staging.EDF), 40)
	wants(t, "overdue", spans(overdue), "r[-20,30)", "a[40,88)")
}

func TestWhoComesLaterUsesWhatRunsOnceItHasArrived(t *testing.T) {
	running := due("A", 500)
	running[0].Node, running[0].Started, running[0].Start, running[0].End = "N1", true, 0, 48
	s := staging.State{Transfers: running}
	if !s.Nodes("A", 48)["N1"] || s.Nodes("A", 47)["N1"] {
		t.Error("the image must be usable from its arrival at 48 on, and not before")
	}
}

func TestAnImageThatAgesComesNoEarlierThanItsLifetimeBeforeTheStart(t *testing.T) {
	site := channel(staging.EDF)
	site.Lifetime, site.Margin = 100, 10
	s := admit(t, staging.State{}, site, 0, use("VW1", 1000, 1100))
	s = admit(t, s, site, 0, use("VW2", 1200, 1300))
	if len(s.Transfers) != 1 || s.Transfers[0].Expire != 1400 {
		t.Errorf("VW2 begins 100 s after VW1 has ended: %+v", s.Transfers)
	}
	s = admit(t, s, site, 0, use("VW3", 1401, 1500))
	got, _ := s.Schedule(site, 0)
	wants(t, "the schedule", spans(got), "VW1/N1[900,948)", "VW3/N1[1301,1349)")
	site.Strategy = staging.JIT
	got, _ = s.Schedule(site, 0)
	wants(t, "JIT", spans(got), "VW1/N1[942,990)", "VW3/N1[1343,1391)")
}

func TestSeveralRepositoriesWorkAtOnceAndTheFirstToEndIsTaken(t *testing.T) {
	site := channel(staging.EDF)
	site.Repositories = append(site.Repositories, staging.Repository{Name: "mirror", Rate: rate / 2})
	transfers := due("a", 1000, "b", 1000, "c", 1000)
	transfers[2].Image.Repositories = []string{"mirror"}
	got, _ := staging.State{Transfers: transfers}.Schedule(site, 0)
	wants(t, "EDF", spans(got), "a[0,48)", "c[0,96)", "b[48,96)")
	site.Strategy = staging.JIT
	got, _ = staging.State{Transfers: transfers}.Schedule(site, 0)
	wants(t, "JIT", spans(got), "a[904,952)", "c[904,1000)", "b[952,1000)")
}

func TestALimitedNodeTakesOneImageAtATime(t *testing.T) {
	site := channel(staging.EDF)
	site.Repositories = append(site.Repositories, staging.Repository{Name: "mirror", Rate: rate})
	site.Links = map[string]float64{"N1": rate / 2}
	transfers := due("a", 1000, "b", 1000, "c", 1000)
	transfers[0].Node, transfers[1].Node = "N1", "N1"
	got, _ := staging.State{Transfers: transfers}.Schedule(site, 0)
	wants(t, "EDF", spans(got), "a[0,96)", "c[0,48)", "b[96,192)")
}

func TestAnImageThatNoRepositoryHasIsRefused(t *testing.T) {
	d := use("VW1", 1000, 1100)
	d.Image.Repositories = []string{"elsewhere"}
	_, err := staging.State{}.Admit(channel(staging.EDF), 0, d)
	if refusal := refused(t, err); refusal.Reason != staging.NoTransfer || refusal.Earliest != 0 {
		t.Errorf("got %+v", refusal)
	}
}

func TestTheSameDemandsAndFactsGiveOneTransferForTheEarliest(t *testing.T) {
	f := staging.Facts{Site: channel(staging.EDF), Images: map[string]staging.Image{"A": image("A")}}
	late, early := use("late", 500, 600), use("early", 200, 300)
	s := f.State(0, []staging.Demand{late, early})
	if len(s.Transfers) != 1 || s.Transfers[0].ID != "early/N1" || s.Transfers[0].Expire != 600 {
		t.Errorf("got %+v", s.Transfers)
	}
	if _, err := f.Admission(0, []staging.Demand{late}).Admit(use("too early", 47, 50)); refused(t, err).Earliest != 48 {
		t.Errorf("got %v", err)
	}
	if s := f.State(201, []staging.Demand{early, late}); len(s.Transfers) != 1 || s.Transfers[0].Deadline != 500 {
		t.Errorf("a demand that has begun needs no transfer: %+v", s.Transfers)
	}
}

func TestABestEffortTransferWaitsForRoom(t *testing.T) {
	q := staging.Queue{Rate: rate, Limit: size, Pools: pool("B", 300)}
	if at, _ := q.Ready(0, "N1", image("A")); at != 348 {
		t.Errorf("A arrives at %d, want 48 s after B expires at 300", at)
	}
	if at, fresh := q.Ready(299, "N1", image("B")); at != 299 || fresh != nil {
		t.Errorf("B is already in the pool: %d, %+v", at, fresh)
	}
	if at, _ := q.Ready(0, "N1", staging.Image{ID: "huge", Size: size + 1}); at != span.Forever {
		t.Errorf("an image that never fits is ready at %d", at)
	}
}

func TestARefusalSaysByWhenTheImageMustBeThere(t *testing.T) {
	site := channel(staging.EDF)
	site.Margin = 60
	_, err := staging.State{}.Admit(site, 0, use("VW1", 100, 200))
	if refusal := refused(t, err); !strings.Contains(refusal.Message, "it must be there by 1970-01-01T00:00:40Z (60 s before the start), but its transfer would end at 1970-01-01T00:00:48Z") {
		t.Errorf("got %q", refusal.Message)
	}
}

// joining returns a demand for a node that joined the reservation after its start.
func joining(id string, start, end span.Instant) staging.Demand {
	d := use(id, start, end)
	d.Joining = true
	return d
}

func TestANodeThatJoinsLateIsSentItsImageForAWhile(t *testing.T) {
	f := staging.Facts{Site: channel(staging.EDF)}
	d := joining("VW1", 100, 10_000)
	for now, want := range map[span.Instant]int{99: 1, 100: 1, 101: 1, 3699: 1, 3700: 0} {
		if s := f.State(now, []staging.Demand{d, d}); len(s.Transfers) != want {
			t.Errorf("at %d: %+v, want %d", now, s.Transfers, want)
		}
	}
	f.Site.Lifetime = 200
	if s := f.State(300, []staging.Demand{d}); len(s.Transfers) != 0 {
		t.Errorf("an image that could have arrived and expired is sent: %+v", s.Transfers)
	}
	f.Site.Lifetime, f.Pools = 0, pool("A", 150)
	if s := f.State(120, []staging.Demand{d}); len(s.Transfers) != 0 || s.Pools["N1"][0].Expire != 10_000 {
		t.Errorf("the image is there: %+v", s)
	}
	f.Pools, f.Running = nil, []staging.Transfer{{ID: "r", Image: image("A"), Node: "N1", Deadline: 100, Started: true, Start: 110, End: 158, Expire: 10_000}}
	s := f.State(120, []staging.Demand{d})
	if len(s.Transfers) != 1 || s.Nodes("A", 157)["N1"] || !s.Nodes("A", 158)["N1"] {
		t.Errorf("the image is under way, arriving at 158: %+v", s)
	}
}

func TestNobodyWaitsForWhatJoinsLateNorReliesOnIt(t *testing.T) {
	f := staging.Facts{Site: channel(staging.EDF)}
	a := f.Admission(100, []staging.Demand{joining("VW1", 90, 1000)})
	s, err := a.Admit(staging.Demand{ID: "VW2", Image: image("B"), Nodes: []string{"N2"}, Span: span.New(148, 100)})
	if err != nil {
		t.Fatal(err)
	}
	all, late := s.Schedule(f.Site, 100)
	wants(t, "the schedule", spans(all), "VW2/N2[100,148)", "VW1/N1[148,196)")
	wants(t, "late", spans(late), "VW1/N1[148,196)")
	if s, err := a.Admit(use("VW3", 160, 200)); err != nil || len(s.Transfers) != 2 {
		t.Errorf("VW3 needs its own transfer by 160: %+v, %v", s.Transfers, err)
	}
	if a.Before().Nodes("A", 120)["N1"] {
		t.Error("A counts as usable on N1 at 120, but is not there yet")
	}
}

func TestWhatIsHopelessGoesWhereTheOthersLeaveTime(t *testing.T) {
	s := staging.State{Transfers: due("a", 10, "b", 20, "c", 96, "d", 200)}
	all, late := s.Schedule(channel(staging.EDF), 0)
	wants(t, "the schedule", spans(all), "a[0,48)", "c[48,96)", "b[96,144)", "d[144,192)")
	wants(t, "late", spans(late), "a[0,48)", "b[96,144)")
}

// Earliest deadline first would send the small image from the slow repository, which alone has the large
// one: only a plan just in time has room for all.
func TestAnEarliestStartIsFoundThoughOthersFitOnlyJustInTime(t *testing.T) {
	site := staging.Site{Strategy: staging.JIT, Repositories: []staging.Repository{{Name: "fast", Rate: 1}, {Name: "slow", Rate: 0.5}}}
	small, large := staging.Image{ID: "small", Size: 2}, staging.Image{ID: "large", Size: 28, Repositories: []string{"slow"}}
	busy := staging.Transfer{ID: "busy", Image: staging.Image{ID: "other"}, Node: "N4", Repository: "fast", Started: true, Start: 0, End: 3, Deadline: 100}
	s := staging.State{Transfers: []staging.Transfer{
		busy, {ID: "a", Image: small, Node: "N1", Deadline: 114, Entered: 1},
		{ID: "b", Image: large, Node: "N1", Deadline: 114, Entered: 2}, {ID: "c", Image: large, Node: "N2", Deadline: 114, Entered: 3},
	}}
	if _, late := s.Schedule(site, 0); len(late) > 0 {
		t.Fatalf("late: %+v", late)
	}
	d := staging.Demand{ID: "d", Image: large, Nodes: []string{"N3"}, Span: span.New(10, 60)}
	_, err := s.Admit(site, 0, d)
	if d.Span = span.New(refused(t, err).Earliest, 60); d.Span.Start == 0 {
		t.Error("no earliest start is found")
	}
	admit(t, s, site, 0, d)
}
