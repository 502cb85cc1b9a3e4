// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// taking returns the commit of a new reservation on hosts; the versions are those on which it is
// based.
func taking(id string, hosts ...booking.HostVersion) booking.Commit {
	r := booked(id)
	r.Claims = nil
	for _, h := range hosts {
		r.Claims = append(r.Claims, reservation.Claim{Host: h.Host, Span: r.Span})
	}
	return booking.Commit{Revisions: []booking.Revision{{Reservation: r, Cause: reservation.Cause{Action: reservation.ActionCreate}}}, Hosts: hosts}
}

func at(host string, version int64) booking.HostVersion {
	return booking.HostVersion{Host: host, Version: version}
}

func testCommits(t *testing.T, open func(t *testing.T) Subject) {
	t.Run("a commit needs its hosts as it knew them", func(t *testing.T) { testHosts(t, open(t)) })
	t.Run("a commit may take many hosts", func(t *testing.T) { testManyHosts(t, open(t)) })
	t.Run("host-seconds are held to their limit", func(t *testing.T) { testHostSeconds(t, open(t)) })
	t.Run("a commit needs its project as it knew it", func(t *testing.T) { testProjects(t, open(t)) })
	t.Run("a refused commit leaves nothing", func(t *testing.T) { testRefused(t, open(t)) })
}

func testHosts(t *testing.T, s Subject) {
	for _, step := range []struct {
		name  string
		hosts []booking.HostVersion
		stale bool
	}{
		{"new hosts", []booking.HostVersion{at("a", 0), at("b", 0)}, false},
		{"as if a were new", []booking.HostVersion{at("a", 0)}, true},
		{"a and b as they are", []booking.HostVersion{at("b", 1), at("a", 1)}, false},
		{"a as it was", []booking.HostVersion{at("a", 1)}, true},
		{"one of two as it was", []booking.HostVersion{at("a", 2), at("b", 1)}, true},
		{"an old one with a new one", []booking.HostVersion{at("a", 2), at("c", 0)}, false},
		{"a version ahead", []booking.HostVersion{at("c", 2)}, true},
		{"another letter is another host", []booking.HostVersion{at("A", 0), at("a ", 0)}, false},
		{"none", nil, false},
	} {
		err := s.Commit(t.Context(), taking(step.name, step.hosts...))
		if errors.Is(err, reservation.ErrStale) != step.stale || err != nil && !step.stale {
			t.Errorf("%s: %v; want stale: %v", step.name, err, step.stale)
		}
	}
	got, err := s.Recall(t.Context(), booking.Recall{Hosts: []string{"a", "b", "c", "A", "a ", "new"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []booking.HostVersion{at("A", 1), at("a", 3), at("a ", 1), at("b", 2), at("c", 1), at("new", 0)}
	if d := diff(want, got.Hosts); d != "" {
		t.Errorf("versions (-want +got):\n%s", d)
	}
}

func testManyHosts(t *testing.T, s Subject) {
	for version := range int64(2) {
		c := taking(fmt.Sprint("r", version))
		for n := range 1100 {
			c.Hosts = append(c.Hosts, at(fmt.Sprint("node-", n), version))
		}
		if err := s.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		c.Revisions[0].Reservation.ID, c.Hosts[1050].Version = "stale", version+2
		if err := s.Commit(t.Context(), c); !errors.Is(err, reservation.ErrStale) {
			t.Errorf("one host of many is not as it was known: %v, want ErrStale", err)
		}
	}
}

// testHostSeconds tests that a commit which raises the sum of a project stays within its
// limit.
func testHostSeconds(t *testing.T, s Subject) {
	for i, step := range []struct {
		add, most int64
		stale     bool
	}{
		{add: 100, most: 200},
		{add: 101, most: 200, stale: true},
		{add: 100, most: 200},
		{add: 1, most: 200, stale: true},
		{add: -100, most: 1},
		{add: 105},
		{add: 1, most: 206},
	} {
		c := taking(fmt.Sprint(i))
		c.Usage = booking.Usage{HostSeconds: step.add, MostHostSeconds: step.most}
		err := s.Commit(t.Context(), c)
		if errors.Is(err, reservation.ErrStale) != step.stale || err != nil && !step.stale {
			t.Errorf("step %d %+v: %v", i, step, err)
		}
	}
	c := taking("other")
	c.Revisions[0].Reservation.ProjectID, c.Usage = "other", booking.Usage{HostSeconds: 4, MostHostSeconds: 3}
	if err := s.Commit(t.Context(), c); !errors.Is(err, reservation.ErrStale) {
		t.Errorf("a project's first reservation over its limit: %v, want ErrStale", err)
	}
}

// raising returns the usage of a commit that raises what its project holds, based on a version of
// the project.
func raising(known int64) booking.Usage {
	return booking.Usage{Hosts: 1, HostSeconds: 10, Raises: true, Known: &known}
}

func testProjects(t *testing.T, s Subject) {
	for _, step := range []struct {
		name  string
		usage booking.Usage
		stale bool
	}{
		{"ahead of the first", raising(1), true},
		{"the first", raising(0), false},
		{"as if there were none", raising(0), true},
		{"the second", raising(1), false},
		{"as it was", raising(1), true},
		{"whatever it is", booking.Usage{Hosts: 1, Raises: true}, false},
		{"what raises no sum", booking.Usage{Raises: true, Known: new(int64(3))}, false},
		{"giving back", booking.Usage{Hosts: -1, HostSeconds: -10}, false},
		{"what changes nothing", booking.Usage{}, false},
		{"after all these", raising(4), false},
	} {
		c := taking(step.name)
		c.Usage = step.usage
		err := s.Commit(t.Context(), c)
		if errors.Is(err, reservation.ErrStale) != step.stale || err != nil && !step.stale {
			t.Errorf("%s: %v; want stale: %v", step.name, err, step.stale)
		}
	}
	other := taking("other")
	other.Revisions[0].Reservation.ProjectID, other.Usage = "other", raising(0)
	if err := s.Commit(t.Context(), other); err != nil {
		t.Errorf("another project: %v", err)
	}
	for _, step := range []struct {
		name                 string
		first, second, third int64
		stale                bool
	}{
		{"one of three as it was", 1, 0, 4, true},
		{"three at once", 1, 0, 5, false},
		{"the next of all three", 2, 1, 6, false},
	} {
		together := taking(step.name)
		together.Revisions[0].Reservation.ProjectID, together.Usage = "other", raising(step.first)
		together.Others = []booking.ProjectUsage{{Project: "a new one", Usage: raising(step.second)}, {Project: "demo", Usage: raising(step.third)}}
		if err := s.Commit(t.Context(), together); errors.Is(err, reservation.ErrStale) != step.stale || err != nil && !step.stale {
			t.Errorf("%s: %v; want stale: %v", step.name, err, step.stale)
		}
	}
}

func testRefused(t *testing.T, s Subject) {
	kept := taking("kept", at("a", 0))
	kept.Usage = raising(0)
	if err := s.Commit(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	before := mustRecall(t, s, booking.Recall{All: true})
	late := taking("late", at("a", 1), at("b", 0))
	late.Key = &reservation.Key{ProjectID: "demo", Key: "k", ReservationID: "late"}
	late.Usage = raising(0) // refused by the last statement
	if err := s.Commit(t.Context(), late); !errors.Is(err, reservation.ErrStale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
	if d := diff(before, mustRecall(t, s, booking.Recall{All: true})); d != "" {
		t.Errorf("records (-before +after):\n%s", d)
	}
	if _, used, err := s.Key(t.Context(), "demo", "k"); used || err != nil {
		t.Errorf("the key is used (%v): %v", used, err)
	}
}

// testOneHost makes workers, spread over the stores, book the same host on the basis of the same
// version, each together with a host of its own. Only one may succeed.
func testOneHost(t *testing.T, stores ...Subject) {
	for round := range int64(rounds) {
		var wg sync.WaitGroup
		var won, apart atomic.Int32
		for worker := range workers {
			s := stores[worker%len(stores)]
			wg.Go(func() {
				id := fmt.Sprintf("%d-%d", round, worker)
				switch err := s.Commit(t.Context(), taking(id, at("last", round))); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, reservation.ErrStale):
					t.Errorf("the loser got %v, want ErrStale", err)
				}
				if err := s.Commit(t.Context(), taking("own "+id, at(fmt.Sprint("node-", worker), round))); err == nil {
					apart.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 || apart.Load() != workers {
			t.Fatalf("round %d: %d won the one host, and %d of %d got a host of their own", round, won.Load(), apart.Load(), workers)
		}
	}
}

// testLimitTogether makes workers, spread over the stores, book up to a limit and cancel, each on
// the basis of what it has just read of the project. The limit must hold. A worker whose basis was old
// tries again, and the last round of each does not cancel, so at the end the limit is reached.
func testLimitTogether(t *testing.T, stores ...Subject) {
	const most = 5
	var wg sync.WaitGroup
	var booked, full atomic.Int64
	for worker := range workers {
		s := stores[worker%len(stores)]
		wg.Go(func() {
			for round := 0; round < rounds; round++ {
				c := taking(fmt.Sprintf("%d-%d", worker, round))
				found, known := heldNow(t, s)
				if found > most {
					t.Errorf("%d hosts are held of %d", found, most)
				}
				if found == most {
					full.Add(1)
					continue
				}
				c.Usage = raising(known)
				err := s.Commit(t.Context(), c)
				if errors.Is(err, reservation.ErrStale) {
					round--
					continue
				}
				if err != nil {
					t.Errorf("book: %v", err)
					return
				}
				booked.Add(1)
				if round%2 > 0 {
					continue
				}
				c.Revisions[0].Reservation.Status, c.Revisions[0].Reservation.Version = reservation.Canceled, 2
				c.Usage = booking.Usage{Hosts: -1, HostSeconds: -10}
				if err := s.Commit(t.Context(), c); err != nil {
					t.Errorf("cancel: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if left, known := heldNow(t, stores[0]); left != most || known != booked.Load() || full.Load() == 0 {
		t.Errorf("%d hosts are held, want %d; the version is %d after %d bookings; it was full %d times", left, most, known, booked.Load(), full.Load())
	}
}

// heldNow counts the live reservations of the project and returns its version.
func heldNow(t *testing.T, s Subject) (live int, version int64) {
	t.Helper()
	got := mustRecall(t, s, booking.Recall{Project: "demo", Since: 1 << 62, Projects: func(string) int64 { return 0 }})
	for _, p := range got.Projects {
		version = p.Version
	}
	return len(got.Reservations), version
}

func mustRecall(t reporter, s Subject, q booking.Recall) booking.Recalled {
	t.Helper()
	got, err := s.Recall(t.Context(), q)
	if err != nil {
		t.Fatalf("recall: %v", err)
	}
	return got
}
