// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"log/slog"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// A reading in which only the state of some hosts differs makes the same snapshot as one that is read for the first time.
func TestAReadingMakesTheSameSnapshotWhateverWasReadBefore(t *testing.T) {
	ctx := t.Context()
	rapid.Check(t, func(t *rapid.T) {
		c := &cloud{hosts: racked("a", "b", "c", "d"), overrides: map[string]inventory.Override{}, hidden: map[string]bool{}}
		o := inventory.SnapshotCacheOptions{Hosts: c, Properties: c, Now: func() span.Instant { return 1 }, Log: slog.New(slog.DiscardHandler)}
		cache, err := inventory.OpenSnapshotCache(ctx, c, o)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 8).Draw(t, "readings") {
			c.hosts = slices.Clone(c.hosts)
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				change(t, c)
			}
			if err := cache.Refresh(ctx); err != nil {
				t.Fatal(err)
			}
			again, err := inventory.OpenSnapshotCache(ctx, c, o)
			if err != nil {
				t.Fatal(err)
			}
			same(t, cache.Snapshot(), again.Snapshot())
			if again.Snapshot().SameFacts(cache.Snapshot()) {
				t.Fatal("two snapshots that were made apart share their facts")
			}
		}
	})
}

// change changes something about a host or a setting.
func change(t *rapid.T, c *cloud) {
	h := &c.hosts[rapid.IntRange(0, len(c.hosts)-1).Draw(t, "host")]
	n := rapid.IntRange(0, 3).Draw(t, "number")
	switch rapid.SampledFrom([]string{"use", "use", "problem", "power", "boot", "property", "efficiency", "zone", "traits", "override"}).Draw(t, "what") {
	case "use":
		h.InstanceCount, h.Used = n, resource.Vector{VCPUs: int64(n)}
	case "problem":
		h.Problem = []string{"", "it is down"}[n%2]
	case "power":
		h.Power = inventory.Powers[n]
	case "boot":
		h.BootSeconds, h.WakeDelay = int64(n), int64(n)
	case "property":
		h.Properties = map[string]inventory.Value{"rack": inventory.NumberValue(float64(n))}
	case "efficiency":
		h.FlopsPerWatt = float64(n)
	case "zone":
		h.Zone = []string{"", "z"}[n%2]
	case "traits":
		h.Traits = []string{"T2", "T1", "T0"}[:n]
	case "override":
		c.overrides[h.Name] = inventory.Override{Power: new(inventory.Powers[n])}
	}
}

func same(t *rapid.T, got, want *inventory.Snapshot) {
	for i, h := range want.Hosts() {
		if !reflect.DeepEqual(got.Host(i), h) {
			t.Fatalf("the host is %+v, want %+v", got.Host(i), h)
		}
		if got.EfficiencyRank(i) != want.EfficiencyRank(i) {
			t.Fatalf("the rank of %s is %d, want %d", h.Name, got.EfficiencyRank(i), want.EfficiencyRank(i))
		}
	}
	if !reflect.DeepEqual(got.Properties(), want.Properties()) || !slices.Equal(got.Classes(), want.Classes()) || got.Len() != want.Len() {
		t.Fatalf("the properties are %+v, want %+v", got.Properties(), want.Properties())
	}
}
