// SPDX-License-Identifier: Apache-2.0

package staging

import "github.com/almanac-cloud/almanac/pkg/span"

// SlowAdmission returns an Admission that computes the whole state and its layout for each decision,
// whatever the site is.
func (f *Facts) SlowAdmission(now span.Instant, demands []Demand) *Admission {
	a := f.Accepted(now, demands)
	a.line = nil
	return a.Admission()
}

// Divides reports whether a decides about d from what d changes alone.
func (a *Admission) Divides(d Demand) bool {
	_, ok := a.change(d)
	return ok
}
