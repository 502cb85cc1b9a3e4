package weighers

import "slices"

// Normalise scales raw between low and high, or its least and greatest where they are
// nil, without clamping it first.
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
