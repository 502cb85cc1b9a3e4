// SPDX-License-Identifier: Apache-2.0

package openstack_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// flavor creates a flavor with a name in Almanac's or Blazar's form, until the test ends.
func (l *lab) flavor(id, name string, specs map[string]string) {
	l.t.Helper()
	l.must(l.compute.CreateFlavor(l.t.Context(), inventory.Flavor{ID: id, Name: name, Resources: resource.Vector{VCPUs: 1, MemoryMB: 64, DiskGB: 1}}))
	l.t.Cleanup(func() { l.must(l.compute.DeleteFlavor(context.Background(), id)) })
	l.must(l.compute.SetExtraSpecs(l.t.Context(), id, specs))
}

func TestAFlavorIsAlmanacsByItsMarkOrIfItWasNotFinished(t *testing.T) {
	l := newLab(t)
	for what, c := range map[string]struct {
		specs  map[string]string
		suffix string // of the ID
		shape  string // in the name
		own    bool
	}{
		"Blazar's, of a reservation of instances": {specs: map[string]string{"aggregate_instance_extra_specs:reservation": "x"}},
		"Blazar's, with affinity":                 {specs: map[string]string{"affinity_id": "x", "resources:CUSTOM_RESERVATION_X": "1"}},
		"somebody's, of that name and another id": {suffix: "x"},
		"Almanac's, not finished":                 {own: true},
		"Almanac's of a shape, not finished":      {suffix: "-small", shape: ":small", own: true},
		"Almanac's, with its mark":                {specs: map[string]string{inventory.ReservationMark: "x"}, own: true},
		"Almanac's, with its mark and another id": {specs: map[string]string{inventory.ReservationMark: "x"}, suffix: "x", own: true},
	} {
		t.Run(what, func(t *testing.T) {
			id := uuid.NewString()
			l := &lab{t: t, cloud: l.cloud, compute: l.compute}
			l.flavor(id+c.suffix, fence.FlavorPrefix+id+c.shape, c.specs)
			layout, err := l.cloud.Layout(t.Context())
			l.must(err)
			own := false
			for _, step := range fence.Diff(layout, fence.Layout{}) { // as bootstrap --remove does
				own = own || step.Action == fence.DeleteFlavor && step.Flavor.ID == id+c.suffix
			}
			if own != c.own {
				t.Errorf("counts as Almanac's: %v", own)
			}
		})
	}
}
