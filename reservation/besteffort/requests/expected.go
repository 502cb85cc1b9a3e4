// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"context"

	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// guessAge is for how many seconds a plan made by this process is used for all callers.
const guessAge = 5

// Expected returns when the VMs that do not run are expected to, by the id of the VM. If the
// controller runs in this process, the answer is from its last plan, otherwise from a plan made in
// the same way.
func (a *API) Expected(ctx context.Context) (map[string]besteffort.Expectation, error) {
	if a.Planned != nil {
		if expected, known := a.Planned(); known {
			return expected, nil
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.Now(); a.guess != nil && now < a.guessed.Add(guessAge) {
		return a.guess, nil
	}
	open, err := a.Store.OpenBestEffort(ctx)
	if err != nil || len(open) == 0 || a.View == nil {
		return nil, err
	}
	now, view := a.Now(), a.View()
	a.guess = a.Planner.Plan(view.Situation(open, now)).Expectations(now)
	a.guessed = a.Now()
	return a.guess, nil
}
