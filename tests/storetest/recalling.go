// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

func testRecalling(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("the requested reservations are recalled", func(t *testing.T) { testQuestions(t, open(t)) })
	t.Run("a project comes with its version whole", func(t *testing.T) { testProjectQuestions(t, open(t)) })
	t.Run("the log has every change", func(t *testing.T) { testLog(t, open(t)) })
	t.Run("many are recalled at once", func(t *testing.T) { testMany(t, open(t)) })
	t.Run("a requested reservation that is not stored is gone", func(t *testing.T) {
		s := open(t)
		mustCreate(t, s, booked("there"))
		got := mustRecall(t, s, booking.Recall{IDs: []string{"nobody", "there"}, Known: func(string) int64 { return 1 }})
		if d := diff([]string{"nobody"}, got.Gone); d != "" {
			t.Errorf("gone (-want +got):\n%s", d)
		}
	})
	t.Run("a recall sees one state", func(t *testing.T) { testOneMoment(t, open(t)) })
}

// testQuestions tests what a question selects. Reservations one (over) and two are on node a; two,
// and three of another project, are on node b.
func testQuestions(t *testing.T, s Subject) {
	commits := []booking.Commit{taking("one", at("a", 0)), taking("two", at("a", 1), at("b", 0)), taking("three", at("b", 1)), taking("four", at("c", 0))}
	commits[2].Revisions[0].Reservation.ProjectID = "other"
	commits[3].Revisions[0].Reservation.ProjectID = "third"
	for _, c := range commits {
		if err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	gone := commits[0].Revisions[0].Reservation
	gone.Status, gone.Version = reservation.Ended, 2
	mustUpdate(t, s, gone)
	last := lastPlace(t, s)
	knowing := func(known map[string]int64) func(string) int64 {
		return func(id string) int64 { return known[id] }
	}
	for name, c := range map[string]struct {
		ask   booking.Recall
		want  []string
		hosts []booking.HostVersion
	}{
		"nothing":            {ask: booking.Recall{}},
		"by id":              {booking.Recall{IDs: []string{"four"}}, []string{"four"}, []booking.HostVersion{at("c", 1)}},
		"what is over by id": {booking.Recall{IDs: []string{"one"}}, []string{"one", "two"}, []booking.HostVersion{at("a", 2)}},
		"by an unknown id":   {ask: booking.Recall{IDs: []string{"nobody"}}},
		"by host":            {booking.Recall{Hosts: []string{"b"}}, []string{"three", "two"}, []booking.HostVersion{at("b", 2)}},
		"by project":         {booking.Recall{Project: "demo"}, []string{"two"}, nil},
		"all":                {booking.Recall{All: true}, []string{"four", "three", "two"}, []booking.HostVersion{at("a", 2), at("b", 2), at("c", 1)}},
		"all, and what is over by id": {
			booking.Recall{All: true, IDs: []string{"one", "three"}},
			[]string{"four", "one", "three", "two"}, []booking.HostVersion{at("a", 2), at("b", 2), at("c", 1)},
		},
		"all but what is known": {
			booking.Recall{All: true, Known: knowing(map[string]int64{"two": 1, "three": 0})},
			[]string{"four", "three"}, []booking.HostVersion{at("a", 2), at("b", 2), at("c", 1)},
		},
		"by host but what is known": {
			booking.Recall{Hosts: []string{"b"}, Known: knowing(map[string]int64{"two": 1})}, []string{"three"}, []booking.HostVersion{at("b", 2)},
		},
		"by id, in an old version known": {
			booking.Recall{IDs: []string{"one"}, Known: knowing(map[string]int64{"one": 1, "two": 1})}, []string{"one"}, []booking.HostVersion{at("a", 2)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.ask.Since = last
			got := mustRecall(t, s, c.ask)
			if d := diff(c.want, ids(got.Reservations)); d != "" {
				t.Errorf("reservations (-want +got):\n%s", d)
			}
			if d := diff(c.hosts, got.Hosts); d != "" {
				t.Errorf("hosts (-want +got):\n%s", d)
			}
			if !c.ask.All && len(got.Log) > 0 {
				t.Errorf("behind the last place the log has %v", got.Log)
			}
		})
	}
}

// testProjectQuestions tests what a question about a project selects. A project has one (over), two
// and three, another has four and five, all on different hosts.
func testProjectQuestions(t *testing.T, s Subject) {
	var places []int64
	for i, name := range []string{"one", "two", "three", "four", "five"} {
		c := taking(name, at(name, 0))
		c.Usage = booking.Usage{Raises: true}
		if i > 2 {
			c.Revisions[0].Reservation.ProjectID = "other"
		}
		if err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		places = append(places, lastPlace(t, s))
	}
	gone := taking("one", at("one", 0)).Revisions[0].Reservation
	gone.Status, gone.Version = reservation.Ended, 2
	mustUpdate(t, s, gone)
	last := lastPlace(t, s)
	knowing := func(demo, other int64) func(string) int64 {
		return func(project string) int64 { return map[string]int64{"demo": demo, "other": other}[project] }
	}
	demo, other := booking.ProjectVersion{Project: "demo", Version: 3}, booking.ProjectVersion{Project: "other", Version: 2}
	for name, c := range map[string]struct {
		ask      booking.Recall
		want     []string
		projects []booking.ProjectVersion
	}{
		"no versions":            {booking.Recall{Since: places[3], Project: "demo"}, []string{"five", "one", "three", "two"}, nil},
		"by project":             {booking.Recall{Since: last, Project: "demo", Projects: knowing(2, 0)}, []string{"three", "two"}, []booking.ProjectVersion{demo}},
		"with the known version": {booking.Recall{Since: last, Project: "demo", Projects: knowing(3, 0)}, []string{"three", "two"}, nil},
		"by id":                  {booking.Recall{Since: last, IDs: []string{"two"}, Projects: knowing(2, 0)}, []string{"three", "two"}, []booking.ProjectVersion{demo}},
		"by host":                {booking.Recall{Since: last, Hosts: []string{"two"}, Projects: knowing(2, 0)}, []string{"three", "two"}, []booking.ProjectVersion{demo}},
		"by the log":             {booking.Recall{Since: places[3], Projects: knowing(3, 1)}, []string{"five", "four", "one"}, []booking.ProjectVersion{other}},
		"nobody's":               {booking.Recall{Since: last, Project: "nobody", Projects: knowing(0, 0)}, nil, nil},
		"nothing":                {booking.Recall{Since: last, Projects: knowing(0, 0)}, nil, nil},
		"all":                    {booking.Recall{All: true, Projects: knowing(0, 0)}, []string{"five", "four", "three", "two"}, []booking.ProjectVersion{demo, other}},
		"all, some known":        {booking.Recall{All: true, Projects: knowing(1, 2)}, []string{"five", "four", "three", "two"}, []booking.ProjectVersion{demo}},
	} {
		t.Run(name, func(t *testing.T) {
			got := mustRecall(t, s, c.ask)
			if d := diff(c.want, ids(got.Reservations)); d != "" {
				t.Errorf("reservations (-want +got):\n%s", d)
			}
			if d := diff(c.projects, got.Projects); d != "" {
				t.Errorf("projects (-want +got):\n%s", d)
			}
		})
	}
}

// lastPlace returns the place in the log from which a caller continues that has read everything.
func lastPlace(t *testing.T, s Subject) int64 {
	t.Helper()
	got := mustRecall(t, s, booking.Recall{All: true})
	if len(got.Log) != 1 {
		t.Fatalf("the log of all is %v, want its last entry", got.Log)
	}
	return got.Log[0].Place
}

func testLog(t *testing.T, s Subject) {
	if got := mustRecall(t, s, booking.Recall{All: true}); diff(booking.Recalled{}, got) != "" {
		t.Errorf("new records have %+v", got)
	}
	one := taking("one", at("a", 0))
	if err := s.Commit(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), taking("two", at("a", 1))); err != nil {
		t.Fatal(err)
	}
	place := lastPlace(t, s)
	moved := one.Revisions[0].Reservation
	moved.Version, moved.Claims = 2, []reservation.Claim{{Host: "b", Span: moved.Span}}
	if err := s.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: moved}}, Hosts: []booking.HostVersion{at("b", 0)}}); err != nil {
		t.Fatal(err)
	}
	got := mustRecall(t, s, booking.Recall{Since: place})
	if len(got.Log) != 1 || got.Log[0].Place <= place || got.Log[0].ID != "one" || got.Log[0].Version != 2 {
		t.Errorf("behind %d the log has %v, want version 2 of one", place, got.Log)
	}
	if d := diff([]reservation.Reservation{moved}, got.Reservations); d != "" {
		t.Errorf("reservations (-want +got):\n%s", d)
	}
	if d := diff([]booking.HostVersion{at("b", 1)}, got.Hosts); d != "" {
		t.Errorf("hosts (-want +got):\n%s", d)
	}
	got = mustRecall(t, s, booking.Recall{Since: place, Known: func(string) int64 { return 2 }})
	if len(got.Log) != 1 || len(got.Reservations) > 0 {
		t.Errorf("who knows it gets %+v, want the entry alone", got)
	}
}

func testMany(t *testing.T, s Subject) {
	const many = 1100
	for n := range many {
		if err := s.Commit(t.Context(), taking(fmt.Sprintf("%04d", n), at(fmt.Sprint("node-", n), 0))); err != nil {
			t.Fatal(err)
		}
	}
	for name, q := range map[string]booking.Recall{"by the log": {}, "all": {All: true}} {
		got := mustRecall(t, s, q)
		if len(got.Reservations) != many || len(got.Hosts) != many {
			t.Errorf("%s: recalled %d reservations and %d hosts of %d", name, len(got.Reservations), len(got.Hosts), many)
		}
		for _, r := range got.Reservations {
			if len(r.Claims) != 1 || len(r.Events) != 2 {
				t.Fatalf("%s: %s has %d claims and %d events", name, r.ID, len(r.Claims), len(r.Events))
			}
		}
	}
}

// testOneMoment checks that one Recall reads one state of the database: while a writer moves a
// reservation between two hosts, the versions of the reservation and of the hosts in an answer
// belong to the same commit.
func testOneMoment(t *testing.T, s Subject) {
	hosts := []string{"even", "odd"}
	state := func(version int64) reservation.Reservation {
		c := taking("r", at(hosts[version%2], 0))
		c.Revisions[0].Reservation.Version = version
		return c.Revisions[0].Reservation
	}
	move := func(version int64) error {
		return s.Commit(t.Context(), booking.Commit{
			Revisions: []booking.Revision{{Reservation: state(version)}}, Hosts: []booking.HostVersion{at(hosts[version%2], (version-1)/2)},
		})
	}
	if err := move(1); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var over atomic.Bool
	for reader := range 4 {
		q := []booking.Recall{{All: true}, {Hosts: hosts}, {IDs: []string{"r"}, Hosts: hosts}, {Project: "demo", Hosts: hosts}}[reader]
		wg.Go(func() {
			for !over.Load() {
				got, err := s.Recall(t.Context(), q)
				if err != nil || len(got.Reservations) != 1 {
					t.Errorf("recalled %v: %v", ids(got.Reservations), err)
					return
				}
				version := got.Reservations[0].Version
				if d := diff(state(version), got.Reservations[0]); d != "" {
					t.Errorf("version %d (-want +got):\n%s", version, d)
				}
				for _, h := range got.Hosts {
					if want := map[string]int64{"even": version / 2, "odd": (version + 1) / 2}[h.Host]; h.Version != want {
						t.Errorf("with version %d of the reservation came version %d of host %s, want %d", version, h.Version, h.Host, want)
					}
				}
			}
		})
	}
	for version := int64(2); version <= workers*rounds; version++ {
		if err := move(version); err != nil {
			t.Error(err)
			break
		}
	}
	over.Store(true)
	wg.Wait()
}

// testWholeLog makes workers, spread over the stores, commit while one worker follows the log. It
// must see every commit.
func testWholeLog(t *testing.T, stores ...Subject) {
	var wg sync.WaitGroup
	for worker := range workers {
		s := stores[worker%len(stores)]
		wg.Go(func() {
			r := booked(fmt.Sprint(worker))
			if err := create(t, s, r, nil); err != nil {
				t.Error(err)
			}
			for r.Version = 2; r.Version <= rounds; r.Version++ {
				if err := update(t, s, r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, s := range stores {
		next, place := map[string]int64{}, int64(0)
		for _, entry := range mustRecall(t, s, booking.Recall{}).Log {
			if entry.Place <= place {
				t.Errorf("%+v comes after place %d", entry, place)
			}
			if place = entry.Place; entry.Version != next[entry.ID]+1 {
				t.Errorf("%+v comes after version %d", entry, next[entry.ID])
			}
			next[entry.ID] = entry.Version
		}
		for worker := range workers {
			if last := next[fmt.Sprint(worker)]; last != rounds {
				t.Errorf("the log has %d of %d commits of %d", last, rounds, worker)
			}
		}
	}
}
