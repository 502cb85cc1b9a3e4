// SPDX-License-Identifier: Apache-2.0

package ironic_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
	"github.com/almanac-cloud/almanac/pkg/power"
	driver "github.com/almanac-cloud/almanac/pkg/power/ironic"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// newMachineWithBMC returns the machine of a node that Ironic switches with the real ipmitool.
func newMachineWithBMC(t *testing.T) (*driver.Machine, *labtest.IronicNode, *labtest.BMC) {
	t.Helper()
	bmc := labtest.StartBMC(t)
	n := labtest.NewIronicNode(t, map[string]any{
		"ipmi_address": "127.0.0.1", "ipmi_port": bmc.Port, "ipmi_username": labtest.BMCUser, "ipmi_password": labtest.BMCPassword,
	})
	return driver.New(newClient(t, openstack.Options{}), n.Name, n.ID, nil), n, bmc
}

func TestIronicSwitchesTheMachineByItsBMC(t *testing.T) {
	t.Parallel()
	m, _, bmc := newMachineWithBMC(t)
	for _, to := range []energy.State{energy.Off, energy.On} {
		orders := 0
		for range 2 { // the second time the machine already has the state
			if err := m.Switch(t.Context(), to, soft); err != nil {
				t.Fatalf("%s: %v", to, err)
			}
			if got := read(t, m); got != (power.Reading{State: to}) || bmc.On() != (to == energy.On) {
				t.Errorf("switched %s: got %+v, on: %v", to, got, bmc.On())
			}
			if orders == 0 {
				orders = len(bmc.Orders())
			} else if now := bmc.Orders(); len(now) != orders {
				t.Errorf("switched %s again, the BMC got %v", to, now[orders:])
			}
		}
	}
	if orders := bmc.Orders(); !slices.ContainsFunc(orders, func(o string) bool { return strings.HasPrefix(o, "shutdown") }) || slices.Contains(orders, "power 0") {
		t.Errorf("the operating system was not asked first: %v", orders)
	}
}

func TestThePowerIsCutWhereTheOperatingSystemDoesNotStopAndTheMannerIsHard(t *testing.T) {
	t.Parallel()
	m, _, bmc := newMachineWithBMC(t)
	bmc.Set("stubborn", 1)
	if err := m.Switch(t.Context(), energy.Off, power.PowerOffMode{Patience: 2 * time.Second, Hard: true}); err != nil || bmc.On() {
		t.Errorf("%v; on: %v", err, bmc.On())
	}
	if orders := bmc.Orders(); !strings.HasPrefix(orders[0], "shutdown") || orders[len(orders)-1] != "power 0" {
		t.Errorf("the BMC got the orders %v", orders)
	}
}

//make:test-energy
func TestThePowerIsNotCutWhereTheMannerIsNotHard(t *testing.T) {
	labtest.Long(t)
	t.Parallel()
	m, n, bmc := newMachineWithBMC(t)
	bmc.Set("stubborn", 1)
	err := m.Switch(t.Context(), energy.Off, power.PowerOffMode{Patience: 2 * time.Second})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "Ironic reports: Failed to change power state") || !bmc.On() {
		t.Fatalf("%v; on: %v", err, bmc.On())
	}
	if last := n.Show()["last_error"]; !strings.Contains(err.Error(), last.(string)) {
		t.Errorf("the error %q does not contain Ironic's own, %q", err, last)
	}
}

//make:test-energy
func TestAMachineThatIsOnAndHangsIsRestartedWhereTheMannerIsHard(t *testing.T) {
	labtest.Long(t)
	t.Parallel()
	m, _, bmc := newMachineWithBMC(t)
	if err := m.Switch(t.Context(), energy.On, hard); err != nil || !bmc.On() {
		t.Fatalf("%v; on: %v", err, bmc.On())
	}
	if orders := bmc.Orders(); !slices.Equal(orders, []string{"power 0", "power 1"}) {
		t.Errorf("the BMC got the orders %v", orders)
	}
}

//make:test-energy
func TestABMCThatAnswersAndDoesNothingIsAnError(t *testing.T) {
	labtest.Long(t)
	t.Parallel()
	m, n, bmc := newMachineWithBMC(t)
	bmc.Set("broken", 1)
	err := m.Switch(t.Context(), energy.Off, power.PowerOffMode{Hard: true})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "Ironic reports: Failed to change power state") {
		t.Errorf("got %v", err)
	}
	if got := read(t, m); got != (power.Reading{State: energy.On}) || n.Show()["maintenance"] != false {
		t.Errorf("afterwards: got %+v", got)
	}
	bmc.Set("broken", 0)
	if err := m.Switch(t.Context(), energy.Off, power.PowerOffMode{Hard: true}); err != nil || bmc.On() {
		t.Errorf("once it works again: %v; on: %v", err, bmc.On())
	}
}

// Ironic sets the fault of a node after three synchronizations without an answer.
//
//make:test-energy
func TestANodeWhoseBMCIsSilentIsLeftAlone(t *testing.T) {
	labtest.Long(t)
	t.Parallel()
	m, n, bmc := newMachineWithBMC(t)
	bmc.Set("delay", 600)
	n.Await("fault", "power failure")
	got := read(t, m)
	if got.State != "" || !strings.Contains(got.Untouchable, "fault of the node: power failure") {
		t.Errorf("got %+v", got)
	}
	if err := m.Switch(t.Context(), energy.On, hard); !fault.Is(err, fault.Denied) {
		t.Errorf("switched: %v", err)
	}
}
