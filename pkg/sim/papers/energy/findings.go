// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"fmt"
	"math"

	"github.com/almanac-cloud/almanac/pkg/sim"
)

// aFew is the largest difference in e_savings, in percentage points, that counts as about the same.
// muchLess is the largest ratio of two delays at which the smaller counts as much less.
const (
	aFew     = 5.0
	muchLess = 0.5
)

// findings compares the base setting, run by run, with the known results of paper 004. The draft of
// the paper has no numbers; the abstract of the published paper states that reservations reduce the
// time to deliver a cluster while the savings are like those of switching idle hosts off.
func (r *results) findings() []sim.Finding {
	on, off, reserved := r.of(AlwaysOn, r.options.Base), r.of(SwitchOff, r.options.Base), r.of(Reservations, r.options.Base)
	within, difference, share, late, known := true, 0.0, 0.0, 0, 0
	most, waits := int64(0), 0.0 // with all hosts on
	for i := range off {
		most, waits = max(most, on[i].Savings()), max(waits, on[i].Delay)
		within = within && off[i].Savings() <= off[i].ResIdle() && reserved[i].Savings() <= reserved[i].ResIdle()
		difference = max(difference, math.Abs(percent(float64(reserved[i].Savings()-off[i].Savings()), float64(off[i].Savings()))))
		if off[i].Delay > 0 {
			share = max(share, reserved[i].Delay/off[i].Delay)
		}
		late, known = late+reserved[i].late, known+reserved[i].ahead
	}
	return []sim.Finding{
		{Claim: "If all hosts stay on, nothing is saved and no request waits.", Verdict: sim.HeldIf(most == 0 && waits == 0),
			Seen: fmt.Sprintf("At most e_savings is %d and delay_req %v in a run.", most, waits)},
		{Claim: "No more is saved than is idle.", Verdict: sim.HeldIf(within),
			Seen: fmt.Sprintf("e_savings is %s of res_idle with switch-off and %s with reservations.",
				saved.estimate(off).Format(1)+" %", saved.estimate(reserved).Format(1)+" %")},
		{Claim: fmt.Sprintf("With reservations about as much is saved, within %.0f %%.", aFew), Verdict: sim.HeldIf(difference <= aFew),
			Seen: fmt.Sprintf("The largest difference in a run is %.1f %%.", difference)},
		{Claim: fmt.Sprintf("With reservations requests wait much less: delay_req is less than %.0f %% of what it is without.", 100*muchLess), Verdict: sim.HeldIf(share < muchLess),
			Seen: fmt.Sprintf("In the worst run it is %.0f %%.", 100*share)},
		{Claim: "Requests known ahead of the horizon begin on time.", Verdict: sim.HeldIf(late == 0),
			Seen: fmt.Sprintf("Of %d reservations %d began late.", known, late)},
	}
}
