// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Estimate is a mean over independent runs with half the width of its 95 % confidence interval
// (Student's t). The half width is 0 with a single run.
type Estimate struct {
	Mean, Half float64
	Runs       int
}

// Mean estimates the mean of the values of independent runs.
func Mean(values []float64) Estimate {
	e := Estimate{Runs: len(values)}
	switch e.Runs {
	case 0:
		return e
	case 1:
		e.Mean = values[0]
		return e
	}
	mean, deviation := stat.MeanStdDev(values, nil)
	n := float64(e.Runs)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
	e.Mean, e.Half = mean, t*deviation/math.Sqrt(n)
	return e
}

// String returns the mean and its interval, such as "0.872 ± 0.004".
func (e Estimate) String() string { return e.Format(3) }

// Format returns the mean and its interval with digits decimals.
func (e Estimate) Format(digits int) string {
	if e.Runs < 2 {
		return fmt.Sprintf("%.*f", digits, e.Mean)
	}
	return fmt.Sprintf("%.*f ± %.*f", digits, e.Mean, digits, e.Half)
}

// Each returns a measure of each run.
func Each[T any](runs []T, of func(T) float64) []float64 {
	values := make([]float64, len(runs))
	for i, run := range runs {
		values[i] = of(run)
	}
	return values
}

// Differences returns a − b for each run.
func Differences(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}
