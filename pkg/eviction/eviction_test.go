// SPDX-License-Identifier: Apache-2.0

package eviction_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
)

func TestVictimsMakeRoomInOneTransactionAndTheAnswerWaitsUntilTheyAreGone(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Servers["v0"].Takes, b.Servers["v1"].Takes = time.Second, 3*time.Second
	placed := b.MustPlace(t, cloudtest.Request(3, "a"))
	b.Gone(t, "v0", "v1")
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 3})
	if calls := slices.Compact(slices.Clone(b.Calls)); !slices.Equal(calls, []string{
		"server", "read", "server", "read", "warn", "read", "claim", "server", "leave", "server", "leave", "server", "read", "look",
	}) {
		t.Errorf("calls are %v", calls)
	}
	if hosts := placed.Selections[0]; len(hosts) != 1 || hosts[0].Host.Name != cloudtest.Host(0) {
		t.Errorf("the instance is on %v", hosts)
	}
	if used := b.Board.Load().Column("VCPU").Used; !slices.Equal(used, []int64{3}) {
		t.Errorf("the board counts %v as used, want [3]", used)
	}
}

func TestSeveralInstancesDisplaceTheirVictimsAtOnce(t *testing.T) {
	b := cloudtest.Full(t, 2)
	b.MustPlace(t, cloudtest.Request(3, "a", "b"))
	b.Gone(t, "v0", "v1", "v2", "v3")
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 3})
	b.Has(t, "b", map[string]int64{cloudtest.Host(1): 3})
	if n := cloudtest.Count(b.Calls, "claim"); n != 1 {
		t.Errorf("there were %d claims, want 1", n)
	}
}

func TestAnOwnerIsToldBeforeTheInstanceHasToGo(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Notice = 30 * time.Second
	begun, v := b.At, b.Servers["v0"]
	b.MustPlace(t, cloudtest.Request(2, "a"))
	want := []eviction.Warning{{At: begun.Add(30 * time.Second), Request: "req-1"}}
	for i := range v.Warned {
		if v.Warned[i].Instance.ID != "v0" {
			t.Errorf("the warning is of %s", v.Warned[i].Instance.ID)
		}
		v.Warned[i].Instance = inventory.Instance{}
	}
	if diff := cmp.Diff(want, v.Warned); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if waited := b.At.Sub(begun); waited < 31*time.Second {
		t.Errorf("placing took %v, want the notice period and the time to leave", waited)
	}
	b.Untouched(t, "v1")
}

// An instance leaves even if its owner cannot be warned.
func TestAWarningThatFailsKeepsNobody(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Troubles("warn", cloudtest.Before)
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Gone(t, "v0")
}

func TestAVictimThatCannotGoAnyMoreIsLeftAloneAndAnotherGoes(t *testing.T) {
	for name, change := range map[string]func(b *cloudtest.Bench, v *cloudtest.Server){
		"vanished":             func(b *cloudtest.Bench, v *cloudtest.Server) { b.Vanish("v0") },
		"locked":               func(_ *cloudtest.Bench, v *cloudtest.Server) { v.Locked = true },
		"protected":            func(_ *cloudtest.Bench, v *cloudtest.Server) { v.Protected = true },
		"not preemptible":      func(_ *cloudtest.Bench, v *cloudtest.Server) { v.Preemptible = false },
		"to be resized":        func(_ *cloudtest.Bench, v *cloudtest.Server) { v.Task = "resize_prep" },
		"resized":              func(_ *cloudtest.Bench, v *cloudtest.Server) { v.Status = "VERIFY_RESIZE" },
		"migrating":            func(_ *cloudtest.Bench, v *cloudtest.Server) { v.Status, v.Task = "MIGRATING", "migrating" },
		"on another host":      func(_ *cloudtest.Bench, v *cloudtest.Server) { v.Host = cloudtest.Host(7) },
		"without allocations":  func(b *cloudtest.Bench, _ *cloudtest.Server) { delete(b.Consumers, "v0") },
		"with a second source": func(b *cloudtest.Bench, _ *cloudtest.Server) { b.Allocate("v0", "elsewhere", 2) },
	} {
		t.Run(name, func(t *testing.T) {
			b := cloudtest.Full(t, 2)
			v := b.Servers["v0"]
			change(b, v)
			r := cloudtest.Request(2, "a")
			had := b.On("v0")
			b.MustPlace(t, r)
			if v.Told > 0 || len(v.Warned) > 0 {
				t.Error("v0 was told to leave")
			}
			b.Has(t, "v0", had)
			b.Untouched(t, "v2", "v3")
			if free := b.Limit[cloudtest.Provider(0)] - b.Used(cloudtest.Provider(0)); free < 0 {
				t.Errorf("%d VCPU are free", free)
			}
			if b.On("a")[cloudtest.Host(0)] != 2 {
				t.Errorf("a has %v, want room on %s", b.On("a"), cloudtest.Host(0))
			}
		})
	}
}

func TestAVictimThatIsLockedDuringTheNoticeIsSpared(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Notice = time.Minute
	pass := b.Passes
	b.Passes = func(d time.Duration) {
		b.Servers["v0"].Locked = true
		pass(d)
	}
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Unharmed(t, "v0")
	if b.Servers["v0"].Told > 0 {
		t.Error("a locked instance was told to leave")
	}
	b.Gone(t, "v1")
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
}

func TestAVictimThatNovaDoesNotLetGoGetsBackWhatItHadAndAnotherGoes(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Servers["v0"].Refuses = true
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Unharmed(t, "v0")
	b.Gone(t, "v1")
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
}

func TestAVictimThatStillRunsWhenTheTimeIsUpGetsBackWhatItHadAndTheNextBestGoes(t *testing.T) {
	b := cloudtest.Full(t, 2)
	b.Servers["v0"].Takes = time.Hour
	begun := b.At
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Unharmed(t, "v0")
	b.Gone(t, "v1")
	b.Untouched(t, "v2", "v3")
	if waited := b.At.Sub(begun); waited < time.Minute || waited > time.Minute+10*time.Second {
		t.Errorf("placing took %v, want a minute and the time of the other victim", waited)
	}
	if b.MustPlace(t, cloudtest.Request(2, "b")); b.At.Sub(begun) > 2*time.Minute {
		t.Error("the next request has waited for the same instance")
	}
	b.Gone(t, "v2")
	b.MustSweep(t)
	b.Unharmed(t, "v0")
	if gone, stayed := b.Evicted(); gone != 2 || stayed != 1 {
		t.Errorf("%d are counted as gone and %d as stayed, want 2 and 1", gone, stayed)
	}
}

func TestWhereNoVictimGoesThereIsNoPlaceAndAllIsAsBefore(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Servers["v0"].Takes, b.Servers["v1"].Takes = time.Hour, time.Hour
	_, err := b.Place(t.Context(), cloudtest.Request(2, "a"))
	want := "There is no room for all of them. Instances that were to make room have not done so in time."
	if !fault.Is(err, fault.Conflict) || err.Error() != want {
		t.Errorf("got %v, want the conflict %q", err, want)
	}
	if got := b.Decided[0]; got.Reason != want || got.Placements != nil {
		t.Errorf("the decision is %+v", got)
	}
	b.Has(t, "a", map[string]int64{})
	b.Unharmed(t, "v0", "v1")
}

// locking locks v1 as soon as another instance is ordered to leave.
type locking struct {
	eviction.Servers
	b *cloudtest.Bench
}

func (l locking) Leave(ctx context.Context, i inventory.Instance) error {
	l.b.Servers["v1"].Locked = true
	return l.Servers.Leave(ctx, i)
}

// Each victim is looked at once more before its own order: its owner may have locked it since all were looked at.
func TestAVictimThatIsLockedWhileAnotherLeavesIsSpared(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Evictor.Servers = locking{b.Evictor.Servers, b}
	if _, err := b.Place(t.Context(), cloudtest.Request(3, "a")); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	b.Unharmed(t, "v1")
}

// A victim that has left cannot be restored when another one stays; its room is free.
func TestAVictimThatIsGoneStaysGoneWhereAnotherStays(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Servers["v1"].Takes = time.Hour
	if _, err := b.Place(t.Context(), cloudtest.Request(3, "a")); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	b.Gone(t, "v0")
	b.Unharmed(t, "v1")
	if gone, stayed := b.Evicted(); gone != 1 || stayed != 1 {
		t.Errorf("%d are counted as gone and %d as stayed, want one each", gone, stayed)
	}
	b.Has(t, "a", map[string]int64{})
	b.MustPlace(t, cloudtest.Request(2, "b"))
	b.Has(t, "b", map[string]int64{cloudtest.Host(0): 2})
}

func TestTwoRequestsThatRaceForAVictimTakeOneEach(t *testing.T) {
	b := cloudtest.Full(t, 2)
	other := cloudtest.New(t, b.Model, cloudtest.Never) // another replica with the same states
	b.MustPlace(t, cloudtest.Request(2, "a"))
	r := cloudtest.Request(2, "b")
	r.ID = "req-2"
	other.MustPlace(t, r)
	b.Gone(t, "v0", "v1")
	b.Untouched(t, "v2", "v3")
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
	b.Has(t, "b", map[string]int64{cloudtest.Host(0): 2})
}

// Another client changes the victim between the look and the claim: Placement refuses the
// generation before any instance is told to leave.
func TestAVictimWhoseGenerationHasChangedIsNotTouched(t *testing.T) {
	b := cloudtest.Full(t, 1)
	claims := 0
	b.Fate = func(call string) cloudtest.Fate {
		if call == "claim" {
			if claims++; claims == 1 {
				resized := b.Consumers["v0"]
				resized.Allocations = placing.Allocations{cloudtest.Provider(0): {"VCPU": 1}}
				if err := b.Grant([]placing.Claim{resized}); err != nil {
					t.Fatal(err)
				}
			}
		}
		return cloudtest.Fine
	}
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Has(t, "v0", map[string]int64{cloudtest.Host(0): 1})
	if v := b.Servers["v0"]; v.Told > 0 || v.Withdrawn != 1 {
		t.Errorf("v0 was told %d times to leave and %d times that it stays", v.Told, v.Withdrawn)
	}
	b.Gone(t, "v1")
}

// surplus returns a cloud with one host, whose 4 VCPUs one preemptible instance uses. Whenever time
// passes, two other preemptible requests, one here and one at another replica, try to get one of
// the VCPUs. tried counts these requests.
func surplus(t *testing.T) (b *cloudtest.Bench, tried *int) {
	t.Helper()
	c := cloudtest.NewCloud(4)
	c.Preemptible("v0", 0, 4)
	b, tried = cloudtest.New(t, c, cloudtest.Never), new(int)
	other, pass := cloudtest.New(t, c, cloudtest.Never), c.Passes
	c.Passes = func(d time.Duration) {
		if c.Servers["v0"] != nil {
			for _, one := range []*cloudtest.Bench{b, other} {
				r := cloudtest.Request(1, fmt.Sprint("other ", *tried))
				*tried++
				r.Preemptible = true
				if _, err := one.Place(t.Context(), r); !fault.Is(err, fault.Conflict) {
					t.Errorf("got %v, want no room", err)
				}
				if column := one.Board.Load().Column("VCPU"); column.Used[0] < c.Used(cloudtest.Provider(0)) {
					t.Errorf("the board has %d used, Placement %d", column.Used[0], c.Used(cloudtest.Provider(0)))
				}
			}
		}
		pass(d)
	}
	return b, tried
}

func TestWhatAVictimLeavesOverIsForNobodyUntilItIsGone(t *testing.T) {
	for _, leaveFirst := range []bool{false, true} {
		b, tried := surplus(t)
		b.EvictFirst, b.Notice = leaveFirst, time.Minute
		b.Servers["v0"].Takes = 10 * time.Second
		b.MustPlace(t, cloudtest.Request(2, "a"))
		b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
		b.Gone(t, "v0")
		if *tried < 4 {
			t.Errorf("others have tried %d times", *tried)
		}
		b.MustPlace(t, cloudtest.Request(2, "b"))
		b.Has(t, "b", map[string]int64{cloudtest.Host(0): 2})
	}
}

// forgetful keeps no decisions.
type forgetful struct{}

func (forgetful) Keep(placing.Decision) {}

func TestWhoFindsNoRoomWaitsForWhatAVictimLeavesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.NewCloud(4)
		c.Preemptible("v0", 0, 4)
		b := cloudtest.New(t, c, cloudtest.Never)
		b.Decisions = forgetful{}
		answer, asked, pass := make(chan error, 1), false, c.Passes
		c.Passes = func(d time.Duration) {
			if !asked {
				asked = true
				go func() {
					_, err := b.Place(t.Context(), cloudtest.Request(2, "b"))
					answer <- err
				}()
				synctest.Wait()
			}
			pass(d)
		}
		b.MustPlace(t, cloudtest.Request(2, "a"))
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
		b.Has(t, "b", map[string]int64{cloudtest.Host(0): 2})
	})
}

// Placement grants no fewer than 3, and the victim would keep 2.
func TestAVictimIsLeftNothingThatPlacementWouldRefuseIt(t *testing.T) {
	for takes, want := range map[time.Duration]map[string]int64{time.Second: {}, time.Hour: {cloudtest.Host(0): 6}} {
		c := cloudtest.NewCloud(6)
		c.Least = 3
		c.Preemptible("v0", 0, 6).Takes = takes
		b := cloudtest.New(t, c, cloudtest.Never)
		_, err := b.Place(t.Context(), cloudtest.Request(4, "a"))
		if stays := len(want) > 0; stays != (err != nil) {
			t.Errorf("got error %v", err)
		}
		b.Has(t, "v0", want)
	}
}

// Placement grants nothing on a host that is used beyond its capacity.
func TestVictimsMakeRoomOnAnOverfullHost(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Limit[cloudtest.Provider(0)] = 3
	if err := b.Look(t.Context(), []string{cloudtest.Host(0)}); err != nil {
		t.Fatal(err)
	}
	b.MustPlace(t, cloudtest.Request(1, "a"))
	b.Gone(t, "v0")
	b.Unharmed(t, "v1")
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 1})
}

// The caller stops waiting, or the notice ends without room: Almanac has not claimed anything
// yet.
func TestDuringTheNoticeNothingHappensThatWouldHaveToBeUndone(t *testing.T) {
	for _, wait := range []error{nil, context.DeadlineExceeded} {
		c := cloudtest.NewCloud(4)
		c.Preemptible("v0", 0, 4)
		b := cloudtest.New(t, c, func() error { return wait })
		b.Notice = time.Minute
		pass := c.Passes
		c.Passes = func(d time.Duration) {
			c.Servers["v0"].Locked = true
			pass(d)
		}
		if _, err := b.Place(t.Context(), cloudtest.Request(2, "a")); err == nil {
			t.Error("it has a place")
		}
		if n := cloudtest.Count(b.Calls, "claim"); n > 0 {
			t.Errorf("there were %d claims", n)
		}
		if v := c.Servers["v0"]; v.Told > 0 || v.Withdrawn != 1 {
			t.Errorf("v0 was told %d times to leave and %d times that it stays", v.Told, v.Withdrawn)
		}
		if used := b.Board.Load().Column("VCPU").Used[0]; used != 4 {
			t.Errorf("%d VCPU count as used, want 4", used)
		}
	}
}

// Nova has not received the order, or its answer was lost. A second order would delete a locked
// instance.
func TestALockedInstanceIsNotToldAgain(t *testing.T) {
	for _, lost := range []cloudtest.Fate{cloudtest.Before, cloudtest.After} {
		b := cloudtest.Full(t, 1)
		b.Servers["v0"].Takes, b.Servers["v1"].Locked = 10*time.Second, true
		b.Troubles("leave", lost)
		pass := b.Passes
		b.Passes = func(d time.Duration) {
			if s := b.Servers["v0"]; s != nil {
				s.Locked = true
			}
			pass(d)
		}
		_, err := b.Place(t.Context(), cloudtest.Request(2, "a"))
		if n := cloudtest.Count(b.Calls, "leave"); n != 1 {
			t.Errorf("there were %d orders, want 1", n)
		}
		if lost == cloudtest.Before {
			b.Unharmed(t, "v0", "v1")
		} else if b.Gone(t, "v0"); err != nil {
			t.Error(err)
		}
	}
}

func TestWhoMovesIsWaitedForBeforeItsPlaceIsClaimed(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.EvictFirst = true
	b.Servers["v0"].Takes = 3 * time.Second
	b.Fate = func(call string) cloudtest.Fate {
		if call == "claim" && b.Servers["v0"] != nil {
			t.Error("it was claimed while the victim was there")
		}
		return cloudtest.Fine
	}
	placed := b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
	b.Gone(t, "v0")
	b.Return(placed)
	b.MustSweep(t)
	b.Has(t, "a", map[string]int64{})
}

// The move of one request's victim requests a host too.
func TestNoMoreThanSomeRequestsWaitForVictimsToMove(t *testing.T) {
	c := cloudtest.NewCloud(2, 2, 2)
	for i := range 2 {
		c.Preemptible(cloudtest.Preemptible(i), i, 2)
	}
	b := cloudtest.New(t, c, cloudtest.Never)
	b.EvictFirst = true
	o := b.Dispatcher.Options
	o.MaxWaiting = 1
	b.Dispatcher = dispatch.New(o)
	b.MustPlace(t, cloudtest.Request(2, "first"))
	pass, tried := c.Passes, false
	c.Passes = func(d time.Duration) {
		if !tried {
			tried = true
			if _, err := b.Place(t.Context(), cloudtest.Request(2, "b")); !fault.Is(err, fault.Unavailable) {
				t.Errorf("got %v, want an unavailable fault", err)
			}
		}
		pass(d)
	}
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.MustPlace(t, cloudtest.Request(2, "b"))
	b.Gone(t, "v0", "v1")
}

// A migration releases the old host some moments after the instance has moved.
func TestAPlaceThatIsNotFreeYetIsWaitedFor(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.EvictFirst = true
	pass := b.Passes
	b.Passes = func(d time.Duration) {
		pass(d)
		switch has, moving := b.Consumers["migration"]; {
		case b.Servers["v0"] == nil && !moving && has.Generation == nil:
			_ = b.Grant([]placing.Claim{{Consumer: "migration", Allocations: placing.Allocations{cloudtest.Provider(0): {"VCPU": 2}}}})
		case d > time.Second:
			delete(b.Consumers, "migration")
		}
	}
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
	b.Untouched(t, "v1")
}

func TestAPreemptibleRequestDisplacesNobody(t *testing.T) {
	b := cloudtest.Full(t, 1)
	r := cloudtest.Request(2, "a")
	r.Preemptible = true
	if _, err := b.Place(t.Context(), r); !fault.Is(err, fault.Conflict) || strings.Contains(err.Error(), "make room") {
		t.Errorf("got %v, want no place", err)
	}
	b.Untouched(t, "v0", "v1")
	b.Called(t)
}
