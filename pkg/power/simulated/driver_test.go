// SPDX-License-Identifier: Apache-2.0

package simulated_test

import (
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/power/simulated"
	"github.com/almanac-cloud/almanac/tests/powertest"
)

func TestTheDriverDoesWhatEachDoes(t *testing.T) {
	powertest.Run(t, "simulated", func(*testing.T) powertest.Bench {
		m := simulated.New(simulated.Options{})
		return powertest.Bench{
			Machine: m, On: func() bool { return m.State() == energy.On }, Orders: m.Changes,
			Ignore: func() { m.Trouble(simulated.Trouble{NeverStops: true}) },
			Hang:   func() { m.Trouble(simulated.Trouble{Slow: time.Hour}) },
			Touch:  func() { m.Trouble(simulated.Trouble{Untouchable: "it is repaired"}) },
		}
	})
}
