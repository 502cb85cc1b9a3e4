// SPDX-License-Identifier: Apache-2.0

package besteffort

// PlanThoroughly is Plan with searches that look at all nodes.
func (r Rules) PlanThoroughly(s Situation) Plan {
	p := newPlanner(r, s)
	p.thorough = true
	return p.compute()
}
