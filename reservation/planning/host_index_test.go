// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// site is the source of an inventory without settings of operators.
type site struct{ hosts []inventory.Host }

func (s *site) Hosts(context.Context) ([]inventory.Host, error) { return slices.Clone(s.hosts), nil }

func (s *site) Overrides(context.Context) (map[string]inventory.Override, error) { return nil, nil }

func (s *site) ChangeOverride(context.Context, string, func(map[string]inventory.Override) (inventory.Override, error)) error {
	return nil
}

func (s *site) Hidden(context.Context) (map[string]bool, error) { return nil, nil }

func (s *site) SaveHidden(context.Context, string, bool) error { return nil }

func TestAnIndexWithAnotherStateIsTheIndexOfThatSnapshot(t *testing.T) {
	s := &site{hosts: []inventory.Host{
		{Name: "a", Reservable: true, FlopsPerWatt: 1}, {Name: "b", Reservable: true, FlopsPerWatt: 2, Traits: []string{"CUSTOM_GPU"}}, {Name: "c", Reservable: true},
	}}
	hosts, err := inventory.OpenSnapshotCache(t.Context(), s, inventory.SnapshotCacheOptions{
		Hosts: s, Properties: s, Now: func() span.Instant { return 1 }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	index, _ := (&HostIndex{}).With(OrderHosts(hosts.Snapshot()))
	index, _ = index.Admit([]string{"left"})

	s.hosts[1].InstanceCount, s.hosts[1].Used, s.hosts[2].Power = 1, resource.Vector{VCPUs: 1}, inventory.PowerSleeping
	if err := hosts.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, only := index.WithState(hosts.Snapshot())
	if !only {
		t.Fatal("the hosts differ in more than their state")
	}
	want, _ := index.With(OrderHosts(hosts.Snapshot()))
	same := cmp.Comparer(func(a, b *inventory.Snapshot) bool { return a == b })
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(HostIndex{}, HostOrder{}, occupants{}, feature{}), cmpopts.IgnoreUnexported(sync.Map{}), same); diff != "" {
		t.Errorf("the index differs, want -, got +\n%s", diff)
	}

	s.hosts[0].FlopsPerWatt = 3
	if err := hosts.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, only := got.WithState(hosts.Snapshot()); only {
		t.Error("another efficiency counts as a state")
	}
}
