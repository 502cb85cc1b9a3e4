// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"math"
	"math/bits"
	"slices"
	"testing"
)

func TestRequestsAreThoseOfThePaper(t *testing.T) {
	o := Options{Hosts: 1024, Jobs: 20_000, Runs: 1, Seed: 5, Arrivals: Lublin}
	for _, s := range distinct(append(o.scans(), o.contrast())...) {
		last := int64(0)
		ahead, room := 0.0, 0.0 // the longest ones, in durations
		for _, r := range o.requests(s, 0) {
			if r.hosts < 32 || r.hosts > 1024 || bits.OnesCount(uint(r.hosts)) != 1 {
				t.Fatalf("%v: %d hosts", s, r.hosts)
			}
			if !slices.Contains(runtimes[:], r.duration) || r.arrival < last || r.ready < r.arrival || r.latestEnd < r.ready+r.duration {
				t.Fatalf("%v: %+v", s, r)
			}
			last = r.arrival
			ahead = max(ahead, float64(r.ready-r.arrival)/float64(r.duration))
			room = max(room, float64(r.latestEnd-r.ready-r.duration)/float64(r.duration))
		}
		for _, most := range []float64{ahead, room} {
			if most > s.Flexibility || most < 0.99*s.Flexibility {
				t.Errorf("%v: requests come up to %v durations ahead and leave up to %v of room", s, ahead, room)
			}
		}
	}
}

func TestSizesFollowUMed(t *testing.T) {
	o := Options{Hosts: 1024, Jobs: 50_000, Runs: 1, Seed: 5, Arrivals: Poisson}
	for _, c := range []struct {
		umed  float64
		small float64 // the share of jobs with at most 2^6 hosts: powers below 6.5
	}{
		{5, 0.82 + 0.18*1.5/5}, {7, 0.82 * 2 / 2.5}, {9, 0.82 * 2 / 4.5},
	} {
		count := 0.0
		for _, r := range o.requests(setting{Poisson, c.umed, 1, 3}, 0) {
			if r.hosts <= 64 {
				count++
			}
		}
		if got := count / float64(o.Jobs); math.Abs(got-c.small) > 0.01 {
			t.Errorf("UMed %v: %.3f of the jobs have at most 64 hosts, want %.3f", c.umed, got, c.small)
		}
	}
}

func TestSettingsDifferInWhatTheyVaryOnly(t *testing.T) {
	o := small()
	o.Hosts = 1024
	base := o.requests(setting{Lublin, 7, 1, 3}, 0)
	for i, r := range o.requests(setting{Lublin, 7, 1.5, 3}, 0) {
		if b := base[i]; r.hosts != b.hosts || r.duration != b.duration || math.Abs(float64(r.arrival)-float64(b.arrival)/1.5) > 1 || r.ready-r.arrival != b.ready-b.arrival {
			t.Fatalf("with another arrival factor request %d is %+v, was %+v", i, r, b)
		}
	}
	for i, r := range o.requests(setting{Lublin, 7, 1, 5}, 0) {
		if b := base[i]; r.hosts != b.hosts || r.duration != b.duration || r.arrival != b.arrival || r.ready < b.ready {
			t.Fatalf("with more flexibility request %d is %+v, was %+v", i, r, b)
		}
	}
	for i, r := range o.requests(setting{Lublin, 9, 1, 3}, 0) {
		if b := base[i]; r.hosts < b.hosts || r.arrival != b.arrival || r.duration < b.duration {
			t.Fatalf("with a larger UMed request %d is %+v, was %+v", i, r, b)
		}
	}
	if slices.Equal(base, o.requests(setting{Lublin, 7, 1, 3}, 1)) {
		t.Error("two runs have the same requests")
	}
}

func TestTheLoadIsWhatIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		arrivals   string
		load, want float64
		tolerance  float64
	}{
		{Poisson, 0.8, 0.8, 0.01},
		{Poisson, 0, 0.71, 0.01},
		{Lublin, 0.4, 0.4, 0.03}, // gaps vary a lot
	} {
		o := Options{Hosts: 1024, Jobs: 200_000, Runs: 1, Seed: 9, Arrivals: c.arrivals, Load: c.load}
		work, last := 0.0, int64(0)
		for _, r := range o.requests(setting{c.arrivals, 7, 1, 3}, 0) {
			work += float64(r.hosts) * float64(r.duration)
			last = r.arrival
		}
		if got := work / float64(last) / 1024; math.Abs(got-c.want) > c.tolerance || math.Abs(o.load()-c.want) > 0.005 {
			t.Errorf("%+v: the load is %.3f, and load() returns %.3f", c, got, o.load())
		}
	}
}
