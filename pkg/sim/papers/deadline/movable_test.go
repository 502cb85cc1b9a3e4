// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// The bound is at least what an exhaustive search accepts, and less than all where that is obvious.
func TestNoScheduleExceedsTheBound(t *testing.T) {
	chance := rand.New(rand.NewPCG(1, 2))
	tight := 0
	for range 3000 {
		hosts := 1 + chance.IntN(3)
		requests := make([]request, 1+chance.IntN(6))
		for i := range requests {
			r := request{hosts: 1 + chance.IntN(hosts), duration: 1 + chance.Int64N(3), ready: chance.Int64N(4)}
			r.latestEnd = r.ready + r.duration + chance.Int64N(3)
			requests[i] = r
		}
		most, bound := mostScheduled(requests, make([]int, 12), hosts), mostAccepted(hosts, requests)
		if bound < most || bound > len(requests) {
			t.Fatalf("%d hosts, %+v: %d can be accepted, the bound is %d", hosts, requests, most, bound)
		}
		if bound < len(requests) {
			tight++
		}
	}
	if tight == 0 {
		t.Error("the bound is never below the number of requests")
	}
	full := []request{{duration: 10, latestEnd: 10, hosts: 1}, {duration: 10, latestEnd: 10, hosts: 1}, {ready: 10, duration: 10, latestEnd: 20, hosts: 1}}
	if got := mostAccepted(1, full); got != 2 {
		t.Errorf("of two that need the same hour and one that needs another the bound accepts %d", got)
	}
}

// mostScheduled returns how many requests fit beside what is used at each second. It tries all starts of each, and to leave it out.
func mostScheduled(requests []request, used []int, hosts int) int {
	if len(requests) == 0 {
		return 0
	}
	r := requests[0]
	most := mostScheduled(requests[1:], used, hosts)
	for start := r.ready; start+r.duration <= r.latestEnd; start++ {
		fits := true
		for second := start; second < start+r.duration; second++ {
			used[second] += r.hosts
			fits = fits && used[second] <= hosts
		}
		if fits {
			most = max(most, 1+mostScheduled(requests[1:], used, hosts))
		}
		for second := start; second < start+r.duration; second++ {
			used[second] -= r.hosts
		}
	}
	return most
}

func TestMovableReservationsKeepTheirDeadlinesAndTheBound(t *testing.T) {
	o := MovableDefaults()
	o.Jobs, o.Arrivals = 400, Poisson
	requests := o.requestsAt(1.2, 0)
	fixed, err := trial(t.Context(), o.Hosts, basis, 0, requests)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := trial(t.Context(), o.Hosts, basis, o.Notice, requests) // fails if a promise is broken
	if err != nil {
		t.Fatal(err)
	}
	if fixed.Moves != 0 || moved.Moves == 0 {
		t.Errorf("fixed reservations are moved %v times, movable ones %v times", fixed.Moves, moved.Moves)
	}
	if bound := float64(mostAccepted(o.Hosts, requests)) / float64(len(requests)); moved.Acceptance > bound {
		t.Errorf("%v are accepted, more than the bound, %v", moved.Acceptance, bound)
	}
}

func TestTheComparisonHasAllItsParts(t *testing.T) {
	o := MovableDefaults()
	o.Jobs, o.Runs = 60, 2
	var tables [2][]byte
	for i := range tables {
		report, err := o.Run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if tables[i], err = report.Results.CSV(); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"The goals", "The acceptance rate over the load", "The accepted work over the load", "left to the bound"} {
			if !strings.Contains(report.Markdown(), part) {
				t.Errorf("the report lacks %q", part)
			}
		}
	}
	if !bytes.Equal(tables[0], tables[1]) {
		t.Error("the same seed has other results")
	}
	for _, notice := range []int64{0, -1, mostNotice + 1} {
		o.Notice = notice
		if err := o.Check(); !fault.Is(err, fault.Invalid) {
			t.Errorf("notice %d: %v", notice, err)
		}
	}
}
