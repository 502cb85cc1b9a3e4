// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

type (
	amounts = map[string]int64
	stocks  = map[string]inventory.Stock
)

func states(t testing.TB, rows []inventory.HostState, aggregates ...inventory.Aggregate) *inventory.States {
	t.Helper()
	s, err := inventory.NewStates(rows, aggregates)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHostsLieByNameAndAreFoundWhateverTheCase(t *testing.T) {
	s := states(t, []inventory.HostState{{Name: "cmp-B", Node: "B.Example.org"}, {Name: "cmp-A", Node: "a.example.org"}})
	if s.Len() != 2 || s.Host(0).Name != "cmp-A" || s.Host(1).Name != "cmp-B" {
		t.Fatalf("%d hosts, the first is %s", s.Len(), s.Host(0).Name)
	}
	for name, find := range map[string]func(string) (int, bool){"CMP-b": s.Index, "cmp-B": s.Index, "b.example.org": s.Node, "B.EXAMPLE.ORG": s.Node} {
		if i, found := find(name); i != 1 || !found {
			t.Errorf("%s has index %d, found: %v", name, i, found)
		}
	}
	for name, find := range map[string]func(string) (int, bool){"": s.Node, "cmp-b": s.Node, "b.example.org": s.Index} {
		if i, found := find(name); found {
			t.Errorf("%q has index %d", name, i)
		}
	}
}

func TestNamesDifferInMoreThanCase(t *testing.T) {
	for want, rows := range map[string][]inventory.HostState{
		`two hosts are named "A" and "a", which are equal to Nova`: {{Name: "a"}, {Name: "b"}, {Name: "A"}},
		"a host has no name": {{Name: "a"}, {}},
	} {
		_, err := inventory.NewStates(rows, nil)
		if !fault.Is(err, fault.Invalid) || fault.Of(err).Message != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestSetsAreOfTheHostsThatHaveIt(t *testing.T) {
	s := states(t,
		[]inventory.HostState{
			{Name: "a", Zone: "east", Up: true, Traits: []string{"T", "U"}, Split: []string{"VGPU"}},
			{Name: "b", Zone: "west", Enabled: true, Traits: []string{"T"}},
			{Name: "c", Zone: "east", Up: true, Enabled: true},
		},
		inventory.Aggregate{UUID: "u1", Name: "one", Hosts: []string{"a", "A", "gone", "c"}},
		inventory.Aggregate{UUID: "u2", Name: "two", Hosts: []string{"c"}},
		inventory.Aggregate{UUID: "u3", Name: "empty"},
	)
	got := map[string][]int{
		"all": slices.Collect(s.All().All()), "up": slices.Collect(s.Up().All()), "enabled": slices.Collect(s.Enabled().All()),
		"T": slices.Collect(s.Trait("T").All()), "U": slices.Collect(s.Trait("U").All()), "no trait": slices.Collect(s.Trait("t").All()),
		"east": slices.Collect(s.Zone("east").All()), "no zone": slices.Collect(s.Zone("").All()),
		"one": slices.Collect(s.Members("u1").All()), "empty": slices.Collect(s.Members("u3").All()), "no aggregate": slices.Collect(s.Members("u").All()),
		"split": slices.Collect(s.Split("VGPU").All()), "not split": slices.Collect(s.Split("VCPU").All()),
	}
	want := map[string][]int{
		"all": {0, 1, 2}, "up": {0, 2}, "enabled": {1, 2}, "T": {0, 1}, "U": {0}, "no trait": nil,
		"east": {0, 2}, "no zone": nil, "one": {0, 2}, "empty": nil, "no aggregate": nil, "split": {0}, "not split": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, want := range [][]string{{"one"}, nil, {"one", "two"}} {
		var names []string
		for a := range s.AggregatesOf(i) {
			names = append(names, a.Name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("host %d is in %v", i, names)
		}
	}
	if len(s.Aggregates()) != 3 || s.Aggregates()[2].Name != "empty" {
		t.Errorf("aggregates %v", s.Aggregates())
	}
}

func TestAColumnCountsAsPlacementDoes(t *testing.T) {
	s := states(t, []inventory.HostState{
		{
			Name: "a", Stocks: stocks{"VCPU": {Total: 10, Reserved: 1, Ratio: 1.5, Used: 9, Min: 2, Max: 8, Step: 2}},
			Instances: []inventory.Instance{
				preemptible("1", amounts{"VCPU": 2, "DISK_GB": 5}), preemptible("2", amounts{"VCPU": 4}), preemptible("3", nil),
				{ID: "normal", Status: "ACTIVE", Holds: amounts{"VCPU": 1}},
			},
		},
		{Name: "b", Stocks: stocks{"VCPU": {Total: 4, Reserved: 4, Ratio: 16}}},
		{Name: "c", Stocks: stocks{"VCPU": {Total: 4, Ratio: -1}}},
		{Name: "d", Stocks: stocks{"VCPU": {Total: 1 << 31, Ratio: 3e38}}},
		{Name: "e"},
	})
	const any = 1<<31 - 1
	want := &inventory.Column{
		Limit: []int64{13, 0, 0, 1 << 53, 0}, Real: []int64{9, 0, 4, 1 << 31, 0}, Used: []int64{9, 0, 0, 0, 0},
		Evictable: []int64{6, 0, 0, 0, 0},
		Min:       []int64{2, 1, 1, 1, 0}, Max: []int64{8, any, any, any, 0}, Step: []int64{2, 1, 1, 1, 1},
		Offered: []float64{14, 60, -4, 3e38 * (1 << 31), 0},
	}
	if diff := cmp.Diff(want, s.Column("VCPU"), cmpopts.IgnoreUnexported(inventory.Column{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	nothing := make([]int64, 5)
	want = &inventory.Column{Limit: nothing, Real: nothing, Used: nothing, Evictable: nothing, Min: nothing, Max: nothing, Step: []int64{1, 1, 1, 1, 1}, Offered: make([]float64, 5)}
	if diff := cmp.Diff(want, s.Column("nobody's"), cmpopts.IgnoreUnexported(inventory.Column{})); diff != "" {
		t.Errorf("of a class that no host has (-want +got):\n%s", diff)
	}
}

func TestAnAmountThatAllHostsWithTheClassAllowIsKnown(t *testing.T) {
	s := states(t, []inventory.HostState{
		{Name: "a", Stocks: stocks{"VCPU": {Total: 10, Ratio: 1, Min: 2, Max: 8}, "DISK_GB": {Total: 10, Ratio: 1, Step: 2}}},
		{Name: "b", Stocks: stocks{"VCPU": {Total: 4, Ratio: 16}, "DISK_GB": {Total: 4, Ratio: 1}}},
		{Name: "c"},
	})
	for amount, want := range map[int64]bool{1: false, 2: true, 8: true, 9: false} {
		if got := s.Column("VCPU").AllAllow(amount); got != want {
			t.Errorf("%d VCPU: %v, want %v", amount, got, want)
		}
	}
	if s.Column("DISK_GB").AllAllow(2) {
		t.Error("all hosts are said to allow 2 GiB, though one allocates in steps")
	}
}

// preemptible returns an instance that can be evicted if it holds anything.
func preemptible(id string, holds amounts) inventory.Instance {
	return inventory.Instance{ID: id, Status: "ACTIVE", Preemptible: true, Holds: holds}
}

func TestVictimsLeaveWithAllTheyHold(t *testing.T) {
	locked := preemptible("locked", amounts{"VCPU": 3})
	locked.Locked = true
	was := states(t, []inventory.HostState{{
		Name: "a", Stocks: stocks{"VCPU": {Total: 16, Ratio: 1, Used: 12}, "CUSTOM_GPU": {Total: 2, Ratio: 1, Used: 2}},
		Instances: []inventory.Instance{
			preemptible("goes", amounts{"VCPU": 4, "CUSTOM_GPU": 1}), preemptible("stays", amounts{"VCPU": 2, "CUSTOM_GPU": 1}), locked,
			{ID: "normal", Status: "ACTIVE"},
		},
	}})
	find := func(s *inventory.States) (found [4]int64) {
		for n, class := range []string{"VCPU", "CUSTOM_GPU"} {
			found[2*n], found[2*n+1] = s.Column(class).Used[0], s.Column(class).Evictable[0]
		}
		return found
	}
	s := was.WithTaken([]inventory.Take{{Instance: "new", Resources: amounts{"VCPU": 1}, Victims: []string{"goes", "unknown"}}})
	if got := find(s); got != [4]int64{9, 2, 1, 1} || len(s.InstancesOn(0)) != 4 || len(s.HostsOf("goes")) != 0 {
		t.Errorf("used and evictable are %v, instances on the host are %v", got, s.InstancesOn(0))
	}
	again := s.WithTaken([]inventory.Take{{Instance: "other", Resources: amounts{"VCPU": 1}, Victims: []string{"goes", "normal", "locked"}}})
	if got := find(again); got != [4]int64{7, 2, 1, 1} {
		t.Errorf("with a victim that has left, one that holds nothing and one that is locked, used and evictable are %v", got)
	}
	if got := find(was); got != [4]int64{12, 6, 2, 2} || len(was.InstancesOn(0)) != 4 || len(was.HostsOf("goes")) != 1 {
		t.Errorf("the earlier states have changed: %v, %v", got, was.InstancesOn(0))
	}
}

func TestTheNextTakeSeesTheInstanceOfTheOneBefore(t *testing.T) {
	was := states(t, []inventory.HostState{
		{Name: "a", IOOps: 2, Stocks: stocks{"VCPU": {Total: 4, Ratio: 1, Used: 1}}, Instances: []inventory.Instance{{ID: "old"}}}, {Name: "b"},
	})
	s := was.WithTaken([]inventory.Take{
		{Host: 0, Instance: "new", Group: "g", Resources: amounts{"VCPU": 2, "CUSTOM_NONE": 1}},
		{Host: 0, Instance: "old", Resources: amounts{"VCPU": 1}},
	})
	h := s.Host(0)
	if h.Stocks["VCPU"].Used != 4 || s.Column("VCPU").Used[0] != 4 || h.IOOps != 3 || len(h.Stocks) != 1 {
		t.Errorf("the host has %+v with %d heavy operations", h.Stocks, h.IOOps)
	}
	on := s.InstancesOn(0)
	if len(on) != 2 || on[1].ID != "new" || on[1].Group() != "g" || on[0].Group() != "" || on[1].Host != "a" {
		t.Errorf("its instances are %+v", on)
	}
	if h := was.Host(0); h.Stocks["VCPU"].Used != 1 || was.Column("VCPU").Used[0] != 1 || h.IOOps != 2 || len(h.Instances) != 1 {
		t.Errorf("the earlier states have changed: %+v", h)
	}
	if s.Host(1) != was.Host(1) || s.WithTaken(nil) != s {
		t.Error("the states do not share what is equal")
	}
}

// classes lists the resource classes of the tests. CUSTOM_RARE is on few of many hosts.
var classes = []string{"VCPU", "MEMORY_MB", "CUSTOM_RARE"}

func drawRows(t *rapid.T) []inventory.HostState {
	rows := make([]inventory.HostState, rapid.IntRange(1, 40).Draw(t, "hosts"))
	for i := range rows {
		rows[i] = inventory.HostState{Name: fmt.Sprintf("h%02d", i), Stocks: drawStocks(t)}
		for n := range rapid.IntRange(0, 3).Draw(t, "instances") {
			rows[i].Instances = append(rows[i].Instances, drawInstance(t, fmt.Sprintf("%s-%d", rows[i].Name, n), rows[i].Stocks))
		}
	}
	return rows
}

// drawInstance draws an instance and adds what it holds to what its host uses.
func drawInstance(t *rapid.T, id string, of stocks) inventory.Instance {
	one := inventory.Instance{
		ID: id, Status: rapid.SampledFrom([]string{"ACTIVE", "ACTIVE", "BUILD"}).Draw(t, "status"), Locked: rapid.IntRange(0, 3).Draw(t, "locked") == 0,
		Preemptible: rapid.Bool().Draw(t, "preemptible"), Holds: amounts{},
	}
	for _, class := range classes {
		if stock, has := of[class]; has && rapid.Bool().Draw(t, "holds "+class) {
			one.Holds[class] = rapid.Int64Range(1, 5).Draw(t, "amount")
			stock.Used += one.Holds[class]
			of[class] = stock
		}
	}
	return one
}

func drawStocks(t *rapid.T) stocks {
	all := stocks{}
	for n, class := range classes {
		if rapid.IntRange(0, 9).Draw(t, "has "+class) < 9-4*n {
			total := rapid.Int64Range(0, 100).Draw(t, "total")
			all[class] = inventory.Stock{Total: total, Ratio: 1, Used: rapid.Int64Range(0, total).Draw(t, "used"), Max: total, Step: 1}
		}
	}
	return all
}

// consistent fails unless the columns agree with the hosts.
func consistent(t *rapid.T, s *inventory.States) {
	for _, class := range append(slices.Clone(classes), "CUSTOM_NOBODY") {
		got := s.Column(class)
		for i := range s.Len() {
			stock, has := s.Host(i).Stocks[class]
			want := [7]int64{stock.Limit(), stock.Real(), stock.Used, 0, 1, stock.Max, 1}
			for _, one := range s.InstancesOn(i) {
				if one.Evictable() {
					want[3] += one.Holds[class]
				}
			}
			if !has {
				want = [7]int64{6: 1}
			} else if stock.Max == 0 {
				want[5] = 1<<31 - 1
			}
			if row := [7]int64{got.Limit[i], got.Real[i], got.Used[i], got.Evictable[i], got.Min[i], got.Max[i], got.Step[i]}; row != want {
				t.Fatalf("%s of %s is %v, want %v", class, s.Host(i).Name, row, want)
			}
			if want[3] > want[2] {
				t.Fatalf("%s of %s: %d of %d are evictable", class, s.Host(i).Name, want[3], want[2])
			}
		}
	}
}

func TestColumnsFollowTheHostsThroughTakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := inventory.NewStates(drawRows(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		consistent(t, s)
		for range rapid.IntRange(0, 5).Draw(t, "rounds") {
			was, used := s, map[string]amounts{}
			for i := range s.Len() {
				used[s.Host(i).Name] = usedOf(s.Host(i))
			}
			for _, class := range classes { // so that the columns exist before the takes
				if rapid.Bool().Draw(t, "asked") {
					s.Column(class)
				}
			}
			var takes []inventory.Take
			want, victims := map[string]amounts{}, map[string]bool{}
			for name, u := range used {
				want[name] = maps.Clone(u)
			}
			for n := range rapid.IntRange(0, 4).Draw(t, "takes") {
				take := inventory.Take{Host: rapid.IntRange(0, s.Len()-1).Draw(t, "host"), Instance: fmt.Sprint(n), Resources: amounts{}}
				for _, one := range s.InstancesOn(take.Host) {
					if !victims[one.ID] && rapid.Bool().Draw(t, "victim") {
						victims[one.ID] = true
						take.Victims = append(take.Victims, one.ID)
						for class, amount := range one.Holds {
							want[s.Host(take.Host).Name][class] -= amount
						}
					}
				}
				for _, class := range classes {
					take.Resources[class] = rapid.Int64Range(0, 3).Draw(t, "amount")
					if _, has := s.Host(take.Host).Stocks[class]; has {
						want[s.Host(take.Host).Name][class] += take.Resources[class]
					}
				}
				takes = append(takes, take)
			}
			s = s.WithTaken(takes)
			consistent(t, s)
			consistent(t, was)
			for i := range s.Len() {
				name := s.Host(i).Name
				if !maps.Equal(usedOf(s.Host(i)), want[name]) || !maps.Equal(usedOf(was.Host(i)), used[name]) {
					t.Fatalf("%s has %v, want %v; the earlier states have %v, want %v", name, usedOf(s.Host(i)), want[name], usedOf(was.Host(i)), used[name])
				}
			}
		}
	})
}

func usedOf(h *inventory.HostState) amounts {
	used := amounts{}
	for class, stock := range h.Stocks {
		used[class] = stock.Used
	}
	return used
}

func TestInstancesThatAreSparedYieldNothingAndStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		was, err := inventory.NewStates(drawRows(t), nil)
		if err != nil {
			t.Fatal(err)
		}
		spared := map[string]string{"unknown": "h00", "elsewhere": "gone"}
		for i := range was.Len() {
			for _, one := range was.InstancesOn(i) {
				if rapid.Bool().Draw(t, "spared") {
					spared[one.ID] = was.Host(i).Name
				}
			}
		}
		s := was.WithProtected(spared)
		consistent(t, s)
		consistent(t, was)
		for i := range s.Len() {
			if diff := cmp.Diff(was.Host(i).Stocks, s.Host(i).Stocks); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", s.Host(i).Name, diff)
			}
			for n, one := range s.InstancesOn(i) {
				before := was.InstancesOn(i)[n]
				if _, is := spared[one.ID]; one.ID != before.ID || one.Evictable() != (before.Evictable() && !is) {
					t.Fatalf("%s: %+v, before %+v", s.Host(i).Name, one, before)
				}
			}
		}
	})
}
