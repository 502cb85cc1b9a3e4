package ironic

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Power is the power state of a node, and what it can be told to have
// (ironic/common/states.py).
type Power string

// The power states. The empty Power is one that Ironic does not know. A node has one of
// the first two, and is told any.
const (
	On      Power = "power on"
	Off     Power = "power off"
	SoftOff Power = "soft power off" // by its operating system
	Reboot  Power = "rebooting"
)

// Node is a bare-metal node. What the microversion does not tell is empty.
type Node struct {
	ID, Name string
	Power    Power
	Target   Power // that Ironic brings it to now; empty: none
	// Provision is its provision state: "available", "active", "cleaning", ….
	Provision string
	// Maintenance says that Ironic leaves it alone, since an operator said so or since
	// Ironic has found the Fault.
	Maintenance       bool
	MaintenanceReason string
	Fault             string // "power failure", …
	Protected         bool
	ProtectedReason   string
	Retired           bool
	RetiredReason     string
	// StaysOn is disable_power_off: it must not be powered off.
	StaysOn   bool
	LastError string // of the last thing that was done with it and failed
	Lock      string // the conductor that works on it now
	// ComputeNode is extra.compute_node_id: the hypervisor that runs on it, by the
	// convention of Watcher. Instance is the name of the instance that is deployed on it.
	ComputeNode, Instance string
}

// node is a node as Ironic writes it (ironic/api/controllers/v1/node.py).
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

func (n node) known() (Node, error) {
	if n.ID == "" || n.Maintenance == nil {
		return Node{}, fmt.Errorf("a node has no uuid, or does not say whether it is in maintenance")
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

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Node gives the node with the UUID or name. It fails with a NotFound fault where there
// is none.
func (c *Client) Node(ctx context.Context, id string) (Node, error) {
	doing := "show node " + id
	if id == "" {
		return Node{}, fmt.Errorf("%s: %w", doing, fault.New(fault.NotFound, "it has no name"))
	}
	var body node
	if err := c.service.Get(ctx, doing, "nodes/"+url.PathEscape(id), &body); err != nil {
		return Node{}, err
	}
	one, err := body.known()
	if err != nil {
		return Node{}, c.service.Senseless(doing, "%w", err)
	}
	return one, nil
}

const (
	// pageSize is the most that Ironic gives at once unless it is told otherwise
	// ([api] max_limit).
	pageSize = 1000
	// mostPages bounds a list: a proxy may answer every page with the same one.
	mostPages = 1000
)

// Nodes gives all nodes (GET /nodes/detail).
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	const doing = "list the nodes"
	var all []Node
	query := url.Values{"limit": {fmt.Sprint(pageSize)}}
	for range mostPages {
		var body struct {
			Nodes []node
			Next  string
		}
		if err := c.service.Get(ctx, doing, "nodes/detail?"+query.Encode(), &body); err != nil {
			return nil, err
		}
		if body.Nodes == nil {
			return nil, c.service.Senseless(doing, "there is no list of nodes in it")
		}
		for _, n := range body.Nodes {
			one, err := n.known()
			if err != nil {
				return nil, c.service.Senseless(doing, "%w", err)
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
	return nil, c.service.Senseless(doing, "its pages do not end")
}

// NodeOf gives the node on which a host of Nova runs: the one that is called as the host
// is, with its domain or without; else the one whose extra.compute_node_id is the host's
// hypervisor, by its UUID (empty: not known) or the host's name; else the one on which an
// instance of the host's name is deployed. It fails with a NotFound fault where there is
// none, and with a Conflict one where there are several.
func (c *Client) NodeOf(ctx context.Context, host, hypervisor string) (Node, error) {
	doing := "find the node of host " + host
	if host == "" {
		return Node{}, fmt.Errorf("%s: %w", doing, fault.New(fault.NotFound, "it has no name"))
	}
	// mostly it is called so, and the list of all nodes is long; a name that no node can have is Invalid
	named, err := c.Node(ctx, host)
	if err == nil && named.Name == host {
		return named, nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Invalid) {
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
	return Node{}, fmt.Errorf("%s: %w", doing, fault.New(fault.NotFound, "ironic has no node for it"))
}

// called names a node for messages.
func (n Node) called() string {
	if n.Name == "" {
		return n.ID
	}
	return n.Name
}
