// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
)

func names(selections []dispatch.Selection) (hosts []string) {
	for _, s := range selections {
		hosts = append(hosts, s.Host.Name)
	}
	return hosts
}

func TestInstancesAreClaimedAtOnceAndGetAlternates(t *testing.T) {
	b := cloudtest.Calm(t, 4, 2, 8)
	placed := b.MustPlace(t, cloudtest.Request(2, "a", "b", "c"))
	b.Called(t, "claim")
	for i, want := range [][]string{{cloudtest.Host(0), cloudtest.Host(1), cloudtest.Host(2)}, {cloudtest.Host(0), cloudtest.Host(1), cloudtest.Host(2)}, {cloudtest.Host(1), cloudtest.Host(2)}} {
		if got := names(placed.Selections[i]); !slices.Equal(got, want) {
			t.Errorf("instance %d has %v, want %v", i, got, want)
		}
	}
	b.Has(t, "c", map[string]int64{cloudtest.Host(1): 2})
	want := `{"allocations":{"` + cloudtest.Provider(2) + `":{"resources":{"VCPU":2}}},"mappings":{"":["` + cloudtest.Provider(2) + `"]}}`
	if got, err := placed.Selections[0][2].AllocationRequest(); err != nil || got != want {
		t.Errorf("the request for an alternate is %s (%v), want %s", got, err, want)
	}
	if used := b.Board.Load().Column("VCPU").Used; !slices.Equal(used, []int64{4, 2, 0}) {
		t.Errorf("the board counts %v as used, want [4 2 0]", used)
	}
}

// A reservation of instances has its class in a child provider. An instance that boots from a
// volume uses no disk.
func TestAllocationsAreOfTheProviderThatHasTheClass(t *testing.T) {
	const class, child = "CUSTOM_ALMANAC_RESERVATION_X", "00000000-0000-4000-8000-00000000c41d"
	b := cloudtest.Calm(t, 4)
	h := *b.Board.Load().Host(0)
	h.Stocks[class] = inventory.Stock{Provider: child, Total: 1, Ratio: 1}
	b.Stock = func(provider, class string) (inventory.Stock, bool) {
		s, has := h.Stocks[class]
		return s, has && s.Provider == provider
	}
	states, err := inventory.NewStates([]inventory.HostState{h}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Board.Replace(b.Board.BeginRead(), states, nil)
	r := cloudtest.Request(2, "a")
	r.Resources[class], r.Resources["DISK_GB"] = 1, 0
	want := placing.Allocations{cloudtest.Provider(0): {"VCPU": 2}, child: {class: 1}}
	if diff := cmp.Diff(want, b.MustPlace(t, r).Selections[0][0].Allocations); diff != "" {
		t.Errorf("allocations (-want +got):\n%s", diff)
	}
}

func TestARebuildClaimsNothing(t *testing.T) {
	b := cloudtest.Calm(t, 4)
	r := cloudtest.Request(2, "a")
	r.Rebuild = true
	placed := b.MustPlace(t, r)
	b.Called(t)
	b.Free(t)
	if text, err := placed.Selections[0][0].AllocationRequest(); err != nil || text != "null" || len(placed.Selections[0]) != 1 {
		t.Errorf("got %v with %q (%v), want one host with null", names(placed.Selections[0]), text, err)
	}
}

func TestWhatTakesNothingIsNotClaimed(t *testing.T) {
	b := cloudtest.Calm(t, 4)
	b.MustPlace(t, cloudtest.Request(0, "a"))
	b.Called(t)
}

func TestNoRoomIsAConflictThatSaysWhy(t *testing.T) {
	b := cloudtest.Calm(t, 4, 1)
	_, err := b.Place(t.Context(), cloudtest.Request(2, "a", "b", "c"))
	if !fault.Is(err, fault.Conflict) || err.Error() != "There is no room for all of them." {
		t.Errorf("got %v, want the sentence of the plan as a conflict", err)
	}
	b.Called(t)
	b.Free(t)
}

func TestEveryDecisionIsKept(t *testing.T) {
	b := cloudtest.Calm(t, 4)
	b.MustPlace(t, cloudtest.Request(2, "a"))
	_, _ = b.Place(t.Context(), cloudtest.Request(3, "b"))
	b.Troubles("claim", cloudtest.Unsent, cloudtest.Unsent, cloudtest.Unsent, cloudtest.Unsent, cloudtest.Unsent, cloudtest.Unsent, cloudtest.Unsent, cloudtest.Unsent)
	_, _ = b.Place(t.Context(), cloudtest.Request(2, "c"))
	want := cloudtest.Kept{
		{RequestID: "req-1", Instances: []string{"a"}, Considered: 1, Placements: []placing.Placement{{Instance: "a", Host: cloudtest.Host(0)}}},
		{RequestID: "req-1", Reason: "There is no room for all of them."},
		{RequestID: "req-1", Instances: []string{"c"}, Considered: 1, Reason: "Placement did not grant it in time; try again later"},
	}
	for i := range want {
		want[i].HandledBy, want[i].At = placing.Replaced, 1_900_000_000
	}
	if diff := cmp.Diff(want, b.Decided); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

func TestAHostThatAnotherHasFilledIsReadAnewAndAnotherTaken(t *testing.T) {
	b := cloudtest.Calm(t, 4, 4)
	stranger := placing.Claim{Consumer: "stranger", Allocations: placing.Allocations{cloudtest.Provider(0): {"VCPU": 3}}}
	if err := b.Grant([]placing.Claim{stranger}); err != nil {
		t.Fatal(err)
	}
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Called(t, "claim", "look", "claim")
	b.Has(t, "a", map[string]int64{cloudtest.Host(1): 2})
	if used := b.Board.Load().Column("VCPU").Used; !slices.Equal(used, []int64{3, 2}) {
		t.Errorf("the board counts %v as used, want [3 2]", used)
	}
}

// A reading that overlaps a placement may or may not contain it, so the instance may count twice.
func TestWhereRoomMayCountTwiceTheHostIsReadAnew(t *testing.T) {
	b := cloudtest.Calm(t, 4)
	reading := b.Board.BeginRead()
	b.MustPlace(t, cloudtest.Request(2, "a"))
	states, err := inventory.NewStates([]inventory.HostState{{Name: cloudtest.Host(0), Node: cloudtest.Host(0), Provider: cloudtest.Provider(0), Stocks: b.Stocks(0)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Board.Replace(reading, states, nil)
	b.Calls = nil
	b.MustPlace(t, cloudtest.Request(2, "b"))
	b.Called(t, "look", "claim")
	if _, err := b.Place(t.Context(), cloudtest.Request(1, "c")); !fault.Is(err, fault.Conflict) {
		t.Errorf("a full host: %v", err)
	}
}

// Nova does not report everything that leaves a host.
func TestBeforeThereIsNoPlaceAllHostsAreReadAnewOnce(t *testing.T) {
	c := cloudtest.NewCloud(4, 4)
	for i, stranger := range []string{"a", "b"} {
		if err := c.Grant([]placing.Claim{{Consumer: stranger, Allocations: placing.Allocations{cloudtest.Provider(i): {"VCPU": 3}}}}); err != nil {
			t.Fatal(err)
		}
	}
	b := cloudtest.New(t, c, cloudtest.Never)
	b.Reread = func(context.Context) error {
		if b.Model.Call("reread") != cloudtest.Fine {
			return cloudtest.Away
		}
		for i := range len(b.Limit) {
			b.Board.CorrectHost(b.Board.BeginRead(), cloudtest.Host(i), b.Stocks(i), nil)
		}
		return nil
	}
	if _, err := b.Place(t.Context(), cloudtest.Request(3, "c")); !fault.Is(err, fault.Conflict) {
		t.Errorf("where there is no room the error is %v", err)
	}
	b.Called(t, "reread")
	delete(b.Consumers, "b")
	b.Troubles("reread", cloudtest.Before)
	b.Calls = nil
	if _, err := b.Place(t.Context(), cloudtest.Request(3, "d")); !fault.Is(err, fault.Conflict) {
		t.Errorf("where the hosts cannot be read the error is %v", err)
	}
	b.Called(t, "reread")
	b.Calls = nil
	b.MustPlace(t, cloudtest.Request(3, "e"))
	b.Called(t, "reread", "claim")
	b.Has(t, "e", map[string]int64{cloudtest.Host(1): 3})
}

func TestAReadingServesAllWhoHaveWaitedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := cloudtest.Calm(t, 4)
		var readings atomic.Int64
		more := make(chan struct{})
		b.Reread = func(context.Context) error {
			readings.Add(1)
			<-more
			return nil
		}
		b.Decisions = &lockedDecisions{}
		var refused sync.WaitGroup
		refuse := func() {
			refused.Go(func() {
				if _, err := b.Place(t.Context(), cloudtest.Request(5, "large")); !fault.Is(err, fault.Conflict) {
					t.Errorf("the error is %v", err)
				}
			})
		}
		refuse()
		synctest.Wait() // the reading has begun
		for range 4 {
			refuse()
		}
		synctest.Wait()
		close(more)
		refused.Wait()
		if n := readings.Load(); n != 2 {
			t.Errorf("for one early and four later requests the hosts were read %d times, want 2", n)
		}
	})
}

// lockedDecisions keeps decisions of several goroutines.
type lockedDecisions struct {
	mu sync.Mutex
	cloudtest.Kept
}

func (l *lockedDecisions) Keep(d placing.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Kept.Keep(d)
}

func TestAPanicHoldsNoRoom(t *testing.T) {
	b := cloudtest.Calm(t, 4)
	b.Fate = func(string) cloudtest.Fate { panic("an answer of Placement that nobody expected") }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		_, _ = b.Place(t.Context(), cloudtest.Request(4, "a"))
	}()
	states, err := inventory.NewStates([]inventory.HostState{{Name: cloudtest.Host(0), Node: cloudtest.Host(0), Provider: cloudtest.Provider(0), Stocks: b.Stocks(0)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Board.Replace(b.Board.BeginRead(), states, nil)
	if used := b.Board.Load().Column("VCPU").Used; used[0] != 0 {
		t.Errorf("%d VCPU are held", used[0])
	}
}

// Placement may refuse for a reason that Almanac cannot see.
func TestAHostThatIsRefusedThoughThereIsRoomIsLeftOut(t *testing.T) {
	b := cloudtest.Calm(t, 4, 4)
	b.Seen = func(int) int64 { return 4 }
	b.Limit[cloudtest.Provider(0)] = 0
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Called(t, "claim", "look", "claim", "look", "claim", "look", "claim")
	b.Has(t, "a", map[string]int64{cloudtest.Host(1): 2})
}

func TestAHostThatCannotBeReadAnewIsLeftOut(t *testing.T) {
	b := cloudtest.Calm(t, 4, 4)
	b.Limit[cloudtest.Provider(0)] = 0
	b.Troubles("look", cloudtest.Before)
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Called(t, "claim", "look", "claim")
	b.Has(t, "a", map[string]int64{cloudtest.Host(1): 2})
}

func TestAnInstanceThatIsEvacuatedKeepsItsSource(t *testing.T) {
	b := cloudtest.Calm(t, 4, 4)
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Calls = nil
	r := cloudtest.Request(2, "a")
	r.IgnoreHosts = []string{cloudtest.Host(0)}
	placed := b.MustPlace(t, r)
	b.Called(t, "claim", "read", "claim")
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2, cloudtest.Host(1): 2})
	if want := (placing.Allocations{cloudtest.Provider(1): {"VCPU": 2}}); !placed.Selections[0][0].Allocations.Equal(want) {
		t.Errorf("selected is %v, want %v alone", placed.Selections[0][0].Allocations, want)
	}
	b.Return(placed)
	if err := b.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
}

func TestALostAnswerIsLookedUp(t *testing.T) {
	for f, calls := range map[cloudtest.Fate][]string{
		cloudtest.After:  {"claim", "read"},
		cloudtest.Before: {"claim", "read", "claim"},
		cloudtest.Later:  {"claim", "read", "claim"},
		cloudtest.Unsent: {"claim", "claim"},
	} {
		b := cloudtest.Calm(t, 4, 4)
		b.Troubles("claim", f)
		b.MustPlace(t, cloudtest.Request(2, "a"))
		b.Called(t, calls...)
		b.CarryOut()
		b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
	}
}

// Placement carries out the lost claim after another host has been chosen.
func TestALostClaimThatIsGrantedLateIsReplaced(t *testing.T) {
	b := cloudtest.Calm(t, 4, 4)
	var claims int
	b.Fate = func(call string) cloudtest.Fate {
		if call != "claim" {
			return cloudtest.Fine
		}
		switch claims++; claims {
		case 1:
			return cloudtest.Later
		case 2:
			b.Limit[cloudtest.Provider(0)] = 1 // Placement refuses this claim
		case 3:
			b.Limit[cloudtest.Provider(0)] = 4
			b.CarryOut()
		}
		return cloudtest.Fine
	}
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Called(t, "claim", "read", "claim", "look", "claim", "read", "claim")
	b.Has(t, "a", map[string]int64{cloudtest.Host(1): 2})
}

func TestWhenPlacementIsAwayAllEndsAndNothingStays(t *testing.T) {
	for _, f := range []cloudtest.Fate{cloudtest.Unsent, cloudtest.Before} {
		b := cloudtest.Calm(t, 4)
		b.Fate = func(string) cloudtest.Fate { return f }
		_, err := b.Place(t.Context(), cloudtest.Request(2, "a"))
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "try again") || len(b.Calls) != 8 {
			t.Errorf("got %v after %v, want an unavailable fault after 8 calls", err, b.Calls)
		}
		if f == cloudtest.Unsent {
			b.Free(t)
		}
	}
}

func TestNothingIsTriedWhenTheTimeIsUp(t *testing.T) {
	b := cloudtest.Calm(t, 4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Place(ctx, cloudtest.Request(2, "a")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want an unavailable fault", err)
	}
	b.Called(t)
	b.Free(t)
}

func TestAClaimThatMayComeYetIsLookedForForSomeTime(t *testing.T) {
	b := cloudtest.New(t, cloudtest.NewCloud(4), func() error { return context.DeadlineExceeded })
	b.Fate = func(call string) cloudtest.Fate {
		if call == "claim" {
			return cloudtest.Later
		}
		return cloudtest.Before
	}
	if _, err := b.Place(t.Context(), cloudtest.Request(2, "a")); err == nil {
		t.Fatal("it was placed")
	}
	b.Fate = func(string) cloudtest.Fate { return cloudtest.Fine }
	sweep := func(want ...string) {
		t.Helper()
		b.Calls = nil
		if err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.Called(t, want...)
	}
	sweep("read")
	b.CarryOut()
	sweep("read", "release")
	b.Has(t, "a", map[string]int64{})
	b.At = b.At.Add(time.Hour)
	b.Calls = nil
	if err := b.Sweep(t.Context()); err != nil || len(b.Calls) > 0 {
		t.Errorf("there were calls %v (%v) with nothing to sweep", b.Calls, err)
	}
}

// Placement keeps a consumer after it has broken off its first claim.
func TestAConsumerThatWasBrokenOffIsClaimedForAfterAWhile(t *testing.T) {
	b := cloudtest.Calm(t, 4)
	b.Strays["a"] = true
	b.MustPlace(t, cloudtest.Request(2, "a"))
	b.Called(t, "claim", "read", "claim", "read", "claim", "read", "claim")
	b.Has(t, "a", map[string]int64{cloudtest.Host(0): 2})
}

func TestWhatIsReturnedIsReleasedUnlessItHasChanged(t *testing.T) {
	b := cloudtest.Calm(t, 8)
	one, other := b.MustPlace(t, cloudtest.Request(2, "a")), b.MustPlace(t, cloudtest.Request(2, "b"))
	b.Return(one)
	b.Return(other)
	resized := b.Consumers["b"]
	resized.Allocations = placing.Allocations{cloudtest.Provider(0): {"VCPU": 3}}
	if err := b.Grant([]placing.Claim{resized}); err != nil {
		t.Fatal(err)
	}
	b.Troubles("read", cloudtest.Before)
	if err := b.Sweep(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v from a sweep while Placement is away", err)
	}
	if err := b.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Has(t, "a", map[string]int64{})
	b.Has(t, "b", map[string]int64{cloudtest.Host(0): 3})
}
