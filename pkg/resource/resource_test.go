// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/resource"
)

func anyVector() *rapid.Generator[resource.Vector] {
	return rapid.Custom(func(t *rapid.T) resource.Vector {
		amount := rapid.Int64Range(0, 50)
		v := resource.Vector{VCPUs: amount.Draw(t, "vcpus"), MemoryMB: amount.Draw(t, "memory"), DiskGB: amount.Draw(t, "disk")}
		if rapid.Bool().Draw(t, "has custom") {
			v.Custom = map[string]int64{"CUSTOM_FPGA": amount.Draw(t, "fpga")}
		}
		return v
	})
}

func TestAShapeFitsExactlyAsOftenAsTimesSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, shape := anyVector().Draw(t, "have"), anyVector().Draw(t, "shape")
		times := have.Times(shape)
		if shape.IsZero() {
			if times != math.MaxInt64 {
				t.Fatalf("nothing fits %d times", times)
			}
			return
		}
		if !shape.Scale(times).Fits(have) {
			t.Errorf("%v does not fit %d times into %v", shape, times, have)
		}
		if shape.Scale(times + 1).Fits(have) {
			t.Errorf("%v fits once more than %d times into %v", shape, times, have)
		}
	})
}

func TestSubtractingWhatWasAddedRestores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyVector().Draw(t, "a"), anyVector().Draw(t, "b")
		if got := a.Add(b).Sub(b); !got.Equal(a) {
			t.Errorf("%v + %v - %v = %v", a, b, b, got)
		}
	})
}

func TestAMissingCustomClassCountsZero(t *testing.T) {
	fpga := resource.Vector{Custom: map[string]int64{"CUSTOM_FPGA": 1}}
	if fpga.Fits(resource.Vector{VCPUs: 8}) {
		t.Error("a host without FPGA fits one")
	}
	if got := (resource.Vector{VCPUs: 8}).Times(fpga); got != 0 {
		t.Errorf("a host without FPGA holds it %d times", got)
	}
}
