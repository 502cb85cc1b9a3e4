// SPDX-License-Identifier: Apache-2.0

package ipmi_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/powertest"
)

func TestTheDriverDoesWhatEachDoes(t *testing.T) {
	powertest.Run(t, "ipmi", func(t *testing.T) powertest.Bench {
		bmc := labtest.StartBMC(t)
		return powertest.Bench{
			Machine: machineOf(t, options(bmc)), On: bmc.On, Orders: func() int { return len(bmc.Orders()) },
			Ignore: func() { bmc.Set("stubborn", 1) }, Hang: func() { bmc.Set("delay", 600) },
		}
	})
}
