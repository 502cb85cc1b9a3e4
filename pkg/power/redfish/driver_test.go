// SPDX-License-Identifier: Apache-2.0

package redfish_test

import (
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/labtest"
	"github.com/almanac-cloud/almanac/tests/powertest"
)

func TestTheDriverDoesWhatEachDoes(t *testing.T) {
	powertest.Run(t, "redfish", func(t *testing.T) powertest.Bench {
		bmc := labtest.StartRedfish(t, labtest.RedfishOptions{})
		o := options(bmc)
		o.Session = true
		return powertest.Bench{
			Machine: machineOf(t, o), On: bmc.On, Orders: func() int { return len(bmc.Resets()) },
			Ignore: func() { bmc.Trouble(labtest.RedfishTrouble{Stubborn: true}) },
			Hang:   func() { bmc.Trouble(labtest.RedfishTrouble{Delay: time.Minute}) },
		}
	})
}
