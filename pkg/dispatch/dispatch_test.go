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
)

// calm is a cloud without trouble.
func calm(t *testing.T, limits ...int64) *bench {
	t.Helper()
	return newBench(t, newCloud(limits...), never)
}

// troubles makes the next calls of the name end so, and all others as they should.
func (c *cloud) troubles(call string, fates ...fate) {
	c.fate = func(now string) fate {
		if now != call || len(fates) == 0 {
			return fine
		}
		next := fates[0]
		fates = fates[1:]
		return next
	}
}

func (b *bench) called(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, b.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func (b *bench) has(t *testing.T, consumer string, want map[string]int64) {
	t.Helper()
	if diff := cmp.Diff(want, b.on(consumer)); diff != "" {
		t.Errorf("%s has (-want +got):\n%s", consumer, diff)
	}
}

// free says that nothing is counted on the board.
func (b *bench) free(t *testing.T) {
	t.Helper()
	for i, used := range b.board.Load().Column("VCPU").Used {
		if used != 0 {
			t.Errorf("%d VCPU of %s count as used", used, host(i))
		}
	}
}

func names(selections []dispatch.Selection) (hosts []string) {
	for _, s := range selections {
		hosts = append(hosts, s.Host.Name)
	}
	return hosts
}

func TestInstancesAreClaimedAtOnceAndGetAlternates(t *testing.T) {
	b := calm(t, 4, 2, 8)
	placed := b.place(t, request(2, "a", "b", "c"))
	b.called(t, "claim")
	for i, want := range [][]string{{host(0), host(1), host(2)}, {host(0), host(1), host(2)}, {host(1), host(2)}} {
		if got := names(placed.Selections[i]); !slices.Equal(got, want) {
			t.Errorf("instance %d has %v, want %v", i, got, want)
		}
	}
	b.has(t, "c", map[string]int64{host(1): 2})
	want := `{"allocations":{"` + provider(2) + `":{"resources":{"VCPU":2}}},"mappings":{"":["` + provider(2) + `"]}}`
	if got, err := placed.Selections[0][2].AllocationRequest(); err != nil || got != want {
		t.Errorf("the request for an alternate is %s (%v), want %s", got, err, want)
	}
	if used := b.board.Load().Column("VCPU").Used; !slices.Equal(used, []int64{4, 2, 0}) {
		t.Errorf("the board counts %v as used, want [4 2 0]", used)
	}
}

// A reservation of instances has its class in a child provider; an instance that boots
// from a volume takes no disk.
func TestAllocationsAreOfTheProviderThatHasTheClass(t *testing.T) {
	const class, child = "CUSTOM_ALMANAC_RESERVATION_X", "00000000-0000-4000-8000-00000000c41d"
	b := calm(t, 4)
	h := *b.board.Load().Host(0)
	h.Stocks[class] = inventory.Stock{Provider: child, Total: 1, Ratio: 1}
	states, err := inventory.NewStates([]inventory.HostState{h}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.board.Replace(b.board.BeginRead(), states, nil)
	r := request(2, "a")
	r.Resources[class], r.Resources["DISK_GB"] = 1, 0
	want := placing.Allocations{provider(0): {"VCPU": 2}, child: {class: 1}}
	if diff := cmp.Diff(want, b.place(t, r).Selections[0][0].Allocations); diff != "" {
		t.Errorf("allocations (-want +got):\n%s", diff)
	}
}

func TestARebuildClaimsNothing(t *testing.T) {
	b := calm(t, 4)
	r := request(2, "a")
	r.Rebuild = true
	placed := b.place(t, r)
	b.called(t)
	b.free(t)
	if text, err := placed.Selections[0][0].AllocationRequest(); err != nil || text != "null" || len(placed.Selections[0]) != 1 {
		t.Errorf("got %v with %q (%v), want one host with null", names(placed.Selections[0]), text, err)
	}
}

func TestWhatTakesNothingIsNotClaimed(t *testing.T) {
	b := calm(t, 4)
	b.place(t, request(0, "a"))
	b.called(t)
}

func TestNoRoomIsAConflictThatSaysWhy(t *testing.T) {
	b := calm(t, 4, 1)
	_, err := b.Place(t.Context(), request(2, "a", "b", "c"))
	if !fault.Is(err, fault.Conflict) || err.Error() != "There is no room for all of them." {
		t.Errorf("got %v, want the sentence of the plan as a conflict", err)
	}
	b.called(t)
	b.free(t)
}

func TestEveryDecisionIsKept(t *testing.T) {
	b := calm(t, 4)
	b.place(t, request(2, "a"))
	_, _ = b.Place(t.Context(), request(3, "b"))
	b.troubles("claim", unsent, unsent, unsent, unsent, unsent, unsent, unsent, unsent)
	_, _ = b.Place(t.Context(), request(2, "c"))
	want := kept{
		{RequestID: "req-1", Instances: []string{"a"}, Considered: 1, Placements: []placing.Placement{{Instance: "a", Host: host(0)}}},
		{RequestID: "req-1", Reason: "There is no room for all of them."},
		{RequestID: "req-1", Instances: []string{"c"}, Considered: 1, Reason: "Placement did not grant it in time; try again later"},
	}
	for i := range want {
		want[i].Way, want[i].At = placing.Replaced, 1_900_000_000
	}
	if diff := cmp.Diff(want, b.decisions); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

func TestAHostThatAnotherHasFilledIsReadAnewAndAnotherTaken(t *testing.T) {
	b := calm(t, 4, 4)
	stranger := placing.Claim{Consumer: "stranger", Allocations: placing.Allocations{provider(0): {"VCPU": 3}}}
	if err := b.grant([]placing.Claim{stranger}); err != nil {
		t.Fatal(err)
	}
	b.place(t, request(2, "a"))
	b.called(t, "claim", "look", "claim")
	b.has(t, "a", map[string]int64{host(1): 2})
	if used := b.board.Load().Column("VCPU").Used; !slices.Equal(used, []int64{3, 2}) {
		t.Errorf("the board counts %v as used, want [3 2]", used)
	}
}

// A reading that was under way while an instance was placed may have it or not, so that
// it counts twice.
func TestWhereRoomMayCountTwiceTheHostIsReadAnew(t *testing.T) {
	b := calm(t, 4)
	reading := b.board.BeginRead()
	b.place(t, request(2, "a"))
	states, err := inventory.NewStates([]inventory.HostState{{Name: host(0), Node: host(0), Provider: provider(0), Stocks: b.stocks(0)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.board.Replace(reading, states, nil)
	b.calls = nil
	b.place(t, request(2, "b"))
	b.called(t, "look", "claim")
	if _, err := b.Place(t.Context(), request(1, "c")); !fault.Is(err, fault.Conflict) {
		t.Errorf("a full host: %v", err)
	}
}

// The server of the topic goes on after it.
// Nova does not tell of everything that leaves a host.
func TestBeforeThereIsNoPlaceAllHostsAreReadAnewOnce(t *testing.T) {
	c := newCloud(4, 4)
	for i, stranger := range []string{"a", "b"} {
		if err := c.grant([]placing.Claim{{Consumer: stranger, Allocations: placing.Allocations{provider(i): {"VCPU": 3}}}}); err != nil {
			t.Fatal(err)
		}
	}
	b := newBench(t, c, never)
	b.Reread = func(context.Context) error {
		if b.cloud.called("reread") != fine {
			return away
		}
		for i := range len(b.limit) {
			b.board.CorrectHost(b.board.BeginRead(), host(i), b.stocks(i), nil)
		}
		return nil
	}
	if _, err := b.Place(t.Context(), request(3, "c")); !fault.Is(err, fault.Conflict) {
		t.Errorf("where there is no room the error is %v", err)
	}
	b.called(t, "reread")
	delete(b.consumers, "b")
	b.troubles("reread", before)
	b.calls = nil
	if _, err := b.Place(t.Context(), request(3, "d")); !fault.Is(err, fault.Conflict) {
		t.Errorf("where the hosts cannot be read the error is %v", err)
	}
	b.called(t, "reread")
	b.calls = nil
	b.place(t, request(3, "e"))
	b.called(t, "reread", "claim")
	b.has(t, "e", map[string]int64{host(1): 3})
}

func TestAReadingServesAllWhoHaveWaitedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := calm(t, 4)
		var readings atomic.Int64
		more := make(chan struct{})
		b.Reread = func(context.Context) error {
			readings.Add(1)
			<-more
			return nil
		}
		b.Decisions = &lockedDecisions{}
		var refused sync.WaitGroup
		for range 5 {
			refused.Go(func() {
				if _, err := b.Place(t.Context(), request(5, "large")); !fault.Is(err, fault.Conflict) {
					t.Errorf("the error is %v", err)
				}
			})
		}
		synctest.Wait()
		close(more)
		refused.Wait()
		if n := readings.Load(); n != 2 {
			t.Errorf("for one who came first and four who came later the hosts were read %d times, want 2", n)
		}
	})
}

// lockedDecisions are for several at once.
type lockedDecisions struct {
	mu sync.Mutex
	kept
}

func (l *lockedDecisions) Keep(d placing.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept.Keep(d)
}

func TestAPanicHoldsNoRoom(t *testing.T) {
	b := calm(t, 4)
	b.fate = func(string) fate { panic("an answer of Placement that nobody expected") }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		_, _ = b.Place(t.Context(), request(4, "a"))
	}()
	states, err := inventory.NewStates([]inventory.HostState{{Name: host(0), Node: host(0), Provider: provider(0), Stocks: b.stocks(0)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.board.Replace(b.board.BeginRead(), states, nil)
	if used := b.board.Load().Column("VCPU").Used; used[0] != 0 {
		t.Errorf("%d VCPU are held", used[0])
	}
}

// Placement may refuse for a reason that cannot be seen.
func TestAHostThatIsRefusedThoughThereIsRoomIsLeftOut(t *testing.T) {
	b := calm(t, 4, 4)
	b.seen = func(int) int64 { return 4 }
	b.limit[provider(0)] = 0
	b.place(t, request(2, "a"))
	b.called(t, "claim", "look", "claim", "look", "claim", "look", "claim")
	b.has(t, "a", map[string]int64{host(1): 2})
}

func TestAHostThatCannotBeReadAnewIsLeftOut(t *testing.T) {
	b := calm(t, 4, 4)
	b.limit[provider(0)] = 0
	b.troubles("look", before)
	b.place(t, request(2, "a"))
	b.called(t, "claim", "look", "claim")
	b.has(t, "a", map[string]int64{host(1): 2})
}

func TestAnInstanceThatIsEvacuatedKeepsItsSource(t *testing.T) {
	b := calm(t, 4, 4)
	b.place(t, request(2, "a"))
	b.calls = nil
	r := request(2, "a")
	r.IgnoreHosts = []string{host(0)}
	placed := b.place(t, r)
	b.called(t, "claim", "read", "claim")
	b.has(t, "a", map[string]int64{host(0): 2, host(1): 2})
	if want := (placing.Allocations{provider(1): {"VCPU": 2}}); !placed.Selections[0][0].Allocations.Equal(want) {
		t.Errorf("selected is %v, want %v alone", placed.Selections[0][0].Allocations, want)
	}
	b.Return(placed)
	if err := b.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.has(t, "a", map[string]int64{host(0): 2})
}

func TestALostAnswerIsLookedUp(t *testing.T) {
	for f, calls := range map[fate][]string{
		after:  {"claim", "read"},
		before: {"claim", "read", "claim"},
		later:  {"claim", "read", "claim"},
		unsent: {"claim", "claim"},
	} {
		b := calm(t, 4, 4)
		b.troubles("claim", f)
		b.place(t, request(2, "a"))
		b.called(t, calls...)
		b.carryOut()
		b.has(t, "a", map[string]int64{host(0): 2})
	}
}

// The claim that was lost is carried out when another host has been chosen already.
func TestALostClaimThatIsGrantedLateIsReplaced(t *testing.T) {
	b := calm(t, 4, 4)
	var claims int
	b.fate = func(call string) fate {
		if call != "claim" {
			return fine
		}
		switch claims++; claims {
		case 1:
			return later
		case 2:
			b.limit[provider(0)] = 1 // so that this claim is refused
		case 3:
			b.limit[provider(0)] = 4
			b.carryOut()
		}
		return fine
	}
	b.place(t, request(2, "a"))
	b.called(t, "claim", "read", "claim", "look", "claim", "read", "claim")
	b.has(t, "a", map[string]int64{host(1): 2})
}

func TestWhenPlacementIsAwayAllEndsAndNothingStays(t *testing.T) {
	for _, f := range []fate{unsent, before} {
		b := calm(t, 4)
		b.fate = func(string) fate { return f }
		_, err := b.Place(t.Context(), request(2, "a"))
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "try again") || len(b.calls) != 8 {
			t.Errorf("got %v after %v, want an unavailable fault after 8 calls", err, b.calls)
		}
		if f == unsent {
			b.free(t)
		}
	}
}

func TestNothingIsTriedWhenTheTimeIsUp(t *testing.T) {
	b := calm(t, 4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Place(ctx, request(2, "a")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want an unavailable fault", err)
	}
	b.called(t)
	b.free(t)
}

func TestAClaimThatMayComeYetIsLookedForForSomeTime(t *testing.T) {
	b := newBench(t, newCloud(4), func() error { return context.DeadlineExceeded })
	b.fate = func(call string) fate {
		if call == "claim" {
			return later
		}
		return before
	}
	if _, err := b.Place(t.Context(), request(2, "a")); err == nil {
		t.Fatal("it was placed")
	}
	b.fate = func(string) fate { return fine }
	sweep := func(want ...string) {
		t.Helper()
		b.calls = nil
		if err := b.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.called(t, want...)
	}
	sweep("read")
	b.carryOut()
	sweep("read", "release")
	b.has(t, "a", map[string]int64{})
	b.now = b.now.Add(time.Hour)
	b.calls = nil
	if err := b.Sweep(t.Context()); err != nil || len(b.calls) > 0 {
		t.Errorf("there were calls %v (%v) with nothing to sweep", b.calls, err)
	}
}

// Placement keeps a consumer whose first claim it has broken off.
func TestAConsumerThatWasBrokenOffIsClaimedForAfterAWhile(t *testing.T) {
	b := calm(t, 4)
	b.strays["a"] = true
	b.place(t, request(2, "a"))
	b.called(t, "claim", "read", "claim", "read", "claim", "read", "claim")
	b.has(t, "a", map[string]int64{host(0): 2})
}

func TestWhatIsReturnedIsReleasedUnlessItHasChanged(t *testing.T) {
	b := calm(t, 8)
	one, other := b.place(t, request(2, "a")), b.place(t, request(2, "b"))
	b.Return(one)
	b.Return(other)
	resized := b.consumers["b"]
	resized.Allocations = placing.Allocations{provider(0): {"VCPU": 3}}
	if err := b.grant([]placing.Claim{resized}); err != nil {
		t.Fatal(err)
	}
	b.troubles("read", before)
	if err := b.Sweep(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v from a sweep while Placement is away", err)
	}
	if err := b.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.has(t, "a", map[string]int64{})
	b.has(t, "b", map[string]int64{host(0): 3})
}
