// SPDX-License-Identifier: Apache-2.0

package eviction_test

import (
	"context"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
)

func TestALostAnswerToAnEvictionIsLookedUp(t *testing.T) {
	for _, f := range []cloudtest.Fate{cloudtest.After, cloudtest.Before, cloudtest.Later, cloudtest.Unsent} {
		b := cloudtest.Full(t, 1)
		b.Troubles("claim", f)
		b.MustPlace(t, cloudtest.Request(2, "a"))
		b.CarryOut()
		b.Gone(t, "v0")
		b.Untouched(t, "v1")
		b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
		b.At = b.At.Add(time.Hour)
		b.MustSweep(t)
		b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
	}
}

// Placement carries out the lost transaction after all callers have stopped waiting.
func TestAVictimOfAClaimThatCameLateGetsBackWhatItHad(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Fate = func(call string) cloudtest.Fate {
		if call == "claim" {
			return cloudtest.Later
		}
		return cloudtest.Fine
	}
	if _, err := b.Place(t.Context(), cloudtest.Request(2, "a")); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v, want an unavailable fault", err)
	}
	b.Fate = func(string) cloudtest.Fate { return cloudtest.Fine }
	b.MustSweep(t)
	b.Unharmed(t, "v0", "v1")
	b.CarryOut()
	b.Has(t, "v0", map[string]int64{})
	b.MustSweep(t)
	b.Unharmed(t, "v0", "v1")
	b.Has(t, "a", map[string]int64{})
}

// The caller stops waiting while a victim is leaving.
func TestWhenTheTimeOfTheRequestIsUpAVictimThatStillRunsGetsBackWhatItHad(t *testing.T) {
	for _, placement := range []cloudtest.Fate{cloudtest.Fine, cloudtest.Before} {
		waits := 0
		c := cloudtest.NewCloud(4)
		c.Preemptible("v0", 0, 2).Takes = time.Hour
		c.Preemptible("v1", 0, 2)
		b := cloudtest.New(t, c, func() error {
			if waits++; waits > 3 {
				b := placement
				c.Fate = func(call string) cloudtest.Fate {
					if call == "claim" {
						return b
					}
					return cloudtest.Fine
				}
				return context.DeadlineExceeded
			}
			return nil
		})
		if _, err := b.Place(t.Context(), cloudtest.Request(3, "a")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want an unavailable fault", err)
		}
		b.Fate = func(string) cloudtest.Fate { return cloudtest.Fine }
		b.MustSweep(t)
		b.Unharmed(t, "v0")
		b.Has(t, "a", map[string]int64{})
	}
}

// Meanwhile an operator reserves some of the host.
func TestWhatCannotBeGivenBackIsTriedUntilThereIsRoom(t *testing.T) {
	c := cloudtest.NewCloud(4)
	c.Preemptible("v0", 0, 4).Takes = time.Hour
	b := cloudtest.New(t, c, cloudtest.Never)
	pass := c.Passes
	c.Passes = func(d time.Duration) {
		c.Limit[cloudtest.Provider(0)] = 3
		pass(d)
	}
	if _, err := b.Place(t.Context(), cloudtest.Request(2, "a")); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	b.Has(t, "a", map[string]int64{})
	b.Has(t, "v0", map[string]int64{cloudtest.Host(0): 2})
	b.At = b.At.Add(time.Hour)
	if err := b.Sweep(t.Context()); err == nil {
		t.Error("a sweep has succeeded while there is no room")
	}
	c.Limit[cloudtest.Provider(0)] = 4
	b.MustSweep(t)
	b.Has(t, "v0", map[string]int64{cloudtest.Host(0): 4})
	b.MustSweep(t)
	calls := len(b.Calls)
	if b.MustSweep(t); len(b.Calls) > calls {
		t.Errorf("there were calls %v with nothing to sweep", b.Calls[calls:])
	}
}

func TestAVictimThatStaysHasAllItHadWhateverOthersTake(t *testing.T) {
	b, _ := surplus(t)
	b.Servers["v0"].Takes = time.Hour
	if _, err := b.Place(t.Context(), cloudtest.Request(2, "a")); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	b.Has(t, "v0", map[string]int64{cloudtest.Host(0): 4})
	b.Has(t, "a", map[string]int64{})
}

// The answer to the first claim is lost, and then Placement is away.
func TestAVictimThatIsToGetBackWhatItHadMakesNoRoomBefore(t *testing.T) {
	c := cloudtest.NewCloud(4)
	c.Preemptible("v0", 0, 4).Takes = time.Hour
	b := cloudtest.New(t, c, cloudtest.Never)
	claimed := false
	b.Fate = func(call string) cloudtest.Fate {
		switch {
		case call == "claim" && !claimed:
			claimed = true
			return cloudtest.After
		case call == "read" && claimed:
			return cloudtest.Before
		}
		return cloudtest.Fine
	}
	if _, err := b.Place(t.Context(), cloudtest.Request(1, "a")); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v, want an unavailable fault", err)
	}
	b.Fate = func(string) cloudtest.Fate { return cloudtest.Fine }
	b.Has(t, "v0", map[string]int64{cloudtest.Host(0): 3})
	if err := b.Look(t.Context(), []string{cloudtest.Host(0)}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Place(t.Context(), cloudtest.Request(1, "b")); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	b.MustSweep(t)
	b.Has(t, "v0", map[string]int64{cloudtest.Host(0): 4})
	if n := c.Servers["v0"].Told; n > 0 {
		t.Errorf("v0 was told to leave %d times", n)
	}
}

// The victim leaves at the moment that it gets back what it had.
func TestWhatAVictimGotBackInVainIsTakenAway(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Servers["v0"].Takes = time.Hour
	b.Servers["v1"].Locked = true
	if _, err := b.Place(t.Context(), cloudtest.Request(2, "a")); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	b.Unharmed(t, "v0")
	delete(b.Servers, "v0")
	b.MustSweep(t)
	b.Gone(t, "v0")
}

func TestWhatIsReturnedAfterAnEvictionIsReleasedAndTheVictimStaysGone(t *testing.T) {
	b := cloudtest.Full(t, 1)
	b.Return(b.MustPlace(t, cloudtest.Request(2, "a")))
	b.MustSweep(t)
	b.Has(t, "a", map[string]int64{})
	b.Gone(t, "v0")
	b.Untouched(t, "v1")
}
