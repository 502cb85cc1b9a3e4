// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/resource"
)

// A share is the smallest part of the host that holds everything: what fits n times takes at most an
// nth of it, and what does not fit takes all of it.
func TestTheShareOfAHostIsWhatFits(t *testing.T) {
	amount := rapid.Int64Range(0, 64)
	draw := func(t *rapid.T, label string) resource.Vector {
		v := resource.Vector{VCPUs: amount.Draw(t, label+" vcpus"), MemoryMB: amount.Draw(t, label+" memory"), DiskGB: amount.Draw(t, label+" disk")}
		if rapid.Bool().Draw(t, label+" has a gpu") {
			v.Custom = map[string]int64{"CUSTOM_GPU": amount.Draw(t, label+" gpus")}
		}
		return v
	}
	rapid.Check(t, func(t *rapid.T) {
		demand, capacity := draw(t, "demand"), draw(t, "capacity")
		share := demand.ShareOf(capacity)
		switch times := capacity.Times(demand); {
		case share < 0 || share > 1:
			t.Fatalf("a share of %v", share)
		case demand.IsZero():
			if share != 0 {
				t.Fatalf("nothing takes %v", share)
			}
		case times == 0 && share != 1:
			t.Fatalf("%v takes %v of %v, in which it does not fit", demand, share, capacity)
		case times > 0 && (share > 1/float64(times) || share <= 1/float64(times+1)):
			t.Fatalf("%v fits %d times in %v, and takes %v", demand, times, capacity, share)
		}
	})
}
