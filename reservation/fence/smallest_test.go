package fence_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// TestAHostWithNothingMakesNoFlavorSmaller: Placement gives none of its vCPUs or memory
// where all is reserved, or where nova-compute has not written them yet. Nova takes no
// flavor without them.
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
				t.Errorf("%s, hosts %v: the flavor takes %v", name, order, got)
			}
		}
	}
}
