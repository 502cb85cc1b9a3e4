// SPDX-License-Identifier: Apache-2.0

package ironic

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/openstack"
)

// Power is the power state of a node, or a power order (ironic/common/states.py).
type Power string

// The power states. The empty Power is unknown to Ironic. A node is in one of the first two;
// all are orders.
const (
	PowerOn      Power = "power on"
	PowerOff     Power = "power off"
	PowerSoftOff Power = "soft power off" // by its operating system
	PowerReboot  Power = "rebooting"
)

// Node is a bare-metal node. Fields that the microversion lacks are empty.
type Node struct {
	ID, Name string
	Power    Power
	Target   Power // the state that Ironic is bringing it to; empty: none
	// Provision is its provision state: "available", "active", "cleaning", ….
	Provision string
	// Maintenance reports whether Ironic leaves the node alone, because of an operator or
	// because Ironic has found the Fault.
	Maintenance       bool
	MaintenanceReason string
	Fault             string // "power failure", …
	Protected         bool
	ProtectedReason   string
	Retired           bool
	RetiredReason     string
	// StaysOn is disable_power_off: it must not be powered off.
	StaysOn   bool
	LastError string // of the last failed action
	Lock      string // the conductor that is working on it
	// ComputeNode is extra.compute_node_id: the hypervisor that runs on it, by Watcher's
	// convention. Instance is the name of the instance deployed on it.
	ComputeNode, Instance string
}

// node is a node in Ironic's JSON (ironic/api/controllers/v1/node.py).
type node struct {
	ID              string  `json:"uuid"`
	Name            *string `json:"name"`
	Power           *string `json:"power_state"`
	Target          *string `json:"target_power_state"`
	Provision       *string `json:"provision_state"` // null is available
	Maintenance     *bool   `json:"maintenance"`
	Reason          *string `json:"maintenance_reason"`
	Fault           *string `json:"fault"`
	Protected       bool    `json:"protected"`
	ProtectedReason *string `json:"protected_reason"`
	Retired         bool    `json:"retired"`
	RetiredReason   *string `json:"retired_reason"`
	StaysOn         bool    `json:"disable_power_off"`
	LastError       *string `json:"last_error"`
	Lock            *string `json:"reservation"`
	Extra           map[string]any
	Instance        map[string]any `json:"instance_info"`
}

// known returns Ironic's node as a Node, and an error if it lacks what each node has.
func (n node) known() (Node, error) {
	if n.ID == "" || n.Maintenance == nil {
		return Node{}, fmt.Errorf("a node has no uuid, or no maintenance field")
	}
	one := Node{
		ID: n.ID, Name: text(n.Name), Power: Power(text(n.Power)), Target: Power(text(n.Target)), Provision: text(n.Provision),
		Maintenance: *n.Maintenance, MaintenanceReason: text(n.Reason), Fault: text(n.Fault),
		Protected: n.Protected, ProtectedReason: text(n.ProtectedReason), Retired: n.Retired, RetiredReason: text(n.RetiredReason),
		StaysOn: n.StaysOn, LastError: text(n.LastError), Lock: text(n.Lock),
	}
	if one.Provision == "" {
		one.Provision = "available"
	}
	one.ComputeNode, _ = n.Extra["compute_node_id"].(string)
	one.Instance, _ = n.Instance["display_name"].(string)
	return one, nil
}

// text returns the text at s; "" for nil.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Node returns the node with the UUID or name. A missing node is a NotFound fault.
func (c *Client) Node(ctx context.Context, id string) (Node, error) {
	doing := "show node " + id
	if id == "" {
		return Node{}, fmt.Errorf("%s: %w", doing, fault.New(fault.NotFound, "it has no name"))
	}
	var body node
	err := c.service.Get(ctx, doing, "nodes/"+url.PathEscape(id), &body)
	if fault.Is(err, fault.Invalid) {
		return Node{}, &fault.Error{Kind: fault.NotFound, Err: err, Message: doing + ": ironic has no nodes with such names"}
	}
	if err != nil {
		return Node{}, err
	}
	one, err := body.known()
	if err != nil {
		return Node{}, c.service.Malformed(doing, "%w", err)
	}
	return one, nil
}

const (
	// pageSize is Ironic's default page limit ([api] max_limit).
	pageSize = 1000
	// mostPages bounds a list: a proxy may answer every request with the same page.
	mostPages = 1000
)

// children is the microversion since which lists leave out nodes with a parent unless they are asked
// for. Ironic 29 makes each node that is changed its own parent.
var children = openstack.Microversion{Major: 1, Minor: 83}

// Nodes returns all nodes (GET /nodes/detail).
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	const doing = "list the nodes"
	version, err := c.Microversion(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	var all []Node
	query := url.Values{"limit": {fmt.Sprint(pageSize)}}
	if !version.Less(children) {
		query.Set("include_children", "true")
	}
	for range mostPages {
		var body struct {
			Nodes []node
			Next  string
		}
		if err := c.service.Get(ctx, doing, "nodes/detail?"+query.Encode(), &body); err != nil {
			return nil, err
		}
		if body.Nodes == nil {
			return nil, c.service.Malformed(doing, "it contains no list of nodes")
		}
		for _, n := range body.Nodes {
			one, err := n.known()
			if err != nil {
				return nil, c.service.Malformed(doing, "%w", err)
			}
			all = append(all, one)
		}
		if body.Next == "" {
			return all, nil
		}
		if len(body.Nodes) == 0 || query.Get("marker") == all[len(all)-1].ID {
			break
		}
		query.Set("marker", all[len(all)-1].ID)
	}
	return nil, c.service.Malformed(doing, "its list does not end")
}

// NodeOf returns the node on which a host of Nova runs: the one with the host's name, with or
// without its domain; else the one whose extra.compute_node_id is the host's hypervisor, by its
// UUID (empty: unknown) or the host's name; else the one with a deployed instance of the host's
// name. No node is a NotFound fault, several a Conflict one. If no node is found and Ironic hides
// nodes from the user, that is a Denied fault.
func (c *Client) NodeOf(ctx context.Context, host, hypervisor string) (Node, error) {
	doing := "find the node of host " + host
	if host == "" {
		return Node{}, fmt.Errorf("%s: %w", doing, fault.New(fault.NotFound, "it has no name"))
	}
	// Usually a node has the host's name, and the list of all nodes is long.
	named, err := c.Node(ctx, host)
	if err == nil && named.Name == host {
		return named, nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Node{}, fmt.Errorf("%s: %w", doing, err)
	}
	all, err := c.Nodes(ctx)
	if err != nil {
		return Node{}, fmt.Errorf("%s: %w", doing, err)
	}
	short, _, _ := strings.Cut(host, ".")
	for _, is := range []func(Node) bool{
		func(n Node) bool { return n.ComputeNode == host || hypervisor != "" && n.ComputeNode == hypervisor },
		func(n Node) bool { return n.Name == short },
		func(n Node) bool { return n.Instance == host || n.Instance == short },
	} {
		found := slices.DeleteFunc(slices.Clone(all), func(n Node) bool { return !is(n) })
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return Node{}, fmt.Errorf("%s: %w", doing, fault.New(fault.Conflict,
				"ironic has several nodes for it: %s and %s", found[0].called(), found[1].called()))
		}
	}
	if err := c.seesAll(ctx); err != nil {
		return Node{}, fmt.Errorf("%s: %w", doing, err)
	}
	return Node{}, fmt.Errorf("%s: %w", doing, fault.New(fault.NotFound, "ironic has no node for it"))
}

// nobody is a project that owns no node.
const nobody = "00000000000000000000000000000000"

// seesAll returns a Denied fault if Ironic hides the nodes of other projects from the user. Ironic
// leaves them out of lists without an error, except if the request is for the nodes of another project
// (ironic/api/controllers/v1/utils.py check_list_policy).
func (c *Client) seesAll(ctx context.Context) error {
	var body struct{ Nodes []node }
	err := c.service.Get(ctx, "list the nodes of another project", "nodes?limit=1&project="+nobody, &body)
	if fault.Is(err, fault.Denied) {
		return &fault.Error{Kind: fault.Denied, Err: err, Message: "ironic shows this user only the nodes of its own project; " +
			"set [DEFAULT] rbac_service_role_elevated_access = true in ironic.conf for users with the role service, or use a user with system scope"}
	}
	return err
}

// called returns the node's name for messages.
func (n Node) called() string {
	if n.Name == "" {
		return n.ID
	}
	return n.Name
}

// Ironic itself waits two seconds for a lock, which a power synchronization or an operator may
// hold ([conductor] node_locked_retry_attempts).
const (
	attempts = 6
	pause    = 2 * time.Second
)

// SetPower orders Ironic to bring the node with the UUID or name to a power state, and does not
// wait for it: in the meantime Node.Target is that state. A node already in the state stays as
// it is. timeout is how long Ironic lets it take, in whole seconds; 0 is Ironic's default.
//
// SetPower retries for about half a minute on a node that Ironic is working on; then it returns
// a Conflict fault.
func (c *Client) SetPower(ctx context.Context, id string, to Power, timeout time.Duration) error {
	doing := fmt.Sprintf("order %q for node %s", to, id)
	o := nodes.PowerStateOpts{Target: nodes.TargetPowerState(to), Timeout: int((timeout + time.Second - 1) / time.Second)}
	for attempt := 1; ; attempt++ {
		err := c.service.Change(ctx, doing, func(ctx context.Context, g *gophercloud.ServiceClient) error {
			return nodes.ChangePowerState(ctx, g, url.PathEscape(id), o).Err
		})
		if !fault.Is(err, fault.Conflict) || attempt == attempts || c.wait(ctx, pause) != nil {
			return err
		}
	}
}
