// SPDX-License-Identifier: Apache-2.0

package labtest_test

import (
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

//make:test-energy
func TestAHostIsDownWhileItsNodeInIronicIsOff(t *testing.T) {
	labtest.Long(t)
	cloud := labtest.OpenStack(t)
	hardware := labtest.NewHardware(t, time.Second)
	hardware.FollowIronic()
	hosts := hardware.Hosts()
	last := hosts[len(hosts)-1]
	for _, power := range []struct{ order, state string }{{"off", "down"}, {"on", "up"}} {
		cloud.Openstack(t, labtest.Admin, "baremetal", "node", "power", power.order, last)
		cloud.AwaitService(t, last, power.state, "enabled", "", 5*time.Minute)
	}
}

func TestTheNodesOfTheHostsAreAvailableAndOn(t *testing.T) {
	cloud := labtest.OpenStack(t)
	var nodes []struct {
		Name  string
		Power string `json:"Power State"`
		State string `json:"Provisioning State"`
	}
	cloud.OpenstackJSON(t, labtest.Admin, &nodes, "baremetal", "node", "list")
	is, hosts := map[string]string{}, cloud.Hosts(t)
	for _, n := range nodes {
		is[n.Name] = n.Power + ", " + n.State
	}
	for _, host := range hosts[:min(len(hosts), 16)] {
		if is[host] != "power on, available" {
			t.Errorf("the node of %s is %q", host, is[host])
		}
	}
}
