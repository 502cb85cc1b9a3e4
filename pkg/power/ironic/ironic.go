// Package ironic switches machines that are nodes of Ironic, through its API alone: when
// somebody else switches a node, Ironic takes that for a failure and switches it back
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
	// target is the ironic.Power that a Switch under way has ordered; empty where none is.
	target atomic.Value
}

var _ power.Machine = (*Machine)(nil)

// New returns the machine of a host: the node with a name or UUID, or, where node is empty,
// the one that Client.NodeOf finds. That lists all nodes at each read unless the node has
// the name of the host. wait waits between two reads of the node; nil waits by the clock.
func New(client *ironic.Client, host, node string, wait func(ctx context.Context, d time.Duration) error) *Machine {
	if wait == nil {
		wait = job.Pause
	}
	m := &Machine{client: client, host: host, node: node, wait: wait}
	m.target.Store(ironic.Power(""))
	return m
}

// Knows reports whether Ironic has a node of the host, so that nobody else may switch it. An
// error leaves that unknown.
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

// States returns On and Off: Ironic has no others.
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

func (m *Machine) show(ctx context.Context) (ironic.Node, error) {
	if m.node != "" {
		return m.client.Node(ctx, m.node)
	}
	return m.client.NodeOf(ctx, m.host, "")
}

// atRest are the provision states in which Ironic does nothing with a node by itself and no
// operator has to repair it (ironic/common/states.py STABLE_STATES, without error and
// rescue).
var atRest = map[string]bool{"enroll": true, "manageable": true, "available": true, "active": true}

// untouchable returns why nobody may switch a node now, a sentence, except to ours.
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

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
