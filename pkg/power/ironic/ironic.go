// SPDX-License-Identifier: Apache-2.0

// Package ironic switches machines that are nodes of Ironic, only through its API: if a node is
// switched in another way, Ironic counts that as a failure and switches it back
// (ironic/conductor/manager.py do_sync_power_state).
package ironic

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/ironic"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/power"
)

// Machine is a node of Ironic. It implements power.Machine.
type Machine struct {
	client *ironic.Client
	host   string
	node   string // name or UUID; empty is the node of the host
	wait   func(ctx context.Context, d time.Duration) error
	// target is the ironic.Power that a Switch in progress has ordered; empty if there is none.
	target atomic.Value
}

var _ power.Machine = (*Machine)(nil)

// New returns the machine of a host: the node with a name or UUID or, if node is empty, the one
// that Client.NodeOf finds. NodeOf lists all nodes at each read unless the node has the name of the
// host. wait waits between two reads of the node; nil means a wait in real time.
func New(client *ironic.Client, host, node string, wait func(ctx context.Context, d time.Duration) error) *Machine {
	if wait == nil {
		wait = job.Pause
	}
	m := &Machine{client: client, host: host, node: node, wait: wait}
	m.target.Store(ironic.Power(""))
	return m
}

// Knows reports whether Ironic has a node for the host, so that it must not be switched in another
// way. After an error that is unknown.
func Knows(ctx context.Context, client *ironic.Client, host string) (bool, error) {
	_, err := client.NodeOf(ctx, host, "")
	switch {
	case fault.Is(err, fault.NotFound):
		return false, nil
	case fault.Is(err, fault.Conflict): // it has several
		return true, nil
	}
	return err == nil, err
}

// States returns On and Off, because Ironic has no other power states.
func (m *Machine) States() []energy.State { return []energy.State{energy.On, energy.Off} }

// Read returns the state of the node as Ironic last saw it ([conductor]
// sync_power_state_interval).
func (m *Machine) Read(ctx context.Context) (power.Reading, error) {
	node, err := m.show(ctx)
	if err != nil {
		return power.Reading{}, err
	}
	ours, _ := m.target.Load().(ironic.Power)
	return power.Reading{State: states[node.Power], Untouchable: untouchable(node, ours)}, nil
}

var states = map[ironic.Power]energy.State{ironic.PowerOn: energy.On, ironic.PowerOff: energy.Off}

// show reads the machine's node, by its id if the configuration has one, else by the host's name.
func (m *Machine) show(ctx context.Context) (ironic.Node, error) {
	if m.node != "" {
		return m.client.Node(ctx, m.node)
	}
	return m.client.NodeOf(ctx, m.host, "")
}

// atRest are the provision states in which Ironic does nothing with a node by itself and no
// operator has to repair it (ironic/common/states.py STABLE_STATES, without error and rescue).
var atRest = map[string]bool{"enroll": true, "manageable": true, "available": true, "active": true}

// untouchable returns the reason, as a sentence, why a node must not be switched now; "" if it may
// be. ours is the power state that Almanac itself has ordered: that order is no reason.
func untouchable(n ironic.Node, ours ironic.Power) string {
	switch {
	case n.Fault != "":
		return "Ironic has found a fault of the node" + because(n.Fault)
	case n.Maintenance:
		return "the node is in maintenance" + because(n.MaintenanceReason)
	case n.Protected:
		return "the node is protected" + because(n.ProtectedReason)
	case n.Retired:
		return "the node is retired" + because(n.RetiredReason)
	case n.StaysOn:
		return "the node must not be powered off (disable_power_off)"
	case !atRest[n.Provision]:
		return fmt.Sprintf("Ironic is working on the node, whose provision state is %q", n.Provision)
	case n.Target != "" && n.Target != ours:
		return fmt.Sprintf("Ironic already brings the node to %q for somebody else", n.Target)
	}
	return ""
}

// because returns a reason as the end of a sentence; "" for no reason.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
