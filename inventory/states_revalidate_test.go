// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
)

// The plan takes 4 VCPUs of host b, where 6 are free, and evicts victim v.
func TestAPlanStandsWhileNothingIsTakenFromItsHosts(t *testing.T) {
	rows := func(change func(b *inventory.HostState)) []inventory.HostState {
		b := inventory.HostState{
			Name: "b", Up: true, Traits: []string{"T"}, IOOps: 2, Stocks: cpus(94),
			Instances: []inventory.Instance{preemptible("v", amounts{"VCPU": 3}), {ID: "other"}},
		}
		change(&b)
		return []inventory.HostState{{Name: "a", Stocks: cpus(5)}, b}
	}
	zone := func(name string) inventory.Aggregate {
		return inventory.Aggregate{UUID: "u", Hosts: []string{"a", "b"}, Metadata: map[string]string{"availability_zone": name}}
	}
	read := func(change func(b *inventory.HostState)) *inventory.States { return states(t, rows(change), zone("z")) }
	nothing := func(*inventory.HostState) {}
	instances := func(change func(all []inventory.Instance) []inventory.Instance) *inventory.States {
		return read(func(b *inventory.HostState) { b.Instances = change(b.Instances) })
	}
	plan := []inventory.Take{{Host: 1, Instance: "new", Resources: amounts{"VCPU": 4}, Victims: []string{"v"}}}
	before := read(nothing)
	for what, now := range map[string]*inventory.States{
		"nothing has changed":      before,
		"another host is taken":    before.WithTaken([]inventory.Take{{Host: 0, Instance: "x", Resources: amounts{"VCPU": 95}}}),
		"the same was read again":  read(nothing),
		"another host has come":    states(t, append(rows(nothing), inventory.HostState{Name: "aa"}), zone("z")),
		"another host has gone":    states(t, rows(nothing)[1:], zone("z")),
		"less is used":             read(func(b *inventory.HostState) { b.Stocks = cpus(90) }),
		"there is less heavy work": read(func(b *inventory.HostState) { b.IOOps = 1 }),
		"another instance has gone": instances(func(all []inventory.Instance) []inventory.Instance {
			return all[:1]
		}),
		"another instance is busy": instances(func(all []inventory.Instance) []inventory.Instance {
			all[1].Task = "rebooting"
			return all
		}),
	} {
		moved, standing := now.Revalidate(before, plan)
		if !standing || now.Host(moved[0].Host).Name != "b" || moved[0].Instance != "new" {
			t.Errorf("%s: want a valid plan, got valid %v as %v", what, standing, moved)
		}
	}
	for what, now := range map[string]*inventory.States{
		"the host is taken":       before.WithTaken([]inventory.Take{{Host: 1, Instance: "x"}}),
		"the host has gone":       states(t, rows(nothing)[:1], zone("z")),
		"its aggregate is other":  states(t, rows(nothing), zone("other")),
		"more is used":            read(func(b *inventory.HostState) { b.Stocks = cpus(95) }),
		"there is less":           read(func(b *inventory.HostState) { b.Stocks = stocks{"VCPU": {Total: 99, Ratio: 1, Used: 94}} }),
		"it has another class":    read(func(b *inventory.HostState) { b.Stocks["DISK_GB"] = inventory.Stock{Total: 1} }),
		"it is down":              read(func(b *inventory.HostState) { b.Up = false }),
		"it has lost a trait":     read(func(b *inventory.HostState) { b.Traits = nil }),
		"there is more work":      read(func(b *inventory.HostState) { b.IOOps = 3 }),
		"an instance has come":    instances(func(all []inventory.Instance) []inventory.Instance { return append(all, inventory.Instance{ID: "x"}) }),
		"the victim is spared":    before.WithProtected(map[string]string{"v": "b"}),
		"the victim has gone":     instances(func(all []inventory.Instance) []inventory.Instance { return all[1:] }),
		"the victim makes room":   before.WithTaken([]inventory.Take{{Host: 1, Instance: "other", Victims: []string{"v"}}}),
		"the victim holds less":   instances(func(all []inventory.Instance) []inventory.Instance { all[0].Holds = amounts{"VCPU": 2}; return all }),
		"all stocks are unknown":  read(func(b *inventory.HostState) { b.Stocks = nil }),
		"it cannot be judged now": read(func(b *inventory.HostState) { b.Unsupported = "it has shares" }),
	} {
		if _, standing := now.Revalidate(before, plan); standing {
			t.Errorf("%s: the plan is still valid", what)
		}
	}
}

// If a plan for a host is still valid after any changes, then whatever could be taken from
// the host before can still be taken from it.
func TestWhatStandsStillHasRoomAndVictims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := drawRows(t)
		read := func() *inventory.States {
			s, err := inventory.NewStates(rows, nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		before := read()
		plan := []inventory.Take{drawTake(t, before)}
		now := before
		if rapid.Bool().Draw(t, "read again") {
			rows = slices.Clone(rows)
			happens(t, &rows[plan[0].Host])
			now = read()
		}
		for range rapid.IntRange(0, 2).Draw(t, "others") {
			now = now.WithTaken([]inventory.Take{drawTake(t, now)})
		}
		moved, standing := now.Revalidate(before, plan)
		if !standing {
			return
		}
		was, is := before.Host(plan[0].Host), now.Host(moved[0].Host)
		if was.Name != is.Name {
			t.Fatalf("%s became %s", was.Name, is.Name)
		}
		for class, stock := range was.Stocks {
			if other := is.Stocks[class]; other.Limit()-other.Used < stock.Limit()-stock.Used {
				t.Fatalf("there is less %s: %v, earlier %v", class, other, stock)
			}
		}
		for _, victim := range plan[0].Victims {
			if !slices.ContainsFunc(is.Instances, func(i inventory.Instance) bool { return i.ID == victim && i.Evictable() }) {
				t.Fatalf("victim %s cannot be evicted", victim)
			}
		}
	})
}

// drawTake draws a take on one of the hosts. Its victims are evictable instances.
func drawTake(t *rapid.T, s *inventory.States) inventory.Take {
	take := inventory.Take{
		Host: rapid.IntRange(0, s.Len()-1).Draw(t, "host"), Instance: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "instance"),
		Resources: amounts{"VCPU": rapid.Int64Range(0, 2).Draw(t, "amount")},
	}
	for _, one := range s.InstancesOn(take.Host) {
		if one.Evictable() && rapid.Bool().Draw(t, "victim") {
			take.Victims = append(take.Victims, one.ID)
		}
	}
	return take
}

// happens changes what a reading reports of a host.
func happens(t *rapid.T, h *inventory.HostState) {
	h.Stocks, h.Instances = maps.Clone(h.Stocks), slices.Clone(h.Instances)
	for class, stock := range h.Stocks {
		stock.Used = max(0, stock.Used+rapid.Int64Range(-1, 1).Draw(t, "more is used"))
		h.Stocks[class] = stock
	}
	if len(h.Instances) > 0 && rapid.Bool().Draw(t, "an instance leaves") {
		h.Instances = h.Instances[1:]
	}
	if len(h.Instances) > 0 && rapid.Bool().Draw(t, "an instance is locked") {
		h.Instances[0].Locked = true
	}
}
