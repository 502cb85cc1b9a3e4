// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/staging"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

// Replicas crash at any point; notifications are lost, repeated and late; hosts refuse; the
// database and Glance fail. Still, one host never has two calls for an image under way, an
// image recorded as present is present, every transfer ends, and the owner of a reservation
// that lacks an image at its start was told before.
//
//make:test-drawn
func TestWhateverFailsNothingIsAskedTwiceAndOwnersAreTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t, func(s *scene) {
			s.rules.Strategy = rapid.SampledFrom(staging.Strategies).Draw(t, "strategy")
			s.rules.Retries = rapid.IntRange(0, 3).Draw(t, "retries")
			s.rules.Lifetime = rapid.SampledFrom([]int64{0, 600, 86_400}).Draw(t, "lifetime")
		})
		likely := func(what string, one int) func() bool {
			return func() bool { return rapid.IntRange(1, one).Draw(t, what) == 1 }
		}
		s.speed = rapid.SampledFrom([]float64{20, 100, 200}).Draw(t, "speed") * mega
		s.silent, s.twice = likely("lost", 4), likely("twice", 4)
		refuses := likely("refused", 6)
		s.broken = func(string) bool { return refuses() }
		s.upon = func(a asked) (bool, error) {
			switch rapid.IntRange(0, 9).Draw(t, "call") {
			case 0:
				return false, fault.New(fault.Conflict, "never: the host is in the way")
			case 1: // the call or its answer is lost, and perhaps the replica crashes
				s.crash(0)
				return false, errors.New("no answer")
			case 2:
				s.crash(0)
				return true, nil
			}
			return true, nil
		}
		hosts := []string{"a", "b", "c", "d"}
		for n := range rapid.IntRange(1, 4).Draw(t, "reservations") {
			image := fmt.Sprint("image-", rapid.IntRange(1, 2).Draw(t, "image"))
			s.images[image] = int64(rapid.IntRange(1, 20).Draw(t, "size")) * 1000 * mega
			some := rapid.Permutation(hosts).Draw(t, "hosts")[:rapid.IntRange(1, 3).Draw(t, "quantity")]
			s.reserve(fmt.Sprint("r", n), image, int64(rapid.IntRange(1, 400).Draw(t, "start"))*10, some...)
		}
		s.checkCalls()
		for s.now < base.Add(4100) {
			switch rapid.IntRange(0, 30).Draw(t, "event") {
			case 0:
				s.crash(rapid.IntRange(0, 1).Draw(t, "replica"))
			case 1:
				s.ledger.err = errors.New("the database is away")
			case 2:
				s.glance = errors.New("Glance is away")
			case 3:
				s.ledger.holder = "" // its lease has expired
			}
			if s.startsSoon() { // a replica must run a step
				s.ledger.err, s.glance = nil, nil
			}
			pending := s.waiting()
			s.step(poll)
			s.ledger.err, s.glance = nil, nil
			s.checkStarts(pending)
			s.checkStored()
		}
	})
}

// checkCalls fails for a call for an image that no reservation needs, or that is under way already.
func (s *scene) checkCalls() {
	upon := s.upon
	s.upon = func(a asked) (bool, error) {
		for _, host := range a.hosts {
			under := 0
			for _, t := range s.ledger.stored.Transfers {
				if t.Image == a.image && t.Host == host && t.Outcome == "" {
					under++
				}
			}
			if under != 1 {
				s.t.Fatalf("at %d, %d transfers of %s to %s are under way at a call for it", s.now-base, under, a.image, host)
			}
			if !slices.ContainsFunc(s.live, func(r reservation.Reservation) bool {
				return r.Image == a.image && r.Status == reservation.Pending && slices.Contains(r.HostNames(), host)
			}) {
				s.t.Fatalf("at %d, no reservation needs %s on %s", s.now-base, a.image, host)
			}
		}
		return upon(a)
	}
}

// waiting returns the reservations that have not started.
func (s *scene) waiting() (ids []string) {
	for _, r := range s.live {
		if r.Status == reservation.Pending {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func (s *scene) startsSoon() bool {
	return slices.ContainsFunc(s.live, func(r reservation.Reservation) bool {
		return r.Status == reservation.Pending && r.Span.Start <= s.now.Add(3*poll)
	})
}

// checkStarts checks that every reservation that started in this step without its image has a
// remark, unless it started before two polls, or its transfer failed at the last moment or
// was due just then.
func (s *scene) checkStarts(before []string) {
	for _, r := range s.live {
		if r.Status == reservation.Pending || !slices.Contains(before, r.ID) || r.Span.Start < base.Add(4*poll) {
			continue
		}
		for _, host := range r.HostNames() {
			if s.has[r.Image+"/"+host] || slices.ContainsFunc(s.ledger.stored.Transfers, func(t controller.Transfer) bool {
				return t.Image == r.Image && t.Host == host && (t.Finished >= r.Span.Start.Add(-2*poll) || t.Outcome == "" && t.Expected >= r.Span.Start.Add(-2*poll))
			}) {
				continue
			}
			told := s.remarks(r.ID)
			if len(told) == 0 || strings.Contains(told[len(told)-1], "in time") {
				s.t.Fatalf("at %d, %s starts without %s on %s, with the remarks %q", s.now-base, r.ID, r.Image, host, told)
			}
		}
	}
}

// checkStored checks that the stored records are true.
func (s *scene) checkStored() {
	for _, c := range s.ledger.stored.Cached {
		if !s.has[c.Image+"/"+c.Host] {
			s.t.Fatalf("at %d, %s is recorded on %s, but is not there", s.now-base, c.Image, c.Host)
		}
	}
	for _, t := range s.ledger.stored.Transfers {
		if t.Outcome == "" && s.now > t.Bound.Add(4*poll) {
			s.t.Fatalf("at %d, the transfer of %s to %s is under way, but was due to end by %d", s.now-base, t.Image, t.Host, t.Bound-base)
		}
		if t.Outcome != "" && (t.Begun < t.Started || t.Finished < t.Begun) {
			s.t.Fatalf("the transfer of %s to %s began at %d, had its turn at %d and ended at %d", t.Image, t.Host, t.Started-base, t.Begun-base, t.Finished-base)
		}
	}
}

// If nothing fails and the cloud is as fast as expected, every image whose transfer fits is on
// its hosts before the margin, under any strategy.
func TestWhatIsScheduledInTimeIsThereInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t, func(s *scene) {
			s.rules.Strategy = rapid.SampledFrom(staging.Strategies).Draw(t, "strategy")
			s.rules.Lifetime = rapid.SampledFrom([]int64{0, 86_400}).Draw(t, "lifetime")
		})
		s.speed = 110 * mega // the extra rate makes up for the time of the calls
		hosts := []string{"a", "b", "c", "d"}
		var deadline int64
		for n := range rapid.IntRange(1, 4).Draw(t, "reservations") {
			image := fmt.Sprint("image-", n)
			size := int64(rapid.IntRange(1, 10).Draw(t, "size"))
			s.images[image] = size * 1000 * mega
			some := rapid.Permutation(hosts).Draw(t, "hosts")[:rapid.IntRange(1, 3).Draw(t, "quantity")]
			// Each has room for its transfers and one poll between two calls after the previous one.
			deadline += size*10*int64(len(some)) + 2*poll
			s.reserve(fmt.Sprint("r", n), image, deadline+60+2*poll, some...)
		}
		for _, r := range s.live {
			s.run(int64(r.Span.Start - base))
			for _, host := range r.HostNames() {
				if !s.has[r.Image+"/"+host] {
					t.Fatalf("%s starts at %d without %s on %s; the calls were %+v", r.ID, r.Span.Start-base, r.Image, host, s.calls)
				}
			}
		}
	})
}

func TestTheRateIsThatOfSlowTransfers(t *testing.T) {
	took := func(bytes int64, seconds ...int64) (list []controller.Transfer) {
		for i, n := range seconds {
			begun := span.Instant(1000 * (i + 1))
			list = append(list, controller.Transfer{Outcome: controller.TransferThere, Bytes: bytes, Started: begun - 1, Begun: begun, Finished: begun.Add(n)})
		}
		return list
	}
	failed := took(large, 1, 1, 1, 1, 1, 1, 1, 1)
	for i := range failed {
		failed[i].Outcome = controller.TransferFailed
	}
	for name, tc := range map[string]struct {
		transfers []controller.Transfer
		want      float64
	}{
		"nothing is measured":                   {nil, 100 * mega},
		"failed ones tell nothing":              {failed, 100 * mega},
		"two that are slow are believed":        {took(large, 200, 200), 50 * mega},
		"two that are fast are not":             {took(large, 10, 10), 100 * mega},
		"five that are fast are":                {took(large, 50, 50, 50, 50, 50), 200 * mega},
		"one that was there already":            {took(large, 100, 100, 0, 100, 100), 100 * mega},
		"one that hung":                         {took(large, 50, 50, 50, 50, 10_000), 200 * mega},
		"a third that is slow":                  {took(large, 50, 50, 50, 50, 200, 200), 50 * mega},
		"small ones that are quick":             {took(4096, 1, 1, 1, 1, 1, 1), 100 * mega},
		"small ones that are slow":              {took(50*mega, 100, 100), 100 * mega},
		"a tiny one that took long":             {took(1, 11), 100 * mega},
		"one that took a day":                   {took(large, 86_400), 10 * mega},
		"first ones, which include the asking":  {first(took(100*mega, 4, 4, 4, 4, 4)), 100 * mega},
		"the last ones":                         {append(took(large, slices.Repeat([]int64{1000}, 30)...), later(took(large, slices.Repeat([]int64{50}, 20)...))...), 200 * mega},
		"large ones count more than small ones": {append(took(large, 50, 50, 50, 50), took(100*mega, 100, 100)...), 200 * mega},
	} {
		if got := controller.Rate(100*mega, tc.transfers); got != tc.want {
			t.Errorf("%s: %.1f MB/s, want %.1f", name, got/mega, tc.want/mega)
		}
	}
}

// first marks each transfer as the first of its call.
func first(list []controller.Transfer) []controller.Transfer {
	for i := range list {
		list[i].Started = list[i].Begun
	}
	return list
}

func later(list []controller.Transfer) []controller.Transfer {
	for i := range list {
		list[i].Begun, list[i].Finished = list[i].Begun+1_000_000, list[i].Finished+1_000_000
	}
	return list
}
