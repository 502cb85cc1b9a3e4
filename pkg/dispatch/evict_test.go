package dispatch_test

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
)

// full has hosts of 4 VCPU each, with preemptible instances v0 and v1 on host 0, v2 and
// v3 on host 1 and so on, of 2 VCPU each.
func full(t *testing.T, hosts int) *bench {
	t.Helper()
	c := newCloud(slices.Repeat([]int64{4}, hosts)...)
	for i := range hosts {
		for n := range 2 {
			c.preemptible(preemptible(2*i+n), i, 2)
		}
	}
	return newBench(t, c, never)
}

func preemptible(n int) string { return "v" + string(rune('0'+n)) }

// untouched says that the instances are where they were, with what they had, and that
// nobody has told them anything.
func (b *bench) untouched(t *testing.T, ids ...string) {
	t.Helper()
	b.unharmed(t, ids...)
	for _, id := range ids {
		if s := b.servers[id]; s != nil && (s.told > 0 || len(s.warned) > 0) {
			t.Errorf("%s was told to leave %d times and warned %d times", id, s.told, len(s.warned))
		}
	}
}

// unharmed says that the instances run and have what they had.
func (b *bench) unharmed(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if b.servers[id] == nil {
			t.Errorf("%s is gone", id)
			continue
		}
		b.has(t, id, map[string]int64{b.servers[id].Host: 2})
	}
}

func (b *bench) isGone(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if b.servers[id] != nil {
			t.Errorf("%s is still there", id)
		}
		b.has(t, id, map[string]int64{})
	}
}

func (b *bench) sweep(t *testing.T) {
	t.Helper()
	if err := b.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestVictimsMakeRoomInOneTransactionAndTheAnswerWaitsUntilTheyAreGone(t *testing.T) {
	b := full(t, 1)
	b.servers["v0"].takes, b.servers["v1"].takes = time.Second, 3*time.Second
	placed := b.place(t, request(3, "a"))
	b.isGone(t, "v0", "v1")
	b.has(t, "a", map[string]int64{host(0): 3})
	if calls := slices.Compact(slices.Clone(b.calls)); !slices.Equal(calls, []string{
		"server", "read", "server", "read", "warn", "read", "claim", "server", "leave", "server", "leave", "server", "read", "look",
	}) {
		t.Errorf("calls are %v", calls)
	}
	if got := names(placed.Selections[0]); !slices.Equal(got, []string{host(0)}) {
		t.Errorf("it is on %v", got)
	}
	if used := b.board.Load().Column("VCPU").Used; !slices.Equal(used, []int64{3}) {
		t.Errorf("the board counts %v as used, want [3]", used)
	}
}

func TestSeveralInstancesDisplaceTheirVictimsAtOnce(t *testing.T) {
	b := full(t, 2)
	b.place(t, request(3, "a", "b"))
	b.isGone(t, "v0", "v1", "v2", "v3")
	b.has(t, "a", map[string]int64{host(0): 3})
	b.has(t, "b", map[string]int64{host(1): 3})
	if n := count(b.calls, "claim"); n != 1 {
		t.Errorf("there were %d claims, want 1", n)
	}
}

func count(calls []string, call string) (n int) {
	for _, one := range calls {
		if one == call {
			n++
		}
	}
	return n
}

func TestAnOwnerIsToldBeforeTheInstanceHasToGo(t *testing.T) {
	b := full(t, 1)
	b.Notice = 30 * time.Second
	begun, v := b.now, b.servers["v0"]
	b.place(t, request(2, "a"))
	want := []eviction.Warning{{At: begun.Add(30 * time.Second), Request: "req-1"}}
	for i := range v.warned {
		if v.warned[i].Instance.ID != "v0" {
			t.Errorf("the warning is of %s", v.warned[i].Instance.ID)
		}
		v.warned[i].Instance = inventory.Instance{}
	}
	if diff := cmp.Diff(want, v.warned); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if waited := b.now.Sub(begun); waited < 31*time.Second {
		t.Errorf("it took %v, want the notice and what it takes to leave", waited)
	}
	b.untouched(t, "v1")
}

// That an owner cannot be told keeps nobody.
func TestAWarningThatFailsKeepsNobody(t *testing.T) {
	b := full(t, 1)
	b.troubles("warn", before)
	b.place(t, request(2, "a"))
	b.isGone(t, "v0")
}

func TestAVictimThatCannotGoAnyMoreIsLeftAloneAndAnotherGoes(t *testing.T) {
	for name, change := range map[string]func(b *bench, v *server){
		"vanished":             func(b *bench, v *server) { b.vanish("v0") },
		"locked":               func(_ *bench, v *server) { v.Locked = true },
		"protected":            func(_ *bench, v *server) { v.Protected = true },
		"not preemptible":      func(_ *bench, v *server) { v.Preemptible = false },
		"to be resized":        func(_ *bench, v *server) { v.Task = "resize_prep" },
		"resized":              func(_ *bench, v *server) { v.Status = "VERIFY_RESIZE" },
		"migrating":            func(_ *bench, v *server) { v.Status, v.Task = "MIGRATING", "migrating" },
		"on another host":      func(_ *bench, v *server) { v.Host = host(7) },
		"without allocations":  func(b *bench, _ *server) { delete(b.consumers, "v0") },
		"with a second source": func(b *bench, _ *server) { b.give("v0", "elsewhere", 2) },
	} {
		t.Run(name, func(t *testing.T) {
			b := full(t, 2)
			v := b.servers["v0"]
			change(b, v)
			r := request(2, "a")
			had := b.on("v0")
			b.place(t, r)
			if v.told > 0 || len(v.warned) > 0 {
				t.Error("v0 was told to go")
			}
			b.has(t, "v0", had)
			b.untouched(t, "v2", "v3")
			if free := b.limit[provider(0)] - b.used(provider(0)); free < 0 {
				t.Errorf("%d VCPU are free", free)
			}
			if b.on("a")[host(0)] != 2 {
				t.Errorf("a has %v, want room on %s", b.on("a"), host(0))
			}
		})
	}
}

// give has the consumer have something of another provider as well.
func (c *cloud) give(consumer, provider string, vcpus int64) {
	claim := c.consumers[consumer]
	claim.Allocations = claim.Allocations.WithSource(placing.Allocations{provider: {"VCPU": vcpus}})
	c.consumers[consumer] = claim
}

func TestAVictimThatIsLockedDuringTheNoticeIsSpared(t *testing.T) {
	b := full(t, 1)
	b.Notice = time.Minute
	pass := b.passes
	b.passes = func(d time.Duration) {
		b.servers["v0"].Locked = true
		pass(d)
	}
	b.place(t, request(2, "a"))
	b.unharmed(t, "v0")
	if b.servers["v0"].told > 0 {
		t.Error("a locked instance was told to leave")
	}
	b.isGone(t, "v1")
	b.has(t, "a", map[string]int64{host(0): 2})
}

func TestAVictimThatNovaDoesNotLetGoGetsBackWhatItHadAndAnotherGoes(t *testing.T) {
	b := full(t, 1)
	b.servers["v0"].refuses = true
	b.place(t, request(2, "a"))
	b.unharmed(t, "v0")
	b.isGone(t, "v1")
	b.has(t, "a", map[string]int64{host(0): 2})
}

func TestAVictimThatStillRunsWhenTheTimeIsUpGetsBackWhatItHadAndTheNextBestGoes(t *testing.T) {
	b := full(t, 2)
	b.servers["v0"].takes = time.Hour
	begun := b.now
	b.place(t, request(2, "a"))
	b.unharmed(t, "v0")
	b.isGone(t, "v1")
	b.untouched(t, "v2", "v3")
	if waited := b.now.Sub(begun); waited < time.Minute || waited > time.Minute+10*time.Second {
		t.Errorf("it took %v, want a minute and what the other takes", waited)
	}
	if b.place(t, request(2, "b")); b.now.Sub(begun) > 2*time.Minute {
		t.Error("the next request has waited for the same instance")
	}
	b.isGone(t, "v2")
	b.sweep(t)
	b.unharmed(t, "v0")
	if gone, stayed := b.Evicted(); gone != 2 || stayed != 1 {
		t.Errorf("%d are counted as gone and %d as stayed, want 2 and 1", gone, stayed)
	}
}

func TestWhereNoVictimGoesThereIsNoPlaceAndAllIsAsBefore(t *testing.T) {
	b := full(t, 1)
	b.servers["v0"].takes, b.servers["v1"].takes = time.Hour, time.Hour
	_, err := b.Place(t.Context(), request(2, "a"))
	want := "There is no room for all of them. Instances that were to make room have not done so in time."
	if !fault.Is(err, fault.Conflict) || err.Error() != want {
		t.Errorf("got %v, want a conflict that says %q", err, want)
	}
	if got := b.decisions[0]; got.Reason != want || got.Placements != nil {
		t.Errorf("the decision is %+v", got)
	}
	b.has(t, "a", map[string]int64{})
	b.unharmed(t, "v0", "v1")
}

// One is gone when the other stays: it cannot be had back, and its room is free.
func TestAVictimThatIsGoneStaysGoneWhereAnotherStays(t *testing.T) {
	b := full(t, 1)
	b.servers["v1"].takes = time.Hour
	if _, err := b.Place(t.Context(), request(3, "a")); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	b.isGone(t, "v0")
	b.unharmed(t, "v1")
	if gone, stayed := b.Evicted(); gone != 1 || stayed != 1 {
		t.Errorf("%d are counted as gone and %d as stayed, want one each", gone, stayed)
	}
	b.has(t, "a", map[string]int64{})
	b.place(t, request(2, "b"))
	b.has(t, "b", map[string]int64{host(0): 2})
}

func TestTwoRequestsThatRaceForAVictimTakeOneEach(t *testing.T) {
	b := full(t, 2)
	other := newBench(t, b.cloud, never) // another replica, which has read the same
	b.place(t, request(2, "a"))
	r := request(2, "b")
	r.ID = "req-2"
	other.place(t, r)
	b.isGone(t, "v0", "v1")
	b.untouched(t, "v2", "v3")
	b.has(t, "a", map[string]int64{host(0): 2})
	b.has(t, "b", map[string]int64{host(0): 2})
}

// Another has changed it between the look and the claim: Placement refuses the
// generation, and nobody has been told anything.
func TestAVictimWhoseGenerationHasChangedIsNotTouched(t *testing.T) {
	b := full(t, 1)
	claims := 0
	b.fate = func(call string) fate {
		if call == "claim" {
			if claims++; claims == 1 {
				resized := b.consumers["v0"]
				resized.Allocations = placing.Allocations{provider(0): {"VCPU": 1}}
				if err := b.grant([]placing.Claim{resized}); err != nil {
					t.Fatal(err)
				}
			}
		}
		return fine
	}
	b.place(t, request(2, "a"))
	b.has(t, "v0", map[string]int64{host(0): 1})
	if v := b.servers["v0"]; v.told > 0 || v.staying != 1 {
		t.Errorf("it was told to leave %d times, and %d times that it has not to", v.told, v.staying)
	}
	b.isGone(t, "v1")
}

// surplus has one preemptible instance of all 4 VCPU of a host, and lets others try to get
// some of that, here and at another replica, as soon as time passes.
func surplus(t *testing.T) (b *bench, tried *int) {
	t.Helper()
	c := newCloud(4)
	c.preemptible("v0", 0, 4)
	b, tried = newBench(t, c, never), new(int)
	other, pass := newBench(t, c, never), c.passes
	c.passes = func(d time.Duration) {
		if c.servers["v0"] != nil {
			for _, one := range []*bench{b, other} {
				r := request(1, fmt.Sprint("other ", *tried))
				*tried++
				r.Preemptible = true
				if _, err := one.Place(t.Context(), r); !fault.Is(err, fault.Conflict) {
					t.Errorf("got %v, want no room", err)
				}
				if column := one.board.Load().Column("VCPU"); column.Used[0] < c.used(provider(0)) {
					t.Errorf("the board has %d used, Placement %d", column.Used[0], c.used(provider(0)))
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
		b.servers["v0"].takes = 10 * time.Second
		b.place(t, request(2, "a"))
		b.has(t, "a", map[string]int64{host(0): 2})
		b.isGone(t, "v0")
		if *tried < 4 {
			t.Errorf("others have tried %d times", *tried)
		}
		b.place(t, request(2, "b"))
		b.has(t, "b", map[string]int64{host(0): 2})
	}
}

// forgetful keeps no decisions.
type forgetful struct{}

func (forgetful) Keep(placing.Decision) {}

func TestWhoFindsNoRoomWaitsForWhatAVictimLeavesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(4)
		c.preemptible("v0", 0, 4)
		b := newBench(t, c, never)
		b.Decisions = forgetful{}
		answer, asked, pass := make(chan error, 1), false, c.passes
		c.passes = func(d time.Duration) {
			if !asked {
				asked = true
				go func() {
					_, err := b.Place(t.Context(), request(2, "b"))
					answer <- err
				}()
				synctest.Wait()
			}
			pass(d)
		}
		b.place(t, request(2, "a"))
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		b.has(t, "a", map[string]int64{host(0): 2})
		b.has(t, "b", map[string]int64{host(0): 2})
	})
}

// Placement grants no fewer than 3: what is left of a victim would be 2.
func TestAVictimIsLeftNothingThatPlacementWouldRefuseIt(t *testing.T) {
	for takes, want := range map[time.Duration]map[string]int64{time.Second: {}, time.Hour: {host(0): 6}} {
		c := newCloud(6)
		c.least = 3
		c.preemptible("v0", 0, 6).takes = takes
		b := newBench(t, c, never)
		_, err := b.Place(t.Context(), request(4, "a"))
		if stays := len(want) > 0; stays != (err != nil) {
			t.Errorf("got error %v", err)
		}
		b.has(t, "v0", want)
	}
}

// A host on which more is used than there is grants nothing to anybody.
func TestVictimsMakeRoomOnAnOverfullHost(t *testing.T) {
	b := full(t, 1)
	b.limit[provider(0)] = 3
	if err := b.Look(t.Context(), []string{host(0)}); err != nil {
		t.Fatal(err)
	}
	b.place(t, request(1, "a"))
	b.isGone(t, "v0")
	b.unharmed(t, "v1")
	b.has(t, "a", map[string]int64{host(0): 1})
}

// Who asked has gone away, or the notice has been in vain: Placement was not asked for
// anything.
func TestDuringTheNoticeNothingHappensThatWouldHaveToBeUndone(t *testing.T) {
	for _, wait := range []error{nil, context.DeadlineExceeded} {
		c := newCloud(4)
		c.preemptible("v0", 0, 4)
		b := newBench(t, c, func() error { return wait })
		b.Notice = time.Minute
		pass := c.passes
		c.passes = func(d time.Duration) {
			c.servers["v0"].Locked = true
			pass(d)
		}
		if _, err := b.Place(t.Context(), request(2, "a")); err == nil {
			t.Error("it has a place")
		}
		if n := count(b.calls, "claim"); n > 0 {
			t.Errorf("there were %d claims", n)
		}
		if v := c.servers["v0"]; v.told > 0 || v.staying != 1 {
			t.Errorf("it was told to leave %d times, and %d times that it has not to", v.told, v.staying)
		}
		if used := b.board.Load().Column("VCPU").Used[0]; used != 4 {
			t.Errorf("%d VCPU count as used, want 4", used)
		}
	}
}

// Nova has not heard the order, or its answer was lost; it would delete a locked one.
func TestALockedInstanceIsNotToldAgain(t *testing.T) {
	for _, lost := range []fate{before, after} {
		b := full(t, 1)
		b.servers["v0"].takes, b.servers["v1"].Locked = 10*time.Second, true
		b.troubles("leave", lost)
		pass := b.passes
		b.passes = func(d time.Duration) {
			if s := b.servers["v0"]; s != nil {
				s.Locked = true
			}
			pass(d)
		}
		_, err := b.Place(t.Context(), request(2, "a"))
		if n := count(b.calls, "leave"); n != 1 {
			t.Errorf("there were %d orders, want 1", n)
		}
		if lost == before {
			b.unharmed(t, "v0", "v1")
		} else if b.isGone(t, "v0"); err != nil {
			t.Error(err)
		}
	}
}

func TestWhoMovesIsWaitedForBeforeItsPlaceIsClaimed(t *testing.T) {
	b := full(t, 1)
	b.EvictFirst = true
	b.servers["v0"].takes = 3 * time.Second
	b.fate = func(call string) fate {
		if call == "claim" && b.servers["v0"] != nil {
			t.Error("it was claimed while the victim was there")
		}
		return fine
	}
	placed := b.place(t, request(2, "a"))
	b.has(t, "a", map[string]int64{host(0): 2})
	b.isGone(t, "v0")
	b.Return(placed)
	b.sweep(t)
	b.has(t, "a", map[string]int64{})
}

// Who moves the victim of one request asks for a host as well.
func TestNoMoreThanSomeRequestsWaitForVictimsToMove(t *testing.T) {
	c := newCloud(2, 2, 2)
	for i := range 2 {
		c.preemptible(preemptible(i), i, 2)
	}
	b := newBench(t, c, never)
	b.EvictFirst = true
	o := b.Dispatcher.Options
	o.MaxWaiting = 1
	b.Dispatcher = dispatch.New(o)
	b.place(t, request(2, "first"))
	pass, tried := c.passes, false
	c.passes = func(d time.Duration) {
		if !tried {
			tried = true
			if _, err := b.Place(t.Context(), request(2, "b")); !fault.Is(err, fault.Unavailable) {
				t.Errorf("got %v, want an unavailable fault", err)
			}
		}
		pass(d)
	}
	b.place(t, request(2, "a"))
	b.place(t, request(2, "b"))
	b.isGone(t, "v0", "v1")
}

// A migration frees its place some moments after the instance has moved.
func TestAPlaceThatIsNotFreeYetIsWaitedFor(t *testing.T) {
	b := full(t, 1)
	b.EvictFirst = true
	pass := b.passes
	b.passes = func(d time.Duration) {
		pass(d)
		switch has, moving := b.consumers["migration"]; {
		case b.servers["v0"] == nil && !moving && has.Generation == nil:
			_ = b.grant([]placing.Claim{{Consumer: "migration", Allocations: placing.Allocations{provider(0): {"VCPU": 2}}}})
		case d > time.Second:
			delete(b.consumers, "migration")
		}
	}
	b.place(t, request(2, "a"))
	b.has(t, "a", map[string]int64{host(0): 2})
	b.untouched(t, "v1")
}

func TestAPreemptibleRequestDisplacesNobody(t *testing.T) {
	b := full(t, 1)
	r := request(2, "a")
	r.Preemptible = true
	if _, err := b.Place(t.Context(), r); !fault.Is(err, fault.Conflict) || strings.Contains(err.Error(), "make room") {
		t.Errorf("got %v, want no place", err)
	}
	b.untouched(t, "v0", "v1")
	b.called(t)
}
