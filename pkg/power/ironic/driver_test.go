// SPDX-License-Identifier: Apache-2.0

package ironic_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/tests/powertest"
)

func TestTheDriverDoesWhatEachDoes(t *testing.T) {
	t.Parallel()
	powertest.Run(t, "ironic", func(t *testing.T) powertest.Bench {
		m, n, bmc := newMachineWithBMC(t)
		return powertest.Bench{
			Machine: m, Remembers: true, On: bmc.On, Orders: func() int { return len(bmc.Orders()) },
			Ignore: func() { bmc.Set("stubborn", 1) }, Hang: func() { bmc.Set("delay", 600) },
			Touch: func() { n.Maintain("a new disk") },
		}
	})
}
