package requests

import (
	"context"

	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// guessAge is for how many seconds a plan that was made here serves all callers.
const guessAge = 5

// Expected returns what is expected of the VMs that do not run: by the last plan of the
// controller where it runs in this process, else by a plan like the controller's.
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
