package inventory_test

import (
	"context"
	"errors"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

// cloud is a Source and the settings at once; err fails whatever comes next.
type cloud struct {
	hosts     []inventory.Host
	overrides map[string]inventory.Override
	hidden    map[string]bool
	err       error
}

func (c *cloud) Hosts(context.Context) ([]inventory.Host, error) { return c.hosts, c.err }

func (c *cloud) Overrides(context.Context) (map[string]inventory.Override, error) {
	return c.overrides, c.err
}

func (c *cloud) SaveOverride(_ context.Context, host string, o inventory.Override) error {
	if c.err == nil {
		c.overrides[host] = o
	}
	return c.err
}

func (c *cloud) Hidden(context.Context) (map[string]bool, error) { return c.hidden, c.err }

func (c *cloud) SaveHidden(_ context.Context, property string, hidden bool) error {
	if c.err == nil {
		c.hidden[property] = hidden
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

func keep(t *testing.T, c *cloud) *inventory.Keeper {
	t.Helper()
	if c.overrides == nil {
		c.overrides, c.hidden = make(map[string]inventory.Override), make(map[string]bool)
	}
	k, err := inventory.OpenKeeper(t.Context(), c, c, c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func rack(t *testing.T, k *inventory.Keeper, host string) any {
	t.Helper()
	i, ok := k.Snapshot().Index(host)
	if !ok {
		t.Fatalf("no host %s", host)
	}
	return k.Snapshot().Host(i).Properties["rack"].Any()
}

func TestTheLastGoodHostsStay(t *testing.T) {
	c := &cloud{hosts: racked("a", "b")}
	k := keep(t, c)
	published := 0
	k.Follow(func(*inventory.Snapshot) { published++ })

	c.err = errors.New("unreadable")
	if err := k.Refresh(t.Context()); err == nil {
		t.Error("an unreadable source is no error")
	}
	c.hosts, c.err = nil, nil
	if err := k.Refresh(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a source without hosts: %v", err)
	}
	if k.Snapshot().Len() != 2 || published != 0 {
		t.Errorf("%d hosts, %d snapshots published; want the two of before and none", k.Snapshot().Len(), published)
	}
	c.hosts = racked("a", "b", "c")
	for range 2 { // the second time nothing has changed
		if err := k.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if k.Snapshot().Len() != 3 || published != 1 {
		t.Errorf("%d hosts, %d snapshots published; want 3 and 1", k.Snapshot().Len(), published)
	}
}

func TestACloudWithoutHostsDoesNotOpen(t *testing.T) {
	c := &cloud{}
	if _, err := inventory.OpenKeeper(t.Context(), c, c, c); err == nil {
		t.Error("opened without hosts")
	}
}

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
	again := keep(t, c) // as after a restart
	for name, k := range map[string]*inventory.Keeper{"now": k, "after a restart": again} {
		i, _ := k.Snapshot().Index("a")
		if got := rack(t, k, "a"); got != 2.0 || k.Snapshot().Host(i).Reservable {
			t.Errorf("%s: rack %v, reservable %v", name, got, k.Snapshot().Host(i).Reservable)
		}
		if got := rack(t, k, "b"); got != 1.0 {
			t.Errorf("%s: the other host has rack %v", name, got)
		}
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
