// SPDX-License-Identifier: Apache-2.0

package weighers

import "slices"

// Normalise scales raw to the range from low to high without clamping it first. A nil low
// or high stands for the least or greatest value of raw.
func Normalise(raw []float64, low, high *float64) {
	if len(raw) == 0 {
		return
	}
	w := Weighted{Min: low, Max: high}
	from, to := w.clamp(slices.Clone(raw))
	for i, x := range raw {
		raw[i] = normal(x, from, to)
	}
}
