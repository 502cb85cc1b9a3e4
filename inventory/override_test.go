// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func TestWhatIsSetByHandIsStoredAndWins(t *testing.T) {
	c := &cloud{hosts: racked("a", "b")}
	k := keep(t, c)
	two, closed := inventory.NumberValue(2), false
	if err := k.SetHost(t.Context(), "a", inventory.Override{Properties: map[string]*inventory.Value{"rack": &two}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := k.SetHost(t.Context(), "a", inventory.Override{Reservable: &closed}, nil); err != nil {
		t.Fatal(err)
	}
	asleep := inventory.PowerSleeping
	if err := k.SetHost(t.Context(), "b", inventory.Override{Power: &asleep}, nil); err != nil {
		t.Fatal(err)
	}
	again := keep(t, c) // as after a restart
	for name, k := range map[string]*inventory.SnapshotCache{"now": k, "after a restart": again} {
		i, _ := k.Snapshot().Index("a")
		if got := rack(t, k, "a"); got != 2.0 || k.Snapshot().Host(i).Reservable {
			t.Errorf("%s: rack %v, reservable %v", name, got, k.Snapshot().Host(i).Reservable)
		}
		if got := rack(t, k, "b"); got != 1.0 {
			t.Errorf("%s: the other host has rack %v", name, got)
		}
		if j, _ := k.Snapshot().Index("b"); k.Snapshot().Host(j).Power != asleep || k.Snapshot().Host(i).Power != "" {
			t.Errorf("%s: b is %s, a %s", name, k.Snapshot().Host(j).Power, k.Snapshot().Host(i).Power)
		}
	}
}

func TestPowerThatIsGivenBackIsTheSources(t *testing.T) {
	c := &cloud{hosts: racked("a")}
	c.hosts[0].Power = inventory.PowerWaking
	k := keep(t, c)
	closed := false
	for _, change := range []struct {
		set  inventory.Override
		want inventory.Power
	}{
		{inventory.Override{Power: new(inventory.PowerSleeping)}, inventory.PowerSleeping},
		{inventory.Override{Reservable: &closed}, inventory.PowerSleeping},
		{inventory.Override{Power: new(inventory.PowerOn)}, inventory.PowerOn},
		{inventory.Override{Power: new(inventory.Power(""))}, inventory.PowerWaking},
	} {
		if err := k.SetHost(t.Context(), "a", change.set, nil); err != nil {
			t.Fatal(err)
		}
		if got := k.Snapshot().Host(0).Power; got != change.want {
			t.Errorf("after %+v: power %q, want %q", change.set, got, change.want)
		}
	}
	if stored := c.overrides["a"]; stored.Power != nil || stored.Reservable == nil {
		t.Errorf("stored is %+v, want only the pool", stored)
	}
}

// textRacks returns hosts whose racks are strings in the source.
func textRacks(racks map[string]string) []inventory.Host {
	hosts := racked("a", "b")
	for i := range hosts {
		hosts[i].Properties = properties{"rack": inventory.StringValue(racks[hosts[i].Name])}
	}
	return hosts
}

func TestASourceThatContradictsWhatWasSetByHandLosesThatPropertyOnly(t *testing.T) {
	c := &cloud{hosts: racked("a", "b")}
	k := keep(t, c)
	five, word, asleep := inventory.NumberValue(5), inventory.StringValue("A5"), inventory.PowerSleeping
	set := func(host string, o inventory.Override) {
		t.Helper()
		if err := k.SetHost(t.Context(), host, o, nil); err != nil {
			t.Fatal(err)
		}
	}
	set("a", inventory.Override{Properties: map[string]*inventory.Value{"rack": &five}})
	c.hosts = textRacks(map[string]string{"a": "1", "b": "B12"})
	c.hosts[1].Problem = "its nova-compute is down"
	published := 0
	if settle(t, k, &published); k.Snapshot().Host(1).Problem == "" {
		t.Error("the host's other changes are lost")
	}
	for name, k := range map[string]*inventory.SnapshotCache{"now": k, "after a restart": keep(t, c)} {
		if a, b := rack(t, k, "a"), rack(t, k, "b"); a != 5.0 || b != nil {
			t.Errorf("%s: a has rack %v, b %v; want 5 and none", name, a, b)
		}
	}
	set("a", inventory.Override{Power: &asleep})
	set("b", inventory.Override{Properties: map[string]*inventory.Value{"rack": &five}})
	if err := k.SetHost(t.Context(), "b", inventory.Override{Properties: map[string]*inventory.Value{"rack": &word}}, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("b accepts a string although a has a number: %v", err)
	}
	set("b", inventory.Override{Properties: map[string]*inventory.Value{"rack": nil}})
	set("a", inventory.Override{Properties: map[string]*inventory.Value{"rack": &word}})
	c.overrides["b"] = inventory.Override{}
	settle(t, k, &published)
	if a, b := rack(t, k, "a"), rack(t, k, "b"); a != "A5" || b != "B12" {
		t.Errorf("without the contradiction, a has rack %v, b %v", a, b)
	}
}

func TestSettingsThatContradictEachOtherStopNothing(t *testing.T) {
	c := &cloud{hosts: racked("b")}
	k := keep(t, c)
	five, word := inventory.NumberValue(5), inventory.StringValue("A5")
	c.overrides["a"] = inventory.Override{Properties: map[string]*inventory.Value{"slot": &five}} // a is not in the source
	if err := k.SetHost(t.Context(), "b", inventory.Override{Properties: map[string]*inventory.Value{"slot": &word}}, nil); err != nil {
		t.Fatal(err)
	}
	c.hosts = racked("a", "b")
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	a, b := k.Snapshot().Host(0), k.Snapshot().Host(1)
	if a.Properties["slot"].Any() != 5.0 || b.Properties["slot"].Any() != nil {
		t.Errorf("a has slot %v, b %v; want 5 and none", a.Properties["slot"].Any(), b.Properties["slot"].Any())
	}
}

func TestTheLogSaysOnceWhatIsLeftOut(t *testing.T) {
	w := watch(t, racked("a", "b"))
	five := inventory.NumberValue(5)
	w.cloud.overrides = map[string]inventory.Override{"a": {Properties: map[string]*inventory.Value{"rack": &five}}}
	for guests := range 3 {
		hosts := textRacks(map[string]string{"a": "1", "b": "B12"})
		hosts[0].InstanceCount = guests
		w.after(t, 10, hosts)
	}
	if said := strings.Count(w.log.String(), "rack is a string on b, but was set as a number"); said != 1 {
		t.Errorf("logged %d times:\n%s", said, w.log.String())
	}
}

func TestASettingThatCannotBeChangesNothing(t *testing.T) {
	c := &cloud{hosts: racked("a", "b")}
	k := keep(t, c)
	text, two := inventory.StringValue("x"), inventory.NumberValue(2)
	for name, tc := range map[string]struct {
		set  func() error
		fail error
		want fault.Kind
	}{
		"unknown host": {func() error { return k.SetHost(t.Context(), "c", inventory.Override{}, nil) }, nil, fault.NotFound},
		"another type": {func() error {
			return k.SetHost(t.Context(), "a", inventory.Override{Properties: map[string]*inventory.Value{"rack": &text}}, nil)
		}, nil, fault.Invalid},
		"a built-in property": {func() error {
			return k.SetHost(t.Context(), "a", inventory.Override{Properties: map[string]*inventory.Value{"vcpus": nil}}, nil)
		}, nil, fault.Invalid},
		"no power state": {func() error {
			return k.SetHost(t.Context(), "a", inventory.Override{Power: new(inventory.Power("off"))}, nil)
		}, nil, fault.Invalid},
		"unknown property": {func() error { return k.SetHidden(t.Context(), "gpu", true) }, nil, fault.NotFound},
		"not stored": {func() error {
			return k.SetHost(t.Context(), "a", inventory.Override{Properties: map[string]*inventory.Value{"rack": &two}}, nil)
		}, fault.New(fault.Unavailable, "full"), fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			before := k.Snapshot()
			c.err = tc.fail
			defer func() { c.err = nil }()
			if err := tc.set(); !fault.Is(err, tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			if k.Snapshot() != before || len(c.overrides) != 0 || len(c.hidden) != 0 {
				t.Error("something has changed")
			}
		})
	}
}

func TestReplicasDoNotUndoEachOthersSettings(t *testing.T) {
	c := &cloud{hosts: racked("a")}
	one, two := keep(t, c), keep(t, c)
	rackTwo, row, text, closed := inventory.NumberValue(2), inventory.StringValue("r"), inventory.StringValue("x"), false
	for _, step := range []struct {
		k      *inventory.SnapshotCache
		change inventory.Override
	}{
		{one, inventory.Override{Properties: map[string]*inventory.Value{"rack": &rackTwo}}},
		{two, inventory.Override{Properties: map[string]*inventory.Value{"row": &row}}},
		{one, inventory.Override{Reservable: &closed}},
	} {
		if err := step.k.SetHost(t.Context(), "a", step.change, nil); err != nil {
			t.Fatal(err)
		}
	}
	for name, k := range map[string]*inventory.SnapshotCache{"one": one, "a third": keep(t, c)} {
		h := k.Snapshot().Host(0)
		if h.Properties["rack"].Any() != 2.0 || h.Properties["row"].Any() != "r" || h.Reservable {
			t.Errorf("%s: %+v", name, *h)
		}
	}
	err := two.SetHost(t.Context(), "a", inventory.Override{Properties: map[string]*inventory.Value{"row": nil, "rack": &text}}, nil)
	if err != nil {
		t.Errorf("the only host with a property cannot change its type: %v", err)
	}
}

// What allows a change sees the host as it is stored then, also by another process.
func TestAChangeOfAHostIsAllowedByWhatIsStored(t *testing.T) {
	c := &cloud{hosts: racked("a")}
	one, two := keep(t, c), keep(t, c)
	rack := func(n float64) inventory.Override {
		v := inventory.NumberValue(n)
		return inventory.Override{Properties: map[string]*inventory.Value{"rack": &v}}
	}
	if err := one.SetHost(t.Context(), "a", rack(2), nil); err != nil {
		t.Fatal(err)
	}
	only := func(want any) func(before, after *inventory.Snapshot) error {
		return func(before, _ *inventory.Snapshot) error {
			if got := before.Host(0).Properties["rack"].Any(); got != want {
				return fault.Changed("host")
			}
			return nil
		}
	}
	for what, change := range map[string]inventory.Override{"a change": rack(3), "a change of nothing": {}} {
		if err := two.SetHost(t.Context(), "a", change, only(1.0)); !fault.Is(err, fault.Precondition) {
			t.Errorf("%s of what this process still sees: %v", what, err)
		}
	}
	if got := two.Snapshot().Host(0).Properties["rack"].Any(); got != 2.0 {
		t.Errorf("a client that reads again sees rack %v, want what is stored", got)
	}
	if err := two.SetHost(t.Context(), "a", rack(3), only(2.0)); err != nil {
		t.Errorf("a change of what is stored: %v", err)
	}
	if got := keep(t, c).Snapshot().Host(0).Properties["rack"].Any(); got != 3.0 {
		t.Errorf("the rack is %v", got)
	}
}
