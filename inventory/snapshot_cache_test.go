// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// cloud is both a Source and the settings; every call fails with err if it is set.
type cloud struct {
	hosts     []inventory.Host
	overrides map[string]inventory.Override
	hidden    map[string]bool
	err       error
}

func (c *cloud) Hosts(context.Context) ([]inventory.Host, error) { return c.hosts, c.err }

func (c *cloud) Overrides(context.Context) (map[string]inventory.Override, error) {
	return maps.Clone(c.overrides), c.err
}

func (c *cloud) ChangeOverride(
	_ context.Context, host string, change func(map[string]inventory.Override) (inventory.Override, error),
) error {
	if c.err != nil {
		return c.err
	}
	o, err := change(maps.Clone(c.overrides))
	if err == nil {
		c.overrides[host] = o
	}
	return err
}

func (c *cloud) Hidden(context.Context) (map[string]bool, error) { return maps.Clone(c.hidden), c.err }

func (c *cloud) SaveHidden(_ context.Context, property string, hidden bool) error {
	if c.err == nil {
		c.hidden[property] = hidden
		maps.DeleteFunc(c.hidden, func(_ string, hidden bool) bool { return !hidden })
	}
	return c.err
}

func racked(names ...string) []inventory.Host {
	var hosts []inventory.Host
	for _, name := range names {
		hosts = append(hosts, inventory.Host{
			Name: name, Capacity: resource.Vector{VCPUs: 8, MemoryMB: 1024}, Reservable: true,
			Properties: map[string]inventory.Value{"rack": inventory.NumberValue(1)},
		})
	}
	return hosts
}

// settings returns the options of a cache over c with a clock that stands still.
func settings(c *cloud) inventory.SnapshotCacheOptions {
	return inventory.SnapshotCacheOptions{
		Hosts: c, Properties: c, Now: func() span.Instant { return 1000 }, Log: slog.New(slog.DiscardHandler),
	}
}

func keep(t *testing.T, c *cloud) *inventory.SnapshotCache {
	t.Helper()
	k, _ := counted(t, c)
	return k
}

// counted returns a cache and the number of snapshots that it has published.
func counted(t *testing.T, c *cloud) (k *inventory.SnapshotCache, published *int) {
	t.Helper()
	if c.overrides == nil {
		c.overrides, c.hidden = make(map[string]inventory.Override), make(map[string]bool)
	}
	o, published := settings(c), new(int)
	o.Published = func(*inventory.Snapshot) { *published++ }
	k, err := inventory.OpenSnapshotCache(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return k, published
}

func rack(t *testing.T, k *inventory.SnapshotCache, host string) any {
	t.Helper()
	i, ok := k.Snapshot().Index(host)
	if !ok {
		t.Fatalf("no host %s", host)
	}
	return k.Snapshot().Host(i).Properties["rack"].Any()
}

func TestTheLastGoodHostsStay(t *testing.T) {
	c := &cloud{hosts: racked("a", "b")}
	k, published := counted(t, c)

	c.err = errors.New("unreadable")
	if err := k.Refresh(t.Context()); err == nil {
		t.Error("an unreadable source returns no error")
	}
	c.hosts, c.err = nil, nil
	if err := k.Refresh(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a source without hosts: %v", err)
	}
	if k.Snapshot().Len() != 2 || *published != 0 {
		t.Errorf("%d hosts, %d snapshots published; want the two earlier hosts and no snapshot", k.Snapshot().Len(), *published)
	}
	c.hosts = racked("a", "b", "c")
	for range 2 { // the second refresh finds no change
		if err := k.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if k.Snapshot().Len() != 3 || *published != 1 {
		t.Errorf("%d hosts, %d snapshots published; want 3 and 1", k.Snapshot().Len(), *published)
	}
}

func TestHostsAreAsOldAsTheReadingThatGaveThem(t *testing.T) {
	w := watch(t, racked("a"))
	for _, reading := range []struct {
		hosts []inventory.Host
		err   error
		want  span.Instant
	}{
		{racked("a", "b"), nil, 1010},
		{racked("a", "b"), nil, 1020}, // without a change
		{nil, errors.New("unreadable"), 1020},
		{nil, nil, 1020},
		{racked("a"), nil, 1050},
	} {
		w.now += 10
		w.cloud.hosts, w.cloud.err = reading.hosts, reading.err
		_ = w.Refresh(t.Context())
		if got := w.ReadAt(); got != reading.want {
			t.Errorf("at %d: read at %d, want %d", w.now, got, reading.want)
		}
	}
}

func TestACloudWithoutHostsDoesNotOpen(t *testing.T) {
	c := &cloud{}
	if _, err := inventory.OpenSnapshotCache(t.Context(), c, settings(c)); err == nil {
		t.Error("opened without hosts")
	}
}

func TestAHiddenPropertyIsKnownToAdminsOnly(t *testing.T) {
	c := &cloud{hosts: racked("a")}
	k := keep(t, c)
	if err := k.SetHidden(t.Context(), "rack", true); err != nil {
		t.Fatal(err)
	}
	filter := []byte(`["=", "$rack", 1]`)
	for admin, want := range map[bool]bool{true: true, false: false} {
		f, err := inventory.ParseFilter(filter, k.Snapshot(), admin)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Matches(k.Snapshot().Host(0), false); got != want {
			t.Errorf("admin %v: matches %v", admin, got)
		}
	}
}

// settle refreshes and returns how many snapshots that published.
func settle(t *testing.T, k *inventory.SnapshotCache, published *int) int {
	t.Helper()
	before := *published
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return *published - before
}

func TestWhatOneReplicaSetsTheOthersHaveAfterARefresh(t *testing.T) {
	c := &cloud{hosts: racked("a", "b")}
	one := keep(t, c)
	two, published := counted(t, c)
	rackTwo, closed, list := inventory.NumberValue(2), false, inventory.ListValue(nil)
	for name, set := range map[string]func() error{
		"a property": func() error {
			return one.SetHost(t.Context(), "a", inventory.Override{Properties: map[string]*inventory.Value{"rack": &rackTwo, "tags": &list}}, nil)
		},
		"a property removed": func() error {
			return one.SetHost(t.Context(), "b", inventory.Override{Properties: map[string]*inventory.Value{"rack": nil}}, nil)
		},
		"the pool": func() error { return one.SetHost(t.Context(), "b", inventory.Override{Reservable: &closed}, nil) },
		"power": func() error {
			return one.SetHost(t.Context(), "b", inventory.Override{Power: new(inventory.PowerFailed)}, nil)
		},
		"a property is hidden": func() error { return one.SetHidden(t.Context(), "rack", true) },
	} {
		if err := set(); err != nil {
			t.Fatal(err)
		}
		if got := settle(t, two, published); got != 1 {
			t.Errorf("%s: the other replica published %d snapshots, want 1", name, got)
		}
		if got := settle(t, two, published); got != 0 {
			t.Errorf("%s: without a change, it published %d snapshots", name, got)
		}
	}
	i, _ := two.Snapshot().Index("b")
	if b := two.Snapshot().Host(i); rack(t, two, "a") != 2.0 || b.Reservable || b.Properties["rack"].Any() != nil {
		t.Errorf("the other replica has rack %v on a, and b is %+v", rack(t, two, "a"), *b)
	}
}

func TestWhatAReplicaSetsItselfIsNoNewsAtItsNextRefresh(t *testing.T) {
	c := &cloud{hosts: racked("a", "b")}
	k, published := counted(t, c)
	closed := false
	for name, set := range map[string]func() error{
		"nothing":  func() error { return k.SetHost(t.Context(), "a", inventory.Override{}, nil) },
		"the pool": func() error { return k.SetHost(t.Context(), "a", inventory.Override{Reservable: &closed}, nil) },
		"power": func() error {
			return k.SetHost(t.Context(), "a", inventory.Override{Power: new(inventory.PowerWaking)}, nil)
		},
		"hidden":          func() error { return k.SetHidden(t.Context(), "rack", true) },
		"shown":           func() error { return k.SetHidden(t.Context(), "rack", false) },
		"shown as before": func() error { return k.SetHidden(t.Context(), "zone", false) },
	} {
		if err := set(); err != nil {
			t.Fatal(err)
		}
		if got := settle(t, k, published); got != 0 {
			t.Errorf("%s: published %d snapshots", name, got)
		}
	}
}

func TestSettingsThatCannotBeReadLeaveTheSnapshot(t *testing.T) {
	stored := &cloud{}
	k, err := inventory.OpenSnapshotCache(t.Context(), &cloud{hosts: racked("a")}, settings(stored))
	if err != nil {
		t.Fatal(err)
	}
	before, closed := k.Snapshot(), false
	stored.err = fault.New(fault.Unavailable, "the database is away")
	for name, err := range map[string]error{
		"refresh": k.Refresh(t.Context()),
		"set":     k.SetHost(t.Context(), "a", inventory.Override{Reservable: &closed}, nil),
	} {
		if !fault.Is(err, fault.Unavailable) || k.Snapshot() != before {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
