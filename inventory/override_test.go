package inventory_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func TestWhatIsSetByHandIsStoredAndWins(t *testing.T) {
	c := &cloud{hosts: racked("a", "b")}
	k := keep(t, c)
	two, closed := inventory.NumberValue(2), false
	if err := k.SetHost(t.Context(), "a", inventory.Override{Properties: map[string]*inventory.Value{"rack": &two}}); err != nil {
		t.Fatal(err)
	}
	if err := k.SetHost(t.Context(), "a", inventory.Override{Reservable: &closed}); err != nil {
		t.Fatal(err)
	}
	asleep := inventory.PowerSleeping
	if err := k.SetHost(t.Context(), "b", inventory.Override{Power: &asleep}); err != nil {
		t.Fatal(err)
	}
	again := keep(t, c) // as after a restart
	for name, k := range map[string]*inventory.Keeper{"now": k, "after a restart": again} {
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
		if err := k.SetHost(t.Context(), "a", change.set); err != nil {
			t.Fatal(err)
		}
		if got := k.Snapshot().Host(0).Power; got != change.want {
			t.Errorf("after %+v: power %q, want %q", change.set, got, change.want)
		}
	}
	if stored := c.overrides["a"]; stored.Power != nil || stored.Reservable == nil {
		t.Errorf("stored is %+v, want the pool alone", stored)
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
		"unknown host": {func() error { return k.SetHost(t.Context(), "c", inventory.Override{}) }, nil, fault.NotFound},
		"another type": {func() error {
			return k.SetHost(t.Context(), "a", inventory.Override{Properties: map[string]*inventory.Value{"rack": &text}})
		}, nil, fault.Invalid},
		"a built-in property": {func() error {
			return k.SetHost(t.Context(), "a", inventory.Override{Properties: map[string]*inventory.Value{"vcpus": nil}})
		}, nil, fault.Invalid},
		"no power state": {func() error {
			return k.SetHost(t.Context(), "a", inventory.Override{Power: new(inventory.Power("off"))})
		}, nil, fault.Invalid},
		"unknown property": {func() error { return k.SetHidden(t.Context(), "gpu", true) }, nil, fault.NotFound},
		"not stored": {func() error {
			return k.SetHost(t.Context(), "a", inventory.Override{Properties: map[string]*inventory.Value{"rack": &two}})
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
		k      *inventory.Keeper
		change inventory.Override
	}{
		{one, inventory.Override{Properties: map[string]*inventory.Value{"rack": &rackTwo}}},
		{two, inventory.Override{Properties: map[string]*inventory.Value{"row": &row}}},
		{one, inventory.Override{Reservable: &closed}},
	} {
		if err := step.k.SetHost(t.Context(), "a", step.change); err != nil {
			t.Fatal(err)
		}
	}
	for name, k := range map[string]*inventory.Keeper{"one": one, "a third": keep(t, c)} {
		h := k.Snapshot().Host(0)
		if h.Properties["rack"].Any() != 2.0 || h.Properties["row"].Any() != "r" || h.Reservable {
			t.Errorf("%s: %+v", name, *h)
		}
	}
	err := two.SetHost(t.Context(), "a", inventory.Override{Properties: map[string]*inventory.Value{"row": nil, "rack": &text}})
	if err != nil {
		t.Errorf("the only host that has a property may change its type: %v", err)
	}
}
