// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// Placement reports no vCPUs or memory of a host if all of it is reserved, or if nova-compute
// has not reported it yet. Nova does not accept a flavor without them.
func TestAHostWithNothingMakesNoFlavorSmaller(t *testing.T) {
	full := resource.Vector{VCPUs: 8, MemoryMB: 1024, DiskGB: 10}
	for name, empty := range map[string]resource.Vector{
		"nothing": {}, "no vCPUs": {MemoryMB: 512, DiskGB: 5}, "no memory": {VCPUs: 4, DiskGB: 5},
	} {
		for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
			s, err := inventory.NewSnapshot([]inventory.Host{{Name: "a", Capacity: full}, {Name: "b", Capacity: empty}}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			l := fence.Desired([]reservation.Reservation{booked("r1", order...)}, s, start, fence.Rules{})
			if got := l.Flavors["r1"].Resources; got.VCPUs != 8 || got.MemoryMB != 1024 || got.DiskGB != 10 {
				t.Errorf("%s, hosts %v: the flavor has %v", name, order, got)
			}
		}
	}
}

func TestTheFlavorOfAWholeHostHasASmallRootDiskAndTakesTheWholeHost(t *testing.T) {
	for name, tc := range map[string]struct {
		root, disk int64 // of the rules, and of the host
		want       int64
		spec       string // of resources:DISK_GB
	}{
		"the rest is an extra spec":              {20, 1028, 20, "1028"},
		"no more than the host has":              {20, 10, 10, ""},
		"all of the host's":                      {0, 1028, 1028, ""},
		"a host without a disk of its own stays": {20, 0, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot(t, host("a", 8, 16000, tc.disk))
			rules := fence.Rules{RootDisk: tc.root, Flavors: []inventory.Flavor{{Name: "m1", Resources: resource.Vector{VCPUs: 1, MemoryMB: 512, DiskGB: 80}}}}
			f := fence.Desired([]reservation.Reservation{booked("r1", "a")}, s, start, rules).Flavors
			if got := f["r1"]; got.Resources.DiskGB != tc.want || got.ExtraSpecs["resources:DISK_GB"] != tc.spec {
				t.Errorf("root disk %d GB, DISK_GB %q; want %d and %q", got.Resources.DiskGB, got.ExtraSpecs["resources:DISK_GB"], tc.want, tc.spec)
			}
			if got := f["r1-m1"]; got.Resources.DiskGB != 80 || got.ExtraSpecs["resources:DISK_GB"] != "" {
				t.Errorf("a configured shape has %d GB and %v", got.Resources.DiskGB, got.ExtraSpecs)
			}
		})
	}
}

func TestWhatBindsAFlavorIsAllThatAlmanacAddsToItsShape(t *testing.T) {
	for _, r := range []reservation.Reservation{booked("r1", "a"), shared("r1", 1, "a")} {
		l := fence.Desired([]reservation.Reservation{r}, snapshot(t, host("a", 8, 16000, 100)), start, fence.Rules{RootDisk: 20})
		for key := range l.Flavors["r1"].ExtraSpecs {
			if fence.Binds(key) == (key == "resources:DISK_GB") {
				t.Errorf("%s binds: %v", key, fence.Binds(key))
			}
		}
	}
}
