// SPDX-License-Identifier: Apache-2.0

// Package resource provides integer amounts of what a host offers and an instance uses: vCPUs,
// memory, disk, and custom resource classes named as in Placement.
package resource

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

var customClass = regexp.MustCompile(`^CUSTOM_[A-Z0-9_]+$`)

const longestClass = 255

// IsCustomClass reports whether name is a custom resource class of Placement: CUSTOM_ and then
// capitals, digits or _, at most 255 characters.
func IsCustomClass(name string) bool {
	return len(name) <= longestClass && customClass.MatchString(name)
}

// Vector is an amount of each resource. The zero Vector is nothing. Vectors are values: no
// method changes its receiver.
type Vector struct {
	VCPUs    int64 `json:"vcpus"`
	MemoryMB int64 `json:"memory_mb"`
	DiskGB   int64 `json:"disk_gb"`
	// Custom counts resource classes such as CUSTOM_FPGA; an absent class counts zero.
	Custom map[string]int64 `json:"custom"`
}

// IsZero reports whether every amount is 0.
func (v Vector) IsZero() bool {
	for _, amount := range v.Custom {
		if amount != 0 {
			return false
		}
	}
	return v.VCPUs == 0 && v.MemoryMB == 0 && v.DiskGB == 0
}

// WithoutZeros returns v without the custom classes whose amount is 0. It shares v's map if
// there are none.
func (v Vector) WithoutZeros() Vector {
	kept := make(map[string]int64)
	for class, amount := range v.Custom {
		if amount != 0 {
			kept[class] = amount
		}
	}
	switch len(kept) {
	case len(v.Custom):
	case 0:
		v.Custom = nil
	default:
		v.Custom = kept
	}
	return v
}

// Add returns v + o.
func (v Vector) Add(o Vector) Vector { return v.combine(o, func(a, b int64) int64 { return a + b }) }

// Sub returns v - o; amounts may become negative.
func (v Vector) Sub(o Vector) Vector { return v.combine(o, func(a, b int64) int64 { return a - b }) }

// Max returns the larger amount of each resource.
func (v Vector) Max(o Vector) Vector {
	return v.combine(o, func(a, b int64) int64 { return max(a, b) })
}

// Fits reports whether no resource of v exceeds that of o.
func (v Vector) Fits(o Vector) bool {
	for class, amount := range v.Custom {
		if amount > o.Custom[class] {
			return false
		}
	}
	return v.VCPUs <= o.VCPUs && v.MemoryMB <= o.MemoryMB && v.DiskGB <= o.DiskGB
}

// Times returns how often shape fits into v: the smallest integer quotient over the resources
// of shape. The zero Vector fits math.MaxInt64 times.
func (v Vector) Times(shape Vector) int64 {
	times := int64(math.MaxInt64)
	count := func(have, want int64) {
		if want > 0 {
			times = min(times, max(have, 0)/want)
		}
	}
	count(v.VCPUs, shape.VCPUs)
	count(v.MemoryMB, shape.MemoryMB)
	count(v.DiskGB, shape.DiskGB)
	for class, want := range shape.Custom {
		count(v.Custom[class], want)
	}
	return times
}

// ShareOf returns how much of a host of that capacity v takes: the largest share among the resources,
// from 0 to 1. It is 1 if the host lacks one of them or has less.
func (v Vector) ShareOf(capacity Vector) float64 {
	share := 0.0
	count := func(want, have int64) {
		if want > 0 {
			share = max(share, float64(want)/float64(max(have, 1)))
		}
	}
	count(v.VCPUs, capacity.VCPUs)
	count(v.MemoryMB, capacity.MemoryMB)
	count(v.DiskGB, capacity.DiskGB)
	for class, want := range v.Custom {
		count(want, capacity.Custom[class])
	}
	return min(share, 1)
}

// Scale returns v multiplied by n.
func (v Vector) Scale(n int64) Vector {
	return v.combine(Vector{}, func(a, _ int64) int64 { return a * n })
}

// Equal reports whether all amounts are the same.
func (v Vector) Equal(o Vector) bool { return v.Fits(o) && o.Fits(v) }

// String lists the amounts for messages: "8 vcpus, 16000 MB memory, 160 GB disk".
func (v Vector) String() string {
	parts := []string{
		fmt.Sprintf("%d vcpus", v.VCPUs),
		fmt.Sprintf("%d MB memory", v.MemoryMB),
		fmt.Sprintf("%d GB disk", v.DiskGB),
	}
	for _, class := range slices.Sorted(maps.Keys(v.Custom)) {
		parts = append(parts, fmt.Sprintf("%d %s", v.Custom[class], class))
	}
	return strings.Join(parts, ", ")
}

// combine applies op to the amounts of v and o, class by class; a missing class counts as 0.
func (v Vector) combine(o Vector, op func(a, b int64) int64) Vector {
	sum := Vector{
		VCPUs:    op(v.VCPUs, o.VCPUs),
		MemoryMB: op(v.MemoryMB, o.MemoryMB),
		DiskGB:   op(v.DiskGB, o.DiskGB),
	}
	if len(v.Custom) == 0 && len(o.Custom) == 0 {
		return sum
	}
	sum.Custom = make(map[string]int64, len(v.Custom)+len(o.Custom))
	for class, amount := range v.Custom {
		sum.Custom[class] = op(amount, o.Custom[class])
	}
	for class, amount := range o.Custom {
		if _, done := v.Custom[class]; !done {
			sum.Custom[class] = op(0, amount)
		}
	}
	return sum
}
