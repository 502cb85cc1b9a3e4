// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
)

// Placement fails at any step, before or after it has done its work, or does it when nobody waits
// any more. Callers stop waiting at any time. In the end every instance has exactly what its
// callers were told.
func TestWhatNobodyWasToldOfIsReleasedAndAllElseStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cloudtest.NewCloud(rapid.SliceOfN(rapid.Int64Range(0, 6), 1, 4).Draw(t, "limits")...)
		trouble := rapid.IntRange(0, 9).Draw(t, "trouble")
		c.Fate = func(call string) cloudtest.Fate {
			if rapid.IntRange(0, 9).Draw(t, "trouble with the "+call) >= trouble {
				return cloudtest.Fine
			}
			return rapid.SampledFrom([]cloudtest.Fate{cloudtest.Unsent, cloudtest.Before, cloudtest.After, cloudtest.Later}).Draw(t, "fate")
		}
		b := cloudtest.New(t, c, func() error {
			if rapid.IntRange(0, 9).Draw(t, "patience") == 0 {
				return context.DeadlineExceeded
			}
			return nil
		})
		told := map[string]placing.Allocations{}
		t.Repeat(map[string]func(*rapid.T){
			"place": func(t *rapid.T) {
				instances := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3, rapid.ID[string]).Draw(t, "instances")
				r := cloudtest.Request(rapid.Int64Range(1, 3).Draw(t, "VCPU"), instances...)
				for _, instance := range instances { // Nova never evacuates an instance to its own host
					r.IgnoreHosts = slices.AppendSeq(r.IgnoreHosts, maps.Keys(b.On(instance)))
				}
				placed, err := b.Place(context.Background(), r)
				if err != nil {
					return
				}
				for i, instance := range instances {
					told[instance] = told[instance].WithSource(placed.Selections[i][0].Allocations)
				}
			},
			"carry out what was late": func(*rapid.T) { b.CarryOut() },
			"sweep":                   func(*rapid.T) { _ = b.Sweep(context.Background()) }, // fails while Placement is away
			"": func(t *rapid.T) {
				for instance, allocations := range told {
					if has := c.Consumers[instance].Allocations; !has.Equal(has.WithSource(allocations)) {
						t.Fatalf("%s has %v, its callers were told %v", instance, has, allocations)
					}
				}
			},
		})
		b.CarryOut()
		c.Fate = func(string) cloudtest.Fate { return cloudtest.Fine }
		for range 2 {
			if err := b.Sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
			c.At = c.At.Add(time.Hour)
		}
		for consumer, claim := range c.Consumers {
			if !claim.Allocations.Equal(told[consumer]) {
				t.Errorf("%s has %v, its callers were told %v", consumer, claim.Allocations, told[consumer])
			}
		}
		calls := len(c.Calls)
		if err := b.Sweep(context.Background()); err != nil || len(c.Calls) > calls {
			t.Errorf("the sweep is not complete: %v, error %v", c.Calls[calls:], err)
		}
	})
}
