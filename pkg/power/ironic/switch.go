// SPDX-License-Identifier: Apache-2.0

package ironic

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/ironic"
	"github.com/almanac-cloud/almanac/pkg/power"
)

const (
	// look is the interval of reading the node while Ironic switches it.
	look = time.Second
	// allowance is how much longer than requested Ironic may need: it repeats each command
	// to a BMC several times ([ipmi] command_retry_timeout), and then watches the node for
	// [conductor] power_state_change_timeout.
	allowance = 5 * time.Minute
)

// Switch brings the node to a state, if it is not in it already (Ironic reads the BMC). Off is a
// soft power off. If how.Hard is set, Switch cuts the power when the operating system has not
// stopped within how.Patience, or at once if Patience is 0. On switches the node on; if it is on
// and how.Hard is set, Ironic reboots it.
//
// The error is a Denied fault if the node must not be switched (maintenance, protected, retired, a
// fault, disable_power_off, an unstable provision state, or a power change of somebody else); a
// Conflict fault if Ironic still locks the node after about half a minute; and an Unavailable fault
// with Ironic's own error if Ironic could not switch it.
func (m *Machine) Switch(ctx context.Context, to energy.State, how power.PowerOffMode) error {
	doing := fmt.Sprintf("switch host %s %s", m.host, to)
	node, err := m.show(ctx)
	if err == nil {
		err = m.switchNode(ctx, node, to, how)
	}
	return fault.While(err, "%s", doing)
}

// switchNode orders the node on or off through Ironic and waits for it. If a soft shutdown fails and
// how.Hard is set, the power is cut.
func (m *Machine) switchNode(ctx context.Context, node ironic.Node, to energy.State, how power.PowerOffMode) error {
	want := ironic.PowerOn
	switch to {
	case energy.Off:
		want = ironic.PowerOff
	case energy.On:
	default:
		return fault.New(fault.Denied, "Ironic does not bring nodes to %s", to)
	}
	if why := untouchable(node, want); why != "" {
		return fault.New(fault.Denied, "%s", why)
	}
	m.target.Store(want)
	defer m.target.Store(ironic.Power(""))

	if node.Target == want { // the agent was restarted during the order
		_, err := m.await(ctx, node.ID, want, how.Patience)
		return err
	}
	order, timeout := ironic.PowerOn, time.Duration(0)
	switch {
	case want == ironic.PowerOn && node.Power == ironic.PowerOn && how.Hard:
		order = ironic.PowerReboot
	case want == ironic.PowerOff && how.Hard && how.Patience <= 0:
		order = ironic.PowerOff
	case want == ironic.PowerOff:
		order, timeout = ironic.PowerSoftOff, how.Patience
	}
	failed, err := m.order(ctx, node.ID, order, want, timeout)
	if failed && order == ironic.PowerSoftOff && how.Hard {
		err = m.cut(ctx, node.ID)
	}
	return err
}

// cut cuts the power of a node whose operating system does not stop, unless the node has become
// untouchable in the meantime.
func (m *Machine) cut(ctx context.Context, id string) error {
	node, err := m.client.Node(ctx, id)
	if err != nil {
		return err
	}
	if why := untouchable(node, ironic.PowerOff); why != "" {
		return fault.New(fault.Denied, "%s", why)
	}
	_, err = m.order(ctx, id, ironic.PowerOff, ironic.PowerOff, 0)
	return err
}

// order sends Ironic an order, and waits until the node has the power state want. failed is true if
// Ironic has given up, or does not accept such an order.
func (m *Machine) order(ctx context.Context, id string, order, want ironic.Power, timeout time.Duration) (failed bool, err error) {
	err = m.client.SetPower(ctx, id, order, timeout)
	switch {
	case fault.Is(err, fault.Invalid): // ironic/conductor/manager.py change_node_power_state
		return true, &fault.Error{Kind: fault.Unavailable, Message: fmt.Sprintf("Ironic cannot do %q with the node", order), Err: err}
	case err != nil:
		return false, err
	}
	return m.await(ctx, id, want, timeout)
}

// await reads the node until Ironic has finished. Failed reads are repeated, since the order
// continues. failed is true if Ironic has given up.
func (m *Machine) await(ctx context.Context, id string, want ironic.Power, patience time.Duration) (failed bool, err error) {
	for spent := time.Duration(0); spent <= patience+allowance; spent += look {
		var node ironic.Node
		node, err = m.client.Node(ctx, id)
		switch {
		case err != nil:
		case node.Target != "":
			err = fault.New(fault.Unavailable, "Ironic is still switching the node to %q", node.Target)
		case node.Power == want:
			return false, nil
		case node.LastError != "":
			return true, fault.New(fault.Unavailable, "Ironic reports: %s", node.LastError)
		default:
			return false, fault.New(fault.Unavailable, "the node has the power state %q though %q was ordered; somebody else switches it", node.Power, want)
		}
		if m.wait(ctx, look) != nil {
			break
		}
	}
	return false, fmt.Errorf("wait until Ironic has finished: %w", err)
}
