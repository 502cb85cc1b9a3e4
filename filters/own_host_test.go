// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// A filter looks only at the host that it judges. Therefore a plan may enter the live state while
// other hosts change (inventory.LiveState.Place).
func TestWhatIsTakenOfOneHostChangesNoVerdictOnAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, filters.Names(), 3)
		w.options.Reservation.Promises, w.options.Evicts, w.options.Yield = promised{}, true, filters.Yield{Floor: 0.5, Share: 1}
		list, err := filters.New(w.Filters, w.options)
		if err != nil {
			t.Fatal(err)
		}
		before, err := inventory.NewStates(w.rows, w.aggregates)
		if err != nil {
			t.Fatal(err)
		}
		r := rapid.SampledFrom(w.requests).Draw(t, "request")
		take := inventory.Take{
			Host:     rapid.IntRange(0, before.Len()-1).Draw(t, "host"),
			Instance: rapid.SampledFrom(append([]string{"new"}, members(r)...)).Draw(t, "instance"), Resources: r.Resources,
		}
		for _, one := range before.InstancesOn(take.Host) {
			if rapid.Bool().Draw(t, "leaves") {
				take.Victims = append(take.Victims, one.ID)
			}
		}
		after := before.WithTaken([]inventory.Take{take})
		for _, f := range list {
			was, is := before.All().Clone(), after.All().Clone()
			if test := f.For(before, &r, 0); test != nil {
				test.Keep(was)
			}
			if test := f.For(after, &r, 0); test != nil {
				test.Keep(is)
			}
			was.Remove(take.Host)
			is.Remove(take.Host)
			if !was.Equal(is) {
				t.Fatalf("%s admits %v, but %v after a take on host %d", f.Name(), was, is, take.Host)
			}
		}
	})
}

// members returns the instances of a request's server group and those that its hints name.
func members(r placing.Request) (ids []string) {
	if r.Group != nil {
		ids = append(ids, r.Group.Members...)
	}
	return append(append(ids, r.Hints["same_host"]...), r.Hints["different_host"]...)
}
