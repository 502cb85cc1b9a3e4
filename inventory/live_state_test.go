// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func cpus(used int64) stocks {
	return stocks{"VCPU": {Total: 100, Ratio: 1, Used: used}}
}

func board(t testing.TB, rows ...inventory.HostState) *inventory.LiveState {
	t.Helper()
	b := inventory.NewLiveState()
	b.Replace(b.BeginRead(), states(t, rows), nil)
	return b
}

// taking returns a plan that takes n VCPUs of host i for an instance.
func taking(i int, instance string, n int64) func(*inventory.States) ([]inventory.Take, error) {
	return func(*inventory.States) ([]inventory.Take, error) {
		return []inventory.Take{{Host: i, Instance: instance, Resources: amounts{"VCPU": n}}}, nil
	}
}

func place(t testing.TB, b *inventory.LiveState, plan func(*inventory.States) ([]inventory.Take, error)) *inventory.Hold {
	t.Helper()
	h, err := b.Place(t.Context(), "project", plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// used returns the VCPUs in use, by host.
func used(b *inventory.LiveState) []int64 { return b.Load().Column("VCPU").Used }

func TestABoardHasNoStatesBeforeTheFirstReading(t *testing.T) {
	b := inventory.NewLiveState()
	if b.Load() != nil {
		t.Error("there are states before the first reading")
	}
	b.CorrectHost(b.BeginRead(), "a", cpus(1), nil)
	if _, err := b.Place(t.Context(), "project", taking(0, "x", 1), nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	b.InstanceLeft("a")
	b.Replace(b.BeginRead(), states(t, []inventory.HostState{{Name: "a", Stocks: cpus(3)}}), nil)
	if used(b)[0] != 3 || len(b.UncertainHosts()) > 0 {
		t.Errorf("used %v, uncertain %v", used(b), b.UncertainHosts())
	}
}

func TestAHostThatAnInstanceHasLeftIsUnclearUntilItIsRead(t *testing.T) {
	hosts := []inventory.HostState{{Name: "a", Stocks: cpus(1)}, {Name: "b", Stocks: cpus(1)}, {Name: "c", Stocks: cpus(1)}}
	b := board(t, hosts...)
	early := b.BeginRead()
	for _, host := range []string{"C", "a", "nobody"} {
		b.InstanceLeft(host)
	}
	expect := func(when string, want ...string) {
		t.Helper()
		if got := b.UncertainHosts(); !slices.Equal(got, want) {
			t.Errorf("%s %v are uncertain, want %v", when, got, want)
		}
	}
	expect("at first", "a", "c")
	b.CorrectHost(b.BeginRead(), "a", cpus(0), nil)
	expect("after a look at a", "c")
	b.Replace(early, states(t, hosts), nil)
	expect("after a reading that began before", "c")
	b.InstanceLeft("a")
	expect("when another has left a", "a", "c")
	b.Replace(b.BeginRead(), states(t, hosts), nil)
	expect("after a reading")
}

func TestWhatIsPlacedCountsAtOnce(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(1)})
	h := place(t, b, taking(0, "x", 2))
	if used(b)[0] != 3 || len(b.Load().InstancesOn(0)) != 1 {
		t.Errorf("used %v, instances %v", used(b), b.Load().InstancesOn(0))
	}
	other := place(t, b, taking(0, "y", 4))
	h.Undo()
	h.Undo()
	h.Confirm()
	if used(b)[0] != 5 || len(b.Load().InstancesOn(0)) != 1 {
		t.Errorf("after Undo: used %v, instances %v", used(b), b.Load().InstancesOn(0))
	}
	other.Confirm()
	other.Undo()
	if used(b)[0] != 5 {
		t.Errorf("after the claim is settled: used %v", used(b))
	}
}

func TestAPlanThatFailsHoldsNothing(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(1)})
	wrong := errors.New("no valid host")
	before := b.Load()
	_, err := b.Place(t.Context(), "project", func(*inventory.States) ([]inventory.Take, error) { return []inventory.Take{{Instance: "x"}}, wrong }, nil)
	if !errors.Is(err, wrong) || b.Load() != before {
		t.Errorf("got %v", err)
	}
}

func TestAReadingOfBeforeIsDropped(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(1)})
	old, late := b.BeginRead(), b.BeginRead()
	b.Replace(late, states(t, []inventory.HostState{{Name: "a", Stocks: cpus(2)}}), nil)
	b.Replace(old, states(t, []inventory.HostState{{Name: "a", Stocks: cpus(3)}}), nil)
	b.CorrectHost(old, "a", cpus(4), nil)
	if used(b)[0] != 2 {
		t.Errorf("used %v", used(b))
	}
}

func TestAHoldIsOnItsHostWhereverThatLies(t *testing.T) {
	b := board(t, inventory.HostState{Name: "b", Stocks: cpus(1)}, inventory.HostState{Name: "c", Stocks: cpus(1)})
	place(t, b, taking(1, "x", 2))
	place(t, b, taking(0, "y", 5))
	b.Replace(b.BeginRead(), states(t, []inventory.HostState{{Name: "a", Stocks: cpus(7)}, {Name: "c", Stocks: cpus(8)}}), nil)
	if !slices.Equal(used(b), []int64{7, 10}) {
		t.Errorf("used %v", used(b))
	}
}

func TestACorrectionReplacesAllStocksOfItsHost(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: stocks{"VCPU": {Total: 8, Ratio: 1, Used: 5}, "CUSTOM_OLD": {Total: 1, Ratio: 1}}}, inventory.HostState{Name: "b", Stocks: cpus(9)})
	place(t, b, taking(0, "settled", 1)).Confirm()
	m := b.BeginRead()
	place(t, b, taking(0, "later", 2)).Confirm()
	want := stocks{"VCPU": {Total: 4, Ratio: 1, Used: 1}, "CUSTOM_NEW": {Total: 6, Ratio: 1}}
	b.CorrectHost(m, "a", want, nil)
	b.CorrectHost(m, "gone", want, nil)
	s := b.Load()
	if got := []int64{s.Column("VCPU").Limit[0], s.Column("VCPU").Used[0], s.Column("VCPU").Used[1], s.Column("CUSTOM_NEW").Limit[0],
		s.Column("CUSTOM_OLD").Limit[0], int64(len(s.InstancesOn(0)))}; !slices.Equal(got, []int64{4, 3, 9, 6, 0, 2}) {
		t.Errorf("got %v", got)
	}
}

func TestALookAtWhatIsUnclearTellsWhetherAClaimCountsTwice(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)}, inventory.HostState{Name: "b", Stocks: cpus(0)})
	m := b.BeginRead()
	place(t, b, taking(0, "x", 2)).Confirm()
	place(t, b, taking(0, "y", 1)).Confirm()
	place(t, b, taking(1, "z", 1)) // Nova does not show it yet
	b.Replace(m, states(t, []inventory.HostState{{Name: "a", Stocks: cpus(3)}, {Name: "b", Stocks: cpus(0)}}), nil)
	if diff := cmp.Diff([]string{"a"}, b.UncertainHosts()); diff != "" || used(b)[0] != 6 {
		t.Errorf("used %v, uncertain (-want +got):\n%s", used(b), diff)
	}
	b.CorrectHost(b.BeginRead(), "a", cpus(3), nil)
	if b.UncertainHosts() != nil || used(b)[0] != 3 {
		t.Errorf("used %v, uncertain %v", used(b), b.UncertainHosts())
	}
}

func TestALookTellsWhichVictimsHaveLeft(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(7), Instances: []inventory.Instance{
		preemptible("v", amounts{"VCPU": 4}), preemptible("w", amounts{"VCPU": 3}),
	}})
	expect := func(when string, used, yield int64) {
		t.Helper()
		if c := b.Load().Column("VCPU"); c.Used[0] != used || c.Evictable[0] != yield {
			t.Errorf("%s %d are used, %d evictable; want %d and %d", when, c.Used[0], c.Evictable[0], used, yield)
		}
	}
	evicting := func(victim string) *inventory.Hold {
		return place(t, b, func(*inventory.States) ([]inventory.Take, error) {
			return []inventory.Take{{Instance: "for " + victim, Resources: amounts{"VCPU": 1}, Victims: []string{victim}}}, nil
		})
	}
	place(t, b, taking(0, "x", 2)).Undo()
	first := evicting("v")
	expect("with a plan", 4, 3)
	evicting("v").Undo()
	expect("with a plan that had the same victim", 4, 3)
	first.Confirm()
	b.CorrectHost(b.BeginRead(), "a", cpus(4), map[string]map[string]int64{"w": {"VCPU": 3}, "for v": {"VCPU": 1}})
	expect("after a look", 4, 3)
	back := place(t, b, taking(0, "v", 4))
	expect("with a victim that comes back", 8, 3)
	back.Confirm()
	b.CorrectHost(b.BeginRead(), "a", cpus(7), map[string]map[string]int64{"v": {"VCPU": 4}, "w": {"VCPU": 3}})
	expect("when it has come back", 7, 7)
	evicting("w").Undo()
	expect("after a plan that was undone", 7, 7)
	b.CorrectHost(b.BeginRead(), "a", cpus(7), nil)
	expect("when others have evicted all", 7, 0)
}

func TestAnInstanceOnItsWayStaysOnItsHost(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)})
	for _, id := range []string{"on its way", "nowhere", "there"} {
		place(t, b, taking(0, id, 1)).Confirm()
	}
	underWay := func(id string) bool { return id == "on its way" }
	for range 2 {
		b.Replace(b.BeginRead(), states(t, []inventory.HostState{{Name: "a", Stocks: cpus(3), Instances: []inventory.Instance{{ID: "there"}}}}), underWay)
		var ids []string
		for _, i := range b.Load().InstancesOn(0) {
			ids = append(ids, i.ID)
		}
		if diff := cmp.Diff([]string{"there", "on its way"}, ids); diff != "" || used(b)[0] != 3 {
			t.Errorf("used %v, instances (-want +got):\n%s", used(b), diff)
		}
	}
}

func TestPlansOfManyNeverTakeMoreThanThereIs(t *testing.T) {
	b := board(t, inventory.HostState{Name: "a", Stocks: cpus(0)})
	full := errors.New("full")
	one := func(s *inventory.States) ([]inventory.Take, error) {
		if c := s.Column("VCPU"); c.Used[0] >= c.Limit[0] {
			return nil, full
		}
		return []inventory.Take{{Resources: amounts{"VCPU": 1}}}, nil
	}
	var mu sync.Mutex
	var placed int
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range 50 {
				h, err := b.Place(t.Context(), "project", one, nil)
				if err != nil {
					continue
				}
				if n%5 == 0 {
					h.Undo()
					continue
				}
				mu.Lock()
				placed++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if placed > 100 || used(b)[0] != int64(placed) {
		t.Errorf("%d placed, %v used", placed, used(b))
	}
}
