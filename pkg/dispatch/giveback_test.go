package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

func TestALostAnswerToAnEvictionIsLookedUp(t *testing.T) {
	for _, f := range []fate{after, before, later, unsent} {
		b := full(t, 1)
		b.troubles("claim", f)
		b.place(t, request(2, "a"))
		b.carryOut()
		b.isGone(t, "v0")
		b.untouched(t, "v1")
		b.has(t, "a", map[string]int64{host(0): 2})
		b.now = b.now.Add(time.Hour)
		b.sweep(t)
		b.has(t, "a", map[string]int64{host(0): 2})
	}
}

// The transaction of which nobody has heard is carried out when all have given up.
func TestAVictimOfAClaimThatCameLateGetsBackWhatItHad(t *testing.T) {
	b := full(t, 1)
	b.fate = func(call string) fate {
		if call == "claim" {
			return later
		}
		return fine
	}
	if _, err := b.Place(t.Context(), request(2, "a")); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v, want an unavailable fault", err)
	}
	b.fate = func(string) fate { return fine }
	b.sweep(t)
	b.unharmed(t, "v0", "v1")
	b.carryOut()
	b.has(t, "v0", map[string]int64{})
	b.sweep(t)
	b.unharmed(t, "v0", "v1")
	b.has(t, "a", map[string]int64{})
}

// Who asked has gone away while a victim was leaving.
func TestWhenTheTimeOfTheRequestIsUpAVictimThatStillRunsGetsBackWhatItHad(t *testing.T) {
	for _, placement := range []fate{fine, before} {
		waits := 0
		c := newCloud(4)
		c.preemptible("v0", 0, 2).takes = time.Hour
		c.preemptible("v1", 0, 2)
		b := newBench(t, c, func() error {
			if waits++; waits > 3 {
				b := placement
				c.fate = func(call string) fate {
					if call == "claim" {
						return b
					}
					return fine
				}
				return context.DeadlineExceeded
			}
			return nil
		})
		if _, err := b.Place(t.Context(), request(3, "a")); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want an unavailable fault", err)
		}
		b.fate = func(string) fate { return fine }
		b.sweep(t)
		b.unharmed(t, "v0")
		b.has(t, "a", map[string]int64{})
	}
}

// An operator has reserved some of the host meanwhile.
func TestWhatCannotBeGivenBackIsTriedUntilThereIsRoom(t *testing.T) {
	c := newCloud(4)
	c.preemptible("v0", 0, 4).takes = time.Hour
	b := newBench(t, c, never)
	pass := c.passes
	c.passes = func(d time.Duration) {
		c.limit[provider(0)] = 3
		pass(d)
	}
	if _, err := b.Place(t.Context(), request(2, "a")); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	b.has(t, "a", map[string]int64{})
	b.has(t, "v0", map[string]int64{host(0): 2})
	b.now = b.now.Add(time.Hour)
	if err := b.Sweep(t.Context()); err == nil {
		t.Error("a sweep has succeeded while there is no room")
	}
	c.limit[provider(0)] = 4
	b.sweep(t)
	b.has(t, "v0", map[string]int64{host(0): 4})
	b.sweep(t)
	calls := len(b.calls)
	if b.sweep(t); len(b.calls) > calls {
		t.Errorf("there were calls %v with nothing to sweep", b.calls[calls:])
	}
}

func TestAVictimThatStaysHasAllItHadWhateverOthersTake(t *testing.T) {
	b, _ := surplus(t)
	b.servers["v0"].takes = time.Hour
	if _, err := b.Place(t.Context(), request(2, "a")); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	b.has(t, "v0", map[string]int64{host(0): 4})
	b.has(t, "a", map[string]int64{})
}

// The answer to the first claim was lost, and Placement then away.
func TestAVictimThatIsToGetBackWhatItHadMakesNoRoomBefore(t *testing.T) {
	c := newCloud(4)
	c.preemptible("v0", 0, 4).takes = time.Hour
	b := newBench(t, c, never)
	claimed := false
	b.fate = func(call string) fate {
		switch {
		case call == "claim" && !claimed:
			claimed = true
			return after
		case call == "read" && claimed:
			return before
		}
		return fine
	}
	if _, err := b.Place(t.Context(), request(1, "a")); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v, want an unavailable fault", err)
	}
	b.fate = func(string) fate { return fine }
	b.has(t, "v0", map[string]int64{host(0): 3})
	if err := b.Look(t.Context(), []string{host(0)}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Place(t.Context(), request(1, "b")); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	b.sweep(t)
	b.has(t, "v0", map[string]int64{host(0): 4})
	if n := c.servers["v0"].told; n > 0 {
		t.Errorf("it was told to leave %d times", n)
	}
}

// It goes in the moment in which it gets back what it had.
func TestWhatAVictimGotBackInVainIsTakenAway(t *testing.T) {
	b := full(t, 1)
	b.servers["v0"].takes = time.Hour
	b.servers["v1"].Locked = true
	if _, err := b.Place(t.Context(), request(2, "a")); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	b.unharmed(t, "v0")
	delete(b.servers, "v0")
	b.sweep(t)
	b.isGone(t, "v0")
}

func TestWhatIsReturnedAfterAnEvictionIsReleasedAndTheVictimStaysGone(t *testing.T) {
	b := full(t, 1)
	b.Return(b.place(t, request(2, "a")))
	b.sweep(t)
	b.has(t, "a", map[string]int64{})
	b.isGone(t, "v0")
	b.untouched(t, "v1")
}
